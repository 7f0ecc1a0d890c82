"""How the REST API reads bodies and pages lists, whatever a client sends."""

from typing import IO, Any

import msgspec
from rest_framework.exceptions import ParseError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.parsers import JSONParser


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


class BoundedPagination(LimitOffsetPagination):
    """50 a page, or as many as `limit` asks for within reason."""

    default_limit = 50
    max_limit = 500
