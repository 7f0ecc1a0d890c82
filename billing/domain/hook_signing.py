"""How an owner's program knows that news is ours: the scheme that Stripe uses, which libraries know how to check."""

import hashlib
import hmac
from datetime import datetime

HEADER = "Nightshift-Signature"


def signature(*, body: str, secret: str, at: datetime) -> str:
    """`t=<seconds>,v1=<hex>`: HMAC-SHA256 with the hook's secret over `<seconds>.<body>`."""
    seconds = int(at.timestamp())
    digest = hmac.new(secret.encode(), f"{seconds}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"
