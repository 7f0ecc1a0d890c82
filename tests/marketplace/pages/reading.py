"""A page as a person reads it: its words, without markup."""

import html
import re
from typing import Any


def text_of(page: Any) -> str:
    body = page.content.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())
