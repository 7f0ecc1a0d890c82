"""Prices are set by operators, for now or for later, with a reason; what was in force stays written."""

from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from accounts.models import User
from billing.domain.rates import fee_check, rate_check, start_check
from billing.errors import RateInvalid
from billing.models import Fee, Rate
from billing.selectors.rates import tariff_at
from billing.services.audit import audit_note, operator_check, reason_checked

Row = TypeVar("Row", Rate, Fee)


def rate_set(
    *,
    device_class: str,
    microusd_per_gpu_second: int,
    operator: User,
    reason: str,
    now: datetime,
    valid_from: datetime | None = None,
) -> Rate:
    """Have a class cost this from `valid_from` (or now) on. Quotes made before keep theirs.

    Raises NotAnOperator, ReasonInvalid, RateInvalid.
    """
    rate_check(device_class=device_class, microusd_per_gpu_second=microusd_per_gpu_second)
    before = tariff_at(valid_from or now).rates.get(device_class)
    return _set(
        Rate(device_class=device_class, microusd_per_gpu_second=microusd_per_gpu_second),
        "rate_set",
        f"rate:{device_class}",
        {"microusd_per_gpu_second": (before, microusd_per_gpu_second)},
        operator=operator,
        reason=reason,
        valid_from=valid_from,
        now=now,
    )


def fee_set(
    *, basis_points: int, operator: User, reason: str, now: datetime, valid_from: datetime | None = None
) -> Fee:
    """Have the platform keep this part of what is quoted from `valid_from` (or now) on.

    Raises NotAnOperator, ReasonInvalid, RateInvalid.
    """
    fee_check(basis_points)
    return _set(
        Fee(basis_points=basis_points),
        "fee_set",
        "fee",
        {"basis_points": (tariff_at(valid_from or now).fee_basis_points, basis_points)},
        operator=operator,
        reason=reason,
        valid_from=valid_from,
        now=now,
    )


def _set(
    row: Row,
    action: str,
    subject: str,
    changed: dict[str, tuple[Any, Any]],
    *,
    operator: User,
    reason: str,
    valid_from: datetime | None,
    now: datetime,
) -> Row:
    operator_check(operator)
    row.operator, row.reason = operator, reason_checked(reason)
    row.valid_from = valid_from or now
    start_check(row.valid_from, now=now)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            audit_note(
                operator=operator,
                action=action,
                reason=reason,
                subject=subject,
                before={name: old for name, (old, _) in changed.items()},
                after={name: new for name, (_, new) in changed.items()}
                | {"valid_from": row.valid_from.isoformat()},
            )
    except IntegrityError:
        raise RateInvalid(
            "valid_from: another price begins at that very moment. Give another time.", field="valid_from"
        ) from None
    return row
