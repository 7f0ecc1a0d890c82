from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("marketplace", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="fee_basis_points",
            field=models.PositiveIntegerField(
                default=settings.PLATFORM_FEE_BASIS_POINTS,
                help_text="the platform's part of each charge, frozen with the quote",
            ),
            preserve_default=False,
        ),
    ]
