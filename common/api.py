"""How the REST API reads bodies and pages lists, whatever a client sends."""

from typing import IO, Any

import msgspec
from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.pagination import CursorPagination, LimitOffsetPagination
from rest_framework.parsers import JSONParser
from rest_framework.request import Request


class StrictJSONParser(JSONParser):
    """JSON after RFC 8259; its size is Django's to bound (`DATA_UPLOAD_MAX_MEMORY_SIZE`).

    Stricter than Python's own reader, which lets lone surrogates through (no database stores them) and fails on deep
    nesting with an error that is no parse error.
    """

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return msgspec.json.decode(stream.read())
        except RecursionError:
            raise ParseError("The JSON is nested too deep. Send a flatter document.") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ParseError(f"The body is not JSON in UTF-8 ({error}). Mend it.") from None


class SteadyCursorPagination(CursorPagination):
    """Pages by cursor that end, whatever cursor is sent and however many rows have the same position.

    As it comes, it counts no further than a thousand rows within one position and then gives the same page again and
    again; and a cursor whose position is no value of the field fails as an error of ours.
    """

    offset_cutoff = 1_000_000

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError):
            raise NotFound(self.invalid_cursor_message) from None


class BoundedPagination(LimitOffsetPagination):
    """50 a page, or as many as `limit` asks for within reason."""

    default_limit = 50
    max_limit = 500
