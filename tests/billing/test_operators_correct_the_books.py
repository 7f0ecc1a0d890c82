"""Adjustments move money for a reason, much with a second operator; unmatched movements are resolved by hand."""

import uuid
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from hypothesis import example, given
from hypothesis import strategies as st

from accounts.models import User
from billing.domain.entries import adjustable
from billing.domain.stripe_entries import top_up_entry
from billing.errors import (
    AdjustmentInvalid,
    AdjustmentNotFound,
    AmountInvalid,
    InsufficientFunds,
    NotAnOperator,
    ReasonInvalid,
    SecondOperatorNeeded,
    UnmatchedInvalid,
)
from billing.models import Adjustment, OperatorAction, Transfer, Unmatched
from billing.posting import entries_post
from billing.selectors import ledger_differences, wallet_balance
from billing.services import (
    adjustment_approve,
    adjustment_create,
    adjustment_decline,
    top_up_create,
    unmatched_adjust,
    unmatched_ignore,
    unmatched_pair,
)
from common.clock import utc_now
from tests.billing.cast import USD, operator, person, second_operator
from tests.fake_stripe import world

pytestmark = pytest.mark.django_db
LIMIT = 50 * USD


@pytest.fixture(autouse=True)
def _limit(settings):
    settings.ADJUSTMENT_LIMIT_MICROUSD = LIMIT


def adjust(bea: User, *, usd: int = 5, **changed: Any) -> Adjustment:
    asked: dict[str, Any] = {
        "operator": operator(),
        "from_key": "source:grants",
        "to_key": f"wallet:{bea.pk}",
        "amount_microusd": usd * USD,
        "reason": "a result was lost.",
    }
    return adjustment_create(**(asked | changed))


# Adjustments


def test_little_moves_at_once_and_names_its_operator():
    bea = person("bea")
    made = adjust(bea)
    assert (made.state, wallet_balance(bea)) == (Adjustment.State.POSTED, 5 * USD)
    assert made.transfer is not None
    assert (made.transfer.reason, made.transfer.operator) == (Transfer.Reason.ADJUSTMENT, operator())
    note = OperatorAction.objects.get()
    assert (note.action, note.user, note.subject) == ("adjustment_post", bea, f"adjustment:{made.pk}")
    assert ledger_differences() == []


def test_the_same_id_moves_once_and_is_no_other_adjustment():
    bea, number = person("bea"), uuid.UUID(int=7)
    for _ in range(2):
        adjust(bea, adjustment_id=number)
    assert wallet_balance(bea) == 5 * USD
    with pytest.raises(AdjustmentInvalid):
        adjust(bea, usd=6, adjustment_id=number)


def test_much_waits_for_another_operator():
    bea = person("bea")
    made = adjust(bea, usd=51)
    assert (made.state, wallet_balance(bea)) == (Adjustment.State.WAITING, 0)
    with pytest.raises(SecondOperatorNeeded):
        adjustment_approve(adjustment_id=made.pk, operator=operator(), reason="mine.", now=utc_now())
    with pytest.raises(NotAnOperator):
        adjustment_approve(adjustment_id=made.pk, operator=bea, reason="please.", now=utc_now())
    approved = adjustment_approve(
        adjustment_id=made.pk, operator=second_operator(), reason="checked.", now=utc_now()
    )
    assert (approved.state, approved.decided_by, wallet_balance(bea)) == (
        "posted",
        second_operator(),
        51 * USD,
    )
    with pytest.raises(AdjustmentNotFound):
        adjustment_approve(adjustment_id=made.pk, operator=second_operator(), reason="again.", now=utc_now())


@pytest.mark.parametrize("decider", [operator, second_operator])
def test_what_is_declined_or_taken_back_moves_nothing(decider):
    bea = person("bea")
    made = adjust(bea, usd=51)
    adjustment_decline(adjustment_id=made.pk, operator=decider(), reason="not so.", now=utc_now())
    with pytest.raises(AdjustmentNotFound):
        adjustment_approve(adjustment_id=made.pk, operator=second_operator(), reason="yet.", now=utc_now())
    assert wallet_balance(bea) == 0


