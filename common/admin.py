"""What the operators' admin pages of several apps share."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from common.money import format_usd

_MICROUSD = "_microusd"

admin.site.site_header = admin.site.site_title = "Nightshift for operators"
admin.site.index_title = "What there is"
admin.site.enable_nav_sidebar = False  # its room is the tables'


class ReadOnly:
    """Takes adding, changing and deleting away from an admin page: what it shows is written by services alone.

    Amounts, which are fields named `…_microusd`, are shown in USD: in lists, on a row's page and inline.
    """

    class Media:
        css = {"all": ["operators.css"]}

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return _in_usd(super().get_list_display(request))  # type: ignore[misc]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return _in_usd(super().get_fields(request, obj))  # type: ignore[misc]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        model: Any = self.model  # type: ignore[attr-defined]
        amounts = [field.name for field in model._meta.get_fields() if field.name.endswith(_MICROUSD)]
        return [*super().get_readonly_fields(request, obj), *map(usd_column, amounts)]  # type: ignore[misc]


@cache
def usd_column(field: str, *, label: str = "", empty: str = "-") -> Callable[[Any], str]:
    """A column that shows the micro-USD of `field` in USD (`empty` where there is none), and sorts by it."""

    @admin.display(ordering=field, description=label or field.removesuffix(_MICROUSD).replace("_", " "))
    def column(row: Any) -> str:
        amount_microusd: int | None = getattr(row, field)
        return empty if amount_microusd is None else format_usd(amount_microusd)

    column.__name__ = field
    return column


def _in_usd(fields: Iterable[Any]) -> list[Any]:
    return [
        usd_column(field) if isinstance(field, str) and field.endswith(_MICROUSD) else field
        for field in fields
    ]
