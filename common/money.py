"""Money as integers of micro-USD, and the meter that turns GPU time into money.

One USD is 1,000,000 micro-USD; no fraction of a micro-USD exists anywhere. GPU time is metered in integer
microseconds. Everything here is pure.
"""

from decimal import Decimal, InvalidOperation

MICROUSD_PER_USD = 1_000_000
US_PER_SECOND = 1_000_000
BASIS_POINTS = 10_000
# Amounts from here on are typing errors, or made to cost us time.
MAX_USD = 10**12
# A result never bills more than this many times what its work should take on that device: (numerator, denominator).
METER_CAP = (3, 2)


def metered_gpu_us(*, reported_us: int, turnaround_us: int, expected_us: int) -> int:
    """GPU microseconds an accepted result is paid for: the least of three independent bounds.

    The device's own claim, the time the server saw pass, and 1.5 x what the work should take on such a device; so a
    slow or lying device cannot bill more than the work is worth.
    """
    return max(0, min(reported_us, turnaround_us, meter_cap_us(expected_us)))


def meter_cap_us(expected_us: int) -> int:
    """The most GPU microseconds a result of work expected to take `expected_us` can bill."""
    return expected_us * METER_CAP[0] // METER_CAP[1]


def price_microusd(*, gpu_us: int, rate_microusd_per_gpu_second: int) -> int:
    """What GPU time costs, rounded down to whole micro-USD."""
    return gpu_us * rate_microusd_per_gpu_second // US_PER_SECOND


def price_ceiling_microusd(*, gpu_us: int, rate_microusd_per_gpu_second: int) -> int:
    """The most that one of several results of this GPU time can be charged, whatever is carried over to it."""
    return -(-gpu_us * rate_microusd_per_gpu_second // US_PER_SECOND)


def charge_with_carry(*, gpu_us: int, rate_microusd_per_gpu_second: int, carry: int) -> tuple[int, int]:
    """(micro-USD to charge for a result, what is carried over to the next one of the same buyer's work).

    Work of a few milliseconds costs less than a micro-USD. `carry` keeps what the charges so far have left
    unbilled, in millionths of a micro-USD, so that many small results together cost exactly what they are worth,
    rounded down once.
    """
    return divmod(gpu_us * rate_microusd_per_gpu_second + carry, US_PER_SECOND)


def fee_microusd(*, amount_microusd: int, fee_basis_points: int) -> int:
    """The platform's part of a charge, rounded down in the owner's favour."""
    return amount_microusd * fee_basis_points // BASIS_POINTS


def parse_usd(text: str) -> int:
    """'12.50' -> 12_500_000. Raises ValueError unless it is a finite amount in whole micro-USD."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount in USD") from None
    if not amount.is_finite():
        raise ValueError(f"{text!r} is not a finite amount")
    # Before any arithmetic, which '1e999999' would make overflow or last for minutes.
    if amount.copy_abs() >= MAX_USD:
        raise ValueError(f"{text!r} is more than there is; give an amount below {MAX_USD:,} USD")
    micros = amount * MICROUSD_PER_USD
    if micros != micros.to_integral_value():
        raise ValueError(f"{text} USD has fractions of a micro-USD; use at most six decimals")
    return int(micros)


def format_usd(amount_microusd: int) -> str:
    """12_500_000 -> '$12.50'; amounts under a cent keep the digits that matter: 1_234 -> '$0.001234'."""
    sign = "-" if amount_microusd < 0 else ""
    dollars, micros = divmod(abs(amount_microusd), MICROUSD_PER_USD)
    decimals = f"{micros:06d}"
    keep = max(2, len(decimals.rstrip("0")))
    return f"{sign}${dollars:,}.{decimals[:keep]}"
