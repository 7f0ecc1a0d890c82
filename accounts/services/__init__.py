"""Everything that changes people, tokens, devices and windows. Each function is one transaction."""

from accounts.services.devices import (
    device_pause,
    device_remove,
    device_rename,
    device_resume,
    device_seen,
    device_set_policy,
    devices_pause_all,
    devices_resume_all,
)
from accounts.services.pairing import device_pair, pairing_code_create
from accounts.services.people import (
    user_lock,
    user_set_invoice_address,
    user_set_time_zone,
    user_sign_up,
)
from accounts.services.tokens import api_token_authenticate, api_token_create, api_token_revoke
from accounts.services.windows import WindowSpec, idle_windows_replace

__all__ = [
    "WindowSpec",
    "api_token_authenticate",
    "api_token_create",
    "api_token_revoke",
    "device_pair",
    "device_pause",
    "device_remove",
    "device_rename",
    "device_resume",
    "device_seen",
    "device_set_policy",
    "devices_pause_all",
    "devices_resume_all",
    "idle_windows_replace",
    "pairing_code_create",
    "user_lock",
    "user_set_invoice_address",
    "user_set_time_zone",
    "user_sign_up",
]
