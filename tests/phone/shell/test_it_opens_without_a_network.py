"""The service worker keeps the shell and nothing else, and a newer version takes over between nights."""

import pytest

from tests.phone.shell.phone import Phone

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEPT = "navigator.serviceWorker.ready.then(() => navigator.serviceWorker.controller !== null)"
ADDRESSES = """(async () => {
    const found = [];
    for (const name of await caches.keys())
        for (const request of await (await caches.open(name)).keys()) found.push(new URL(request.url).pathname);
    return found;
})()"""


@pytest.fixture
def kept(phone: Phone) -> Phone:
    """A phone that has the app's shell."""
    phone.open()
    phone.wait(lambda: phone.js(KEPT), "the service worker")
    return phone


def off_line(phone: Phone, off: bool) -> None:
    conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    phone.chromium.call("Network.emulateNetworkConditions", offline=off, **conditions)


def test_it_opens_without_a_network(kept):
    off_line(kept, True)
    try:
        kept.open()
        kept.until_screen("welcome")
        assert kept.js("document.styleSheets.length") == 2
        assert kept.text("#offline") == "No network"
        kept.tap("#welcome-go")
        kept.until_text("What this browser can do")
        kept.wait_for(
            "document.querySelector('#probe-go:not(:disabled)')"
        )  # its worker came from the shell too
    finally:
        off_line(kept, False)


def test_nothing_of_anyones_is_kept(kept):
    kept.tap("#welcome-go")
    kept.tap("#probe-go")
    kept.until_screen("join")
    addresses = kept.js(ADDRESSES)
    assert "/device/" in addresses
    assert [
        a for a in addresses if a.startswith(("/api/", "/blobs/")) or "facts" in a or "self-test" in a
    ] == []


def test_a_version_of_before_is_dropped_whole(kept):
    names = kept.js("""(async () => {
        await caches.open("nightshift-shell-of-before");
        await caches.open("something-else");
        const registration = await navigator.serviceWorker.ready;
        await registration.unregister();
        return caches.keys();
    })()""")
    assert "nightshift-shell-of-before" in names
    kept.open()
    kept.wait(
        lambda: "nightshift-shell-of-before" not in kept.js("caches.keys()"), "the end of the old shell"
    )
    assert "something-else" in kept.js("caches.keys()")
