from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0003_fee_is_frozen")]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="state",
            field=models.CharField(
                choices=[
                    ("active", "Active"),
                    ("paused", "Paused"),
                    ("finished", "Finished"),
                    ("cancelled", "Cancelled"),
                    ("failed", "Failed"),
                ],
                default="active",
                max_length=10,
            ),
        ),
    ]
