"""The Django project and the buyer's side. Importing it makes the Celery application the current one."""

from marketplace.celery import app as celery_app

__all__ = ["celery_app"]
