"""What a laptop can tell of itself. What it cannot is unknown, and unknown never blocks work."""

import psutil

from worker_protocol.wire import messages as msg


def read_status() -> msg.Status:
    """Charge and charger where there is a battery.

    The temperatures that laptops report are those of the processor, which is hot by design; the owner's limit is
    about the battery. So none is sent.
    """
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError):  # no such sensor on this system
        battery = None
    if battery is None:
        return msg.Status()
    percent = float(min(max(battery.percent, 0.0), 100.0))
    return msg.Status(battery_percent=round(percent, 1), charging=battery.power_plugged)


def lease_memory_bytes() -> int:
    """The most memory that a lease may need here: half of what is free now, for the owner works here too."""
    return int(psutil.virtual_memory().available) // 2
