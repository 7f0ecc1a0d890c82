"""People, their API tokens, and owners' devices with the windows in which these may work."""

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from accounts.domain.device_classes import DEFAULT_DEVICE_CLASS, DEVICE_CLASSES
from common.outbox import OutboxRow


class UserManager(DjangoUserManager["User"]):
    """Creates and finds users by e-mail address, in any letter case; there are no user names."""

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        return super().normalize_email(email).lower()

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=self.normalize_email(username))

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":  # type: ignore[override]
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":  # type: ignore[override]
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractUser):
    """A person, who may be owner, buyer or both; an operator is staff."""

    username = None  # type: ignore[assignment]
    email = models.EmailField("e-mail address", unique=True)
    time_zone = models.CharField(max_length=64, default="UTC", help_text="IANA name, as Europe/Berlin")

    invoice_address = models.TextField(
        blank=True, max_length=500, help_text="name and address on invoices; empty: the e-mail address"
    )

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(name="user_email_is_lower_case", condition=Q(email=Lower("email"))),
        ]

    def __str__(self) -> str:
        return self.email


class ApiToken(models.Model):
    """A named bearer token. Only its SHA-256 is kept; `hint` is its first characters, to tell tokens apart."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    scopes = models.JSONField(default=list)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class Device(models.Model):
    """A phone, tablet or laptop of an owner, known by its Ed25519 public key, and its owner's policy for it."""

    class Kind(models.TextChoices):
        PHONE = "phone"
        TABLET = "tablet"
        LAPTOP = "laptop"

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"
        REMOVED = "removed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="devices")
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.LAPTOP)
    device_class = models.CharField(
        max_length=20,
        choices=[(c.key, c.label) for c in DEVICE_CLASSES.values()],
        default=DEFAULT_DEVICE_CLASS,
    )
    public_key = models.BinaryField(max_length=32, unique=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    speed_factor = models.FloatField(default=1.0, help_text="speed as a multiple of the class's reference")
    paired_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)

    battery_floor_percent = models.PositiveSmallIntegerField(default=40)
    charging_only = models.BooleanField(default=True)
    wifi_only = models.BooleanField(default=True)
    too_hot_celsius = models.PositiveSmallIntegerField(default=40)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            # Work resumes 5 % above the floor, which must be a charge that a battery reaches and keeps.
            models.CheckConstraint(
                name="device_battery_floor_leaves_room", condition=Q(battery_floor_percent__lte=95)
            ),
            models.CheckConstraint(name="device_speed_factor_is_positive", condition=Q(speed_factor__gt=0)),
        ]

    def __str__(self) -> str:
        return self.name


class PairingCode(models.Model):
    """A short one-time code that lets a new device join an owner's devices; only its digest is kept."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="pairing_codes")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    device = models.OneToOneField(Device, on_delete=models.CASCADE, null=True, related_name="pairing_code")

    def __str__(self) -> str:
        return f"pairing code of {self.owner}"


class IdleWindow(models.Model):
    """A weekly window in the owner's wall-clock time.

    It is for one device or (device null) for all devices of the owner that have no windows of their own. It begins
    on `weekday` (Monday is 0) at `starts`; an `ends` at or before `starts` is on the next day.
    """

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="idle_windows")
    device = models.ForeignKey(Device, on_delete=models.CASCADE, null=True, related_name="idle_windows")
    weekday = models.PositiveSmallIntegerField()
    starts = models.TimeField()
    ends = models.TimeField()

    class Meta:
        ordering = ["weekday", "starts", "id"]
        constraints = [
            models.CheckConstraint(name="idle_window_weekday_is_0_to_6", condition=Q(weekday__lte=6)),
            models.UniqueConstraint(
                fields=["device", "weekday", "starts"],
                condition=Q(device__isnull=False),
                name="idle_window_of_a_device_starts_once",
            ),
            models.UniqueConstraint(
                fields=["owner", "weekday", "starts"],
                condition=Q(device=None),
                name="idle_window_of_an_owner_starts_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.weekday} {self.starts:%H:%M}-{self.ends:%H:%M}"


class DeviceNews(OutboxRow):
    """What the scheduler must learn of devices: kind is `changed` (policy, windows, pause, zone) or `removed`."""

    class Meta(OutboxRow.Meta):
        verbose_name_plural = "device news"
