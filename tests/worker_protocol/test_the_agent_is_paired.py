"""Pairing, against the real API of a live server."""

import pytest

from accounts.models import Device
from accounts.services import pairing_code_create
from tests.worker_protocol.sites import blob_site
from worker_protocol.agent.errors import AlreadyPaired, BadServerAddress, PairingRefused, ServerUnreachable
from worker_protocol.agent.keys import KEY_FILE, pairing_load
from worker_protocol.agent.pairing import (
    DeviceDescription,
    device_pair,
    identity_open,
    server_address,
    socket_address,
)

LAPTOP = DeviceDescription(name="Lap", device_class="laptop-cpu", speed_factor=1.5)


@pytest.fixture
def code(ada) -> str:
    return pairing_code_create(owner=ada)[1]


def test_a_code_makes_this_machine_a_device_of_its_owner(live_server, tmp_path, ada, code):
    paired = device_pair(tmp_path, server=live_server.url, code=f" {code} ", description=LAPTOP)
    device = Device.objects.get()
    assert str(device.id) == paired.pairing.device_id
    assert (device.owner, device.name, device.kind, device.speed_factor) == (ada, "Lap", "laptop", 1.5)
    assert bytes(device.public_key) == paired.key.public_key().public_bytes_raw()
    again = identity_open(tmp_path, server=live_server.url)
    assert again.key.private_bytes_raw() == paired.key.private_bytes_raw()


def test_a_wrong_code_is_a_plain_sentence_and_can_be_tried_again(live_server, tmp_path, code):
    with pytest.raises(PairingRefused, match=r"^[A-Z].*code.*\.$"):
        device_pair(tmp_path, server=live_server.url, code="AAAA-AAAA", description=LAPTOP)
    assert pairing_load(tmp_path) is None
    key = (tmp_path / KEY_FILE).read_text()
    device_pair(tmp_path, server=live_server.url, code=code, description=LAPTOP)
    assert (tmp_path / KEY_FILE).read_text() == key


def test_a_code_serves_one_device(live_server, tmp_path, code):
    device_pair(tmp_path / "first", server=live_server.url, code=code, description=LAPTOP)
    with pytest.raises(PairingRefused):
        device_pair(tmp_path / "second", server=live_server.url, code=code, description=LAPTOP)


def test_a_paired_machine_is_not_paired_again_by_accident(live_server, tmp_path, code):
    device_pair(tmp_path, server=live_server.url, code=code, description=LAPTOP)
    with pytest.raises(AlreadyPaired, match="--state"):
        device_pair(tmp_path, server=live_server.url, code=code, description=LAPTOP)


def test_a_site_that_is_not_there_is_a_plain_sentence(tmp_path):
    with pytest.raises(ServerUnreachable, match=r"at http://127\.0\.0\.1:9"):
        device_pair(tmp_path, server="http://127.0.0.1:9", code="AAAA-AAAA", description=LAPTOP)


def test_a_site_that_is_another_is_a_plain_sentence(tmp_path):
    with blob_site() as another, pytest.raises(ServerUnreachable, match="it answered 501"):
        device_pair(tmp_path, server=another.url, code="AAAA-AAAA", description=LAPTOP)


@pytest.mark.parametrize("text", ["", "nightshift.example", "ftp://nightshift.example", "https://"])
def test_an_address_that_is_none_is_a_plain_sentence(text):
    with pytest.raises(BadServerAddress, match=r"https://nightshift\.example"):
        server_address(text)


@pytest.mark.parametrize(
    ("text", "server", "socket"),
    [
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws/device/"),
        ("https://ns.example", "https://ns.example", "wss://ns.example/ws/device/"),
    ],
)
def test_the_socket_is_beside_the_site(text, server, socket):
    assert server_address(text) == server
    assert socket_address(server) == socket
