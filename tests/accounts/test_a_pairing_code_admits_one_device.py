"""Pairing: one code, one device, for ten minutes; whatever is refused leaves everything as it was."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from accounts.domain.windows import NIGHTLY, Window
from accounts.errors import (
    AccountsError,
    DeviceAlreadyPaired,
    InvalidDeviceFacts,
    InvalidName,
    InvalidPublicKey,
    LimitError,
    PairingCodeExpired,
    PairingCodeUsed,
    PairingCodeWrong,
    TooManyPairingAttempts,
)
from accounts.models import Device, DeviceNews, IdleWindow, PairingCode, User
from accounts.selectors import common_windows_of, device_profile
from accounts.services import (
    device_pair,
    device_remove,
    idle_windows_replace,
    pairing_code_create,
    user_sign_up,
)
from accounts.services.pairing import CODE_ALPHABET, MAX_LIVE_CODES
from tests.accounts.conftest import PASSWORD, new_public_key

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def join(code: str, **given) -> Device:
    facts = {"public_key": new_public_key(), "name": "Pixel", "kind": "phone", "device_class": "phone-high"}
    return device_pair(code=code, **{**facts, **given})


def test_a_device_joins_its_codes_owner_with_its_key(ada):
    _, code = pairing_code_create(owner=ada)
    key = new_public_key()
    device = join(code, public_key=key, name=" Ada's phone ", speed_factor=1.5)
    device.refresh_from_db()
    assert (device.owner, device.name, device.state, device.speed_factor) == (
        ada,
        "Ada's phone",
        "active",
        1.5,
    )
    assert bytes(device.public_key) == key
    assert PairingCode.objects.get().device == device


def test_a_new_device_is_news_for_the_scheduler(ada, pair):
    device = pair(ada)
    assert [(n.kind, n.payload) for n in DeviceNews.objects.all()] == [
        ("changed", {"device_id": str(device.id)})
    ]


def test_a_code_is_eight_clear_characters_and_is_not_stored(ada):
    row, code = pairing_code_create(owner=ada)
    letters = code.replace("-", "")
    assert code == f"{letters[:4]}-{letters[4:]}"
    assert len(letters) == 8
    assert set(letters) <= set(CODE_ALPHABET)
    assert not set("ILO01") & set(CODE_ALPHABET)
    assert letters not in str(row.__dict__)


def test_a_code_may_be_typed_in_small_letters_and_with_blanks(ada):
    _, code = pairing_code_create(owner=ada)
    assert join(f" {code[:4]} {code[5:]} ".lower()).owner == ada


def test_a_wrong_code_is_refused(ada):
    pairing_code_create(owner=ada)
    with pytest.raises(PairingCodeWrong):
        join("AAAA-AAAA")
    assert not Device.objects.exists()


def test_a_code_expires_after_ten_minutes(ada):
    _, code = pairing_code_create(owner=ada, now=NOW)
    with pytest.raises(PairingCodeExpired):
        join(code, now=NOW + timedelta(minutes=10))
    assert join(code, now=NOW + timedelta(minutes=9, seconds=59)).owner == ada


def test_a_code_is_used_once(ada):
    _, code = pairing_code_create(owner=ada)
    join(code)
    with pytest.raises(PairingCodeUsed):
        join(code)
    assert Device.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "error", "field"),
    [
        ({"public_key": b""}, InvalidPublicKey, "public_key"),
        ({"public_key": b"k" * 31}, InvalidPublicKey, "public_key"),
        ({"public_key": b"k" * 33}, InvalidPublicKey, "public_key"),
        ({"name": " "}, InvalidName, "name"),
        ({"kind": "toaster"}, InvalidDeviceFacts, "kind"),
        ({"device_class": "quantum"}, InvalidDeviceFacts, "device_class"),
        ({"speed_factor": 0.0}, InvalidDeviceFacts, "speed_factor"),
        ({"speed_factor": float("nan")}, InvalidDeviceFacts, "speed_factor"),
        ({"speed_factor": float("inf")}, InvalidDeviceFacts, "speed_factor"),
    ],
)
def test_bad_facts_are_refused_and_leave_the_code_usable(ada, given, error, field):
    _, code = pairing_code_create(owner=ada)
    with pytest.raises(error) as refused:
        join(code, **given)
    assert refused.value.field == field
    assert join(code).owner == ada


def test_a_key_that_is_paired_already_is_refused_and_leaves_the_code_usable(ada, bob, phone):
    _, code = pairing_code_create(owner=bob)
    with pytest.raises(DeviceAlreadyPaired):
        join(code, public_key=bytes(phone.public_key))
    assert Device.objects.get() == phone
    assert join(code).owner == bob


def test_the_key_of_a_removed_device_cannot_come_back(ada, phone):
    device_remove(owner=ada, device_id=phone.id)
    _, code = pairing_code_create(owner=ada)
    with pytest.raises(DeviceAlreadyPaired, match="fresh key"):
        join(code, public_key=bytes(phone.public_key))


def test_the_first_device_gets_every_night(ada, phone):
    profile = device_profile(phone.id)
    assert profile is not None
    assert profile.windows == NIGHTLY


def test_an_owner_who_has_chosen_windows_keeps_them(ada, pair):
    chosen = [Window(0, NIGHTLY[0].starts, NIGHTLY[0].ends)]
    idle_windows_replace(owner=ada, device_id=None, windows=chosen)
    pair(ada)
    pair(ada)
    assert common_windows_of(ada) == chosen
    assert IdleWindow.objects.count() == 1


def test_wrong_codes_from_one_address_are_bounded(ada):
    _, code = pairing_code_create(owner=ada)
    for _ in range(10):
        with pytest.raises(PairingCodeWrong):
            join("AAAA-AAAA", client_address="192.0.2.1")
    with pytest.raises(TooManyPairingAttempts, match="10 minutes"):
        join(code, client_address="192.0.2.1")
    assert join(code, client_address="192.0.2.2").owner == ada, "others are not held up"


def test_right_codes_do_not_count_as_attempts(ada):
    for _ in range(12):
        _, code = pairing_code_create(owner=ada)
        join(code, client_address="192.0.2.1")
    assert Device.objects.count() == 12


def test_unused_codes_are_bounded_and_old_ones_cleared(ada):
    for _ in range(MAX_LIVE_CODES):
        pairing_code_create(owner=ada, now=NOW)
    with pytest.raises(LimitError):
        pairing_code_create(owner=ada, now=NOW)
    pairing_code_create(owner=ada, now=NOW + timedelta(hours=1))
    assert PairingCode.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_devices_that_race_for_one_code_one_joins():
    owner = user_sign_up(email="ada@example.org", password=PASSWORD, time_zone="Europe/Berlin")
    _, code = pairing_code_create(owner=owner)
    outcomes = _all_at_once([lambda: join(code) for _ in range(6)])
    assert sorted(outcomes) == ["joined", *["pairing_code_used"] * 5]
    assert Device.objects.count() == 1
    assert IdleWindow.objects.count() == 7


@pytest.mark.django_db(transaction=True)
def test_devices_of_one_owner_that_join_at_once_make_the_nightly_windows_once():
    owner = user_sign_up(email="ada@example.org", password=PASSWORD, time_zone="Europe/Berlin")
    codes = [pairing_code_create(owner=owner)[1] for _ in range(4)]
    outcomes = _all_at_once([lambda code=code: join(code) for code in codes])
    assert outcomes == ["joined"] * 4
    assert User.objects.get().idle_windows.count() == 7


def _all_at_once(joins) -> list[str]:
    """Runs each in a thread with a connection of its own; what came of it is 'joined' or an error's code."""
    start = threading.Barrier(len(joins))
    outcomes = []

    def run(attempt) -> None:
        start.wait()
        try:
            attempt()
            outcomes.append("joined")
        except AccountsError as error:
            outcomes.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(attempt,)) for attempt in joins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
