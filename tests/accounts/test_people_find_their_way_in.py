"""The pages around a person's account: sign-up, log-in, log-out, and the way back after a lost password."""

import re

import pytest
from django.test import Client

from accounts.models import User
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
NEW = {"email": "cleo@example.org", "password": PASSWORD, "time_zone": "Europe/Rome"}


def is_logged_in(client: Client) -> bool:
    return client.get("/settings/").status_code == 200


def log_in(client: Client, password=PASSWORD, email="ada@example.org", **extra):
    return client.post("/log-in/", {"username": email, "password": password}, **extra)


def test_signing_up_logs_in_and_leads_to_the_start(client):
    answer = client.post("/sign-up/", NEW)
    assert (answer.status_code, answer["Location"]) == (302, "/home/")
    assert User.objects.get().time_zone == "Europe/Rome"
    assert is_logged_in(client)


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"email": "not an address"}, "email", "valid email address"),
        ({"email": "ada@example.org"}, "email", "log in, or reset the password"),
        ({"password": "12345678901"}, "password", "entirely numeric"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone", "Europe/Berlin"),
        ({"time_zone": ""}, "time_zone", "required"),
    ],
)
def test_a_refused_sign_up_says_why_beside_the_field(client, ada, given, field, sentence):
    answer = client.post("/sign-up/", {**NEW, **given})
    assert answer.status_code == 400
    assert sentence in " ".join(answer.context["form"].errors[field])
    assert f'id="id_{field}_error"' in answer.text
    assert User.objects.get() == ada
    assert not is_logged_in(client)


def test_the_time_zone_is_taken_from_the_browser_until_one_is_chosen(client):
    assert "data-browser-time-zone" in client.get("/sign-up/").text
    refused = client.post("/sign-up/", {**NEW, "email": "?"}).text
    assert "data-browser-time-zone" not in refused
    assert '<option value="Europe/Rome" selected>' in refused


def test_people_log_in_and_out(client, ada):
    assert log_in(client, email="Ada@Example.org").status_code == 302
    assert is_logged_in(client)
    assert client.get("/log-out/").status_code == 405, "a link must not log anybody out"
    client.post("/log-out/")
    assert not is_logged_in(client)


def test_a_wrong_password_lets_nobody_in(client, ada):
    answer = log_in(client, "wrong")
    assert "correct" in answer.text
    assert not is_logged_in(client)


def test_guessing_a_password_is_stopped_for_the_guesser_alone(client, ada):
    for _ in range(10):
        log_in(client, "wrong", REMOTE_ADDR="192.0.2.1")
    stopped = log_in(client, REMOTE_ADDR="192.0.2.1")
    assert "wait 10 minutes" in stopped.text
    assert log_in(client, REMOTE_ADDR="192.0.2.2").status_code == 302


def test_whoever_was_sent_to_log_in_comes_back(client, ada):
    assert client.get("/settings/")["Location"] == "/log-in/?next=/settings/"
    answer = client.post("/log-in/", {"username": ada.email, "password": PASSWORD, "next": "/settings/"})
    assert answer["Location"] == "/settings/"


def test_log_in_leads_to_no_other_site(client, ada):
    answer = client.post(
        "/log-in/", {"username": ada.email, "password": PASSWORD, "next": "https://evil.example/"}
    )
    assert answer["Location"] == "/home/"


def test_a_lost_password_is_replaced_by_mail(client, ada, mailoutbox):
    assert (
        client.post("/password/reset/", {"email": "ADA@example.org"})["Location"] == "/password/reset/sent/"
    )
    [mail] = mailoutbox
    assert mail.to == ["ada@example.org"]
    link = re.search(r"http://testserver(/password/reset/\S+)", mail.body)
    assert link is not None
    form_address = client.get(link[1])["Location"]
    new = "a whole new password"
    weak = client.post(form_address, {"new_password1": "short", "new_password2": "short"})
    assert "too short" in weak.text
    saved = client.post(form_address, {"new_password1": new, "new_password2": new}, follow=True)
    assert "Log in with the new one" in saved.text
    assert log_in(client, new).status_code == 302
    assert "no longer works" in Client().get(link[1]).text, "a link works once"


def test_asking_for_an_unknown_address_tells_nothing(client, ada, mailoutbox):
    known = client.post("/password/reset/", {"email": "ada@example.org"}, follow=True)
    unknown = client.post("/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert known.text == unknown.text
    assert len(mailoutbox) == 1


def test_nobodys_mailbox_is_filled_by_asking_again_and_again(client, ada, mailoutbox):
    answers = [
        client.post("/password/reset/", {"email": address}) for address in [ada.email, "ADA@example.org"] * 4
    ]
    assert {answer["Location"] for answer in answers} == {"/password/reset/sent/"}
    assert len(mailoutbox) == 5


def test_a_person_who_is_logged_in_is_not_asked_again(client, ada):
    client.force_login(ada)
    assert client.get("/sign-up/")["Location"] == "/home/"
    assert client.get("/log-in/")["Location"] == "/home/"


@pytest.mark.parametrize("path", ["/sign-up/", "/log-in/", "/password/reset/"])
def test_every_form_carries_its_csrf_token(ada, path):
    browser = Client(enforce_csrf_checks=True)
    assert "csrfmiddlewaretoken" in browser.get(path).text
    refused = browser.post(path, {})
    assert refused.status_code == 403
    assert "Nothing was changed" in refused.text
