"""E-mails about money, kept until they are sent and after."""

from django.conf import settings
from django.db import models
from django.db.models import Q

SUBJECT_MAX_CHARS = 100


class Notice(models.Model):
    """An e-mail to one person, written with what it tells of and sent soon after."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    subject = models.CharField(max_length=SUBJECT_MAX_CHARS)
    body = models.TextField()
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, help_text="empty: sent, or given up")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="notice_due")
        ]

    def __str__(self) -> str:
        return self.subject
