"""What the earnings page shows: the balances, a month by day, and which device brought how much. From the ledger."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.utils.safestring import SafeString

from accounts.models import Device, User
from billing.selectors import EarningsBalances, earnings_balances, earnings_by_day
from marketplace.pages.day_charts import Day, day_chart

DAYS = 30


@dataclass(frozen=True, slots=True)
class DeviceEarnings:
    """`device` is None where the charge named none, or the device is nobody's any more."""

    device: Device | None
    results: int
    earned_microusd: int

    @property
    def removed(self) -> bool:
        return self.device is not None and self.device.state == Device.State.REMOVED


@dataclass(frozen=True, slots=True)
class EarningsView:
    balances: EarningsBalances
    chart: SafeString
    days: Sequence[Day]  # newest first, those that brought something
    devices: Sequence[DeviceEarnings]  # the most first
    total_microusd: int


def earnings_view(*, owner: User, now: datetime) -> EarningsView:
    """Days are the ledger's, in UTC."""
    today = now.astimezone(UTC).date()
    since = today - timedelta(days=DAYS - 1)
    by_day: defaultdict[date, int] = defaultdict(int)
    by_device: defaultdict[UUID | None, list[int]] = defaultdict(lambda: [0, 0])
    for row in earnings_by_day(owner, since=since, until=today):
        by_day[row["day"]] += row["net_microusd"]
        by_device[row["device_id"]][0] += row["charges"]
        by_device[row["device_id"]][1] += row["net_microusd"]
    days = [(since + timedelta(days=n), by_day[since + timedelta(days=n)]) for n in range(DAYS)]
    return EarningsView(
        balances=earnings_balances(owner, now=now),
        chart=day_chart(days, title="Earnings by day"),
        days=[day for day in reversed(days) if day[1]],
        devices=_by_device(owner, by_device),
        total_microusd=sum(by_day.values()),
    )


def _by_device(owner: User, sums: dict[UUID | None, list[int]]) -> list[DeviceEarnings]:
    known = {
        device.id: device for device in Device.objects.filter(owner=owner, id__in=[i for i in sums if i])
    }
    rows = [
        DeviceEarnings(known.get(device_id) if device_id else None, results, earned)
        for device_id, (results, earned) in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.earned_microusd, row.device.name if row.device else ""))
