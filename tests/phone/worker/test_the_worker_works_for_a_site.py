"""A browser's worker over real sockets, in the stories of the Python device: leases, dropped connections, orders."""

import hashlib
import time

import pytest

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.delta import delta_decode
from tests.phone.worker.conftest import LEASE, NO_SELF_TEST, OTHER_LEASE, THIRD_LEASE, Leases, Night
from tests.phone.worker.jobs import tiny_job
from tests.phone.worker.standins import Site
from tests.worker_protocol.sites import BlobSite
from worker_protocol.wire import errors as wire_errors
from worker_protocol.wire import messages as msg

pytestmark = pytest.mark.browser


def test_a_lease_is_trained_uploaded_and_reported(
    night: Night, site: Site, lease: Leases, blobs: BlobSite
) -> None:
    night.start()
    site.hears(msg.Status)
    site.hears(msg.Ready)
    site.says(lease())
    assert site.hears(msg.Progress).step == 0
    result = site.hears(msg.Result)
    site.hears(msg.Ready)
    delta = blobs.uploads[f"/upload-{LEASE}"]
    assert (result.lease_id, result.steps, len(result.losses)) == (LEASE, 5, 5)
    assert (result.delta_sha256, result.delta_bytes) == (hashlib.sha256(delta).hexdigest(), len(delta))
    assert result.gpu_us > 0
    assert delta_decode(delta, spec=tiny_job().program.model_spec)
    (hello,) = site.hellos
    assert hello.leases == []
    assert hello.memory_bytes > 0
    assert hello.max_buffer_bytes > 0


@pytest.mark.usefixtures("ready")
def test_a_result_is_repeated_on_a_new_socket_until_it_is_acknowledged(
    night: Night, site: Site, lease: Leases
) -> None:
    site.says(lease())
    first = site.hears(msg.Result)
    site.drops()
    assert site.hears(msg.Result) == first
    assert site.hellos[-1].leases == [LEASE]
    site.drain()
    site.says(msg.Ack(lease_id=LEASE, accepted=True, earned_microusd=7))
    site.says(msg.Revoke(lease_id=OTHER_LEASE, reason="unknown"))
    site.hears(msg.Ready)  # which answers the revoke, so the ack has been read too
    site.drops()
    site.hears(msg.Ready)
    assert site.hellos[-1].leases == []
    night.wait_until(lambda state: state["leasesDone"] == 1)


def test_work_goes_on_while_the_socket_is_away_and_a_repeated_lease_is_only_confirmed(
    at_work: msg.Progress, site: Site, lease: Leases, blobs: BlobSite
) -> None:
    site.drops()
    resumed = site.hears(msg.Progress)
    assert site.hellos[-1].leases == [LEASE]
    assert (resumed.lease_id, resumed.step >= at_work.step) == (LEASE, True)
    site.says(lease(long=True))
    assert site.hears(msg.Progress).step >= resumed.step
    assert len([request for request in blobs.requests if request.startswith("GET")]) == 3


@pytest.mark.usefixtures("at_work")
def test_a_second_lease_is_busy_and_a_revoked_one_is_dropped_for_the_next(site: Site, lease: Leases) -> None:
    site.says(lease(OTHER_LEASE))
    assert site.hears(msg.Handback) == msg.Handback(lease_id=OTHER_LEASE, reason="busy")
    site.says(msg.Revoke(lease_id=LEASE, reason="cancelled"))
    site.hears(msg.Ready)
    site.says(lease(OTHER_LEASE, steps=2))
    assert site.hears(msg.Result).lease_id == OTHER_LEASE


@pytest.mark.usefixtures("at_work")
def test_a_device_that_may_not_work_hands_back_and_waits(night: Night, site: Site) -> None:
    site.says(msg.Blocked(reason="not_charging"))
    assert site.hears(msg.Handback) == msg.Handback(lease_id=LEASE, reason="blocked")
    assert night.wait_until(lambda state: state["phase"] == "paused")["reason"] == "not_charging"
    site.drain()
    site.hears(msg.Status)
    site.hears(msg.Status)  # a heartbeat on, still no word of being ready
    assert not any(isinstance(message, msg.Ready) for message in site.drain())
    site.says(msg.Blocked(reason=None))
    site.hears(msg.Ready)


@pytest.mark.usefixtures("ready")
def test_a_hidden_page_stops_the_work_and_a_changed_reading_is_told(
    night: Night, site: Site, lease: Leases
) -> None:
    night.tell(sensors(charging=True, batteryPercent=81.5, network="wifi"))
    while (told := site.hears(msg.Status)).charging is None:
        pass
    assert (told.charging, told.battery_percent, told.network) == (True, 81.5, "wifi")
    site.says(lease(long=True))
    site.hears_step()
    night.tell(sensors(visible=False))
    assert site.hears(msg.Handback).reason == "blocked"
    assert night.wait_until(lambda state: state["phase"] == "paused")["reason"] == "hidden"
    site.says(lease(OTHER_LEASE))  # sent before the server knew
    assert site.hears(msg.Handback) == msg.Handback(lease_id=OTHER_LEASE, reason="blocked")
    site.drain()
    night.tell(sensors())
    site.hears(msg.Ready)


@pytest.mark.usefixtures("at_work")
def test_the_end_of_the_window_stops_the_work_without_a_word_of_the_server(night: Night, site: Site) -> None:
    site.says(terms(closes_ms=1_000))  # the stand-in's clock starts at 0
    assert site.hears(msg.Handback).reason == "blocked"
    assert night.wait_until(lambda state: state["phase"] == "paused")["reason"] == "outside_window"


