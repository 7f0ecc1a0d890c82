"""The device's own verdict is the server's, for the same terms and readings."""

from datetime import UTC, datetime, time
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.domain.policy import Readings, decide, resume_battery_percent
from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import Window
from tests.phone.worker.conftest import Harness

pytestmark = pytest.mark.browser

NOTHING_KNOWN = {"batteryPercent": None, "charging": None, "network": None, "thermal": None}


def terms(policy: Policy, **changes: int | None) -> dict[str, Any]:
    return {
        "opens_ms": None,
        "closes_ms": None,
        "battery_floor_percent": policy.battery_floor_percent,
        "battery_resume_percent": resume_battery_percent(policy),
        "charging_only": policy.charging_only,
        "wifi_only": policy.wifi_only,
        "too_hot_celsius": policy.too_hot_celsius,
        **changes,
    }


POLICY = Policy(battery_floor_percent=40, charging_only=True, wifi_only=True, too_hot_celsius=40)
TERMS = terms(POLICY)


@pytest.mark.parametrize(
    ("situations", "verdicts"),
    [
        ([{"terms": None, "readings": NOTHING_KNOWN}], [None]),
        ([{"terms": TERMS, "readings": NOTHING_KNOWN}], [None]),
        ([{"terms": TERMS, "readings": NOTHING_KNOWN, "stopped": True}], ["stopped"]),
        ([{"terms": TERMS, "readings": NOTHING_KNOWN, "visible": False}], ["hidden"]),
        (
            [
                {"terms": terms(POLICY, closes_ms=100), "readings": NOTHING_KNOWN, "serverNowMs": now_ms}
                for now_ms in (99, 100)
            ],
            [None, "outside_window"],
        ),
        (
            [
                {"terms": terms(POLICY, opens_ms=100), "readings": NOTHING_KNOWN, "serverNowMs": now_ms}
                for now_ms in (99, 100)
            ],
            ["outside_window", None],
        ),
        (
            [
                {"terms": TERMS, "readings": {**NOTHING_KNOWN, "batteryPercent": percent}}
                for percent in (40, 39, 41, 44, 45, 41)
            ],
            [None, "battery_low", "battery_low", "battery_low", None, None],
        ),
        (
            [
                {"terms": TERMS, "readings": {**NOTHING_KNOWN, "thermal": thermal}}
                for thermal in ("fair", "serious", "fair", "nominal")
            ],
            [None, "too_hot", "too_hot", None],
        ),
        (
            [
                {"terms": TERMS, "readings": {**NOTHING_KNOWN, "network": network}}
                for network in ("wifi", "cellular", "none")
            ],
            [None, "not_on_wifi", None],
        ),
    ],
)
def test_verdicts_one_after_the_other(
    page: Harness, situations: list[dict[str, Any]], verdicts: list[str | None]
) -> None:
    assert page.call("guard", situations) == verdicts


readings = st.builds(
    Readings,
    battery_percent=st.none() | st.sampled_from([0.0, 39.0, 40.0, 44.0, 45.0, 100.0]),
    charging=st.none() | st.booleans(),
    network=st.none() | st.sampled_from(["wifi", "ethernet", "cellular", "none"]),
    thermal=st.none() | st.sampled_from(["nominal", "fair", "serious", "critical"]),
)
policies = st.builds(
    Policy,
    battery_floor_percent=st.sampled_from([0, 40, 95]),
    charging_only=st.booleans(),
    wifi_only=st.booleans(),
    too_hot_celsius=st.just(40),
)


# The page keeps nothing between examples.
@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=policies, told=st.lists(readings, min_size=1, max_size=30))
def test_the_device_and_the_server_agree(page: Harness, policy: Policy, told: list[Readings]) -> None:
    now = datetime(2026, 12, 1, 23, tzinfo=UTC)
    expected, before = [], None
    for reading in told:
        before = decide(profile=profile(policy), readings=reading, now=now, blocked_before=before)
        expected.append(before)
    situations = [{"terms": terms(policy), "readings": camel(reading)} for reading in told]
    assert page.call("guard", situations) == expected


def profile(policy: Policy) -> DeviceProfile:
    return DeviceProfile(
        id=UUID(int=1),
        owner_id=1,
        state="active",
        device_class="phone-high",
        speed_factor=1.0,
        policy=policy,
        windows=tuple(Window(weekday, time(0), time(0)) for weekday in range(7)),
        time_zone=ZoneInfo("UTC"),
    )


def camel(reading: Readings) -> dict[str, Any]:
    return {
        "batteryPercent": reading.battery_percent,
        "charging": reading.charging,
        "network": reading.network,
        "thermal": reading.thermal,
    }
