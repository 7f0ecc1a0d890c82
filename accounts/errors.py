"""Everything that accounts refuses.

AccountsError
├── InputError                 something that was given cannot be used; `field` names it
│   ├── InvalidEmail
│   ├── EmailTaken
│   ├── WeakPassword
│   ├── UnknownTimeZone
│   ├── InvalidAddress         of invoices
│   ├── InvalidName            of a token or a device
│   ├── UnknownScope
│   ├── InvalidPublicKey
│   ├── InvalidDeviceFacts     kind, class or speed
│   ├── InvalidPolicy
│   └── InvalidWindows
├── NotFoundError              there is no such object, or it is someone else's: these look the same
│   ├── ApiTokenNotFound
│   └── DeviceNotFound
├── LimitError                 a bound on how many of something a person may have
├── TooManySignUps             from one address
├── PairingError               a device may not join
│   ├── PairingCodeWrong
│   ├── PairingCodeExpired
│   ├── PairingCodeUsed
│   ├── DeviceAlreadyPaired
│   └── TooManyPairingAttempts
└── ApiTokenError              a bearer token lets nobody in
    ├── ApiTokenUnknown
    └── ApiTokenRevoked
"""

from common.errors import NightshiftError


class AccountsError(NightshiftError):
    """Base of everything that accounts refuses."""


class InputError(AccountsError):
    """Something that was given cannot be used."""


class InvalidEmail(InputError):
    code = "invalid_email"


class EmailTaken(InputError):
    code = "email_taken"


class WeakPassword(InputError):
    code = "weak_password"


class UnknownTimeZone(InputError):
    code = "unknown_time_zone"


class InvalidAddress(InputError):
    code = "invalid_address"


class InvalidName(InputError):
    code = "invalid_name"


class UnknownScope(InputError):
    code = "unknown_scope"


class InvalidPublicKey(InputError):
    code = "invalid_public_key"


class InvalidDeviceFacts(InputError):
    code = "invalid_device_facts"


class InvalidPolicy(InputError):
    code = "invalid_policy"


class InvalidWindows(InputError):
    code = "invalid_windows"


class NotFoundError(AccountsError):
    """There is no such object among this person's; whether someone else has one is not told."""


class ApiTokenNotFound(NotFoundError):
    code = "api_token_not_found"


class DeviceNotFound(NotFoundError):
    code = "device_not_found"


class LimitError(AccountsError):
    code = "limit_reached"


class TooManySignUps(AccountsError):
    code = "too_many_sign_ups"


class PairingError(AccountsError):
    """A device may not join."""


class PairingCodeWrong(PairingError):
    code = "pairing_code_wrong"


class PairingCodeExpired(PairingError):
    code = "pairing_code_expired"


class PairingCodeUsed(PairingError):
    code = "pairing_code_used"


class DeviceAlreadyPaired(PairingError):
    code = "device_already_paired"


class TooManyPairingAttempts(PairingError):
    code = "too_many_pairing_attempts"


class ApiTokenError(AccountsError):
    """A bearer token does not let anyone in."""


class ApiTokenUnknown(ApiTokenError):
    code = "api_token_unknown"


class ApiTokenRevoked(ApiTokenError):
    code = "api_token_revoked"
