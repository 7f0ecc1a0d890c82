"""The audit log: who, what, why, when, and what changed; written with the effect, and never again."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from billing.domain.backoff import MAX_TRIES
from billing.due import payments_advance
from billing.errors import NotAnOperator, ReasonInvalid
from billing.models import OperatorAction, Payout, Refund, Standing, StripeEvent, TopUp
from billing.selectors import ledger_differences
from billing.services import (
    audit_note,
    payout_look_again,
    payout_request,
    payout_send_again,
    payout_unfreeze,
    payouts_freeze,
    payouts_unfreeze,
    refund_create,
    refund_look_again,
    top_up_create,
    top_up_look_again,
    wallet_freeze_by_hand,
    wallet_unfreeze,
)
from billing.webhooks.replaying import event_replay
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earner, ready
from tests.fake_stripe import Fault

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


# Acts on what is stuck, by the buttons of the admin site


def given_up_payout(stripe, client) -> Payout:
    """Stripe never answered to its transfer."""
    payout = payout_request(user=ready(stripe, earner()), amount_microusd=50 * USD, idempotency_key="k")
    Payout.objects.update(next_try_at=None, tries=MAX_TRIES)
    return payout


def refused_payout(stripe, client) -> Payout:
    """Its bank did not take it."""
    payout = payout_request(user=ready(stripe, earner()), amount_microusd=50 * USD, idempotency_key="k")
    payments_advance(now=utc_now())
    payout.refresh_from_db()
    stripe.world.bank_refuses(payout.bank_payout_id)
    stripe.deliver(client)
    return payout


def frozen_payout(stripe, client) -> Payout:
    payout = payout_request(user=ready(stripe, earner()), amount_microusd=50 * USD, idempotency_key="k")
    Payout.objects.update(frozen_because="odd.")
    return payout


def given_up_refund(stripe, client) -> Refund:
    top_up = top_up_create(user=person("bea"), amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    stripe.faults.append(Fault("/v1/refunds", "lost"))
    refund = refund_create(user=top_up.user, top_up_id=top_up.pk, amount_microusd=USD, idempotency_key="r")
    Refund.objects.update(next_try_at=None, tries=MAX_TRIES)
    return refund


def given_up_top_up(stripe, client) -> TopUp:
    return TopUp.objects.create(
        user=person("bea"),
        automatic=True,
        idempotency_key="auto:1",
        amount_microusd=20 * USD,
        created_at=utc_now(),
        tries=MAX_TRIES,
    )


def failed_event(stripe, client) -> StripeEvent:
    stripe.world.tell("transfer.reversed", {"id": "tr_1"})
    stripe.deliver(client)
    return StripeEvent.objects.get()


STUCK: list[tuple[Callable[[Any, Any], Any], str, str, str]] = [
    (given_up_payout, "look_again", "payout_look_again", "payout"),
    (refused_payout, "send_to_bank_again", "payout_send_again", "payout"),
    (frozen_payout, "unfreeze", "payout_unfreeze", "payout"),
    (given_up_refund, "look_again", "refund_look_again", "refund"),
    (given_up_top_up, "look_again", "top_up_look_again", "top_up"),
    (failed_event, "replay", "event_replay", "event"),
]


@pytest.mark.parametrize(("stuck", "button", "action", "kind"), STUCK)
def test_each_act_on_what_is_stuck_takes_a_reason_and_is_written_down_once(
    stripe, client, stuck, button, action, kind
):
    row = stuck(stripe, client)
    before = list(type(row).objects.values())
    lines = OperatorAction.objects.filter(action=action)
    olive = operator()
    olive.is_superuser = True
    olive.save()
    client.force_login(olive)
    path = f"/admin/billing/{kind.replace('_', '') if kind != 'event' else 'stripeevent'}/"
    form = {"action": button, "_selected_action": [str(row.pk)], "reason": " "}
    assert "reason must say why" in said(client.post(path, form, follow=True))
    assert list(type(row).objects.values()) == before
    assert not lines.exists()
    form["reason"] = "Stripe was down."
    assert "Done for 1 of 1" in said(client.post(path, form, follow=True))
    line = lines.get()
    name = row.event_id if kind == "event" else row.pk
    assert (line.operator, line.reason, line.subject) == (olive, "Stripe was down.", f"{kind}:{name}")
    assert line.before != line.after
    assert list(type(row).objects.values()) != before
    if kind != "event":  # which has failed again, and may be handled again
        assert "nothing to do for 1" in said(client.post(path, form, follow=True))
        assert lines.count() == 1


@pytest.mark.parametrize(("stuck", "button", "action", "kind"), STUCK)
def test_nobody_else_does_it(stripe, client, stuck, button, action, kind):
    row = stuck(stripe, client)
    bea = person("nobody")
    given: dict[str, Any] = {"operator": bea, "reason": "please.", "now": utc_now()}
    acts: dict[str, Callable[[], object]] = {
        "payout_look_again": lambda: payout_look_again(payout_id=row.pk, **given),
        "payout_send_again": lambda: payout_send_again(payout_id=row.pk, **given),
        "payout_unfreeze": lambda: payout_unfreeze(payout_id=row.pk, **given),
        "refund_look_again": lambda: refund_look_again(refund_id=row.pk, **given),
        "top_up_look_again": lambda: top_up_look_again(top_up_id=row.pk, **given),
        "event_replay": lambda: event_replay(event_pk=row.pk, **given),
    }
    with pytest.raises(NotAnOperator):
        acts[action]()
    assert not OperatorAction.objects.filter(action=action).exists()


def test_what_was_given_up_goes_on_where_it_stopped(stripe, client):
    refund = given_up_refund(stripe, client)
    payments_advance(now=utc_now() + timedelta(days=1))
    assert stripe.world.of("refund") == []
    refund_look_again(refund_id=refund.pk, operator=operator(), reason="it answers again.", now=utc_now())
    payments_advance(now=utc_now())
    refund.refresh_from_db()
    assert (refund.state, len(stripe.world.of("refund"))) == (Refund.State.SENT, 1)
    assert ledger_differences() == []


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])
