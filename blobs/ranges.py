"""Byte ranges of requests and uploads, after RFC 9110 section 14. Pure."""

import re
from dataclasses import dataclass

from blobs.errors import RangeNotSatisfiable

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII | re.IGNORECASE)
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from byte `first` on, of `total`."""

    first: int
    length: int
    total: int

    @property
    def content_range(self) -> str:
        return f"bytes {self.first}-{self.first + self.length - 1}/{self.total}"


def parse_range(header: str | None, *, total: int) -> ByteRange | None:
    """The one range that a request asks for, or None to send everything.

    Everything is the answer the RFC gives to a header that is malformed, in another unit or asks for several ranges.
    Raises RangeNotSatisfiable for a range that has no byte of the content.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return None
    first_text, last_text = match.groups()
    if first_text == "":  # a suffix: the last so many bytes
        first, last = max(0, total - int(last_text)), total - 1
    else:
        first, last = int(first_text), min(total - 1, int(last_text or total))
        if last_text and int(last_text) < first:
            return None
    if first >= total:
        raise RangeNotSatisfiable(size_bytes=total)
    return ByteRange(first, last - first + 1, total)


def parse_content_range(header: str) -> ByteRange | None:
    """The place of an upload's bytes in the whole, or None when the header does not name one."""
    match = _CONTENT_RANGE.fullmatch(header.strip())
    if match is None:
        return None
    first, last, total = map(int, match.groups())
    if not first <= last < total:
        return None
    return ByteRange(first, last - first + 1, total)
