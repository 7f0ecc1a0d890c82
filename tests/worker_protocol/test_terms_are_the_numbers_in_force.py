"""What a device is told of its owner's rules, windows and earnings, and when it is told again."""

from datetime import UTC, datetime, time, timedelta
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from channels.db import database_sync_to_async

from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import Window
from accounts.models import Device, IdleWindow
from accounts.services import device_set_policy, idle_windows_replace
from billing.domain.rates import OPENING_RATES, Tariff
from scheduler import fleet
from scheduler.activity import device_earned_microusd
from scheduler.domain import instructions as ins
from scheduler.models import Lease, Round, Run, Shard
from tests.scheduler.world import spec
from tests.worker_protocol.conftest import channel_layer, site_with
from worker_protocol.agent.terms import terms_words
from worker_protocol.terms import terms_change_at, terms_message
from worker_protocol.wire import messages as msg

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (Window(1, time(22), time(7)),)  # from Tuesday to Wednesday
TUESDAY_NIGHT = datetime(2026, 12, 1, 23, tzinfo=UTC)
LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def profile(*, windows=NIGHT, tz=BERLIN, device_class="laptop-cpu", **policy) -> DeviceProfile:
    return DeviceProfile(
        id=UUID(int=7),
        owner_id=1,
        state="active",
        device_class=device_class,
        speed_factor=1.0,
        policy=Policy(**policy),
        windows=windows,
        time_zone=tz,
    )


def terms(device: DeviceProfile, now: datetime, **changes) -> msg.Terms:
    arguments = {"earned_microusd": 0, "tariff": Tariff(OPENING_RATES, 2_000), **changes}
    return terms_message(profile=device, now=now, **arguments)


def test_in_a_window_it_is_told_when_it_closes_by_the_owners_clock():
    in_force = terms(profile(), TUESDAY_NIGHT)
    assert (in_force.opens_ms, in_force.closes_ms) == (None, ms(datetime(2026, 12, 2, 6, tzinfo=UTC)))


def test_outside_its_windows_it_is_told_when_one_opens():
    in_force = terms(profile(), TUESDAY_NIGHT - timedelta(hours=12))
    assert (in_force.opens_ms, in_force.closes_ms) == (ms(datetime(2026, 12, 1, 21, tzinfo=UTC)), None)


@pytest.mark.parametrize("windows", [(), tuple(Window(day, time(0), time(0)) for day in range(7))])
def test_where_time_changes_nothing_there_are_no_times(windows):
    in_force = terms(profile(windows=windows), TUESDAY_NIGHT)
    assert (in_force.opens_ms, in_force.closes_ms) == (None, None)


@pytest.mark.parametrize(("floor", "resumes"), [(35, 40), (0, 5), (95, 100)])
def test_the_charge_to_go_on_at_is_the_one_in_force(floor, resumes):
    in_force = terms(profile(battery_floor_percent=floor), TUESDAY_NIGHT)
    assert (in_force.battery_floor_percent, in_force.battery_resume_percent) == (floor, resumes)


@pytest.mark.parametrize("device_class", OPENING_RATES)
def test_an_hours_pay_is_the_classes_rate_without_the_fee(device_class):
    in_force = terms(profile(device_class=device_class), TUESDAY_NIGHT)
    assert in_force.microusd_per_gpu_hour == OPENING_RATES[device_class] * 3_600 * 8 // 10


def test_a_new_night_begins_at_the_owners_noon():
    device = profile(windows=())
    morning = datetime(2026, 12, 2, 10, 59, tzinfo=UTC)
    noon = datetime(2026, 12, 2, 11, tzinfo=UTC)
    assert terms_change_at(profile=device, now=morning) == noon
    assert terms_change_at(profile=device, now=noon) == noon + timedelta(days=1)


def test_a_night_over_a_change_of_clocks_still_ends_at_noon():
    before = datetime(2026, 3, 28, 11, tzinfo=UTC)  # noon in winter time
    assert terms_change_at(profile=profile(windows=()), now=before) == datetime(2026, 3, 29, 10, tzinfo=UTC)


async def refresh(connected) -> None:
    await channel_layer().send(connected.session_id, fleet.REFRESH)


async def test_terms_follow_the_welcome(online, laptop):
    client, _ = online
    assert client.terms.battery_floor_percent == laptop.battery_floor_percent
    assert client.terms.microusd_per_gpu_hour > 0


async def test_a_changed_rule_reaches_the_device_at_once(online, ada, laptop):
    client, connected = online
    await database_sync_to_async(device_set_policy)(
        owner=ada,
        device_id=laptop.id,
        battery_floor_percent=55,
        charging_only=False,
        wifi_only=True,
        too_hot_celsius=42,
    )
    await refresh(connected)
    changed = await client.reply()
    assert isinstance(changed, msg.Terms)
    assert (changed.battery_floor_percent, changed.battery_resume_percent) == (55, 60)
    assert (changed.charging_only, changed.wifi_only, changed.too_hot_celsius) == (False, True, 42)


