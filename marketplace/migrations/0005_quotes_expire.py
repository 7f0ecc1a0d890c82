from datetime import timedelta

from django.db import migrations, models
from django.utils import timezone


def in_a_week():
    """Quotes that there are already get the time that new ones have."""
    return timezone.now() + timedelta(days=7)


class Migration(migrations.Migration):
    dependencies = [("marketplace", "0004_invoices")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="quote_expires_at",
            field=models.DateTimeField(default=in_a_week, help_text="until then it can be confirmed"),
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "quoted")),
                fields=["quote_expires_at"],
                name="job_quote_that_expires",
            ),
        ),
    ]
