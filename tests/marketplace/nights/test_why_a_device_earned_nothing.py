"""One sentence for an owner whose device earned nothing, with the numbers in force and the next step."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import NIGHTLY, Window
from marketplace.nights.reasons import FAILURES, REFUSALS, Explanation, Facts, explain, hours_words
from marketplace.nights.record import hour_edges, record_of
from metal_kernels.errors import DeltaError
from scheduler.domain import runs
from scheduler.domain.events import BlockReason, HandbackReason
from scheduler.history import History, PastLease, PastSpell

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 12, 2, 7, 0, tzinfo=UTC)  # Wednesday, 08:00 in Berlin
OPENED = datetime(2026, 12, 1, 21, 0, tzinfo=UTC)  # 22:00 there; the window was open for 9 h
PHONE = DeviceProfile(
    id=UUID(int=1),
    owner_id=1,
    state="active",
    device_class="phone-high",
    speed_factor=1.0,
    policy=Policy(battery_floor_percent=35, too_hot_celsius=41),
    windows=NIGHTLY,
    time_zone=BERLIN,
)


def after(hours: float) -> datetime:
    return OPENED + timedelta(hours=hours)


def spell(blocked: str | None, start: float, end: float | None) -> PastSpell:
    return PastSpell(blocked, after(start), None if end is None else after(end))


def lease(state: str, reason: str = "", earned_microusd: int = 0) -> PastLease:
    return PastLease(state, reason, after(1), after(1.01), earned_microusd)


def told(
    *rows: PastSpell | PastLease,
    profile: DeviceProfile = PHONE,
    last_seen_at: datetime | None = NOW,
    now: datetime = NOW,
) -> Explanation | None:
    history = History(
        [row for row in rows if isinstance(row, PastSpell)],
        [row for row in rows if isinstance(row, PastLease)],
    )
    record = record_of(
        history, edges=hour_edges(now, BERLIN), windows=profile.windows, zone=BERLIN, heard_until=last_seen_at
    )
    return explain(Facts(record, profile, last_seen_at, now))


READY = spell(None, 0, 9)
Row = PastSpell | PastLease
CASES: list[tuple[Sequence[Row], dict[str, Any], str, str]] = [
    ([], {"profile": replace(PHONE, state="paused")}, "paused", "It is paused, so it gets no work."),
    ([READY], {"profile": replace(PHONE, windows=())}, "no_window", "It has no idle window"),
    ([], {"last_seen_at": None}, "never_connected", "It has never connected."),
    (
        [],
        {"last_seen_at": datetime(2026, 11, 29, 5, 30, tzinfo=UTC)},
        "offline",
        "It was not connected at all; it was last seen on Sunday 29 November at 06:30.",
    ),
    (
        [spell("outside_window", -3, 0)],
        {},
        "outside_window",
        "It was connected for 3 h, but never inside its idle window, which opens at 22:00.",
    ),
    (
        [spell("outside_window", -3, -1)],
        {"profile": replace(PHONE, windows=(Window(5, time(9), time(12)),))},
        "window_not_open",
        "Its idle window was not open: it opens on Saturday at 09:00.",
    ),
    (
        [spell("not_charging", 0, 7), spell(None, 7, 9)],
        {},
        "not_charging",
        "It was not on its charger for 7 h of its idle window.",
    ),
    (
        [spell("battery_low", 0, 5.5), spell(None, 5.5, 9)],
        {},
        "battery_low",
        "Its battery was below 35\u00a0% for 5 h 30 min.",
    ),
    (
        [spell("too_hot", 0, 9)],
        {},
        "too_hot",
        "It was too hot for 9 h: work stops at 41\u00a0°C and goes on at 36\u00a0°C.",
    ),
    ([spell("not_on_wifi", 0, 9)], {}, "not_on_wifi", "It was not on Wi-Fi for 9 h of its idle window."),
    ([spell("paused", 0, 6), spell(None, 6, 9)], {}, "was_paused", "It was paused for 6 h"),
    ([READY], {}, "no_work", "It was ready for 9 h, but no job needed it."),
    (
        [spell(None, 0, 0.5)],
        {},
        "mostly_offline",
        "It was not connected for 8 h 30 min of the 9 h that its idle window was open.",
    ),
    ([spell("self_test_failed", 0, 9)], {}, "self_test_failed", "It failed its self-test"),
    (
        [READY, lease("refused", "losses_bad")],
        {},
        "refused",
        "1 result was refused because its losses were missing or not numbers; refused work is not paid.",
    ),
    (
        [READY, *[lease("refused", "delta_norm")] * 2, lease("refused", "delta_size")],
        {},
        "refused",
        "3 results were refused, mostly because it moved the model further than honest training does",
    ),
    (
        [READY, *[lease("handed_back", "out_of_memory")] * 4],
        {},
        "unfinished",
        "It took up 4 pieces of work and finished none, because it ran out of memory.",
    ),
    ([READY, lease("accepted")], {}, "too_little", "It did 1 result, so small"),
    ([spell("magnetic_storm", 0, 9)], {}, "magnetic_storm", "kept from work for 9 h: magnetic storm."),
]


@pytest.mark.parametrize(("rows", "more", "code", "words"), CASES, ids=[case[2] for case in CASES])
def test_the_sentence_names_the_reason_and_the_numbers_in_force(rows, more, code, words):
    explanation = told(*rows, **more)
    assert explanation is not None
    assert explanation.code == code
    assert words in explanation.sentence


def test_a_device_that_has_earned_needs_no_explanation():
    assert told(READY, lease("accepted", earned_microusd=1)) is None


def test_a_window_that_is_open_at_this_moment_is_said_to_be():
    explanation = told(spell("outside_window", -5, -1), now=after(2), last_seen_at=after(-1))
    assert explanation is not None
    assert "which is open until 07:00" in explanation.sentence


blocks = st.sampled_from([None, *get_args(BlockReason)])
hours = st.floats(-13, 9.9)
rows = st.one_of(
    st.builds(lambda what, start, end: spell(what, *sorted((start, end))), blocks, hours, hours),
    st.builds(
        lease,
        st.sampled_from(["accepted", "refused", "expired", "handed_back", "revoked"]),
        st.sampled_from(["", *REFUSALS, *FAILURES]),
    ),
)


@given(
    st.lists(rows, max_size=6), st.sampled_from([NIGHTLY, (), (Window(0, time(1), time(2)),)]), st.booleans()
)
def test_whatever_the_record_says_there_is_one_sentence(rows, windows, seen):
    explanation = told(*rows, profile=replace(PHONE, windows=windows), last_seen_at=NOW if seen else None)
    assert explanation is not None
    assert explanation.sentence.endswith(".")
    assert explanation.sentence[0].isupper() or explanation.sentence[0].isdigit()
    assert explanation.next_step == "" or explanation.next_step.endswith(".")


def test_every_reason_that_a_check_gives_has_words():
    errors: list[type[DeltaError]] = [DeltaError, *DeltaError.__subclasses__()]
    delta = {error.code for error in errors}
    checks = {"steps_wrong", "losses_bad", "delta_missing", "delta_size", "delta_norm"}
    assert set(REFUSALS) == delta | checks


def test_every_way_not_to_finish_a_lease_has_words():
    expired = {runs.EXPIRED_STALLED, runs.EXPIRED_SLOW, runs.EXPIRED_LOST}
    assert set(FAILURES) == set(get_args(HandbackReason)) | expired


def test_durations_read_as_people_say_them():
    minutes = [(0, "less than a minute"), (40, "40 min"), (60, "1 h"), (325, "5 h 25 min")]
    assert [hours_words(timedelta(minutes=n)) for n, _ in minutes] == [words for _, words in minutes]
