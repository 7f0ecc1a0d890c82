"""Upward news: rows written in the transaction that makes them true, read later by the app above.

An app that has news defines a concrete `OutboxRow`. The reader handles rows in id order and deletes each one in the
transaction that holds its effect, so that every row takes effect exactly once.
"""

from typing import Any

from django.db import models


class OutboxRow(models.Model):
    """One piece of news: a stable `kind` and a small JSON payload of ids."""

    kind = models.CharField(max_length=40)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.payload}"

    @classmethod
    def publish(cls, kind: str, **payload: Any) -> None:
        cls._default_manager.create(kind=kind, payload=payload)
