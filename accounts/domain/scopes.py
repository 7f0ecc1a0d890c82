"""What an API token may be allowed to do."""

SCOPES: dict[str, str] = {
    "jobs:read": "see jobs and download trained models",
    "jobs:write": "post, confirm and cancel jobs, which spends money",
    "datasets:read": "see datasets",
    "datasets:write": "upload and delete datasets",
    "devices:read": "see devices and their idle windows",
    "devices:write": "pair, change, pause and remove devices",
    "money:read": "see the wallet, holds and earnings",
    "money:write": "set up automatic top-ups, which charge a saved card",
    "payouts:read": "see earnings by device and day, and payouts",
    "payouts:write": "ask for payouts to the owner's bank",
}
