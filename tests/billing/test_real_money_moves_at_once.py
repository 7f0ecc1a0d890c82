"""Several processes ask for, advance and tell of the same thing at the same moment: it happens once."""

from functools import partial

import pytest
from django.test import Client

from billing.due import payments_advance
from billing.errors import EarningsImmature
from billing.models import Payout, TopUp
from billing.selectors import earnings_balance, ledger_differences, wallet_balance, wallet_frozen_because
from billing.services import payout_request, top_up_create
from common.clock import utc_now
from tests.at_once import at_once
from tests.billing.cast import USD, person
from tests.billing.owners import earner, ready

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_request_from_several_is_one_payout_and_one_transfer(stripe):
    otto = ready(stripe, earner())
    ask = partial(payout_request, user=otto, amount_microusd=50 * USD, idempotency_key="k")
    assert at_once(*[ask] * 4) == []
    assert (Payout.objects.count(), earnings_balance(otto)) == (1, 30 * USD)
    assert at_once(*[partial(payments_advance, now=utc_now())] * 4) == []
    payments_advance(now=utc_now())
    assert Payout.objects.get().state == Payout.State.TRANSFERRED
    assert len(stripe.world.of("transfer")) == len(stripe.world.of("payout")) == 1
    assert ledger_differences() == []


def test_requests_that_together_are_more_than_there_is_are_not_all_taken(stripe):
    otto = ready(stripe, earner())
    refused = at_once(
        *(
            partial(payout_request, user=otto, amount_microusd=30 * USD, idempotency_key=f"k{n}")
            for n in range(4)
        )
    )
    assert [type(error) for error in refused] == [EarningsImmature] * 2
    assert earnings_balance(otto) == 20 * USD


def test_one_payment_told_of_by_several_fills_the_wallet_once(stripe):
    bea = person("bea")
    open_page = partial(top_up_create, user=bea, amount_microusd=20 * USD, idempotency_key="k")
    assert at_once(*[open_page] * 4) == []
    assert len(stripe.world.of("checkout.session")) == 1
    stripe.world.pay(TopUp.objects.get().session_id)
    events = stripe.untold()
    assert at_once(*[partial(stripe.deliver, Client(), events)] * 4) == []
    assert wallet_balance(bea) == 20 * USD
    assert ledger_differences() == []


def test_two_disputes_that_are_won_at_once_end_the_freeze(stripe, client):
    for number in range(10):
        bea = person(f"bea-{number}")
        pages = [
            top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key=key) for key in ("one", "two")
        ]
        disputes = [
            stripe.world.dispute(stripe.world.pay(page.session_id)["payment_intent"]) for page in pages
        ]
        stripe.deliver(client)
        wins = []
        for dispute in disputes:
            stripe.world.win_dispute(dispute["id"])
            _, closed = stripe.untold()  # without the word of the money, which would be another chance to see
            wins.append(partial(stripe.deliver, Client(), [closed]))
        assert wallet_frozen_because(bea)
        assert at_once(*wins) == []
        assert wallet_frozen_because(bea) == ""
