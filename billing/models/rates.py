"""Prices as dated rows: a row is in force from its `valid_from` until a later one. Rows are never changed."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.domain.device_classes import DEVICE_CLASSES


class _Dated(models.Model):
    valid_from = models.DateTimeField(help_text="in force from then on, until a later row is")
    operator = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who set it; none for what the site began with",
    )
    reason = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class Rate(_Dated):
    """What a GPU-second of one class of device costs a buyer."""

    device_class = models.CharField(
        max_length=20, choices=[(c.key, c.label) for c in DEVICE_CLASSES.values()]
    )
    microusd_per_gpu_second = models.BigIntegerField(help_text="1,000,000 is one USD")

    class Meta:
        ordering = ["device_class", "-valid_from"]
        constraints = [
            models.CheckConstraint(name="rate_is_positive", condition=Q(microusd_per_gpu_second__gt=0)),
            models.UniqueConstraint(
                fields=["device_class", "valid_from"], name="rate_of_a_class_begins_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_class}: {self.microusd_per_gpu_second} from {self.valid_from:%Y-%m-%d %H:%M}"


class Fee(_Dated):
    """The platform's part of each charge."""

    basis_points = models.PositiveIntegerField(help_text="2,000 is 20 %")

    class Meta:
        ordering = ["-valid_from"]
        constraints = [
            models.CheckConstraint(name="fee_is_a_share", condition=Q(basis_points__lte=10_000)),
            models.UniqueConstraint(fields=["valid_from"], name="fee_begins_once"),
        ]

    def __str__(self) -> str:
        return f"fee: {self.basis_points} from {self.valid_from:%Y-%m-%d %H:%M}"
