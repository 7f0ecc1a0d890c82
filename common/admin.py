"""What the operators' admin pages of several apps share."""

from typing import Any

from django.http import HttpRequest


class ReadOnly:
    """Takes adding, changing and deleting away from an admin page: what it shows is written by services alone."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
