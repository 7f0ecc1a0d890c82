"""The people of the ledger's tests."""

from accounts.models import User
from billing.services import grant_post

USD = 1_000_000


def person(name: str) -> User:
    return User.objects.create_user(f"{name}@example.org", "a long enough password")


def operator() -> User:
    return User.objects.get_or_create(email="olive@example.org", defaults={"is_staff": True})[0]


def second_operator() -> User:
    return User.objects.get_or_create(email="oscar@example.org", defaults={"is_staff": True})[0]


def buyer(name: str = "bea", *, wallet_microusd: int = 100 * USD) -> User:
    """A person with that much granted to their wallet."""
    user = person(name)
    grant_post(
        user=user,
        amount_microusd=wallet_microusd,
        operator=operator(),
        idempotency_key=f"first grant to {name}",
        reason="to begin with.",
    )
    return user
