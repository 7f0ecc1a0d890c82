"""Pages that have the worker's modules loaded, or start workers as the phone app does."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from playwright.sync_api import Browser, CDPSession, Page

from tests.browser.conftest import STATIC
from tests.phone.worker.jobs import long_job, tiny_job
from tests.phone.worker.standins import Site, stand_in
from tests.phone.worker.urls import SELF_TEST_FOLDER
from tests.static_site import static_site
from tests.worker_protocol.conftest import KEY
from tests.worker_protocol.sites import BlobSite, blob_site
from worker_protocol.self_test import self_test_open
from worker_protocol.wire import messages as msg

HERE = Path(__file__).parent
DEVICE = "0b5c1a52-7f3e-4c58-9a57-2f4f6f1d0c11"
LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"
OTHER_LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e02"
THIRD_LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e03"
NO_SELF_TEST = "/nowhere/self-test.json"  # so that what was passed before counts
NOTHING_SAID = {
    "phase": None,
    "reason": None,
    "terms": None,
    "earnedMicrousd": 0,
    "leasesDone": 0,
    "connected": False,
    "error": None,
}
PATIENCE_S = 120  # a bound on hanging, not on slowness


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the worker's files, the self-test and the tests' pages are served, which may call any other address."""
    trial = tmp_path_factory.mktemp("trial")
    (trial / "self-test").mkdir()
    made = self_test_open(SELF_TEST_FOLDER)
    (trial / "self-test.json").write_bytes(made.manifest)
    for sha256, data in made.files.items():
        (trial / "self-test" / sha256).write_bytes(data)
    policy = "default-src 'self'; connect-src *"
    folders = {"/static/": STATIC, "/phone/": HERE, "/device/": trial}
    with static_site(folders, policy=policy) as address:
        yield address


class Harness:
    """A page with the functions of harness.js or night.js."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self._name = name

    def visit(self, address: str) -> None:
        self.page.goto(f"{address}/phone/{self._name}.html")

    def call(self, function: str, *arguments: Any) -> Any:
        return self.page.evaluate(f"([name, given]) => {self._name}[name](...given)", [function, arguments])


@pytest.fixture(scope="module")
def page(chromium: Browser, address: str) -> Iterator[Harness]:
    """The page with the worker's modules."""
    with chromium.new_context() as context:
        harness = Harness(context.new_page(), "harness")
        harness.visit(address)
        yield harness


class Night(Harness):
    """A page that starts workers as the phone app does."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, "night")

    def tab(self, address: str) -> "Night":
        """Another tab of the same browser."""
        night = Night(self.page.context.new_page())
        night.visit(address)
        return night

    def devtools(self) -> CDPSession:
        """For what Playwright has no word for."""
        return self.page.context.new_cdp_session(self.page)

    def start(self, name: str = "worker", *, url: str | None = NO_SELF_TEST) -> None:
        self.call("open", name)
        self.tell({"type": "start", **({"url": url} if url else {})}, name)

    def move(self, server: str) -> None:
        """Be paired with this site."""
        pkcs8 = KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        self.call("become", {"deviceId": DEVICE, "server": server, "pkcs8Hex": pkcs8.hex()})

    def tell(self, message: dict[str, Any], name: str = "worker") -> None:
        self.call("tell", name, message)

    def state(self, name: str = "worker") -> dict[str, Any]:
        """The worker's last word; before its first, one that says nothing."""
        return dict(self.call("last", name) or NOTHING_SAID)

    def answer(
        self, kind: str, condition: Callable[[dict[str, Any]], Any] = bool, name: str = "worker"
    ) -> dict[str, Any]:
        """The first message of a kind that meets the condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [told for told in self.call("told", name, kind) if condition(told)]):
            assert time.monotonic() < deadline, (self.state(name), self.call("failures"))
            time.sleep(0.05)
        return dict(found[0])

    def wait_until(self, condition: Callable[[dict[str, Any]], Any], name: str = "worker") -> dict[str, Any]:
        """The first state seen that meets the condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(state := self.state(name)):
            assert time.monotonic() < deadline, (state, self.call("failures"))
            time.sleep(0.05)
        return state


@pytest.fixture
def night(chromium: Browser, address: str, site: Site) -> Iterator[Night]:
    """A page of a browser that is paired with the stand-in site and has passed the self-test before."""
    with chromium.new_context() as context:
        night = Night(context.new_page())
        night.visit(address)
        night.move(site.url)
        night.call("trust")
        yield night


@pytest.fixture
def site() -> Iterator[Site]:
    with stand_in() as site:
        yield site


@pytest.fixture
def blobs() -> Iterator[BlobSite]:
    with blob_site() as site:
        yield site


class Leases(Protocol):
    def __call__(
        self, lease_id: str = ..., *, steps: int = ..., long: bool = ..., **changes: Any
    ) -> msg.Lease: ...


@pytest.fixture
def lease(blobs: BlobSite) -> Leases:
    """Makes leases: on the tiny job, or a long one that is still under way whenever a test looks."""
    jobs = {
        False: tiny_job(),
        True: long_job(),
    }  # now, as compiling would keep the site's thread from answering

    def make(lease_id: str = LEASE, *, steps: int = 5, long: bool = False, **changes: Any) -> msg.Lease:
        job = jobs[long]
        fields = {
            "lease_id": lease_id,
            "program": blobs.add(job.program_file),
            "params": blobs.add(job.params),
            "slice": blobs.add(job.slice),
            "steps": msg.MAX_STEPS if long else steps,
            "batch_size": job.batch,
            "seed": 11,
            "learning_rate": 0.01,
            "time_left_ms": 30_000,
            "upload_url": f"{blobs.url}/upload-{lease_id}",
        }
        return msg.Lease(**{**fields, **changes})

    return make


@pytest.fixture
def ready(night: Night, site: Site, lease: Leases) -> None:
    """The worker has logged in and says that it is free."""
    night.start()
    site.hears(msg.Ready)


@pytest.fixture
def at_work(ready: None, site: Site, lease: Leases) -> msg.Progress:
    """The worker is in the middle of LEASE, a long one; the last that it has told of it."""
    site.says(lease(long=True))
    return site.hears_step()
