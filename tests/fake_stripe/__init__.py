"""A small Stripe for tests: real HTTP, checked parameters, idempotency keys, faults, signed events.

It knows what this project uses: Checkout Sessions, refunds, disputes, accounts of the v2 API, account links,
transfers and reversals, payouts and balance transactions. `server` speaks HTTP and keeps keys, `endpoints` does what
a request asks, `world` is the objects and the money, and what people and banks do to them.
"""

from tests.fake_stripe.server import FakeStripe, Fault

__all__ = ["FakeStripe", "Fault"]
