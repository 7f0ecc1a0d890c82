"""Whether a device may work: decided at every status, every change of settings, and as time passes."""

from datetime import UTC, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from channels.db import database_sync_to_async

from accounts.domain.policy import Readings
from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import Window
from accounts.models import IdleWindow
from accounts.services import device_pause, device_remove
from scheduler import fleet
from scheduler.domain import events as ev
from tests.worker_protocol.conftest import channel_layer, site_with
from worker_protocol.presence import Presence
from worker_protocol.wire import messages as msg


async def refresh(connected: ev.DeviceConnected) -> None:
    """As the dispatcher does on news of a device."""
    await channel_layer().send(connected.session_id, fleet.REFRESH)


async def test_unplugging_blocks_the_device_and_the_dispatcher_learns_it_once(online, dispatcher, laptop):
    client, _ = online
    for _repeat in range(2):
        await client.say(msg.Status(charging=False))
        assert await client.reply() == msg.Blocked(reason="not_charging")
    assert await dispatcher.hears() == ev.DeviceBlocked(laptop.id, "not_charging")
    await client.say(msg.Status(charging=True))
    assert await client.reply() == msg.Blocked(reason=None)
    assert await dispatcher.hears() == ev.DeviceBlocked(laptop.id, None)


async def test_every_status_is_answered_even_if_nothing_has_changed(online):
    client, _ = online
    await client.say(msg.Status())
    assert await client.reply() == msg.Blocked(reason=None)


async def test_a_device_without_sensors_may_work(online):
    client, _ = online
    await client.say(msg.Status(network="wifi"))
    assert await client.reply() == msg.Blocked(reason=None)


async def test_a_paused_device_hears_of_it_at_once(online, dispatcher, laptop, ada):
    client, connected = online
    await database_sync_to_async(device_pause)(owner=ada, device_id=laptop.id)
    await refresh(connected)
    assert await client.reply() == msg.Blocked(reason="paused")


async def test_removing_a_device_ends_its_socket(online, laptop, ada):
    client, connected = online
    await database_sync_to_async(device_remove)(owner=ada, device_id=laptop.id)
    await refresh(connected)
    assert (await client.error()).code == "device_removed"
    assert await client.closed_with() == 4004


async def test_a_window_that_closes_blocks_the_device_without_any_message(
    call_in, dispatcher, ada, monkeypatch
):
    await IdleWindow.objects.all().adelete()
    now = datetime(2026, 12, 1, 23, 0, tzinfo=UTC)  # a Tuesday
    monkeypatch.setattr("worker_protocol.consumer.utc_now", lambda: now)
    await IdleWindow.objects.acreate(owner=ada, weekday=1, starts=time(22), ends=time(7))
    client = call_in(site_with(tick_s=0.01))
    assert (await client.log_in()).blocked is None
    await dispatcher.hears()
    now += timedelta(hours=8, seconds=1)
    assert await client.reply() == msg.Blocked(reason="outside_window")
    news = await dispatcher.hears()
    assert isinstance(news, ev.DeviceBlocked)
    assert news.blocked == "outside_window"


ALWAYS = tuple(Window(day, time(0), time(0)) for day in range(7))
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def presence(**policy) -> Presence:
    profile = DeviceProfile(
        id=UUID(int=7),
        owner_id=1,
        state="active",
        device_class="laptop-cpu",
        speed_factor=1.0,
        policy=Policy(**policy),
        windows=ALWAYS,
        time_zone=ZoneInfo("UTC"),
    )
    return Presence(profile=profile, session_id="s", memory_bytes=0, max_buffer_bytes=0, cached=())


@pytest.mark.parametrize("charge", [[39, 41, 39, 41, 39, 41], [39.9, 40.1] * 10])
def test_a_charge_that_flickers_around_the_floor_makes_one_piece_of_news(charge):
    device = presence(battery_floor_percent=40)
    told = []
    for percent in charge:
        device.readings = Readings(battery_percent=percent, charging=True)
        device.reconsider(NOON)
        if (news := device.news([])) is not None:
            device.told(news)
            told.append(news.blocked)
    assert told == ["battery_low"]


def test_news_that_the_dispatcher_could_not_take_stays_news():
    device = presence()
    first = device.news([])
    assert isinstance(first, ev.DeviceConnected)
    assert device.news([]) == first
    device.told(first)
    assert device.news([]) is None


def test_a_block_that_ends_before_it_was_told_is_no_news():
    device = presence(charging_only=True)
    first = device.news([])
    assert first is not None
    device.told(first)
    device.readings = Readings(charging=False)
    device.reconsider(NOON)
    device.readings = Readings(charging=True)
    device.reconsider(NOON)
    assert device.news([]) is None


def test_a_sign_of_life_is_written_down_at_most_once_a_minute():
    device = presence()
    moments = [NOON + timedelta(seconds=s) for s in (0, 10, 59, 60, 61, 130)]
    assert [device.seen(now) for now in moments] == [True, False, False, True, False, True]