async def test_changed_windows_reach_the_device_after_the_verdict_on_them(online, ada):
    client, connected = online
    await database_sync_to_async(idle_windows_replace)(owner=ada, device_id=None, windows=[])
    await refresh(connected)
    assert await client.reply() == msg.Blocked(reason="outside_window")
    # Open at all times and never open have the same times, so these terms were no news.
    soon = datetime.now(tz=UTC) + timedelta(hours=2)
    later = Window(soon.weekday(), soon.time().replace(minute=0, second=0, microsecond=0), time(0))
    await database_sync_to_async(idle_windows_replace)(owner=ada, device_id=None, windows=[later])
    await refresh(connected)
    changed = await client.reply()
    assert isinstance(changed, msg.Terms)
    assert changed.opens_ms == ms(soon.replace(minute=0, second=0, microsecond=0))


async def test_a_change_that_does_not_touch_the_terms_is_not_told(online, laptop):
    client, connected = online
    await Device.objects.filter(pk=laptop.pk).aupdate(name="Old laptop")
    await refresh(connected)
    assert await client.hears_nothing()


async def test_a_window_that_closes_brings_new_terms_without_any_message(
    call_in, dispatcher, ada, monkeypatch
):
    await IdleWindow.objects.all().adelete()
    now = TUESDAY_NIGHT
    monkeypatch.setattr("worker_protocol.consumer.utc_now", lambda: now)
    await IdleWindow.objects.acreate(owner=ada, weekday=1, starts=time(22), ends=time(7))
    client = call_in(site_with(tick_s=0.01))
    await client.log_in()
    assert client.terms.closes_ms == ms(now + timedelta(hours=8))
    now += timedelta(hours=8, seconds=1)
    assert await client.reply() == msg.Blocked(reason="outside_window")
    changed = await client.reply()
    assert isinstance(changed, msg.Terms)
    assert (changed.opens_ms, changed.closes_ms) == (ms(TUESDAY_NIGHT + timedelta(days=6, hours=23)), None)


def accepted(device_id: UUID, *, charge_microusd: int, ended_at: datetime) -> Lease:
    """A lease that ended well, of a run of its own."""
    asked = spec(id=uuid4())
    run = Run.objects.create(
        id=asked.id,
        buyer_id=1,
        slices=[],
        seed=1,
        local_steps=2,
        batch_size=2,
        learning_rate=0.1,
        shards_per_round=1,
        rounds_planned=1,
        step_flops=1,
        step_bytes=1,
        step_dispatches=1,
        memory_bytes=1,
        rates={},
        fee_basis_points=2_000,
        budget_microusd=charge_microusd,
        params_sha256=asked.initial_params_sha256,
    )
    round_ = Round.objects.create(run=run, index=0, opened_at=ended_at)
    shard = Shard.objects.create(round=round_, index=0, slice_index=0, seed=1)
    return Lease.objects.create(
        shard=shard,
        device_id=device_id,
        owner_id=1,
        device_class="laptop-cpu",
        state=Lease.State.ACCEPTED,
        granted_at=ended_at,
        deadline_at=ended_at,
        ended_at=ended_at,
        expected_gpu_us=1,
        rate_microusd=1,
        fee_basis_points=2_000,
        max_charge_microusd=charge_microusd,
        charge_microusd=charge_microusd,
    )


@pytest.mark.django_db
def test_earnings_are_this_devices_since_noon_each_less_its_fee():
    device, other = UUID(int=1), UUID(int=2)
    noon = datetime(2026, 12, 1, 11, tzinfo=UTC)
    for charge_microusd in (1_001, 999):
        accepted(device, charge_microusd=charge_microusd, ended_at=noon)
    accepted(device, charge_microusd=5_000, ended_at=noon - timedelta(microseconds=1))
    accepted(other, charge_microusd=7_000, ended_at=noon)
    refused = accepted(device, charge_microusd=0, ended_at=noon)
    Lease.objects.filter(pk=refused.pk).update(state=Lease.State.REFUSED)
    earned = device_earned_microusd(device_id=device, since=noon)
    assert earned == (1_001 - 200) + (999 - 199)
    assert device_earned_microusd(device_id=UUID(int=3), since=noon) == 0


async def test_an_accepted_result_is_in_the_terms_that_follow_its_ack(online, dispatcher, laptop):
    client, connected = online
    await database_sync_to_async(accepted)(laptop.id, charge_microusd=1_000, ended_at=datetime.now(tz=UTC))
    ack = ins.SendAck(connected.session_id, UUID(LEASE), refusal=None, earned_microusd=800)
    await dispatcher.tells(ack)
    assert await client.reply() == msg.Ack(lease_id=LEASE, accepted=True, earned_microusd=800)
    changed = await client.reply()
    assert isinstance(changed, msg.Terms)
    assert changed.earned_microusd == 800
    await dispatcher.tells(ack)  # once more, for a device that repeats its result
    assert isinstance(await client.reply(), msg.Ack)
    assert await client.hears_nothing()


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        (NIGHT, "idle window open until 07:00; $0.288 an hour of GPU time, $0.0012 earned since noon"),
        ((Window(5, time(9), time(10)),), "idle window opens at Saturday 09:00; $0.288 an hour"),
        ((), "$0.288 an hour of GPU time"),
    ],
    ids=["open", "closed", "time changes nothing"],
)
def test_the_agent_says_its_terms_in_words(windows, words):
    in_force = terms(profile(windows=windows), TUESDAY_NIGHT, earned_microusd=1_200)
    assert terms_words(in_force, now=TUESDAY_NIGHT, tz=BERLIN).startswith(words)
