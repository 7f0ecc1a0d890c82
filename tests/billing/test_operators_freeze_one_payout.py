"""An operator stops one payout: what has not begun does not begin, what has is seen through; all is written down."""

import pytest

from billing.due import payments_advance
from billing.errors import NotAnOperator, PayoutGone, PayoutNotFound, ReasonInvalid
from billing.models import OperatorAction, Payout
from billing.selectors import earnings_balance, ledger_differences
from billing.services import payout_freeze, payout_request, payout_unfreeze
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earner, ready
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db


@pytest.fixture
def payout(stripe):
    return payout_request(user=ready(stripe, earner()), amount_microusd=50 * USD, idempotency_key="k")


def freeze(payout: Payout, reason: str = "the device looks stolen.") -> None:
    payout_freeze(payout_id=payout.pk, operator=operator(), reason=reason, now=utc_now())


def thaw(payout: Payout) -> None:
    payout_unfreeze(payout_id=payout.pk, operator=operator(), reason="it is not.", now=utc_now())


def work(payout: Payout) -> Payout:
    payments_advance(now=utc_now())
    payout.refresh_from_db()
    return payout


def test_one_that_has_not_left_stays_while_others_of_the_owner_go(stripe, payout):
    freeze(payout)
    other = payout_request(user=payout.user, amount_microusd=10 * USD, idempotency_key="other")
    assert work(payout).state == Payout.State.DEBITED
    assert [made["transfer_group"] for made in stripe.world.of("transfer")] == [f"payout:{other.pk}"]
    thaw(payout)
    assert work(payout).state == Payout.State.TRANSFERRED
    assert len(stripe.world.of("transfer")) == 2


def test_one_that_is_in_the_owners_account_does_not_go_to_the_bank(stripe, payout):
    stripe.faults.append(Fault("/v1/payouts", "lost", times=1))
    stripe.world.arrives_after_s = int(utc_now().timestamp()) + 3_600  # not available yet
    assert work(payout).state == Payout.State.TRANSFERRED
    stripe.world.of("balance_transaction.of_account")[0]["available_on"] = 0
    freeze(payout)
    Payout.objects.update(next_try_at=utc_now())
    assert work(payout).bank_payout_id == ""
    assert stripe.world.of("payout") == []


def test_what_stripe_was_asked_already_is_seen_through(stripe, payout):
    stripe.faults.append(Fault("/v1/transfers", "done"))
    assert work(payout).state == Payout.State.DEBITED
    freeze(payout)
    Payout.objects.update(next_try_at=utc_now())
    assert work(payout).state == Payout.State.TRANSFERRED  # it had left; and it goes no further
    assert (len(stripe.world.of("transfer")), stripe.world.of("payout")) == (1, [])
    assert ledger_differences() == []


def test_at_the_bank_it_is_too_late_and_the_end_of_a_payout_is_the_end_of_its_freeze(stripe, payout, client):
    work(payout)
    with pytest.raises(PayoutGone):
        freeze(payout)
    stripe.world.bank_takes(payout.bank_payout_id)
    stripe.deliver(client)
    with pytest.raises(PayoutGone):
        freeze(payout)


def test_a_frozen_payout_that_is_reversed_comes_back_and_is_not_frozen_any_more(stripe, payout, client):
    work(payout)
    stripe.world.bank_refuses(payout.bank_payout_id)
    stripe.deliver(client)
    freeze(payout)
    stripe.world.reverse(payout.transfer_id)
    stripe.deliver(client)
    payout.refresh_from_db()
    assert (payout.state, payout.frozen_because) == (Payout.State.RETURNED, "")
    assert earnings_balance(payout.user) == 80 * USD


def test_it_is_written_down_with_what_was_before(payout):
    freeze(payout)
    thaw(payout)
    thaw(payout)
    notes = OperatorAction.objects.filter(subject=f"payout:{payout.pk}").order_by("pk")
    assert [(note.action, note.user, note.after["frozen_because"]) for note in notes] == [
        ("payout_freeze", payout.user, "the device looks stolen."),
        ("payout_unfreeze", payout.user, ""),
    ]


def test_it_takes_an_operator_a_reason_and_a_payout(payout):
    with pytest.raises(NotAnOperator):
        payout_freeze(payout_id=payout.pk, operator=person("bob"), reason="mine.", now=utc_now())
    with pytest.raises(ReasonInvalid):
        freeze(payout, " ")
    payout.pk = payout.user.pk and "00000000-0000-0000-0000-000000000001"
    with pytest.raises(PayoutNotFound):
        freeze(payout)


def test_an_owner_sees_why(stripe, payout, client):
    freeze(payout)
    client.force_login(payout.user)
    assert "the device looks stolen." in client.get("/payouts/").content.decode()
    assert client.get(f"/api/payouts/{payout.pk}/").json()["frozen_because"] == "the device looks stolen."
