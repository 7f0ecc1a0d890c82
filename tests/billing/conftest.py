"""The fake Stripe, and a site that is set up to use it."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from tests.fake_stripe import FakeStripe
from tests.fake_stripe.server import SECRET_KEY, WEBHOOK_SECRET


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


@pytest.fixture
def stripe(settings) -> Iterator[FakeStripe]:
    with FakeStripe() as fake:
        settings.STRIPE_SECRET_KEY = SECRET_KEY
        settings.STRIPE_WEBHOOK_SECRETS = ["whsec_of_another_endpoint", WEBHOOK_SECRET]
        settings.STRIPE_API_BASE = fake.address
        settings.PAYOUT_FEE_MICROUSD = 250_000
        settings.EARNINGS_HOLD_BACK_DAYS = 7
        yield fake