@pytest.mark.parametrize(
    "key", ["hold:1", "transit:payout:1", "wallet:0", "wallet:x", "wallet:01", "bank", "", "source:moon"]
)
def test_only_accounts_whose_money_is_nobody_elses_promise_are_adjusted(key):
    with pytest.raises(AdjustmentInvalid) as refused:
        adjust(person("bea"), to_key=key)
    assert refused.value.field == "to_key"
    assert Adjustment.objects.count() == 0


@given(st.text() | st.from_regex(r"wallet:[0-9]{1,5000}", fullmatch=True))
@example("wallet:" + "9" * 5_000)
def test_any_text_is_an_account_or_not(key):
    assert adjustable(key) in (True, False)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"amount_microusd": 0}, AmountInvalid),
        ({"amount_microusd": -1}, AmountInvalid),
        ({"amount_microusd": 1.5}, AmountInvalid),
        ({"amount_microusd": 10**16}, AmountInvalid),
        ({"reason": " "}, ReasonInvalid),
        ({"from_key": "fees", "to_key": "fees"}, AdjustmentInvalid),
        ({"from_key": "fees"}, InsufficientFunds),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(changed, error):
    with pytest.raises(error):
        adjust(person("bea"), **changed)
    assert (Adjustment.objects.count(), OperatorAction.objects.count()) == (0, 0)


def test_the_database_refuses_an_approval_of_ones_own():
    made = adjust(person("bea"))
    with pytest.raises(IntegrityError, match="adjustment_is_approved_by_another"), transaction.atomic():
        Adjustment.objects.filter(pk=made.pk).update(decided_by=made.operator)


# Unmatched movements


@pytest.fixture(autouse=True)
def _this_morning(monkeypatch):
    monkeypatch.setattr(world, "START", int((utc_now() - timedelta(hours=5)).timestamp()))


def reconciled() -> str:
    out = StringIO()
    try:
        call_command("reconcile_stripe", stdout=out)
    except CommandError as failed:
        return f"{out.getvalue()} {failed}"
    return "agrees"


def unheard_of(stripe) -> User:
    """Stripe has a payment of 20 USD that the books do not."""
    bea = person("bea")
    stripe.world.pay(top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key="k").session_id)
    return bea


def made_up() -> None:
    """The books have 20 USD that Stripe never had."""
    entries_post([top_up_entry(top_up_id=uuid.uuid4(), user_id=person("bob").pk, amount_microusd=20 * USD)])


def test_what_does_not_agree_is_listed_until_it_does(stripe, client):
    bea = unheard_of(stripe)
    for _ in range(2):
        assert "1 movement(s) differ" in reconciled()
    row = Unmatched.objects.get()
    assert (row.state, row.stripe_microusd, row.ledger_microusd) == ("open", 20 * USD, None)
    stripe.deliver(client)
    assert reconciled() == "agrees"
    row.refresh_from_db()
    assert (row.state, wallet_balance(bea)) == (Unmatched.State.HEALED, 20 * USD)


def test_what_is_old_is_not_thought_healed_by_a_shorter_look(stripe):
    unheard_of(stripe)
    reconciled()
    Unmatched.objects.update(moved_at=utc_now() - timedelta(days=30), stripe_id="txn_long_ago")
    reconciled()
    assert Unmatched.objects.get(stripe_id="txn_long_ago").state == Unmatched.State.OPEN


