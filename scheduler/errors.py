"""What the scheduler refuses or fails at.

SchedulerError
├── RunInvalid            a run's specification cannot be scheduled
├── RunNotFound
├── LeaseNotFound
├── InvalidTransition     a bug: the state machine was asked for a step its tables do not allow
├── LockLost              another process dispatches now
└── AggregationFailed     the outer step of a round cannot be made
    ├── Diverged          its parameters or loss are not finite
    └── RoundUnreadable   a blob of the round is missing or broken
"""

from typing import ClassVar

from common.errors import NightshiftError


class SchedulerError(NightshiftError):
    code: ClassVar[str] = "scheduler_error"


class RunInvalid(SchedulerError):
    code: ClassVar[str] = "run_invalid"


class RunNotFound(SchedulerError):
    code: ClassVar[str] = "run_not_found"


class InvalidTransition(SchedulerError):
    code: ClassVar[str] = "invalid_transition"


class LockLost(SchedulerError):
    code: ClassVar[str] = "dispatcher_lock_lost"


class AggregationFailed(SchedulerError):
    code: ClassVar[str] = "aggregation_failed"


class Diverged(AggregationFailed):
    code: ClassVar[str] = "diverged"


class RoundUnreadable(AggregationFailed):
    code: ClassVar[str] = "round_unreadable"
