"""Whatever people, banks and a failing network do in whatever order: in the end our books and Stripe's agree.

The independent model is the fake Stripe itself, which keeps its own balances and knows nothing of ours.
"""

import contextlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any, Literal

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.auto_top_ups import Terms
from billing.domain.stripe_entries import STRIPE_KEY
from billing.due import payments_advance
from billing.errors import BillingError
from billing.models import Account, AutoTopUp, Payout, Refund, StripeEvent, TopUp
from billing.selectors import ledger_differences
from billing.services import (
    auto_top_up_set,
    auto_top_up_stop,
    hold_open,
    hold_release,
    payout_bank_retry,
    payout_request,
    refund_create,
    top_up_create,
    wallet_unfreeze,
)
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earn, ready
from tests.fake_stripe import FakeStripe, Fault

STEPS = (
    "top_up", "pay", "leave", "refund", "bounce", "hold", "release", "dispute", "win", "unfreeze",
    "agree", "save", "stop", "decide", "earn", "payout", "take", "refuse", "reverse", "retry", "break", "tell",
    "tell_twice", "work",
)  # fmt: skip
BEHAVES = ("ok", "ok", "processing", "insufficient_funds", "authentication_required", "stolen_card")
EXAMPLES = 15
PATHS = ("/v1/checkout/sessions", "/v1/payment_intents", "/v1/refunds", "/v1/transfers", "/v1/payouts")
OPENING = [
    ("top_up", 40, 0),
    ("pay", 1, 0),
    ("tell", 1, 0),
    ("earn", 40, 0),
    ("payout", 20, 0),
    ("work", 1, 0),
]
KINDS: tuple[Literal["lost", "done", "limited"], ...] = ("lost", "done", "limited")
histories = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 40), st.integers(0, 9)), max_size=20)


