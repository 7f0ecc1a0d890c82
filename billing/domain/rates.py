"""What a metered GPU-second costs a buyer, by class of device.

A job's quote freezes the rates, so a change here moves no price that was already agreed. Rates grow more slowly than
speed does: a quick device earns more by the second, and is still cheaper for the same work. Every class of
`accounts.domain.device_classes` has one.
"""

RATES: dict[str, int] = {  # micro-USD per GPU-second
    "laptop-cpu": 100,
    "laptop-gpu": 600,
    "phone-entry": 150,
    "phone-high": 400,
}
