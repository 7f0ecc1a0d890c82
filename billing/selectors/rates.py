"""Which prices are in force at a moment."""

from datetime import datetime

from billing.domain.rates import Tariff, newest_by_class
from billing.models import Fee, Rate


def tariff_at(moment: datetime) -> Tariff:
    """Rates by device class and the fee, as they stand at `moment`."""
    rows = Rate.objects.filter(valid_from__lte=moment).values_list(
        "device_class", "valid_from", "microusd_per_gpu_second"
    )
    fee = Fee.objects.filter(valid_from__lte=moment).order_by("-valid_from")
    return Tariff(rates=newest_by_class(rows), fee_basis_points=fee.values_list("basis_points", flat=True)[0])
