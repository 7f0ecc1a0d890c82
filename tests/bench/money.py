"""Suite `money`: settlements a second, the check of a large ledger, and how long the payouts API takes under load.

On SQLite, in a folder of its own, as an embedded site has it. The references are the same work done plainly: one
charge a transaction, one account a query, the same requests one after another without load.
"""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from marketplace.demo.site import free_port
from tests.bench.rows import Row, beside

ROOT = Path(__file__).resolve().parents[2]
POSTINGS = 1_000_000
SETTLEMENTS = 4_000
A_BATCH = 100
OWNERS = 50
REQUESTS_PER_S = 50
SECONDS = 20


def run() -> list[Row]:
    """In a process of its own: Django's settings are read once, and they name the database."""
    with tempfile.TemporaryDirectory(prefix="nightshift-bench-") as folder:
        environ = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "marketplace.settings",
            "NIGHTSHIFT_VAR_DIR": folder,
            "NIGHTSHIFT_LOG_LEVEL": "ERROR",
        }
        out = Path(folder) / "rows.json"
        subprocess.run(
            [sys.executable, "-m", "tests.bench.money", str(out)], cwd=ROOT, env=environ, check=True
        )
        return msgspec.json.decode(out.read_bytes(), type=list[Row])


def _measure() -> list[Row]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    return [_settlements(), _payouts_api(), _check()]


def _settlements() -> Row:
    """Accepted results paid in batches, beside one transaction each."""
    from billing.services import Charge, hold_charge, hold_open
    from tests.billing.cast import USD, buyer, person

    bea = buyer(wallet_microusd=1_000 * USD)
    owner_ids = [person(f"owner-{number}").pk for number in range(OWNERS)]
    hold_open(user=bea, reference="job:1", amount_microusd=900 * USD)
    numbers = count()

    def charges(size: int) -> list[Charge]:
        return [
            Charge(idempotency_key=f"lease:{n}", owner_id=owner_ids[n % OWNERS], amount_microusd=1_000)
            for n, _ in zip(numbers, range(size), strict=False)
        ]

    def rate(batches: list[list[Charge]]) -> float:
        started = time.perf_counter()
        for batch in batches:
            hold_charge(reference="job:1", charges=batch)
        return sum(map(len, batches)) / (time.perf_counter() - started)

    rate([charges(A_BATCH)])  # warm
    in_batches = rate([charges(A_BATCH) for _ in range(SETTLEMENTS // A_BATCH)])
    one_by_one = rate([charges(1) for _ in range(200)])
    return beside(
        name=f"settlements, {A_BATCH} a batch",
        value=in_batches,
        unit="/s",
        reference="one a transaction",
        reference_value=one_by_one,
        target=">= 1000",
    )


def _check() -> Row:
    """`check_ledger` over a million postings, beside adding up one account after another."""
    from django.db.models import Sum

    from billing.models import Account, Posting
    from billing.selectors import ledger_differences

    _fill(POSTINGS - Posting.objects.count())
    started = time.perf_counter()
    differences = ledger_differences()
    checked_s = time.perf_counter() - started
    if differences:
        raise AssertionError(f"the bench's own ledger is wrong: {differences[:3]}")
    started = time.perf_counter()
    for account in Account.objects.all():
        account.postings.aggregate(Sum("amount_microusd"))
    plain_s = time.perf_counter() - started
    return beside(
        name=f"check_ledger, {Posting.objects.count():,} postings",
        value=checked_s,
        unit="s",
        reference="balances alone, one by one",
        reference_value=plain_s,
        target="< 10",
    )


def _fill(postings: int) -> None:
    """Transfers from one wallet to many owners, written straight to the tables: how they came is not measured."""
    from django.db import transaction

    from billing.models import Account, Posting, Transfer

    wallet = Account.objects.filter(kind=Account.Kind.WALLET).first()
    owners = list(Account.objects.filter(kind=Account.Kind.EARNINGS))
    assert wallet is not None
    moved = dict.fromkeys(owners, 0)
    for start in range(0, postings // 2, 10_000):
        with transaction.atomic():
            transfers = [
                Transfer(idempotency_key=f"fill:{n}", reason="charge", asked="fill")
                for n in range(start, min(start + 10_000, postings // 2))
            ]
            Transfer.objects.bulk_create(transfers, batch_size=1_000)
            lines = []
            for number, transfer in enumerate(transfers):
                owner = owners[number % len(owners)]
                moved[owner] += 1
                lines.append(Posting(transfer=transfer, account=owner, amount_microusd=1))
                lines.append(Posting(transfer=transfer, account=wallet, amount_microusd=-1))
            Posting.objects.bulk_create(lines, batch_size=1_000)
    for owner, amount in moved.items():
        Account.objects.filter(pk=owner.pk).update(balance_microusd=owner.balance_microusd + amount)
    Account.objects.filter(pk=wallet.pk).update(
        balance_microusd=wallet.balance_microusd - sum(moved.values())
    )


def _payouts_api() -> Row:
    """The slowest of a hundred answers at 50 requests a second over a real socket, beside the same without load."""
    from accounts.models import User
    from accounts.services import api_token_create

    tokens = []
    for number in range(OWNERS):
        user = User.objects.get(email=f"owner-{number}@example.org")
        tokens.append(api_token_create(user=user, name="bench", scopes=["payouts:read"])[1])
    paths = ["balances/", "earnings/", "", "estimate/"]
    with _site() as get:
        calls = [
            (f"/api/payouts/{paths[n % len(paths)]}", tokens[n % OWNERS])
            for n in range(REQUESTS_PER_S * SECONDS)
        ]
        for path, token in calls[: 2 * OWNERS]:  # every token, whose first use is written down
            get(path, token)
        alone = sorted(get(path, token) for path, token in calls[:100])
        loaded = sorted(_paced(get, calls))
    return beside(
        name=f"payouts API p99 at {REQUESTS_PER_S} requests a second",
        value=1_000 * loaded[len(loaded) * 99 // 100],
        unit="ms",
        reference="one at a time",
        reference_value=1_000 * alone[98],
        target="< 50",
    )


def _paced(get: Callable[[str, str], float], calls: Iterable[tuple[str, str]]) -> list[float]:
    """Each call at its own moment, whether or not the ones before have been answered."""
    with ThreadPoolExecutor(32) as pool:
        started, waiting = time.perf_counter(), []
        for number, (path, token) in enumerate(calls):
            time.sleep(max(0.0, started + number / REQUESTS_PER_S - time.perf_counter()))
            waiting.append(pool.submit(get, path, token))
        return [answer.result() for answer in waiting]


@contextmanager
def _site() -> Iterator[Callable[[str, str], float]]:
    """The site's own server in a process; what it gives answers with the seconds that a request took."""
    port = free_port()
    command = [sys.executable, "-m", "daphne", "-p", str(port), "marketplace.asgi:application"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_listens(port)
            yield partial(_timed, threading.local(), f"127.0.0.1:{port}")
        finally:
            process.terminate()


def _timed(local: Any, host: str, path: str, token: str) -> float:
    """By the plainest client there is: what it computes, it takes from the server on the same two cores."""
    if not hasattr(local, "connection"):  # one a thread
        local.connection = http.client.HTTPConnection(host, timeout=20)
    started = time.perf_counter()
    local.connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = local.connection.getresponse()
    answer.read()
    took_s = time.perf_counter() - started
    if answer.status != HTTPStatus.OK:
        raise AssertionError(f"{path} answered {answer.status}")
    return took_s


def _wait_until_it_listens(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("the site did not start")


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(_measure()))
