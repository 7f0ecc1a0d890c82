import pytest

from tests.marketplace import cast
from tests.marketplace.pages import scenes
from tests.marketplace.pages.reading import text_of


def test_an_empty_wallet_says_how_money_comes_in(bobs_browser):
    assert "An operator grants credit" in text_of(bobs_browser.get("/wallet/"))


def test_a_job_sets_money_aside_and_the_rest_returns(browser, ada):
    owner = cast.person("otto")
    job = scenes.trained(cast.quoted_job(ada), rounds=1, owner=owner)
    text = text_of(browser.get("/wallet/"))
    assert "To spend $95.00" in text
    assert "Set aside for jobs $4.9626" in text
    assert "two clouds $5.00 $4.9626" in text
    scenes.ended(job)
    text = text_of(browser.get("/wallet/"))
    assert "To spend $99.9626" in text
    assert "Returned from a job +$4.9626" in text
    assert "two clouds $5.00" not in text  # set aside no more; its invoice names it


@pytest.mark.parametrize("path", ["/wallet/", "/devices/"])
def test_an_owner_does_not_learn_whose_work_or_which_it_was(bobs_browser, bob, ada, path):
    scenes.trained(cast.quoted_job(ada, name="Secret plan"), rounds=1, owner=bob)
    text = text_of(bobs_browser.get(path))
    assert "$0.02992" in text
    assert "Secret plan" not in text
    assert "ada@example.org" not in text