@pytest.mark.usefixtures("ready")
def test_a_lease_too_big_is_refused_before_its_data_are_fetched(
    site: Site, lease: Leases, blobs: BlobSite
) -> None:
    nowhere = "http://127.0.0.1:9/"
    site.says(lease(slice=msg.Blob(sha256="ab" * 32, size_bytes=2 * 10**9, url=nowhere)))
    assert site.hears(msg.Handback).reason == "too_big"
    assert blobs.requests == []
    site.says(lease(OTHER_LEASE, slice=msg.Blob(sha256="ab" * 32, size_bytes=10**9 + 4 * 10**8, url=nowhere)))
    assert site.hears(msg.Handback).reason == "too_big"
    assert blobs.requests == ["GET"]  # the program, whose shapes say how many rows that is


@pytest.mark.usefixtures("ready")
def test_data_that_cannot_be_had_hand_the_lease_back(site: Site, lease: Leases, blobs: BlobSite) -> None:
    offer = lease()
    blobs.blobs.clear()
    site.says(offer)
    assert site.hears(msg.Handback).reason == "data_unavailable"
    site.hears(msg.Ready)


@pytest.mark.usefixtures("ready")
def test_a_program_that_this_browser_cannot_run_is_named(site: Site, lease: Leases, blobs: BlobSite) -> None:
    newer = tiny_job().program_file.replace(b'"version":"1"', b'"version":"2"')
    site.says(lease(program=blobs.add(newer)))
    handback = site.hears(msg.Handback)
    assert (handback.reason, "version" in handback.detail) == ("bad_program", True)
    site.says(lease(OTHER_LEASE, batch_size=9))
    assert site.hears(msg.Handback).reason == "bad_program"
    program = tiny_job().program
    no_delta = compiled_dumps(program, {"cpu": compile_program(program, device="cpu").compiled})
    site.says(lease(THIRD_LEASE, program=blobs.add(no_delta)))
    handback = site.hears(msg.Handback)
    assert (handback.reason, "delta" in handback.detail) == ("bad_program", True)


@pytest.mark.usefixtures("ready")
def test_a_busy_server_hears_the_report_again(site: Site, lease: Leases, blobs: BlobSite) -> None:
    offer = lease()
    blobs.blobs.clear()
    site.says(offer)
    first = site.hears(msg.Handback)
    busy = wire_errors.Busy(lease_id=LEASE)
    site.says(msg.Error(code=busy.code, message=busy.message, fatal=False, lease_id=LEASE))
    assert site.hears(msg.Handback) == first


@pytest.mark.usefixtures("at_work")
def test_the_owners_tap_hands_the_lease_back_before_the_socket_closes(night: Night, site: Site) -> None:
    night.tell({"type": "stop"})
    assert site.hears(msg.Handback) == msg.Handback(lease_id=LEASE, reason="shutdown")
    assert site.ended() == 1000
    assert night.wait_until(lambda state: state["phase"] == "off")["error"] is None
    night.tell({"type": "start", "url": NO_SELF_TEST})
    site.hears(msg.Ready)


@pytest.mark.parametrize(
    "refusal", [wire_errors.DeviceRemoved(), wire_errors.Superseded(), wire_errors.AuthFailed()]
)
def test_a_device_that_is_not_wanted_ends_with_the_servers_sentence(
    refusal: wire_errors.ProtocolError, night: Night, site: Site
) -> None:
    site.socket.refusal = refusal
    night.start()
    ended = night.wait_until(lambda state: state["phase"] == "ended")
    assert ended["error"] == {"code": refusal.code, "message": refusal.message}
    assert len(site.hellos) == 1


def test_trouble_of_the_server_is_waited_out(night: Night, site: Site) -> None:
    site.socket.refusal = wire_errors.Internal()
    night.start()
    night.wait_until(lambda state: state["error"] and state["error"]["code"] == "internal")
    while len(site.hellos) < 2:
        site.ended()
    site.socket.refusal = None
    site.hears(msg.Ready)
    night.wait_until(lambda state: state["phase"] == "waiting" and state["error"] is None)


@pytest.mark.usefixtures("ready")
def test_a_drained_device_waits_as_long_as_it_is_told(site: Site) -> None:
    site.says(msg.Drain(reconnect_ms=700))
    site.drops()
    dropped_at = time.monotonic()
    site.hears(msg.Ready)
    assert time.monotonic() - dropped_at >= 0.7


def test_a_browser_that_is_not_paired_says_so(night: Night) -> None:
    night.call("forget")
    night.start()
    assert night.wait_until(lambda state: state["phase"] == "ended")["error"]["code"] == "not_paired"


def sensors(**known: object) -> dict[str, object]:
    unknown = {"batteryPercent": None, "charging": None, "network": None, "visible": True}
    return {"type": "sensors", **unknown, **known}


def terms(**changes: int | None) -> msg.Terms:
    values = {
        "opens_ms": None,
        "closes_ms": None,
        "battery_floor_percent": 40,
        "battery_resume_percent": 45,
        "charging_only": False,
        "wifi_only": False,
        "too_hot_celsius": 40,
        "microusd_per_gpu_hour": 432_000,
        "earned_microusd": 0,
    }
    return msg.Terms(**{**values, **changes})  # type: ignore[arg-type]
