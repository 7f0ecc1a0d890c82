from django.test import Client

from tests.marketplace import cast
from tests.marketplace.pages import scenes


def test_a_stranger_reads_what_the_site_is_and_where_to_begin(db):
    page = Client().get("/")
    assert page.status_code == 200
    assert b"Train a model" in page.content
    assert b"Lend a device" in page.content
    assert b'href="/sign-up/"' in page.content


def test_a_buyer_goes_to_the_jobs(browser, ada):
    cast.quoted_job(ada)
    scenes.device_of(ada, "Laptop")
    assert browser.get("/").url == "/jobs/"


def test_someone_who_only_owns_devices_goes_to_them(browser, ada):
    scenes.device_of(ada, "Laptop")
    assert browser.get("/").url == "/devices/"


def test_a_newcomer_goes_to_the_jobs_which_say_what_to_do_first(browser):
    assert browser.get("/").url == "/jobs/"
    assert b"Start with a dataset" in browser.get("/jobs/").content


def test_every_other_page_asks_a_stranger_to_log_in(db):
    for path in ("/jobs/", "/jobs/new/", "/datasets/", "/devices/", "/devices/list/", "/wallet/"):
        assert Client().get(path)["Location"] == f"/log-in/?next={path}"
