"""A phone in the middle of a lease, and then: at a whole site of real processes, with a buyer's job and the app.

Whatever happens, the lease is resumed or handed back, and a result is accepted, paid and shown.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import Error as BrowserError

from common.money import fee_microusd
from marketplace.demo.site import Site
from tests.end_to_end.conftest import ROOT, World, world_of
from tests.end_to_end.stories import start_job
from tests.phone.shell.phone import Phone
from tests.phone.worker.urls import SELF_TEST_FOLDER

pytestmark = [pytest.mark.browser, pytest.mark.end_to_end, pytest.mark.slow]

PATIENCE_S = 60  # a bound on hanging, not on slowness
OWNERS_ZONE: Final = ZoneInfo("Europe/Berlin")
# One shard at a time, which takes a processor some seconds; more rounds than all of these tests train.
JOB: Final[dict[str, Any]] = {
    "model": {"kind": "mlp", "hidden": [512, 256]},
    "batch_size": 16,
    "local_steps": 120,
    "shards_per_round": 1,
    "epochs": 400,
}
# Become a device that has passed the self-test, without the minute that an owner takes for it.
ENTER = """async (code) => {
    const modules = ["worker/keys", "app/site", "worker/machine", "worker/proof", "worker/transfers", "worker/trial"];
    const [keys, site, gpu, proof, transfers, trial] = await Promise.all(
        modules.map((name) => import(`/static/worker_protocol/${name}.js`)));
    const made = await keys.identityCreate();
    const deviceId = await site.devicePair({
        code, public_key: made.publicKey, name: "Pixel", kind: "phone", device_class: "laptop-cpu",
        speed_factor: 0.25,
    });
    await keys.identitySave({ keys: made.keys, deviceId, server: location.origin, name: "Pixel" });
    const machine = new gpu.Machine();
    const browser = await machine.browserName();
    machine.close();
    const text = await trial.manifestText(trial.MANIFEST_URL, null);
    const manifest = await transfers.sha256Hex(new TextEncoder().encode(text));
    await proof.proofWrite({ ok: true, failed: [], cases: [], manifest, browser });
    return deviceId;
}"""
NOTHING_LASTS = "globalThis.StorageManager && (StorageManager.prototype.persist = async () => false)"
WORKER_WITHOUT_FILES = """
import "/static/worker_protocol/worker/main.js";
StorageManager.prototype.getDirectory = async () => { throw new DOMException("Refused.", "SecurityError"); };
"""


class NightSite:
    """The site with a job that waits for devices, and a look into its database."""

    def __init__(self, world: World[Site]) -> None:
        self.world = world
        self.url = world.site.url

    def pairing_code(self) -> str:
        with self.world.client("owner") as owner:
            code: str = owner.post("pairing-codes/")["code"]
        return code

    def ledger_earnings_microusd(self) -> int:
        with self.world.client("owner") as owner:
            earned: int = owner.get("wallet/")["earnings_microusd"]
        return earned

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        database = sqlite3.connect(self.world.folder / "nightshift.sqlite3", timeout=20)
        with closing(database), database:
            return database.execute(query, values).fetchall()

    def wait_until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.world.logs()}"
            time.sleep(0.05)
        return found


class NightPhone:
    """A paired device of the site: the app in a browser of its own."""

    def __init__(self, site: NightSite, context: BrowserContext) -> None:
        self.site = site
        self.context = context
        self.app = self.tab()
        self.app.open()
        self.device: str = self.app.js(ENTER, site.pairing_code()).replace("-", "")

    def tab(self) -> Phone:
        return Phone(self.context, self.site.url, played=False, patience_s=PATIENCE_S)

    def start(self, app: Phone | None = None) -> None:
        """Start the night, in another tab if one is given."""
        self.app = app or self.app
        self.app.open()
        self.app.until_screen("home")
        self.app.tap("#start")
        self.app.until_screen("night")

    def in_the_middle_of_a_lease(self) -> str:
        """The lease that it trains, most of which is still to be done."""

        def trains() -> str | None:
            step = re.fullmatch(r"Step (\d+) of (\d+)", self.app.text("#detail"))
            running = self.leases("running")
            return running[0] if step and 0 < int(step[1]) < int(step[2]) / 4 and running else None

        found: str = self.site.wait_until(trains, "a lease in its middle")
        return found

    def leases(self, state: str) -> list[str]:
        """Those of its leases that are in this state now, the newest first."""
        return [
            lease
            for (lease,) in self.site.ask(
                "select id from scheduler_lease where device_id = ? and state = ? order by granted_at desc",
                self.device,
                state,
            )
        ]

    def ends(self, lease: str) -> tuple[str, str]:
        """State and reason of a lease once it has ended."""

        def ended() -> tuple[str, str] | None:
            ((state, reason),) = self.site.ask(
                "select state, reason from scheduler_lease where id = ?", lease
            )
            return None if state in {"granted", "running", "reported"} else (state, reason)

        found: tuple[str, str] = self.site.wait_until(ended, f"the end of lease {lease}")
        return found

    def resumes(self, lease: str) -> None:
        """The lease ends as if nothing had happened, and is paid."""
        assert self.ends(lease) == ("accepted", "")
        self._is_paid(lease)

    def works_again(self) -> None:
        """From now on another result is accepted and paid."""
        before = self.leases("accepted")
        self.site.wait_until(lambda: self.leases("accepted") != before, "an accepted result")
        self._is_paid(self.leases("accepted")[0])

    def _is_paid(self, lease: str) -> None:
        """It is charged, in the ledger with all that was accepted before, and shown on the screen."""
        charges = self.site.ask(
            "select id, charge_microusd, fee_basis_points from scheduler_lease where state = 'accepted' "
            "and ended_at <= (select ended_at from scheduler_lease where id = ?)",
            lease,
        )
        assert {found: charge for found, charge, _ in charges}[lease] > 0
        earned_microusd = sum(
            charge - fee_microusd(amount_microusd=charge, fee_basis_points=fee) for _, charge, fee in charges
        )
        in_ledger = self.site.ledger_earnings_microusd
        self.site.wait_until(lambda: in_ledger() >= earned_microusd, "earnings in the ledger")
        self.app.wait(lambda: self.app.text("#earned") != "$0.00", "earnings on the screen")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NightSite]:
    folder = tmp_path_factory.mktemp("night")
    SELF_TEST_FOLDER.mkdir(exist_ok=True)
    (folder / "self-test").symlink_to(SELF_TEST_FOLDER)
    serve = ("-m", "tests.phone.hasty_site")
    with world_of(Site(folder=folder, root=ROOT, serve=serve), folder) as world:
        with world.client("buyer") as buyer:
            start_job(world, buyer, **JOB)
        yield NightSite(world)


@pytest.fixture
def phone(site: NightSite, chromium: Browser) -> Iterator[NightPhone]:
    with chromium.new_context() as context:
        phone = NightPhone(site, context)
        phone.start()
        yield phone
        assert phone.app.complaints == []


def test_a_tab_that_is_closed_hands_its_lease_back_and_the_next_one_works(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    phone.app.page.close()
    phone.start(phone.tab())
    # Whether it still gets to say that it is not seen any more is up to the browser.
    assert phone.ends(lease) in {("handed_back", "blocked"), ("accepted", "")}
    phone.works_again()


def test_a_tab_that_crashes_leaves_its_lease_to_the_next_one(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    crash(phone.app.page)
    phone.start(phone.tab())
    phone.resumes(lease)


def test_what_a_phone_has_left_for_good_is_done_by_another(
    phone: NightPhone, site: NightSite, chromium: Browser
) -> None:
    with chromium.new_context() as context:
        other = NightPhone(site, context)
        other.start()
        other.app.until_text("Waiting for work", "#doing")
        lease = phone.in_the_middle_of_a_lease()
        crash(phone.app.page)
        other.works_again()
    assert phone.ends(lease) == ("revoked", "superseded")
    ((shard,),) = site.ask("select shard_id from scheduler_lease where id = ?", lease)
    done_by = site.ask(
        "select device_id from scheduler_lease where shard_id = ? and state = 'accepted'", shard
    )
    assert done_by == [(other.device,)]


def test_a_network_that_is_cut_and_comes_back_costs_nothing(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    phone.context.set_offline(True)
    phone.app.until_text("Training There is no network.", "#face")
    phone.context.set_offline(False)
    phone.resumes(lease)


def test_a_lost_gpu_hands_the_lease_back_and_is_opened_anew(phone: NightPhone, chromium: Browser) -> None:
    lease = phone.in_the_middle_of_a_lease()
    chromium.new_browser_cdp_session().send("Browser.crashGpuProcess")
    phone.app.until_text("The browser lost its GPU in the middle of a piece of work.", "#detail")
    assert phone.ends(lease) == ("handed_back", "device_lost")
    phone.works_again()


def test_a_window_that_ends_stops_the_work_until_the_next_one_opens(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    give_window(phone, closes_in=timedelta(seconds=0.5))
    phone.app.until_text("It is outside your idle windows. It starts by itself", "#face")
    # The device stops by its own clock, the site by its own: whichever is first.
    assert phone.ends(lease) in {("handed_back", "blocked"), ("revoked", "blocked")}
    give_window(phone, closes_in=timedelta(hours=1))
    phone.app.until_text("Window open until", "#window")
    phone.works_again()


def test_a_browser_that_grants_no_storage_works_and_resumes_all_the_same(
    site: NightSite, chromium: Browser
) -> None:
    # No service worker, which would answer in the route's place; and what a route has answered counts as from afar.
    options: dict[str, Any] = {"service_workers": "block", "permissions": ["local-network-access"]}
    with chromium.new_context(**options) as context:
        context.add_init_script(NOTHING_LASTS)
        context.route(
            "**/device/worker.js",
            lambda route: route.fulfill(body=WORKER_WITHOUT_FILES, content_type="text/javascript"),
        )
        phone = NightPhone(site, context)
        phone.start()
        lease = phone.in_the_middle_of_a_lease()
        assert phone.app.js("caches.has('nightshift-blobs')")
        crash(phone.app.page)
        again = phone.tab()
        again.open()
        again.until_text("The browser may delete this app\u2019s key", "#hints")
        phone.start(again)
        phone.resumes(lease)


def test_a_tab_that_is_frozen_goes_on_when_it_is_seen_again(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    devtools = phone.context.new_cdp_session(phone.app.page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    time.sleep(2)  # it can do nothing that could be waited for
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    assert phone.ends(lease) in {("handed_back", "blocked"), ("accepted", "")}
    phone.works_again()


def test_a_second_tab_says_that_the_first_one_works_and_costs_it_nothing(phone: NightPhone) -> None:
    lease = phone.in_the_middle_of_a_lease()
    second = phone.tab()
    second.open()
    second.tap("#start")
    second.until_text("This device is at work in another tab or window.", "#home-trouble")
    phone.resumes(lease)


def crash(page: Page) -> None:
    with page.expect_event("crash"), suppress(BrowserError):
        page.goto("chrome://crash", wait_until="commit", timeout=1_000)


def give_window(phone: NightPhone, *, closes_in: timedelta) -> None:
    """A window of its own that ends so soon: to the instant, where owners set it to the minute."""
    opens, closes = (datetime.now(OWNERS_ZONE) + after for after in (timedelta(hours=-1), closes_in))
    ask = phone.site.ask
    ((owner,),) = ask("select owner_id from accounts_device where id = ?", phone.device)
    ask("delete from accounts_idlewindow where device_id = ?", phone.device)
    ask(
        "insert into accounts_idlewindow (owner_id, device_id, weekday, starts, ends) values (?, ?, ?, ?, ?)",
        owner,
        phone.device,
        opens.weekday(),
        opens.strftime("%H:%M:%S"),
        closes.strftime("%H:%M:%S.%f"),
    )
    address = f"devices/{UUID(phone.device)}/"
    with phone.site.world.client("owner") as client:  # the same rules again, so that the site looks anew
        client.put(f"{address}policy/", client.get(address)["policy"])
