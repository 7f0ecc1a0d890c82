"""What operators do is written down with its effect: who, what, why, when, and what it changed."""

from typing import Any

from accounts.models import User
from billing.errors import NotAnOperator, ReasonInvalid
from billing.models import OperatorAction

REASON_MAX_CHARS = 200


def operator_check(operator: User) -> None:
    """Raise NotAnOperator unless this is active staff."""
    if not (operator.is_active and operator.is_staff):
        raise NotAnOperator(
            "Only an operator can do this; `manage.py createsuperuser` makes one.", field="operator"
        )


def audit_note(
    *,
    operator: User,
    action: str,
    reason: str,
    user: User | None = None,
    subject: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> OperatorAction:
    """Write one line of the audit log. Call it in the transaction of what it is about, so that both are or neither.

    `before` and `after` hold what changed, as JSON. Raises NotAnOperator, and ReasonInvalid unless there is a reason.
    """
    operator_check(operator)
    return OperatorAction.objects.create(
        operator=operator,
        action=action,
        user=user,
        subject=subject,
        reason=reason_checked(reason),
        before=before or {},
        after=after or {},
    )


def reason_checked(reason: str) -> str:
    """The reason without space around it. Raises ReasonInvalid unless it says something, in bounds."""
    words = reason.strip()
    if not 0 < len(words) <= REASON_MAX_CHARS or "\x00" in words:
        raise ReasonInvalid(f"reason must say why, in 1 to {REASON_MAX_CHARS} characters.", field="reason")
    return words