def test_the_books_are_adjusted_to_what_stripe_says(stripe):
    bea = unheard_of(stripe)
    reconciled()
    row = Unmatched.objects.get()
    unmatched_adjust(
        unmatched_id=row.pk,
        account_key=f"wallet:{bea.pk}",
        operator=operator(),
        reason="its event was lost.",
        now=utc_now(),
    )
    assert wallet_balance(bea) == 20 * USD
    assert reconciled() == "agrees"
    row.refresh_from_db()
    assert row.state == Unmatched.State.ADJUSTED
    with pytest.raises(UnmatchedInvalid):
        unmatched_ignore(unmatched_id=row.pk, operator=operator(), reason="again.")


def test_much_is_adjusted_when_a_second_operator_approves(stripe, settings):
    settings.ADJUSTMENT_LIMIT_MICROUSD = USD
    bea = unheard_of(stripe)
    reconciled()
    row = Unmatched.objects.get()
    asked = unmatched_adjust(
        unmatched_id=row.pk,
        account_key=f"wallet:{bea.pk}",
        operator=operator(),
        reason="its event was lost.",
        now=utc_now(),
    )
    assert "1 movement(s) differ" in reconciled()
    adjustment_approve(adjustment_id=asked.pk, operator=second_operator(), reason="checked.", now=utc_now())
    assert (reconciled(), wallet_balance(bea)) == ("agrees", 20 * USD)


def test_two_names_of_the_same_money_are_a_pair(stripe):
    unheard_of(stripe)
    made_up()
    reconciled()
    one, other = Unmatched.objects.all()
    unmatched_pair(one_id=one.pk, other_id=other.pk, operator=operator(), reason="typed by hand.")
    assert reconciled() == "agrees"


def test_two_that_do_not_belong_together_are_no_pair(stripe):
    unheard_of(stripe)
    made_up()
    entries_post([top_up_entry(top_up_id=uuid.uuid4(), user_id=person("bo").pk, amount_microusd=21 * USD)])
    reconciled()
    stripes = Unmatched.objects.get(ledger_key="")
    more = Unmatched.objects.get(ledger_microusd=21 * USD)
    equal = Unmatched.objects.get(ledger_microusd=20 * USD)
    for one, other in ((stripes, more), (equal, more), (stripes, stripes)):
        with pytest.raises(UnmatchedInvalid):
            unmatched_pair(one_id=one.pk, other_id=other.pk, operator=operator(), reason="so it seems.")


def test_what_is_ignored_stays_so_until_it_says_something_else(stripe):
    unheard_of(stripe)
    reconciled()
    row = Unmatched.objects.get()
    unmatched_ignore(unmatched_id=row.pk, operator=operator(), reason="a test of the bank's.")
    assert reconciled() == "agrees"
    charge = next(made for made in stripe.world.of("balance_transaction") if made["type"] == "charge")
    charge["amount"] += 1
    assert "1 movement(s) differ" in reconciled()
    row.refresh_from_db()
    assert (row.state, row.reason) == (Unmatched.State.OPEN, "")


# The pages


@pytest.fixture
def olive(client):
    olive = operator()
    olive.is_superuser = True
    olive.save()
    client.force_login(olive)
    return client


