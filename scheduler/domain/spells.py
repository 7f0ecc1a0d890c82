"""What an owner is shown of the past: when a device was connected, and what then kept it from work.

A spell is a stretch of time in which a device was connected and one thing, or nothing, kept it from work; between
spells it was off line. Devices go through these functions wherever they come, change or go, so that a spell is
written on a change only, however often devices call in.

Whatever lasts less than SPELL_MIN is no spell of its own: one so young takes the newer reason on, and one that has
only just ended is taken up again. So a device whose charger has a loose contact, or one that means harm, cannot
write more than about a row a minute.
"""

from dataclasses import replace

from scheduler.domain.limits import RESTART_GRACE, SPELL_MIN
from scheduler.domain.state import DeviceState, SpellState
from scheduler.domain.turn import Turn


def put_device(turn: Turn, device: DeviceState) -> None:
    """Keep what is known of a connected device, and turn its spell over if what blocks it has changed."""
    turn.state.devices[device.id] = device
    spell = turn.state.spells.get(device.id) or _just_ended(turn, device)
    if spell is None:
        _begin(turn, device)
    elif spell.blocked == device.blocked:
        if spell.ended_at is not None:
            turn.put_spell(replace(spell, ended_at=None))
    elif turn.now - spell.began_at < SPELL_MIN:
        turn.put_spell(replace(spell, blocked=device.blocked, ended_at=None))
    else:
        if spell.ended_at is None:
            turn.put_spell(replace(spell, ended_at=turn.now))
        _begin(turn, device)


def drop_device(turn: Turn, device: DeviceState) -> None:
    """A device is not connected any more."""
    del turn.state.devices[device.id]
    spell = turn.state.spells.get(device.id)
    if spell is not None:
        turn.put_spell(replace(spell, ended_at=turn.now))


def end_unheard(turn: Turn) -> None:
    """Once devices have had time to come back after a restart, end the spells of those that have not.

    They end when this process began: that is the last moment for which nobody can say otherwise.
    """
    since = turn.state.unheard_since
    if since is not None and turn.now >= since + RESTART_GRACE:
        turn.state.unheard_since = None
        for spell in list(turn.state.spells.values()):
            if spell.device_id not in turn.state.devices:
                turn.put_spell(replace(spell, ended_at=max(since, spell.began_at)))


def forget_ended(turn: Turn) -> None:
    """Spells that ended too long ago to be taken up again."""
    ended = turn.state.ended_spells
    turn.state.ended_spells = {key: spell for key, spell in ended.items() if _is_fresh(turn, spell)}


def _just_ended(turn: Turn, device: DeviceState) -> SpellState | None:
    spell = turn.state.ended_spells.get(device.id)
    return spell if spell is not None and _is_fresh(turn, spell) else None


def _is_fresh(turn: Turn, spell: SpellState) -> bool:
    return spell.ended_at is not None and turn.now - spell.ended_at < SPELL_MIN


def _begin(turn: Turn, device: DeviceState) -> None:
    turn.put_spell(SpellState(turn.new_id(), device.id, device.blocked, began_at=turn.now))
