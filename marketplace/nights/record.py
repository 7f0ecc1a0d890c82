"""A device's last hours, hour by hour: how long it worked, could have, was kept from it or was away. Pure.

All of the time is accounted for: the parts of an hour add up to the hour, whatever the record's rows say.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from accounts.domain.windows import Window, is_open, next_change
from scheduler.history import History, PastLease

HOUR = timedelta(hours=1)
HOURS = 24
NOTHING = timedelta()
# What an hour went to, beside the reasons that block a device (`accounts.domain.policy`).
WORKING, FREE, OFFLINE = "working", "free", "offline"
OUTSIDE = "outside_window"

Span = tuple[datetime, datetime]
Spent = Mapping[str, timedelta]


@dataclass(frozen=True, slots=True)
class Hour:
    """`spent` adds up to the hour; the last one ends now."""

    starts_at: datetime
    ends_at: datetime
    spent: Spent
    earned_microusd: int
    accepted: int
    failed: int


@dataclass(frozen=True, slots=True)
class Record:
    """`inside` is how the time within the idle windows was spent; `failures` counts (state, reason) of leases."""

    hours: tuple[Hour, ...]
    opened: tuple[Span, ...]  # when the windows that hold now were open
    inside: Spent
    failures: Mapping[tuple[str, str], int]

    @property
    def since(self) -> datetime:
        return self.hours[0].starts_at

    @property
    def until(self) -> datetime:
        return self.hours[-1].ends_at

    @property
    def spent(self) -> dict[str, timedelta]:
        total: dict[str, timedelta] = {}
        for hour in self.hours:
            for what, time in hour.spent.items():
                total[what] = total.get(what, NOTHING) + time
        return total

    @property
    def worked(self) -> timedelta:
        return self.spent.get(WORKING, NOTHING)

    @property
    def connected(self) -> timedelta:
        return sum((time for what, time in self.spent.items() if what != OFFLINE), NOTHING)

    @property
    def earned_microusd(self) -> int:
        return sum(hour.earned_microusd for hour in self.hours)

    @property
    def accepted(self) -> int:
        return sum(hour.accepted for hour in self.hours)

    @property
    def failed(self) -> int:
        return sum(hour.failed for hour in self.hours)


def hour_edges(now: datetime, zone: ZoneInfo, *, hours: int = HOURS) -> list[datetime]:
    """Where the hours up to `now` begin on the clock of `zone`, and `now`: the last of the `hours` has just begun.

    Each but the last is an hour long; on the day that clocks change the names of hours jump, not their lengths.
    """
    begun = now.astimezone(zone).replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    edges = [begun - HOUR * back for back in range(hours - 1, -1, -1)]
    return [*edges, now] if now > begun else [*(edge - HOUR for edge in edges), now]


def record_of(
    history: History,
    *,
    edges: Sequence[datetime],
    windows: Sequence[Window],
    zone: ZoneInfo,
    heard_until: datetime | None = None,
) -> Record:
    """Hours between `edges`. A spell that is still open is believed up to `heard_until`, where that is known."""
    since, until = edges[0], edges[-1]
    opened = list(open_spans(windows, zone, since, until))
    labels = _labels(history, until, heard_until)
    marks = sorted(
        {*edges, *_clipped((edge for start, end, _ in labels for edge in (start, end)), since, until)}
        | {*_clipped((edge for span in opened for edge in span), since, until)}
    )
    spent: list[dict[str, timedelta]] = [{} for _ in edges[1:]]
    inside: dict[str, timedelta] = {}
    naming, opening, number = _Cursor(labels), _Cursor([(*span, "open") for span in opened]), 0
    for start, end in pairwise(marks):
        while start >= edges[number + 1]:
            number += 1
        what = naming.at(start) or OFFLINE
        spent[number][what] = spent[number].get(what, NOTHING) + (end - start)
        if opening.at(start):
            inside[what] = inside.get(what, NOTHING) + (end - start)
    ended = [lease for lease in history.leases if lease.ended_at and since <= lease.ended_at < until]
    hours = tuple(
        _hour(span, parts, _ending_in(ended, span))
        for span, parts in zip(pairwise(edges), spent, strict=True)
    )
    failures = Counter((lease.state, lease.reason) for lease in ended if lease.failed)
    return Record(hours, tuple(opened), inside, failures)


def open_spans(windows: Sequence[Window], zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[Span]:
    """When the windows that hold now were open, between two instants."""
    at = since
    while at < until:
        change = next_change(windows, zone, at) or until
        if is_open(windows, zone, at):
            yield at, min(change, until)
        at = change


def _hour(span: Span, spent: Spent, leases: Sequence[PastLease]) -> Hour:
    return Hour(
        *span,
        spent=spent,
        earned_microusd=sum(lease.earned_microusd for lease in leases),
        accepted=sum(lease.accepted for lease in leases),
        failed=sum(lease.failed for lease in leases),
    )


def _ending_in(leases: Sequence[PastLease], span: Span) -> list[PastLease]:
    return [lease for lease in leases if lease.ended_at and span[0] <= lease.ended_at < span[1]]


def _labels(
    history: History, until: datetime, heard_until: datetime | None
) -> list[tuple[datetime, datetime, str]]:
    """What the device did from when to when, without overlaps: work goes before what the spell of the time says."""
    work = _merged((lease.granted_at, lease.ended_at or until) for lease in history.leases)
    heard = until if heard_until is None else min(until, heard_until)
    labels = [(start, end, WORKING) for start, end in work]
    for spell in history.spells:
        end = spell.ended_at or max(heard, spell.began_at)
        what = spell.blocked or FREE
        labels += [(*part, what) for part in _without((spell.began_at, end), work)]
    return sorted(labels)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _without(span: Span, holes: Sequence[Span]) -> Iterator[Span]:
    """The parts of a span that no hole covers; holes are in order and apart."""
    at, last = span
    for start, end in holes:
        if end > at and start < last:
            if start > at:
                yield at, start
            at = end
    if at < last:
        yield at, last


def _clipped(instants: Iterable[datetime], since: datetime, until: datetime) -> Iterator[datetime]:
    return (instant for instant in instants if since < instant < until)


class _Cursor:
    """Looks up which of some ordered spans holds at instants that only ever move on."""

    def __init__(self, spans: Sequence[tuple[datetime, datetime, str]]) -> None:
        self._spans = spans
        self._next = 0

    def at(self, instant: datetime) -> str | None:
        while self._next < len(self._spans) and self._spans[self._next][1] <= instant:
            self._next += 1
        if self._next < len(self._spans) and self._spans[self._next][0] <= instant:
            return self._spans[self._next][2]
        return None
