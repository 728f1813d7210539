"""Stable ids for sources: an id derives from what a source *is* (`Item.key`), so the same source
has the same id in every turn and on every run. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from urllib.parse import urlsplit

from groundhook.host.core.types.search import Item

SHORTEST = 4
LONGEST = 32  # an id beyond this many characters is text, not a marker


@lru_cache(maxsize=4096)
def short_id(key: str, length: int = SHORTEST) -> str:
    """`length` characters of a-z and 2-7 that stand for `key`; the first four hold a letter and a
    digit, so that no English word and no year is an id. A longer id begins with the shorter one."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return (
        _id_in(_letters(digest[:_HEAD]), length)
        or _id_in(2 * _letters(digest), length)
        or "a2" + _letters(digest)[: length - 2]
    )


def _letters(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii").rstrip("=").lower()


def _id_in(text: str, length: int) -> str:
    """The first `length` characters that may be an id; "" where there are none."""
    for start in range(len(text) - max(length, SHORTEST) + 1):
        head = text[start : start + SHORTEST]
        if not head.isalpha() and not head.isdigit():
            return text[start : start + length]
    return ""


_HEAD = 10  # bytes of a digest that have an id in them but for very few; a whole number of letters


def key_of(item: Item) -> str:
    """What the item *is*: its own `key`, else one derived from what says so. A record is its model
    and primary key, a passage its collection, document and text, a page its address; anything else
    is its title, text and data."""
    if item.key:
        return item.key
    text = hashlib.sha256(item.content.encode("utf-8", "surrogatepass")).hexdigest()
    if item.model and item.record_id is not None:
        said = ["record", item.model, repr(item.record_id)]
    elif item.document_id:
        said = ["passage", item.collection, item.document_id, text]
    elif item.url and item.type == "web":  # whatever snippet of it a question brought up
        said = ["page", _address(item.url)]
    else:
        said = ["text", item.collection, item.model, item.url, item.title, text, repr(item.data)]
    return f"{item.type}:{json.dumps(said)}"


def _address(url: str) -> str:
    """An address in one spelling: scheme and host in lower case, `/` for no path."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{host.lower()}", path=parts.path or "/").geturl()
