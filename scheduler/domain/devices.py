"""Devices come, go, and change whether they may work; their leases follow."""

from dataclasses import replace
from uuid import UUID

from scheduler.domain import leases, spells
from scheduler.domain.events import (
    BlockReason,
    DeviceBlocked,
    DeviceChanged,
    DeviceConnected,
    DeviceDisconnected,
    DeviceReady,
    DeviceRemoved,
)
from scheduler.domain.limits import RESEND_LEASE_AFTER, RESUME_GRACE
from scheduler.domain.state import DeviceState, LeaseState, ResumeBy
from scheduler.domain.transitions import UNDER_WAY, LeasePhase, ShardPhase
from scheduler.domain.turn import Turn


def on_connected(turn: Turn, event: DeviceConnected) -> None:
    """A device is there (again). The newest socket counts; leases it holds go on, others are sent to it again."""
    known = turn.state.devices.get(event.device_id)
    if known is not None and known.session_id != event.session_id:
        turn.close_session(known.session_id, "superseded")
    device = DeviceState(
        id=event.device_id,
        session_id=event.session_id,
        owner_id=event.owner_id,
        device_class=event.device_class,
        speed_factor=event.speed_factor,
        memory_bytes=event.memory_bytes,
        max_buffer_bytes=event.max_buffer_bytes,
        blocked=event.blocked,
        cached=frozenset(event.cached),
    )
    spells.put_device(turn, device)
    if event.blocked is not None:
        _take_back(turn, event.device_id, event.blocked)
    for lease in turn.state.live_on(event.device_id):
        # A device that works on it all the same takes this for a repetition; one that has lost it starts anew.
        if lease.phase in UNDER_WAY and lease.id not in event.resumed:
            turn.send_lease(lease)
    for lease_id in event.resumed:
        _resume(turn, event, turn.state.lease(lease_id), lease_id)


def _resume(turn: Turn, event: DeviceConnected, lease: LeaseState | None, lease_id: UUID) -> None:
    """Let a device go on with a lease that it says it still has, or tell it what became of it."""
    if lease is None or lease.device_id != event.device_id:
        turn.send_revoke(event.device_id, lease_id, "unknown")
    elif lease.phase in UNDER_WAY:
        leases.confirm(turn, lease)
    elif lease.phase is LeasePhase.ACCEPTED:
        turn.send_ack(lease.device_id, lease.id, refusal=None, earned_microusd=lease.earned_microusd)
    elif lease.phase is LeasePhase.REFUSED:
        turn.send_ack(lease.device_id, lease.id, refusal=lease.reason)
    elif _can_be_revived(turn, lease, event.blocked):
        leases.revive(turn, lease)
    elif lease.phase is not LeasePhase.REPORTED:  # of which an acknowledgement is still to come
        turn.send_revoke(event.device_id, lease.id, lease.reason or "expired")


def _can_be_revived(turn: Turn, lease: LeaseState, blocked: BlockReason | None) -> bool:
    if blocked is not None or not leases.is_wanted_back(turn, lease):
        return False
    nobody_else_has_it = turn.state.shards[lease.shard_id].phase is ShardPhase.PENDING
    return nobody_else_has_it and not turn.state.live_on(lease.device_id)


def on_disconnected(turn: Turn, event: DeviceDisconnected) -> None:
    """A socket ended. Its device may come back to its leases for a while; news of an older socket means nothing."""
    device = turn.state.devices.get(event.device_id)
    if device is None or device.session_id != event.session_id:
        return
    spells.drop_device(turn, device)
    for lease in turn.state.live_on(device.id):
        if lease.phase in UNDER_WAY:
            turn.state.resume_by[lease.id] = ResumeBy(turn.now + RESUME_GRACE, blamed=True)


def forget(turn: Turn, device_id: UUID) -> None:
    """A device does not answer: nothing more for it, unless its socket still lives and says so."""
    device = turn.state.devices.get(device_id)
    if device is not None:
        spells.drop_device(turn, device)
        turn.ask_to_announce(device.session_id)


def on_leaving(turn: Turn, device_id: UUID) -> None:
    """A device shuts down: it gets nothing more on this socket, and is welcome when it is back."""
    device = turn.state.devices.get(device_id)
    if device is not None:
        turn.state.devices[device_id] = replace(device, leaving=True)


def on_blocked(turn: Turn, event: DeviceBlocked) -> None:
    _block(turn, event.device_id, event.blocked)


def on_removed(turn: Turn, event: DeviceRemoved) -> None:
    _block(turn, event.device_id, "removed")
    session_id = turn.state.session(event.device_id)
    if session_id is not None:
        turn.close_session(session_id, "removed")


def on_changed(turn: Turn, event: DeviceChanged) -> None:
    session_id = turn.state.session(event.device_id)
    if session_id is not None:
        turn.refresh(session_id)


def on_ready(turn: Turn, event: DeviceReady) -> None:
    """A device that says it is free but runs a lease has lost it: send it again. One unknown is asked who it is."""
    session_id = turn.state.session(event.device_id)
    if session_id is None:
        turn.ask_to_announce(event.session_id)
    if session_id != event.session_id:
        return
    for lease in turn.state.live_on(event.device_id):
        asked = turn.state.asked.get(lease.id)
        if lease.phase in UNDER_WAY and (asked is None or turn.now - asked.at >= RESEND_LEASE_AFTER):
            turn.send_lease(lease)


def _block(turn: Turn, device_id: UUID, blocked: BlockReason | None) -> None:
    device = turn.state.devices.get(device_id)
    if device is not None:
        spells.put_device(turn, replace(device, blocked=blocked))
    if blocked is not None:
        _take_back(turn, device_id, blocked)


def _take_back(turn: Turn, device_id: UUID, blocked: BlockReason) -> None:
    for lease in turn.state.live_on(device_id):
        if lease.phase in UNDER_WAY:
            leases.revoke(turn, lease, "removed" if blocked == "removed" else "blocked")
