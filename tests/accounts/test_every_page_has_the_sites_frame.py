"""The frame of all pages: navigation, no script or style inside the page, and plain error pages."""

import re

import pytest
from django.shortcuts import render
from django.template.loader import render_to_string
from django.test import RequestFactory

from accounts.errors import DeviceNotFound
from common.http import DomainErrorMiddleware


def links(page: str) -> list[str]:
    navigation = re.search(r"<nav.*?</nav>", page, re.DOTALL)
    assert navigation is not None
    return re.findall(r'href="([^"]*)"', navigation[0])


def test_navigation_leads_to_every_part_of_the_site(client, ada):
    client.force_login(ada)
    page = client.get("/settings/").text
    assert links(page) == ["/jobs/", "/datasets/", "/devices/", "/wallet/", "/settings/", "/api-docs/"]
    assert '<a href="/settings/" aria-current="page">' in page
    assert page.count("aria-current") == 1


def test_strangers_are_offered_to_log_in_and_sign_up(client, db):
    page = client.get("/log-in/").text
    assert links(page) == ["/api-docs/"]
    assert 'href="/sign-up/"' in page
    assert "Log out" not in page


@pytest.mark.parametrize("path", ["/sign-up/", "/log-in/", "/password/reset/", "/password/reset/sent/"])
def test_pages_need_no_inline_script_or_style_and_no_other_site(client, db, path):
    page = client.get(path).text
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_a_missing_page_says_so_in_the_sites_frame(client, db):
    answer = client.get("/no/such/page/", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "Nothing here" in answer.text


def test_a_typed_error_shows_its_sentence_and_code(rf: RequestFactory):
    middleware = DomainErrorMiddleware(lambda request: render(request, "500.html"))
    request = rf.get("/devices/", headers={"Accept": "text/html"})
    answer = middleware.process_exception(request, DeviceNotFound("You have no such device."))
    assert answer is not None
    assert answer.status_code == 404
    assert "You have no such device." in answer.content.decode()
    assert "device_not_found" in answer.content.decode()


@pytest.mark.parametrize(("template", "words"), [("500.html", "our fault"), ("403.html", "Not allowed")])
def test_error_pages_render_without_any_context(template, words):
    assert words in render_to_string(template)
