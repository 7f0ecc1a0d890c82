from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import migrations, models

from billing.guards import RATE_TABLES, guards_put_up, guards_take_down

# Before anything that a site can have quoted.
ALWAYS = datetime(2020, 1, 1, tzinfo=UTC)
REASON = "what the site began with"
RATES = {"laptop-cpu": 100, "laptop-gpu": 600, "phone-entry": 150, "phone-high": 400}
CLASSES = [
    ("laptop-cpu", "Laptop, processor only"),
    ("laptop-gpu", "Laptop with a GPU"),
    ("phone-entry", "Phone, entry class"),
    ("phone-high", "Phone, top class"),
]
DATED = [
    ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
    ("valid_from", models.DateTimeField(help_text="in force from then on, until a later row is")),
    ("reason", models.CharField(max_length=200)),
    ("created_at", models.DateTimeField(auto_now_add=True)),
    (
        "operator",
        models.ForeignKey(
            help_text="who set it; none for what the site began with",
            null=True,
            on_delete=models.deletion.PROTECT,
            related_name="+",
            to=settings.AUTH_USER_MODEL,
        ),
    ),
]


def begin(apps: Any, schema_editor: Any) -> None:
    """The prices that were constants and a setting until now."""
    rate, fee = apps.get_model("billing", "Rate"), apps.get_model("billing", "Fee")
    for device_class, microusd in RATES.items():
        rate.objects.create(
            device_class=device_class, microusd_per_gpu_second=microusd, valid_from=ALWAYS, reason=REASON
        )
    fee.objects.create(basis_points=settings.PLATFORM_FEE_BASIS_POINTS, valid_from=ALWAYS, reason=REASON)


def put_up(apps: Any, schema_editor: Any) -> None:
    guards_put_up(schema_editor.connection, RATE_TABLES)


def take_down(apps: Any, schema_editor: Any) -> None:
    guards_take_down(schema_editor.connection, RATE_TABLES)


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0004_audit_log"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Rate",
            fields=[
                *DATED,
                ("device_class", models.CharField(choices=CLASSES, max_length=20)),
                ("microusd_per_gpu_second", models.BigIntegerField(help_text="1,000,000 is one USD")),
            ],
            options={
                "ordering": ["device_class", "-valid_from"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("microusd_per_gpu_second__gt", 0)), name="rate_is_positive"
                    ),
                    models.UniqueConstraint(
                        fields=("device_class", "valid_from"), name="rate_of_a_class_begins_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Fee",
            fields=[*DATED, ("basis_points", models.PositiveIntegerField(help_text="2,000 is 20 %"))],
            options={
                "ordering": ["-valid_from"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("basis_points__lte", 10000)), name="fee_is_a_share"
                    ),
                    models.UniqueConstraint(fields=("valid_from",), name="fee_begins_once"),
                ],
            },
        ),
        migrations.AddField(
            model_name="hold",
            name="fee_basis_points",
            field=models.PositiveIntegerField(
                default=settings.PLATFORM_FEE_BASIS_POINTS,
                help_text="the platform's part of what is charged to it, as agreed when it was opened",
            ),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("fee_basis_points__lte", 10000)), name="hold_fee_is_a_share"
            ),
        ),
        migrations.RunPython(begin, migrations.RunPython.noop),
        migrations.RunPython(put_up, take_down),
    ]
