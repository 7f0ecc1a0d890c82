"""A form that takes its time says what is being done and for how long, and is sent once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.chromium import complaints
from tests.static_site import static_site

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "static"
# The answer goes to a frame, as Playwright asks nothing of a page that is waiting for its next one.
PAGE = """<!doctype html><html lang="en"><link rel="stylesheet" href="/static/site.css">
<script type="module" src="/static/busy.js"></script>
<form method="post" action="/quote" target="answer" data-busy="Working out the quote">
<input name="epochs" required value="3"><button>Get a quote</button></form><iframe name="answer"></iframe></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("form")
    (folder / "form.html").write_text(PAGE)
    with static_site({"/static/": STATIC, "/files/": folder}) as address:
        yield address


@pytest.fixture
def sent() -> list[Route]:
    """What was posted, and never is answered."""
    return []


@pytest.fixture
def page(chromium: Browser, address: str, sent: list[Route]) -> Iterator[Page]:
    with chromium.new_context() as context:
        heard = complaints(context)
        page = context.new_page()
        # A function of its own, as Playwright leaves a mark on what it is given.
        page.route("**/quote", lambda route: sent.append(route))
        page.goto(f"{address}/files/form.html")
        yield page
        assert heard == []


def test_what_is_being_done_is_said_with_the_seconds_that_pass(page: Page) -> None:
    status = page.get_by_role("status")
    expect(status).to_be_hidden()
    page.get_by_role("button").click()
    expect(status).to_contain_text("Working out the quote…")
    expect(status).to_contain_text("1 s")
    expect(page.get_by_role("progressbar")).to_be_visible()


def test_an_impatient_second_press_sends_nothing(page: Page, sent: list[Route]) -> None:
    button = page.get_by_role("button")
    button.click()
    expect(button).to_have_attribute("aria-disabled", "true")
    button.dispatch_event("click")
    page.get_by_role("textbox").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 s")
    assert len(sent) == 1


def test_a_form_that_the_browser_refuses_is_not_busy(page: Page, sent: list[Route]) -> None:
    page.get_by_role("textbox").fill("")
    page.get_by_role("button").click()
    expect(page.get_by_role("status")).to_be_hidden()
    assert sent == []


def test_the_form_can_be_sent_again_by_who_comes_back_to_it(page: Page, sent: list[Route]) -> None:
    button = page.get_by_role("button")
    button.click()
    expect(page.get_by_role("status")).to_be_visible()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(page.get_by_role("status")).to_be_hidden()
    button.click()
    expect(page.get_by_role("status")).to_contain_text("1 s")
    assert len(sent) == 2
