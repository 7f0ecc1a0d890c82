"""Sizes for people."""

_STEPS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def format_bytes(size_bytes: int) -> str:
    """1_500_000_000 -> '1.50 GB', 12_345 -> '12.3 kB', 999 -> '999 bytes': three digits that matter."""
    for step, unit in _STEPS:
        if size_bytes >= step:
            value = size_bytes / step
            decimals = 2 if value < 10 else 1 if value < 100 else 0
            return f"{value:.{decimals}f} {unit}"
    return f"{size_bytes} bytes"
