"""The record of when a device was connected and what kept it from work: written on a change only, and bounded."""

import asyncio
import contextlib
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import store
from scheduler.dispatcher import Dispatcher
from scheduler.domain import events as ev
from scheduler.domain import machine
from scheduler.domain.limits import RESTART_GRACE, SPELL_MIN
from scheduler.domain.state import SpellState, State
from scheduler.models import Spell
from scheduler.services import spells_prune

from .world import ADA, BO, START, World, connected

LONG_S = 600.0
YEAR = timedelta(days=365)


def at(seconds: float):
    return START + timedelta(seconds=seconds)


class Diary:
    """A world, and every spell that it has written."""

    def __init__(self) -> None:
        self.world = World()
        self.rows: dict[UUID, SpellState] = {}
        self.writes = 0

    def send(self, *events: ev.Event) -> None:
        self._keep(self.world.send(*events).changed.spells)

    def wait(self, seconds: float) -> None:
        self._keep(self.world.pass_time(seconds).changed.spells)

    def _keep(self, spells: dict[UUID, SpellState]) -> None:
        self.rows.update(spells)
        self.writes += len(spells)

    def spells(self, device: UUID = ADA) -> list[tuple[str | None, float, float | None]]:
        """(what blocked it, seconds from the start, seconds to its end), oldest first."""
        mine = sorted(
            (row for row in self.rows.values() if row.device_id == device), key=lambda s: s.began_at
        )
        return [
            (
                row.blocked,
                (row.began_at - START).total_seconds(),
                None if row.ended_at is None else (row.ended_at - START).total_seconds(),
            )
            for row in mine
        ]


def gone(device: UUID = ADA) -> ev.DeviceDisconnected:
    return ev.DeviceDisconnected(device, f"socket of {device}")


def test_a_night_is_a_spell_for_each_thing_that_kept_the_device_from_work():
    diary = Diary()
    diary.send(connected(ADA, blocked="outside_window"))
    diary.wait(LONG_S)
    diary.send(ev.DeviceBlocked(ADA, None))
    diary.wait(LONG_S)
    diary.send(ev.DeviceBlocked(ADA, "not_charging"))
    diary.wait(LONG_S)
    diary.send(gone())
    assert diary.spells() == [("outside_window", 0, 600), (None, 600, 1200), ("not_charging", 1200, 1800)]


def test_calling_in_without_a_change_writes_nothing():
    diary = Diary()
    diary.send(connected(ADA))
    for _ in range(50):
        diary.send(ev.DeviceReady(ADA, f"socket of {ADA}"), ev.DeviceBlocked(ADA, None))
        diary.wait(20)
    diary.send(connected(ADA, session_id="newer"))
    assert diary.writes == 1


def test_a_socket_that_is_back_at_once_was_never_away():
    diary = Diary()
    diary.send(connected(ADA))
    diary.wait(LONG_S)
    diary.send(gone())
    diary.wait(SPELL_MIN.total_seconds() - 1)
    diary.send(connected(ADA))
    assert diary.spells() == [(None, 0, None)]


def test_one_that_stays_away_was_off_line_between_its_spells():
    diary = Diary()
    diary.send(connected(ADA))
    diary.wait(LONG_S)
    diary.send(gone())
    diary.wait(LONG_S)
    diary.send(connected(ADA))
    assert diary.spells() == [(None, 0, 600), (None, 1200, None)]


def test_what_a_new_socket_says_first_is_replaced_by_what_its_sensors_say():
    diary = Diary()
    diary.send(connected(ADA))
    diary.wait(1)
    diary.send(ev.DeviceBlocked(ADA, "battery_low"))
    assert diary.spells() == [("battery_low", 0, None)]


@given(st.lists(st.sampled_from(["in", "out", "hot", "cool"]), min_size=1, max_size=80))
def test_a_device_that_flickers_cannot_write_more_than_a_row_a_minute(moves):
    diary = Diary()
    diary.send(connected(ADA))
    what: dict[str, ev.Event] = {
        "in": connected(ADA),
        "out": gone(),
        "hot": ev.DeviceBlocked(ADA, "too_hot"),
        "cool": ev.DeviceBlocked(ADA, None),
    }
    for move in moves:
        diary.wait(10)
        diary.send(what[move])
    assert len(diary.rows) <= 1 + len(moves) * 10 / SPELL_MIN.total_seconds()
    spells = diary.spells()
    assert all(end is not None for _, _, end in spells[:-1])


def test_after_a_restart_who_is_back_goes_on_and_who_is_not_was_away_since():
    diary = Diary()
    diary.send(connected(ADA), connected(BO))
    diary.wait(LONG_S)
    before = diary.world.state
    diary.world.state = State(spells=dict(before.spells))
    machine.recover(diary.world.state, now=diary.world.now, new_id=diary.world.new_id)
    diary.wait(5)
    diary.send(connected(ADA))
    diary.wait(RESTART_GRACE.total_seconds())
    assert diary.spells(ADA) == [(None, 0, None)]
    assert diary.spells(BO) == [(None, 0, 600)]


@pytest.mark.django_db
def test_a_spell_survives_its_row():
    world = World()
    store.save(world.send(connected(ADA, blocked="too_hot"), connected(BO)))
    assert store.load().spells == world.state.spells
    assert {spell.blocked for spell in world.state.spells.values()} == {"too_hot", None}


@pytest.mark.django_db
def test_spells_are_forgotten_after_two_weeks_a_bounded_number_at_a_time():
    ends = [at(0), at(1), at(2), at(3 * 24 * 3600), None]
    for number, ended_at in enumerate(ends):
        Spell.objects.create(
            id=UUID(int=number), device_id=UUID(int=number), began_at=START, ended_at=ended_at
        )
    now = START + timedelta(days=14, seconds=60)
    assert spells_prune(now=now, at_once=2) == 2
    assert spells_prune(now=now, at_once=2) == 1
    assert spells_prune(now=now, at_once=2) == 0
    assert sorted(spell.id.int for spell in Spell.objects.all()) == [3, 4]


@pytest.mark.django_db(transaction=True)
async def test_the_dispatcher_forgets_old_spells_by_itself():
    await Spell.objects.acreate(id=ADA, device_id=ADA, began_at=at(0) - YEAR, ended_at=at(1) - YEAR)
    dispatching = asyncio.create_task(Dispatcher(tick_s=0.01).run())
    try:
        async with asyncio.timeout(20):
            while await Spell.objects.aexists():
                await asyncio.sleep(0.02)
    finally:
        dispatching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await dispatching
