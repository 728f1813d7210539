"""Stable ids for sources: an id derives from what a source *is* (`Item.key`), so the same source
has the same id in every turn and on every run. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from urllib.parse import urlsplit

from groundhook.core.types.search import Item

SHORTEST = 4
LONGEST = 32  # characters; longer text is not read as an id


@lru_cache(maxsize=4096)
def short_id(key: str, length: int = SHORTEST) -> str:
    """Return the id of `key`: `length` characters of a-z and 2-7, derived from its SHA-256. The
    first four have a letter and a digit, so that no English word and no year is an id. A longer id
    begins with the shorter one."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return (
        _id_in(_letters(digest[:_HEAD]), length)
        or _id_in(2 * _letters(digest), length)
        or "a2" + _letters(digest)[: length - 2]
    )


def _letters(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii").rstrip("=").lower()


def _id_in(text: str, length: int) -> str:
    """Return the first `length` characters that may be an id; "" without any."""
    for start in range(len(text) - max(length, SHORTEST) + 1):
        head = text[start : start + SHORTEST]
        if not head.isalpha() and not head.isdigit():
            return text[start : start + length]
    return ""


_HEAD = 10  # bytes of a digest: nearly all contain an id; a whole number of letters


def key_of(item: Item) -> str:
    """Return the key that identifies the item: its own, or one derived from its fields. A record
    has its model and primary key, a passage its collection, document and text, a page its address;
    any other item its title, text and data."""
    if item.key:
        return item.key
    text = hashlib.sha256(item.content.encode("utf-8", "surrogatepass")).hexdigest()
    if item.model and item.record_id is not None:
        parts = ["record", item.model, repr(item.record_id)]
    elif item.document_id:
        parts = ["passage", item.collection, item.document_id, text]
    elif item.url and item.type == "web":  # the same for every snippet of the page
        parts = ["page", _address(item.url)]
    else:
        parts = ["text", item.collection, item.model, item.url, item.title, text, repr(item.data)]
    return f"{item.type}:{json.dumps(parts)}"


def _address(url: str) -> str:
    """Return an address in one spelling: scheme and host in lower case, `/` for an empty path."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{host.lower()}", path=parts.path or "/").geturl()