class History:
    """One buyer and one owner; each step takes what it needs from what there is, or does nothing."""

    def __init__(self, stripe: FakeStripe, number: int) -> None:
        self.stripe, self.world = stripe, stripe.world
        self.keys = count()
        self.buyer, self.owner = person(f"buyer-{number}"), ready(stripe, person(f"owner-{number}"))
        self.holds: list[str] = []
        self.operator = operator()

    def do(self, step: str, usd: int, pick: int) -> None:
        act: Callable[[int, int], object] = getattr(self, step)
        with contextlib.suppress(BillingError):  # refused: nothing moved
            act(usd, pick)

    def key(self) -> str:
        return f"key:{next(self.keys)}"

    def chosen(self, rows: Iterable[Any], pick: int) -> Any:
        found = list(rows)
        return found[pick % len(found)] if found else None

    def sessions(self) -> list[Any]:
        ids = TopUp.objects.filter(user=self.buyer).values_list("session_id", flat=True)
        return [self.world.objects[i] for i in ids if i and self.world.objects[i]["status"] == "open"]

    def banked(self, *statuses: str) -> list[str]:
        ids = Payout.objects.filter(user=self.owner).values_list("bank_payout_id", flat=True)
        return [i for i in ids if i and self.world.objects[i]["status"] in statuses]

    def top_up(self, usd, pick):
        top_up_create(user=self.buyer, amount_microusd=usd * USD, idempotency_key=self.key())

    def pay(self, usd, pick):
        if session := self.chosen(self.sessions(), pick):
            self.world.pay(session["id"])

    def leave(self, usd, pick):
        if session := self.chosen(self.sessions(), pick):
            self.world.leave(session["id"])

    def refund(self, usd, pick):
        if top_up := self.chosen(TopUp.objects.filter(user=self.buyer), pick):
            refund_create(
                user=self.buyer, top_up_id=top_up.pk, amount_microusd=usd * USD, idempotency_key=self.key()
            )

    def bounce(self, usd, pick):
        sent = Refund.objects.filter(top_up__user=self.buyer, state=Refund.State.SENT)
        refund = self.chosen(sent, pick)
        if refund and self.world.objects[refund.stripe_id]["status"] == "succeeded":
            self.world.bounce_refund(refund.stripe_id)

    def hold(self, usd, pick):
        reference = f"job:{self.buyer.pk}:{next(self.keys)}"
        hold_open(user=self.buyer, reference=reference, amount_microusd=usd * USD)
        self.holds.append(reference)

    def release(self, usd, pick):
        if self.holds:
            hold_release(reference=self.holds.pop())

    def dispute(self, usd, pick):
        paid = TopUp.objects.filter(user=self.buyer, state=TopUp.State.PAID)
        top_up = self.chosen(paid, pick)
        if top_up and not any(
            made["payment_intent"] == top_up.payment_intent_id for made in self.world.of("dispute")
        ):
            self.world.dispute(top_up.payment_intent_id)

    def win(self, usd, pick):
        if dispute := self.chosen(
            [made for made in self.world.of("dispute") if made["status"] == "needs_response"], pick
        ):
            self.world.win_dispute(dispute["id"])

    def unfreeze(self, usd, pick):
        wallet_unfreeze(user=self.buyer, operator=self.operator, reason="looked into.")

    def agree(self, usd, pick):
        terms = Terms(usd * USD, (5 + usd) * USD, (5 + usd) * (1 + pick) * USD)
        auto_top_up_set(user=self.buyer, terms=terms, agreed=True)

    def save(self, usd, pick):
        auto = AutoTopUp.objects.filter(user=self.buyer).first()
        pages = [made for made in self.world.of("checkout.session") if made["status"] == "open"]
        mine = [
            page
            for page in pages
            if page["mode"] == "setup" and auto and page["customer"] == auto.customer_id
        ]
        if page := self.chosen(mine, pick):
            self.world.save_card(page["id"], BEHAVES[pick % len(BEHAVES)])

    def stop(self, usd, pick):
        auto_top_up_stop(user=self.buyer, forgets_card=bool(pick % 2))

    def decide(self, usd, pick):
        """A bank that took its time says yes or no."""
        for intent in self.world.of("payment_intent"):
            if intent["status"] == "processing":
                if pick % 2:
                    self.world.charged(intent)
                else:
                    intent["status"] = "requires_payment_method"
                    self.world.tell("payment_intent.payment_failed", intent)

    def earn(self, usd, pick):
        earn(self.owner, usd=usd, label=str(next(self.keys)))

    def payout(self, usd, pick):
        payout_request(user=self.owner, amount_microusd=usd * USD, idempotency_key=self.key())

    def take(self, usd, pick):
        if bank := self.chosen(self.banked("pending"), pick):
            self.world.bank_takes(bank)

    def refuse(self, usd, pick):
        if bank := self.chosen(self.banked("pending", "paid"), pick):
            self.world.bank_refuses(bank)

    def reverse(self, usd, pick):
        failed = Payout.objects.filter(user=self.owner, state=Payout.State.FAILED)
        payout = self.chosen(failed, pick)
        if payout and not self.world.objects[payout.transfer_id]["reversed"]:
            self.world.reverse(payout.transfer_id)

    def retry(self, usd, pick):
        failed = Payout.objects.filter(user=self.owner, state=Payout.State.FAILED)
        payout = self.chosen(failed, pick)
        if payout and not self.world.objects[payout.transfer_id]["reversed"]:
            payout_bank_retry(payout_id=payout.pk, now=utc_now())

    def break_(self, usd, pick):
        self.stripe.faults.append(Fault(PATHS[pick % len(PATHS)], KINDS[usd % len(KINDS)]))

    def tell(self, usd, pick):
        events = self.stripe.untold()
        Random(usd).shuffle(events)
        self.stripe.deliver(Client(), events)

    def tell_twice(self, usd, pick):
        self.stripe.deliver(Client(), self.world.events[-usd:])

    def work(self, usd, pick):
        payments_advance(now=utc_now() + timedelta(hours=pick))

    def come_to_an_end(self) -> None:
        self.stripe.faults.clear()
        auto_top_up_stop(user=self.buyer)  # or it would go on for as long as its cap allows
        self.decide(1, 1)
        for hours in range(0, 60, 7):
            self.stripe.deliver(Client(), self.stripe.untold())
            payments_advance(now=utc_now() + timedelta(hours=hours))


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_in_the_end_both_sides_agree_and_nothing_is_left_over(stripe):
    numbers = count()

    @settings(max_examples=EXAMPLES)
    @given(histories)
    def told(steps) -> None:
        history = History(stripe, next(numbers))
        stripe.world.balance_cents = max(stripe.world.balance_cents, 1_000_000)
        theirs, ours = stripe.world.balance_cents, at_stripe()
        for step, usd, pick in [*OPENING, *steps]:
            history.do("break_" if step == "break" else step, usd, pick)
            assert ledger_differences() == []
        history.come_to_an_end()
        assert ledger_differences() == []
        assert at_stripe() - ours == (stripe.world.balance_cents - theirs) * 10_000
        in_account = stripe.world.account_cents[history.owner.payout_account.stripe_id]
        assert in_account * 10_000 == waiting_at_stripe(history)
        assert not TopUp.objects.filter(automatic=True, state=TopUp.State.CREATED).exists()
        assert not Payout.objects.filter(state=Payout.State.DEBITED).exists()
        assert not Refund.objects.filter(state=Refund.State.DEBITED).exists()
        assert not StripeEvent.objects.filter(state__in=["received", "failed", "early"]).exists()

    told()


def at_stripe() -> int:
    """What the books say that we have at Stripe."""
    balance = Account.objects.filter(key=STRIPE_KEY).values_list("balance_microusd", flat=True).first()
    return -(balance or 0)


def waiting_at_stripe(history: History) -> int:
    """What the payouts say that waits in the owner's account: what the bank has refused."""
    failed = Payout.objects.filter(user=history.owner, state=Payout.State.FAILED)
    return sum(payout.net_microusd for payout in failed)
