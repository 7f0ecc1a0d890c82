"""A device's last hours: all of the time is accounted for, on the owner's clock."""

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.windows import NIGHTLY, Window
from marketplace.nights.record import FREE, OFFLINE, WORKING, hour_edges, open_spans, record_of
from scheduler.history import History, PastLease, PastSpell

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 12, 2, 6, 40, tzinfo=UTC)  # 07:40 in Berlin
SINCE = hour_edges(NOW, BERLIN)[0]
ALWAYS = [Window(day, time(0), time(0)) for day in range(7)]


def at(hours: float) -> datetime:
    return SINCE + timedelta(hours=hours)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


def record(history: History, windows=NIGHTLY, **more):
    return record_of(history, edges=hour_edges(NOW, BERLIN), windows=windows, zone=BERLIN, **more)


instants = st.floats(-3, 23.6).map(at)
spans = st.tuples(instants, instants).map(sorted)
spells = st.lists(st.tuples(st.sampled_from([None, "too_hot", "outside_window"]), spans), max_size=6)
leases = st.lists(
    st.tuples(st.sampled_from(["accepted", "refused", "running"]), spans, st.integers(0, 50)), max_size=8
)


@given(spells, leases, st.one_of(st.none(), instants))
def test_the_parts_of_every_hour_add_up_to_it_and_earnings_are_counted_once(spells, leases, heard_until):
    history = History(
        [PastSpell(blocked, *span) for blocked, span in spells],
        [
            PastLease(
                state, "", start, None if state == "running" else end, earned if state == "accepted" else 0
            )
            for state, (start, end), earned in leases
        ],
    )
    made = record(history, heard_until=heard_until)
    assert len(made.hours) == 24
    for hour in made.hours:
        assert sum(hour.spent.values(), timedelta()) == hour.ends_at - hour.starts_at
    opened = sum((end - start for start, end in open_spans(NIGHTLY, BERLIN, SINCE, NOW)), timedelta())
    assert sum(made.inside.values(), timedelta()) == opened
    within = [lease for lease in history.leases if lease.ended_at and SINCE <= lease.ended_at < NOW]
    assert made.earned_microusd == sum(lease.earned_microusd for lease in within)
    assert made.failed == sum(made.failures.values()) == sum(lease.state == "refused" for lease in within)


def test_work_goes_before_what_the_spell_says_and_gaps_are_off_line():
    history = History(
        [PastSpell(None, at(10), at(12)), PastSpell("not_charging", at(12), at(13))],
        [PastLease("accepted", "", at(10.5), at(11.25), 700)],
    )
    made = record(history)
    assert made.spent == {
        OFFLINE: hours(20 + 40 / 60),
        FREE: hours(1.25),
        WORKING: hours(0.75),
        "not_charging": hours(1),
    }
    assert [made.hours[n].earned_microusd for n in (10, 11)] == [0, 700]


def test_a_spell_that_goes_on_is_believed_for_as_long_as_the_device_was_heard():
    open_spell = History([PastSpell(None, at(20), None)], [])
    assert record(open_spell).spent[FREE] == hours(3 + 40 / 60)
    assert record(open_spell, heard_until=at(21)).spent[FREE] == hours(1)
    assert FREE not in record(open_spell, heard_until=at(2)).spent


def test_only_the_time_within_the_windows_counts_as_inside():
    history = History([PastSpell(None, at(0), at(23))], [])
    assert record(history).inside == {FREE: hours(9)}  # 22:00 to 07:00
    assert record(history, windows=[]).inside == {}
    assert sum(record(history, windows=ALWAYS).inside.values(), timedelta()) == NOW - SINCE


def test_hours_begin_when_the_owners_clock_strikes():
    kolkata = ZoneInfo("Asia/Kolkata")  # half an hour off
    edges = hour_edges(NOW, kolkata)
    assert {edge.astimezone(kolkata).minute for edge in edges[:-1]} == {0}
    assert edges[-1] == NOW
    whole = datetime(2026, 12, 2, 6, 0, tzinfo=UTC)
    assert hour_edges(whole, BERLIN)[-2:] == [whole - hours(1), whole]


def test_a_night_in_which_clocks_change_has_twenty_four_hours_of_sixty_minutes():
    for morning in (datetime(2026, 3, 29, 9, 30, tzinfo=UTC), datetime(2026, 10, 25, 9, 30, tzinfo=UTC)):
        edges = hour_edges(morning, BERLIN)
        assert {later - earlier for earlier, later in pairwise(edges[:-1])} == {hours(1)}


def test_a_window_over_the_change_of_clocks_is_as_long_as_the_night_was():
    spring, autumn = datetime(2026, 3, 29, 10, tzinfo=UTC), datetime(2026, 10, 25, 10, tzinfo=UTC)
    for now, length in ((spring, 8), (autumn, 10)):
        spans = open_spans(NIGHTLY, BERLIN, now - hours(24), now)
        assert sum((end - start for start, end in spans), timedelta()) == hours(length)
