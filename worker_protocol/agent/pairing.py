"""Becoming a device of an owner's, once: the pairing code is traded for a device id, and the public key is known."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import httpx
import msgspec

from worker_protocol.agent.errors import (
    AlreadyPaired,
    BadServerAddress,
    NotPaired,
    PairingRefused,
    ServerUnreachable,
)
from worker_protocol.agent.keys import Identity, Pairing, key_open, pairing_load, pairing_save

PAIR_PATH = "/api/devices/pair/"
SOCKET_PATH = "/ws/device/"
TIMEOUT_S = 20.0


class DeviceDescription(msgspec.Struct, frozen=True):
    """What a device says of itself when it is paired."""

    name: str
    device_class: str
    speed_factor: float
    kind: Literal["laptop"] = "laptop"


def identity_open(state: Path, *, server: str) -> Identity:
    """The identity of a device that is paired with `server`."""
    pairing = pairing_load(state)
    if pairing is None:
        raise NotPaired(
            "This device is not paired yet. Get a code on the site's Devices page and start again with --pair CODE."
        )
    if pairing.server != server:
        raise AlreadyPaired(
            f"This device is paired with {pairing.server}, not with {server}; give --server {pairing.server}, "
            "or another folder with --state to pair anew."
        )
    return Identity(pairing=pairing, key=key_open(state))


def device_pair(state: Path, *, server: str, code: str, description: DeviceDescription) -> Identity:
    """Pair with `server` by a code from the owner's page. Nothing is kept of a pairing that fails but the key."""
    refuse_if_paired(state)
    key = key_open(state)
    body = {
        "code": code.strip(),
        "public_key": key.public_key().public_bytes_raw().hex(),
        **msgspec.to_builtins(description),
    }
    try:
        response = httpx.post(server + PAIR_PATH, json=body, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        raise unreachable(server, error) from error
    device_id = _device_id(server, response)
    pairing = Pairing(server=server, device_id=device_id)
    pairing_save(state, pairing)
    return Identity(pairing=pairing, key=key)


def refuse_if_paired(state: Path) -> None:
    pairing = pairing_load(state)
    if pairing is not None:
        raise AlreadyPaired(
            f"This device is paired with {pairing.server} already; start without --pair, "
            "or give another folder with --state for a second device."
        )


def server_address(text: str) -> str:
    """The site's address without a path's trailing slash. Raises BadServerAddress."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadServerAddress(
            f"{text!r} is not the address of a site; give one like https://nightshift.example with --server.",
            field="server",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def socket_address(server: str) -> str:
    return "ws" + server.removeprefix("http") + SOCKET_PATH


def unreachable(server: str, error: BaseException) -> ServerUnreachable:
    return ServerUnreachable(
        f"No Nightshift site answers at {server} ({error or type(error).__name__}); check --server and your network."
    )


def _device_id(server: str, response: httpx.Response) -> str:
    try:
        body = response.json()
        if response.is_success:
            return str(body["device_id"])
        message = str(body["message"])
    except (ValueError, KeyError, TypeError):
        raise unreachable(server, RuntimeError(f"it answered {response.status_code}")) from None
    raise PairingRefused(message)
