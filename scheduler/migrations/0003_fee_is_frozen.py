from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0002_device_spells")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="fee_basis_points",
            field=models.PositiveIntegerField(
                default=settings.PLATFORM_FEE_BASIS_POINTS,
                help_text="the platform's part of each charge, frozen with the quote",
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="lease",
            name="fee_basis_points",
            field=models.PositiveIntegerField(
                default=settings.PLATFORM_FEE_BASIS_POINTS, help_text="the platform's part of its charge"
            ),
            preserve_default=False,
        ),
    ]
