"""The demo's cast: an owner, a buyer with granted money, and the operator who granted it."""

from dataclasses import dataclass
from datetime import time

from accounts.domain.scopes import SCOPES
from accounts.domain.windows import Window
from accounts.models import User
from accounts.services import api_token_create, idle_windows_replace, user_sign_up
from billing.services import grant_post

PASSWORD = "nightshift-demo"  # noqa: S105 - printed for whoever looks at the demo's site
GRANT_MICROUSD = 20_000_000


@dataclass(frozen=True)
class Person:
    email: str
    token: str
    user: User


def create_people() -> tuple[Person, Person]:
    """The owner, whose devices may always work, and the buyer."""
    operator = user_sign_up(email="operator@demo.example", password=PASSWORD, time_zone="UTC")
    operator.is_staff = operator.is_superuser = True
    operator.save(update_fields=["is_staff", "is_superuser"])
    owner, buyer = _person("owner@demo.example"), _person("buyer@demo.example")
    all_week = [Window(weekday=day, starts=time(0), ends=time(0)) for day in range(7)]
    idle_windows_replace(owner=owner.user, device_id=None, windows=all_week)
    grant_post(
        user=buyer.user,
        amount_microusd=GRANT_MICROUSD,
        operator=operator,
        idempotency_key="grant:demo",
        reason="The demo's buyer needs money to spend.",
        memo="demo money",
    )
    return owner, buyer


def _person(email: str) -> Person:
    user = user_sign_up(email=email, password=PASSWORD, time_zone="Europe/Berlin")
    _, token = api_token_create(user=user, name="demo", scopes=sorted(SCOPES))
    return Person(email=email, token=token, user=user)
