"""The audit log: who, what, why, when, and what changed; written with the effect, and never again."""

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from billing.errors import NotAnOperator, ReasonInvalid
from billing.models import OperatorAction, Standing
from billing.services import (
    audit_note,
    payouts_freeze,
    payouts_unfreeze,
    wallet_freeze_by_hand,
    wallet_unfreeze,
)
from tests.billing.cast import operator, person

pytestmark = pytest.mark.django_db


def written() -> list[tuple[object, ...]]:
    rows = OperatorAction.objects.order_by("pk")
    return list(rows.values_list("action", "reason", "before__frozen_because", "after__frozen_because"))


def test_a_freeze_and_its_end_say_what_was_before_and_after():
    bea, olive = person("bea"), operator()
    payouts_freeze(user=bea, operator=olive, reason=" asked by the police. ")
    payouts_freeze(user=bea, operator=olive, reason="asked again.")
    payouts_unfreeze(user=bea, operator=olive, reason="all is well.")
    payouts_unfreeze(user=bea, operator=olive, reason="nothing is frozen any more.")
    wallet_freeze_by_hand(user=bea, operator=olive, reason="odd payments.")
    wallet_unfreeze(user=bea, operator=olive, reason="explained.")
    assert written() == [
        ("payouts_freeze", "asked by the police.", "", "asked by the police."),
        ("payouts_freeze", "asked again.", "asked by the police.", "asked again."),
        ("payouts_unfreeze", "all is well.", "asked again.", ""),
        ("wallet_freeze", "odd payments.", "", "odd payments."),
        ("wallet_unfreeze", "explained.", "odd payments.", ""),
    ]


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201, "a\x00b"])
def test_without_a_reason_nothing_is_done(reason):
    bea = person("bea")
    for act in (payouts_freeze, wallet_freeze_by_hand):
        with pytest.raises(ReasonInvalid) as refused:
            act(user=bea, operator=operator(), reason=reason)
        assert refused.value.field == "reason"
    assert not Standing.objects.exclude(payouts_frozen_because="", wallet_frozen_because="").exists()
    assert written() == []


def test_only_an_operator_is_written_down():
    with pytest.raises(NotAnOperator):
        audit_note(operator=person("bea"), action="rate_set", reason="I want it cheaper.")


def test_the_database_refuses_to_change_or_delete_a_line():
    audit_note(
        operator=operator(), action="rate_set", reason="dearer power.", before={"a": 1}, after={"a": 2}
    )
    rows = OperatorAction.objects.all()
    with pytest.raises(IntegrityError, match="billing_operatoraction is append-only"), transaction.atomic():
        rows.update(reason="something else")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        rows._raw_delete(rows.db)
    assert rows.get().after == {"a": 2}


@pytest.mark.parametrize(
    ("empty", "constraint"),
    [("reason", "operator_action_says_why"), ("action", "operator_action_says_what")],
)
def test_the_database_refuses_a_line_that_says_nothing(empty, constraint):
    line = {"action": "freeze", "reason": "because", empty: ""}
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        OperatorAction.objects.create(operator=operator(), **line)


def test_the_command_freezes_as_an_operator_with_a_reason():
    bea = person("bea")
    options = {"email": bea.email, "operator": operator().email}
    call_command("freeze", "wallet", reason="odd payments.", **options)
    assert Standing.objects.get(user=bea).wallet_frozen_because == "odd payments."
    call_command("freeze", "wallet", reason="explained.", lift=True, **options)
    assert Standing.objects.get(user=bea).wallet_frozen_because == ""
    with pytest.raises(CommandError, match="reason"):
        call_command("freeze", "wallet", reason=" ", **options)
    with pytest.raises(CommandError, match="operator"):
        call_command("freeze", "payouts", email=bea.email, operator=bea.email, reason="mine.")
