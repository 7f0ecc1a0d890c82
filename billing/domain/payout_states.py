"""Which state a payout may go to from which. `billing.services.payouts` makes the moves; nothing else does.

requested ─► debited ─► transferred ─► paid
                │           │  ▲         │
                │           ▼  │         │     the bank may refuse even what it had taken
                │         failed ◄───────┘
                ▼           │
             returned ◄─────┴── (transferred too)
"""

TRANSITIONS: dict[str, frozenset[str]] = {
    "requested": frozenset({"debited"}),
    # Returned only when Stripe has refused the transfer for good: what went through is never given back twice.
    "debited": frozenset({"transferred", "returned"}),
    # Returned only by a reversal of the whole transfer, of which Stripe tells.
    "transferred": frozenset({"paid", "failed", "returned"}),
    "paid": frozenset({"failed"}),
    "failed": frozenset({"transferred", "returned"}),
    "returned": frozenset(),
}

# An operator may stop one that is still ours to send on: to Stripe, or from the owner's account there to the bank.
FREEZABLE = frozenset({"debited", "transferred", "failed"})


def sources_of(target: str) -> list[str]:
    """The states from which a payout may come to `target`."""
    return sorted(source for source, targets in TRANSITIONS.items() if target in targets)
