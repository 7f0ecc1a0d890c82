"""The prices that a migration gives a new site, for tests that empty its tables; and others that a test sets."""

from datetime import UTC, datetime, timedelta

from common.clock import utc_now

ALWAYS = datetime(2020, 1, 1, tzinfo=UTC)
A_FIFTH = 2_000


def opening_prices() -> None:
    from billing.domain.rates import OPENING_RATES
    from billing.models import Fee, Rate

    for device_class, microusd in OPENING_RATES.items():
        Rate.objects.create(device_class=device_class, microusd_per_gpu_second=microusd, valid_from=ALWAYS)
    Fee.objects.create(basis_points=A_FIFTH, valid_from=ALWAYS)


def fee_is(basis_points: int) -> None:
    """From now on; what was agreed before keeps its fee."""
    from billing.models import Fee

    Fee.objects.create(
        basis_points=basis_points, valid_from=utc_now() - timedelta(microseconds=1), reason="a test"
    )
