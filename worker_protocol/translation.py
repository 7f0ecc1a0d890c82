"""Between the two languages: the wire's messages and the scheduler's events and work. Pure but for signing URLs."""

from datetime import datetime, timedelta
from uuid import UUID

from accounts.domain.policy import Readings
from blobs.services import read_url, upload_url
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.selectors import LeaseWork
from worker_protocol.wire import messages as msg

# Signed addresses outlive their lease by this much, so that late blobs and resumed leases still work.
URL_GRACE = timedelta(minutes=10)
# What a delta can weigh beside its parameters: one byte and a scale for four bytes, but a header for every tensor.
DELTA_HEADROOM_BYTES = 64 * 1024


def event_of(message: msg.DeviceMessage, *, device_id: UUID, session_id: str) -> ev.DeviceEvent | None:
    """The scheduler's event for a device's message; None for what only the fleet manager needs."""
    match message:
        case msg.Ready():
            return ev.DeviceReady(device_id=device_id, session_id=session_id)
        case msg.Progress(lease_id=lease_id, step=step):
            return ev.LeaseProgress(device_id=device_id, lease_id=UUID(lease_id), step=step)
        case msg.Handback(lease_id=lease_id, reason=reason, detail=detail):
            return ev.LeaseHandedBack(
                device_id=device_id, lease_id=UUID(lease_id), reason=reason, detail=detail
            )
        case msg.Result():
            return ev.ResultReported(
                device_id=device_id,
                lease_id=UUID(message.lease_id),
                delta_sha256=message.delta_sha256,
                delta_bytes=message.delta_bytes,
                gpu_us=message.gpu_us,
                steps=message.steps,
                losses=tuple(message.losses),
            )
        case _:
            return None


def readings_of(status: msg.Status) -> Readings:
    return Readings(
        battery_percent=status.battery_percent,
        charging=status.charging,
        network=status.network,
        temperature_celsius=status.temperature_celsius,
        thermal=status.thermal,
    )


def lease_message(work: LeaseWork, *, now: datetime) -> msg.Lease:
    """The lease as its device is told it, with addresses that only serve this lease."""
    time_left = max(work.deadline_at - now, timedelta())
    ttl_s = int((time_left + URL_GRACE).total_seconds())

    def blob(sha256: str, size_bytes: int) -> msg.Blob:
        url = read_url(sha256=sha256, reader=f"device:{work.device_id}", ttl_s=ttl_s)
        return msg.Blob(sha256=sha256, size_bytes=size_bytes, url=url)

    return msg.Lease(
        lease_id=str(work.lease_id),
        program=blob(work.program_sha256, work.program_bytes),
        params=blob(work.params_sha256, work.params_bytes),
        slice=blob(work.slice_sha256, work.slice_bytes),
        steps=work.steps,
        batch_size=work.batch_size,
        seed=work.seed,
        learning_rate=work.learning_rate,
        time_left_ms=int(time_left.total_seconds() * 1000),
        upload_url=upload_url(
            subject=f"lease:{work.lease_id}",
            max_bytes=2 * work.params_bytes + DELTA_HEADROOM_BYTES,
            ttl_s=ttl_s,
        ),
    )


def ack_message(ack: ins.SendAck) -> msg.Ack:
    return msg.Ack(
        lease_id=str(ack.lease_id),
        accepted=ack.refusal is None,
        code=ack.refusal or "",
        earned_microusd=ack.earned_microusd,
    )
