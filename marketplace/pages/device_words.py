"""A device's state in words for its owner. Pure: what is known of it comes in, a badge and a sentence come out."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from accounts.domain.policy import block_words
from accounts.domain.profile import DeviceProfile
from accounts.domain.windows import is_open, window_words
from scheduler.activity import Activity

# What the badge's colour says: it works, it could, its owner's rules keep it idle, something is wrong.
Tone = Literal["busy", "good", "quiet", "warn"]


@dataclass(frozen=True, slots=True)
class DeviceWords:
    badge: str
    tone: Tone
    sentence: str


@dataclass(frozen=True, slots=True)
class Contact:
    """Whether a device is connected, what then keeps it from work, and when it was last heard of."""

    connected: bool
    blocked: str | None = None
    last_seen_at: datetime | None = None


def device_words(
    *, profile: DeviceProfile, contact: Contact, activity: Activity, now: datetime
) -> DeviceWords:
    """The first thing that an owner should know: paused, away, at work, kept from it, or waiting for some."""
    if profile.state == "paused":
        return DeviceWords("Paused", "quiet", "Gets no work until you resume it.")
    if not contact.connected:
        return _away(profile, contact, now)
    if activity.work is not None:
        work = activity.work
        return DeviceWords("Working", "busy", f"Training: step {work.step} of {work.local_steps}.")
    blocked = contact.blocked
    if blocked in (None, "outside_window"):  # what the device was last told may be older than the windows
        blocked = None if _window_open(profile, now) else "outside_window"
    if blocked is not None:
        return DeviceWords("Resting", "quiet", _sentence(block_words(blocked, profile=profile, now=now)))
    if activity.benched_until is not None and activity.benched_until > now:
        until = activity.benched_until.astimezone(profile.time_zone)
        failed = (
            f"Failed {activity.failures_in_a_row} times in a row"
            if activity.failures_in_a_row > 1
            else "Failed"
        )
        return DeviceWords("Benched", "warn", f"{failed}: gets work again at {until:%H:%M}.")
    return DeviceWords("Ready", "good", f"Waits for work; its window is {_window(profile, now)}.")


def _away(profile: DeviceProfile, contact: Contact, now: datetime) -> DeviceWords:
    if contact.last_seen_at is None:
        return DeviceWords("Not connected", "warn", "Has not been in touch yet: start its agent.")
    return DeviceWords(
        "Not connected",
        "quiet" if not _window_open(profile, now) else "warn",
        f"Last seen {ago(now, contact.last_seen_at)}; idle window: {_window(profile, now)}.",
    )


def ago(now: datetime, then: datetime) -> str:
    """'just now', '12 minutes ago', '3 hours ago', '2 days ago'."""
    minutes = int((now - then).total_seconds() // 60)
    for size, word in ((24 * 60, "day"), (60, "hour"), (1, "minute")):
        count = minutes // size
        if count > 0:
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "just now"


def _window_open(profile: DeviceProfile, now: datetime) -> bool:
    return is_open(profile.windows, profile.time_zone, now)


def _window(profile: DeviceProfile, now: datetime) -> str:
    return window_words(profile.windows, profile.time_zone, now)


def _sentence(words: str) -> str:
    unbroken = words.replace(" %", "\u00a0%")
    return f"{unbroken[:1].upper()}{unbroken[1:]}."
