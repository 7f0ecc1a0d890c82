"""The Celery application. Without a broker it runs tasks in the calling process (see settings)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

app = Celery("nightshift")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