def asked_on(client, **typed: str) -> dict[str, str]:
    """The form as its page gives it out, filled in."""
    page = client.get("/admin/billing/adjustment/add/")
    number = page.context["adminform"].form["number"].value()
    filled = {"from_key": "source:grants", "to_key": "wallet:bea@example.org", "usd": "5"}
    return {**filled, "reason": "a result was lost.", "number": str(number), **typed}


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_an_operator_adjusts_on_the_page_and_another_approves(olive, client):
    bea = person("bea")
    path = "/admin/billing/adjustment/"
    form = asked_on(olive, to_key="wallet:Bea@example.org", usd="60")
    for _ in range(2):  # the button was pressed twice
        assert "waits for another" in said(olive.post(f"{path}add/", form, follow=True))
    assert (Adjustment.objects.count(), Adjustment.objects.get().to_key) == (1, f"wallet:{bea.pk}")
    assert "wallet of bea@example.org" not in olive.get(path).content.decode()  # there is no such account yet
    act = {"action": "approve", "_selected_action": [str(Adjustment.objects.get().pk)], "reason": "checked."}
    assert "Another operator" in said(olive.post(path, act, follow=True))
    oscar = second_operator()
    oscar.is_superuser = True
    oscar.save()
    client.force_login(oscar)
    assert "Done for 1 of 1" in said(client.post(path, act, follow=True))
    assert wallet_balance(bea) == 60 * USD
    page = client.get(path).content.decode()
    assert "$60.00" in page
    assert "wallet of bea@example.org" in page
    row = client.get(f"{path}{Adjustment.objects.get().pk}/change/").content.decode()
    assert "$60.00" in row
    assert "60000000" not in page + row


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"usd": "0"}, "usd", "greater than or equal to 0.000001"),
        ({"usd": "-5"}, "usd", "greater than or equal to 0.000001"),
        ({"usd": "1.0000001"}, "usd", "no more than 6 decimal places"),
        ({"usd": "1000000001"}, "usd", "less than or equal to 1000000000"),
        ({"usd": "five"}, "usd", "Enter a number"),
        ({"usd": ""}, "usd", "This field is required"),
        ({"to_key": "wallet:nobody@example.org"}, "to_key", "Nobody has this address"),
        ({"to_key": "hold:1"}, "to_key", "There is no such account"),
        ({"from_key": "bank"}, "from_key", "There is no such account"),
        ({"reason": " "}, "reason", "This field is required"),
        ({"to_key": "source:grants"}, "__all__", "two different accounts"),
        ({"number": "1"}, "number", "valid UUID"),
    ],
)
def test_what_cannot_be_adjusted_is_said_beside_its_field(olive, typed, field, words):
    person("bea")
    answer = olive.post("/admin/billing/adjustment/add/", asked_on(olive, **typed))
    assert words in " ".join(answer.context["adminform"].form.errors[field])
    assert (Adjustment.objects.count(), OperatorAction.objects.count()) == (0, 0)


def test_the_smallest_amount_is_moved_exactly(olive):
    bea = person("bea")
    olive.post("/admin/billing/adjustment/add/", asked_on(olive, usd="0.000001"))
    assert wallet_balance(bea) == 1
    assert "$0.000001" in olive.get("/admin/billing/adjustment/").content.decode()


def test_what_is_missing_is_said_and_the_form_keeps_what_was_typed(olive):
    person("bea")
    form = asked_on(olive, from_key="fees", usd="5.5")
    answer = olive.post("/admin/billing/adjustment/add/", form, follow=True)
    assert "$5.50 is missing" in said(answer)
    page = answer.content.decode()
    assert 'value="fees"' in page
    assert 'value="5.5"' in page
    assert Adjustment.objects.count() == 0


def test_an_operator_resolves_on_the_page(olive, stripe):
    bea = unheard_of(stripe)
    made_up()
    reconciled()
    path = "/admin/billing/unmatched/"
    page = olive.get(path).content.decode()
    assert "$20.00" in page
    assert "nothing" in page
    ours = str(Unmatched.objects.get(stripe_id="").pk)
    stripes = str(Unmatched.objects.get(ledger_key="").pk)
    act = {"action": "ignore", "_selected_action": [ours], "reason": ""}
    assert "must say why" in said(olive.post(path, act, follow=True))
    assert "Done for 1" in said(olive.post(path, act | {"reason": "a drill."}, follow=True))
    pair = {"action": "pair", "_selected_action": [stripes], "reason": "the same."}
    assert "Choose the two" in said(olive.post(path, pair, follow=True))
    adjust = {
        "action": "adjust",
        "_selected_action": [stripes],
        "account": "wallet:bea@example.org",
        "reason": "lost.",
    }
    assert "Done for 1" in said(olive.post(path, adjust, follow=True))
    assert wallet_balance(bea) == 20 * USD
