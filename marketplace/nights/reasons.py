"""Why a device earned nothing, in one sentence for its owner, and what to do about it. Pure.

The numbers in a sentence are those in force. What could be done comes first: work that was tried and refused, then
what kept the device from work for the longest part of its idle windows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.domain.policy import resume_battery_percent, resume_celsius
from accounts.domain.profile import DeviceProfile
from accounts.domain.windows import window_words
from marketplace.nights.record import FREE, NOTHING, OFFLINE, OUTSIDE, WORKING, Record


@dataclass(frozen=True, slots=True)
class Explanation:
    """A stable code, one sentence, and the next step (empty where there is nothing to do)."""

    code: str
    sentence: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the explanation is made of."""

    record: Record
    profile: DeviceProfile
    last_seen_at: datetime | None
    now: datetime


# Why a result was refused: `scheduler.checks` and the errors of an encoded delta.
REFUSALS = {
    "steps_wrong": "it made another number of steps than it was asked to",
    "losses_bad": "its losses were missing or not numbers",
    "delta_missing": "the result was never uploaded",
    "delta_size": "the upload had another size than the device said",
    "delta_norm": "it moved the model further than honest training does",
    "delta_format": "the upload was damaged",
    "delta_invalid": "the upload was damaged",
    "delta_names": "the upload was of another model",
    "delta_shape": "the upload was of another model",
    "delta_not_finite": "it held values that are not numbers",
}
# Why a lease was not finished: hand-backs, and what ended leases whose time was up.
FAILURES = {
    "shutdown": "it was shut down in the middle of it",
    "blocked": "its rules stopped it in the middle of it",
    "busy": "it was busy",
    "too_big": "the work did not fit its memory",
    "data_unavailable": "it could not fetch the data",
    "bad_program": "it could not run the program",
    "out_of_memory": "it ran out of memory",
    "device_lost": "its GPU gave up",
    "error": "something in it failed",
    "stalled": "it stood still until the time was up",
    "slow": "it was too slow for the time it had",
    "lost": "it vanished in the middle of it",
}


def explain(facts: Facts) -> Explanation | None:
    """The first that applies; None if the device has earned something."""
    if facts.record.earned_microusd > 0:
        return None
    return next(filter(None, (reason(facts) for reason in _REASONS)))


def _paused(facts: Facts) -> Explanation | None:
    if facts.profile.state != "paused":
        return None
    return Explanation("paused", "It is paused, so it gets no work.", "Resume it when it may earn again.")


def _no_window(facts: Facts) -> Explanation | None:
    if facts.profile.windows:
        return None
    return Explanation(
        "no_window", "It has no idle window, so it may never work.", "Choose the hours in which it may work."
    )


def _never_seen(facts: Facts) -> Explanation | None:
    if facts.last_seen_at is not None or facts.record.connected:
        return None
    return Explanation(
        "never_connected",
        "It has never connected.",
        "Open Nightshift on it, or start its agent, and leave it on.",
    )


def _offline(facts: Facts) -> Explanation | None:
    if facts.record.connected or facts.last_seen_at is None:
        return None
    seen = facts.last_seen_at.astimezone(facts.profile.time_zone)
    return Explanation(
        "offline",
        f"It was not connected at all; it was last seen on {seen:%A} {seen.day} {seen:%B} at {seen:%H:%M}.",
        "Open Nightshift on it, or start its agent, and see that it has a network.",
    )


def _self_test(facts: Facts) -> Explanation | None:
    if not facts.record.spent.get("self_test_failed"):
        return None
    return Explanation(
        "self_test_failed",
        "It failed its self-test: its GPU does not compute what is known to be right, so it gets no work.",
        "Update its browser and system, then open Nightshift on it again; the test runs by itself.",
    )


def _too_little(facts: Facts) -> Explanation | None:
    if not facts.record.accepted:
        return None
    results = counted(facts.record.accepted, "result")
    return Explanation(
        "too_little", f"It did {results}, so small that they come to less than a millionth of a dollar.", ""
    )


def _refused(facts: Facts) -> Explanation | None:
    reasons = {reason: n for (state, reason), n in facts.record.failures.items() if state == "refused"}
    if not reasons:
        return None
    total, worst = sum(reasons.values()), max(reasons, key=lambda reason: (reasons[reason], reason))
    words = REFUSALS.get(worst, f"the check found fault with it ({worst or 'no reason given'})")
    whole = "was refused" if total == 1 else "were refused, mostly" if len(reasons) > 1 else "were refused"
    return Explanation(
        "refused",
        f"{counted(total, 'result')} {whole} because {words}; refused work is not paid.",
        "Update its browser or agent. If it goes on, its memory or GPU may be faulty: remove it.",
    )


