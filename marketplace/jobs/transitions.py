"""How a job's state may change, and the one function that changes it."""

import uuid
from typing import Any

from marketplace.models import Job

_State = Job.State

TRANSITIONS: dict[str, frozenset[str]] = {
    _State.QUOTED: frozenset({_State.RUNNING, _State.CANCELLED}),
    _State.RUNNING: frozenset({_State.FINISHED, _State.CANCELLED, _State.FAILED}),
    _State.FINISHED: frozenset(),
    _State.CANCELLED: frozenset(),
    _State.FAILED: frozenset(),
}


def job_move(*, job_id: uuid.UUID, source: str, target: str, **fields: Any) -> bool:
    """Move a job on if it still is in `source`, with `fields` set in the same update; False if it is not."""
    if target not in TRANSITIONS[source]:
        raise ValueError(f"a job cannot go from {source} to {target}")
    return Job.objects.filter(pk=job_id, state=source).update(state=target, **fields) == 1
