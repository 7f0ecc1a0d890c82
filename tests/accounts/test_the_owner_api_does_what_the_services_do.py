"""The REST API of devices and idle windows: what it answers, to whom, and how it refuses."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework.test import APIClient

from accounts.models import Device
from accounts.services import api_token_create, pairing_code_create
from tests.accounts.conftest import new_public_key

POLICY = {"battery_floor_percent": 50, "charging_only": False, "wifi_only": True, "too_hot_celsius": 45}

NOBODYS_ID = UUID(int=1)


@pytest.fixture
def client(ada) -> APIClient:
    """Ada, in a session."""
    client = APIClient()
    client.force_login(ada)
    return client


@pytest.fixture
def anyone() -> APIClient:
    return APIClient()


def address(device: Device, rest: str = "") -> str:
    return f"/api/devices/{device.id}/{rest}"


def joining(code: str, **given: Any) -> dict[str, Any]:
    facts = {
        "public_key": new_public_key().hex(),
        "name": "Pixel",
        "kind": "phone",
        "device_class": "phone-high",
    }
    return {"code": code, **facts, **given}


def test_an_owner_lists_their_devices_and_nobody_elses(client, phone, bob, pair):
    pair(bob)
    listed = client.get("/api/devices/").json()
    assert listed["count"] == 1
    device = listed["results"][0]
    assert device["id"] == str(phone.id)
    assert (device["name"], device["state"], device["policy"]["battery_floor_percent"]) == (
        "Pixel",
        "active",
        40,
    )
    assert "public_key" not in device


def test_a_device_is_renamed_paused_resumed_and_removed(client, phone):
    assert client.patch(address(phone), {"name": "Kitchen"}).json()["name"] == "Kitchen"
    assert client.post(address(phone, "pause/")).json()["state"] == "paused"
    assert client.post(address(phone, "resume/")).json()["state"] == "active"
    assert client.get(address(phone)).json()["name"] == "Kitchen"
    assert client.delete(address(phone)).status_code == 204
    assert client.get(address(phone)).status_code == 404


def test_all_devices_are_paused_and_resumed_and_counted(client, phone, ada, bob, pair):
    pair(ada)
    pair(bob)
    client.post(address(phone, "pause/"))
    assert client.post("/api/devices/pause-all/").json() == {"devices": 1}
    assert client.post("/api/devices/pause-all/").json() == {"devices": 0}
    assert client.post("/api/devices/resume-all/").json() == {"devices": 2}
    assert [device.state for device in Device.objects.filter(owner=bob)] == ["active"]


def test_a_token_that_may_only_look_cannot_pause_all(anyone, ada, phone):
    _, plain = api_token_create(user=ada, name="dashboard", scopes=["devices:read"])
    anyone.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    assert anyone.post("/api/devices/pause-all/").status_code == 403
    phone.refresh_from_db()
    assert phone.state == "active"


def test_a_policy_is_read_and_replaced(client, phone):
    assert client.put(address(phone, "policy/"), POLICY).json() == POLICY
    assert client.get(address(phone, "policy/")).json() == POLICY


def test_windows_are_read_and_replaced_for_all_and_for_one(client, phone):
    windows = {"windows": [{"weekday": 4, "starts": "22:30", "ends": "07:00"}]}
    assert client.put("/api/windows/", windows).json() == windows
    assert client.get("/api/windows/").json() == windows
    assert client.get(address(phone, "windows/")).json() == {"windows": []}
    assert client.put(address(phone, "windows/"), windows).json() == windows


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("get", "", None),
        ("patch", "", {"name": "Mine"}),
        ("delete", "", None),
        ("post", "pause/", None),
        ("post", "resume/", None),
        ("get", "policy/", None),
        ("put", "policy/", POLICY),
        ("get", "windows/", None),
        ("put", "windows/", {"windows": []}),
    ],
)
def test_the_device_of_another_is_not_found(client, bob, pair, method, rest, body):
    theirs = pair(bob)
    refused = getattr(client, method)(address(theirs, rest), body)
    missing = getattr(client, method)(f"/api/devices/{uuid4()}/{rest}", body)
    assert refused.status_code == missing.status_code == 404
    assert refused.json() == missing.json()
    assert refused.json()["code"] == "device_not_found"


@pytest.mark.parametrize(
    ("rest", "body", "code", "field"),
    [
        ("policy/", {**POLICY, "battery_floor_percent": 99}, "invalid_policy", "battery_floor_percent"),
        ("policy/", {**POLICY, "charging_only": "perhaps"}, "invalid_input", "charging_only"),
        ("policy/", {"wifi_only": True}, "invalid_input", "battery_floor_percent"),
        (
            "windows/",
            {"windows": [{"weekday": 9, "starts": "22:00", "ends": "07:00"}]},
            "invalid_input",
            None,
        ),
        (
            "windows/",
            {"windows": [{"weekday": 1, "starts": "25:00", "ends": "07:00"}]},
            "invalid_input",
            None,
        ),
        ("windows/", {"windows": "always"}, "invalid_input", None),
        ("windows/", {}, "invalid_input", "windows"),
    ],
)
def test_bad_input_gets_one_sentence_and_changes_nothing(client, phone, rest, body, code, field):
    before = client.get(address(phone, rest)).json()
    refused = client.put(address(phone, rest), body)
    assert refused.status_code == 400
    assert set(refused.json()) == {"code", "message", "field"}
    assert refused.json()["code"] == code
    assert field is None or refused.json()["field"] == field
    assert client.get(address(phone, rest)).json() == before


def test_a_phone_pairs_with_the_code_that_its_owner_was_shown(client, anyone, ada):
    shown = client.post("/api/pairing-codes/")
    assert shown.status_code == 201
    assert shown["Cache-Control"] == "no-store"
    joined = anyone.post("/api/devices/pair/", joining(shown.json()["code"]))
    assert joined.status_code == 201
    assert joined.json() == {"device_id": str(Device.objects.get(owner=ada).id)}


def test_pairing_says_what_is_wrong(anyone, ada):
    _, code = pairing_code_create(owner=ada)

    def refusal(**given) -> tuple[int, str]:
        answer = anyone.post("/api/devices/pair/", joining(**{"code": code, **given}))
        return answer.status_code, answer.json()["code"]

    assert refusal(code="AAAA-AAAA") == (400, "pairing_code_wrong")
    assert refusal(public_key="k" * 64) == (400, "invalid_input")
    assert refusal(public_key="00") == (400, "invalid_input")
    assert refusal(device_class="quantum") == (400, "invalid_device_facts")
    key = new_public_key().hex()
    assert anyone.post("/api/devices/pair/", joining(code, public_key=key)).status_code == 201
    assert refusal() == (410, "pairing_code_used")
    _, code = pairing_code_create(owner=ada)
    assert refusal(public_key=key) == (409, "device_already_paired")


def test_guessing_codes_is_told_to_wait(anyone, ada):
    for _ in range(10):
        assert anyone.post("/api/devices/pair/", joining("AAAA-AAAA")).status_code == 400
    refused = anyone.post("/api/devices/pair/", joining("AAAA-AAAA"))
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_pairing_attempts"
    assert refused["Retry-After"] == "600"


def test_a_forged_forwarding_header_does_not_reset_the_count(anyone, ada):
    answers = [
        anyone.post("/api/devices/pair/", joining("AAAA-AAAA"), headers={"X-Forwarded-For": f"192.0.2.{n}"})
        for n in range(11)
    ]
    assert answers[-1].status_code == 429


def test_a_token_does_what_its_scopes_allow_and_no_more(anyone, ada, phone):
    _, plain = api_token_create(user=ada, name="watch", scopes=["devices:read"])
    headers = {"Authorization": f"Bearer {plain}"}
    assert anyone.get("/api/devices/", headers=headers).json()["count"] == 1
    refused = anyone.post(address(phone, "pause/"), headers=headers)
    assert refused.status_code == 403
    assert refused.json()["code"] == "scope_missing"
    assert "devices:write" in refused.json()["message"]
    assert Device.objects.get().state == "active"


@pytest.mark.parametrize(
    "path", ["/api/devices/", "/api/windows/", "/api/tokens/", f"/api/devices/{NOBODYS_ID}/"]
)
def test_nobody_gets_in_without_signing_in(anyone, db, path):
    refused = anyone.get(path)
    assert refused.status_code == 401
    assert refused.json()["code"] == "not_authenticated"
    assert refused["WWW-Authenticate"].startswith("Bearer")


def test_the_description_of_the_api_is_valid_and_complete(capsys):
    schema = SchemaGenerator().get_schema(request=None, public=True)
    validate_schema(schema)
    assert capsys.readouterr().err == "", "drf-spectacular warns of nothing"
    pair = schema["paths"]["/api/devices/pair/"]["post"]
    assert set(pair["responses"]) == {"201", "400", "409", "410", "429"}
    assert schema["paths"]["/api/devices/"]["get"]["security"] == [{"apiToken": []}, {"cookieAuth": []}]
