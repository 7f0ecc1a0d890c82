"""The service worker keeps the shell and nothing else, and a newer version takes over between nights."""

import pytest
from playwright.sync_api import expect

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


def test_it_opens_without_a_network(kept):
    kept.page.context.set_offline(True)
    kept.open()
    kept.until_screen("welcome")
    assert kept.js("document.styleSheets.length") == 2
    assert kept.text("#offline") == "No network"
    kept.tap("#welcome-go")
    kept.until_text("What this browser can do")
    expect(kept.page.locator("#probe-go")).to_be_enabled()  # its worker came from the shell too


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