def _failed(facts: Facts) -> Explanation | None:
    reasons: dict[str, int] = {}
    for (_, reason), count in facts.record.failures.items():
        reasons[reason] = reasons.get(reason, 0) + count
    if not reasons:
        return None
    total, worst = sum(reasons.values()), max(reasons, key=lambda reason: (reasons[reason], reason))
    words = FAILURES.get(worst, worst.replace("_", " "))
    mostly = "mostly because" if len(reasons) > 1 else "because"
    return Explanation(
        "unfinished",
        f"It took up {counted(total, 'piece')} of work and finished none, {mostly} {words}.",
        "Keep it open and on its charger, and close what else it runs.",
    )


def _window_not_open(facts: Facts) -> Explanation | None:
    if facts.record.inside:
        return None
    return Explanation(
        "window_not_open", f"Its idle window was not open: it {_window(facts)}.", "Nothing, until then."
    )


def _outside_only(facts: Facts) -> Explanation | None:
    inside = sum(
        (time for what, time in facts.record.inside.items() if what not in (OFFLINE, OUTSIDE)), NOTHING
    )
    if inside:
        return None
    connected = hours_words(facts.record.connected)
    return Explanation(
        "outside_window",
        f"It was connected for {connected}, but never inside its idle window, which {_window(facts)}.",
        "Leave it connected through its window, or choose hours in which it is.",
    )


def _kept_from_work(facts: Facts) -> Explanation:
    """What the largest part of the time within the windows went to."""
    inside = {what: time for what, time in facts.record.inside.items() if what not in (OUTSIDE, WORKING)}
    worst = max(inside, key=lambda what: (inside[what], what), default=FREE)
    time = hours_words(inside.get(worst, NOTHING))
    open_for = hours_words(sum(facts.record.inside.values(), NOTHING))
    return _LONGEST.get(worst, _other(worst))(facts, time, open_for)


def _mostly_offline(facts: Facts, time: str, open_for: str) -> Explanation:
    return Explanation(
        "mostly_offline",
        f"It was not connected for {time} of the {open_for} that its idle window was open.",
        "Leave Nightshift open on it, on the charger, with its screen free to stay on.",
    )


def _no_work(facts: Facts, time: str, open_for: str) -> Explanation:
    return Explanation("no_work", f"It was ready for {time}, but no job needed it.", "")


def _battery_low(facts: Facts, time: str, open_for: str) -> Explanation:
    floor, resumes = facts.profile.policy.battery_floor_percent, resume_battery_percent(facts.profile.policy)
    return Explanation(
        "battery_low",
        f"Its battery was below {floor}\u00a0% for {time}.",
        f"Charge it before its window opens (it goes on at {resumes}\u00a0%), or lower the floor in its rules.",
    )


def _not_charging(facts: Facts, time: str, open_for: str) -> Explanation:
    return Explanation(
        "not_charging",
        f"It was not on its charger for {time} of its idle window.",
        "Plug it in for the night, or let it work on its battery in its rules.",
    )


def _not_on_wifi(facts: Facts, time: str, open_for: str) -> Explanation:
    return Explanation(
        "not_on_wifi",
        f"It was not on Wi-Fi for {time} of its idle window.",
        "Join it to Wi-Fi, or let it use mobile data in its rules.",
    )


def _too_hot(facts: Facts, time: str, open_for: str) -> Explanation:
    policy = facts.profile.policy
    return Explanation(
        "too_hot",
        f"It was too hot for {time}: work stops at {policy.too_hot_celsius}\u00a0°C "
        f"and goes on at {resume_celsius(policy)}\u00a0°C.",
        "Give it air: out of its case, and not under a blanket.",
    )


def _was_paused(facts: Facts, time: str, open_for: str) -> Explanation:
    return Explanation("was_paused", f"It was paused for {time} of its idle window.", "")


def _other(reason: str) -> Callable[[Facts, str, str], Explanation]:
    words = reason.replace("_", " ")
    return lambda facts, time, open_for: Explanation(
        reason, f"It was kept from work for {time}: {words}.", ""
    )


def _window(facts: Facts) -> str:
    words = window_words(facts.profile.windows, facts.profile.time_zone, facts.now)
    return words if words.startswith("opens") else f"is {words}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def hours_words(time: timedelta) -> str:
    """'5 h 20 min', '40 min', 'less than a minute'; rounded down."""
    hours, minutes = divmod(int(time.total_seconds()) // 60, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join(parts) or "less than a minute"


_REASONS: tuple[Callable[[Facts], Explanation | None], ...] = (
    _paused,
    _no_window,
    _never_seen,
    _offline,
    _too_little,
    _self_test,
    _refused,
    _failed,
    _window_not_open,
    _outside_only,
    _kept_from_work,
)
_LONGEST: dict[str, Callable[[Facts, str, str], Explanation]] = {
    OFFLINE: _mostly_offline,
    FREE: _no_work,
    "paused": _was_paused,
    "battery_low": _battery_low,
    "not_charging": _not_charging,
    "not_on_wifi": _not_on_wifi,
    "too_hot": _too_hot,
}
