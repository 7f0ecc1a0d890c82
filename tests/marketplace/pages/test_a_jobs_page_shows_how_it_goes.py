"""A job from its quote to its model, as its page tells it."""

import io

import pytest
import torch

from accounts.models import User
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from scheduler.models import Run
from tests.marketplace import cast
from tests.marketplace.pages import scenes
from tests.marketplace.pages.reading import text_of


@pytest.fixture
def owner(db) -> User:
    return cast.person("otto")


def test_a_quote_says_what_it_is_made_of_and_what_is_set_aside(browser, ada):
    job = cast.quoted_job(ada)
    text = text_of(browser.get(f"/jobs/{job.pk}/"))
    assert "Waits for you to confirm its quote." in text
    assert "Phone, top class" in text
    assert "refused or late results cost nothing. Loading and waiting are not billed." in text
    assert "Confirm and set" in text


def test_confirming_sets_the_money_aside_and_starts_it(browser, ada):
    job = cast.quoted_job(ada)
    assert browser.post(f"/jobs/{job.pk}/confirm/").url == f"/jobs/{job.pk}/"
    job.refresh_from_db()
    assert job.state == Job.State.RUNNING
    page = browser.get(f"/jobs/{job.pk}/")
    assert "Round 0 of" in text_of(page)
    assert b"data-live" in page.content


def test_a_wallet_with_too_little_is_told_before_and_after_the_button(bobs_browser, bob):
    job = cast.quoted_job(bob)
    assert "too little" in text_of(bobs_browser.get(f"/jobs/{job.pk}/"))
    page = bobs_browser.post(f"/jobs/{job.pk}/confirm/")
    assert page.status_code == 402
    assert b'class="notice error"' in page.content
    assert Job.objects.get().state == Job.State.QUOTED


def test_a_running_job_shows_its_rounds_shards_and_spend(browser, ada, owner):
    job = scenes.trained(cast.quoted_job(ada), rounds=2, owner=owner)
    scenes.round_under_way(job, scenes.device_of(owner, "Laptop"))
    page = browser.get(f"/jobs/{job.pk}/")
    text = text_of(page)
    assert "Round 2 of" in text
    assert "1 of 3 results in, 1 in work, 1 waiting for a device" in text
    assert "$0.07489 of the $5.00 set aside" in text
    assert page.content.count(b"<svg") == 2


def test_why_it_waits_is_said_in_a_sentence(browser, ada):
    job = cast.running_job(ada)
    Run.objects.update(waiting="no_device_online")
    assert "No device that can do this work is online." in text_of(browser.get(f"/jobs/{job.pk}/"))


def test_the_part_that_refreshes_is_the_same_part_without_its_frame(browser, ada, owner):
    job = scenes.trained(cast.quoted_job(ada), rounds=1, owner=owner)
    part = browser.get(f"/jobs/{job.pk}/progress/").content.decode()
    assert "<html" not in part
    assert "Round 1 of" in part
    assert f'data-refresh="/jobs/{job.pk}/progress/"' in browser.get(f"/jobs/{job.pk}/").content.decode()


def test_without_script_a_running_page_reloads_itself(browser, ada, owner):
    job = scenes.trained(cast.quoted_job(ada), rounds=1, owner=owner)
    assert b'<noscript><meta http-equiv="refresh"' in browser.get(f"/jobs/{job.pk}/").content
    scenes.ended(job)
    page = browser.get(f"/jobs/{job.pk}/")
    assert b"http-equiv" not in page.content
    assert b"data-live" not in page.content


def test_a_finished_job_gives_its_model_and_the_line_that_loads_it(browser, ada, owner):
    job = scenes.finished(cast.quoted_job(ada), rounds=2, owner=owner)
    text = text_of(browser.get(f"/jobs/{job.pk}/"))
    assert "torch.export.load('two-clouds.pt2').module()" in text
    assert "Returned to your wallet $4.92511" in text
    answer = browser.get(f"/jobs/{job.pk}/model/pt2/")
    assert 'filename="two-clouds.pt2"' in answer["Content-Disposition"]
    model = torch.export.load(io.BytesIO(b"".join(answer.streaming_content))).module()
    assert model(torch.zeros(3, 4)).shape == (3, 2)


def test_a_model_that_is_not_there_yet_is_said_so(browser, ada):
    job = cast.running_job(ada)
    assert browser.get(f"/jobs/{job.pk}/model/pt2/").status_code == 409


def test_cancelling_says_what_it_means_and_does_it(browser, ada):
    job = cast.running_job(ada)
    assert "Results that are accepted by then are paid" in text_of(browser.get(f"/jobs/{job.pk}/"))
    browser.post(f"/jobs/{job.pk}/cancel/")
    assert "Stopping" in text_of(browser.get(f"/jobs/{job.pk}/"))


def test_what_has_ended_cannot_be_cancelled(browser, ada, owner):
    job = scenes.finished(cast.quoted_job(ada), rounds=1, owner=owner)
    page = browser.post(f"/jobs/{job.pk}/cancel/")
    assert page.status_code == 409
    assert b"nothing to cancel" in page.content


def test_the_list_shows_each_job_where_it_stands(browser, ada, owner):
    cast.quoted_job(ada, name="Asked")
    scenes.finished(cast.quoted_job(ada, name="Done"), rounds=2, owner=owner)
    settle_pending()
    text = text_of(browser.get("/jobs/"))
    assert "Asked clusters Quoted 0 of" in text
    assert "Done clusters Finished 2 of" in text
    assert "$0.07489" in text


def test_numbers_are_predicted_with_a_loss_and_no_accuracy(browser, ada, owner):
    job = cast.quoted_job(ada, dataset=cast.dataset_of_numbers(ada), loss="mse")
    page = browser.get(f"/jobs/{scenes.trained(job, rounds=2, owner=owner).pk}/")
    assert page.content.count(b"<svg") == 1
    assert "Accuracy" not in text_of(page)
