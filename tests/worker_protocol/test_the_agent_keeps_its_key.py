"""The key of a device lies in a file that only its user can read."""

import stat

import pytest

from worker_protocol.agent.errors import AlreadyPaired, BadState, NotPaired, UnsafeKeyFile
from worker_protocol.agent.keys import KEY_FILE, PAIRING_FILE, Pairing, key_open, pairing_load, pairing_save
from worker_protocol.agent.pairing import identity_open

HERE = "http://127.0.0.1:8000"


def test_a_key_is_made_once_and_found_again(tmp_path):
    state = tmp_path / "deep" / "state"
    first = key_open(state).private_bytes_raw()
    assert key_open(state).private_bytes_raw() == first
    assert key_open(tmp_path / "other").private_bytes_raw() != first


def test_nobody_else_can_read_the_key(tmp_path):
    state = tmp_path / "state"
    key_open(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / KEY_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused_with_the_remedy(tmp_path, mode):
    key_open(tmp_path)
    (tmp_path / KEY_FILE).chmod(mode)
    with pytest.raises(UnsafeKeyFile, match="chmod 600"):
        key_open(tmp_path)


@pytest.mark.parametrize("content", ["", "zz" * 32, "00" * 31])
def test_a_spoilt_key_is_a_plain_sentence(tmp_path, content):
    key_open(tmp_path)
    (tmp_path / KEY_FILE).write_text(content)
    with pytest.raises(BadState, match="pair this device again"):
        key_open(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_plain_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadState, match="--state"):
        key_open(tmp_path / "file" / "state")


def test_a_spoilt_pairing_is_a_plain_sentence(tmp_path):
    (tmp_path / PAIRING_FILE).write_text("{}")
    with pytest.raises(BadState, match="pair this device again"):
        pairing_load(tmp_path)


def test_a_device_without_a_pairing_says_how_to_get_one(tmp_path):
    with pytest.raises(NotPaired, match="--pair CODE"):
        identity_open(tmp_path, server=HERE)


def test_a_device_works_only_for_the_site_it_is_paired_with(tmp_path):
    key_open(tmp_path)
    pairing_save(tmp_path, Pairing(server=HERE, device_id="d"))
    assert identity_open(tmp_path, server=HERE).pairing.device_id == "d"
    with pytest.raises(AlreadyPaired, match=HERE):
        identity_open(tmp_path, server="https://elsewhere.example")
