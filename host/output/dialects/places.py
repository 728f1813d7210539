"""Returns the address of an item for clients outside. Pure.

Only http(s) addresses leave the server. A passage or record without one gets the address of the
server's own page about it, which is read with the reader's identity.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

from groundhook.core.types.attached import COLLECTION
from groundhook.core.types.events import (
    CitationSeen,
    Cited,
    Event,
    SearchComplete,
    SearchFound,
    StreamEnd,
)
from groundhook.core.types.search import Item, LongTable

SOURCES = "/api/sources"
LONGEST = 8000  # characters of an address
_PAGE = re.compile(r"#page=(\d{1,6})$", re.ASCII)

SealTable = Callable[[LongTable], str]  # the token with which a reader gets all rows of a table

_Addressed = TypeVar("_Addressed", Item, Cited)


def address(found: Item | Cited, public_url: str) -> str:
    """Return the http(s) address of an item or citation, or "" without one: figures and
    files that the user attached have none."""
    if _is_web(found.url):
        return found.url
    if found.type == "kb" and found.collection == COLLECTION:
        return ""  # a file of the user's own, which no other reader may open
    base = f"{public_url.rstrip('/')}{SOURCES}"
    if found.type == "kb" and found.collection and found.document_id:
        extent = found.extent
        where = f"?{urlencode({'start': extent.start, 'end': extent.end})}" if extent else ""
        if page := page_of(found.url):
            where += f"#page={page}"
        # The id of a document is a path, whose slashes stay.
        return f"{base}/kb/{_segment(found.collection)}/{quote(found.document_id)}{where}"
    if found.type == "db" and found.model and found.record_id is not None:
        return f"{base}/db/{_segment(found.model)}/{_segment(str(found.record_id))}"
    return ""


def _sealed(table: LongTable, seal: SealTable, public_url: str) -> LongTable:
    """Return a table with the address of all its rows, without the query in its id; without an
    address for a query that is too long for one."""
    token = seal(table)
    url = f"{public_url.rstrip('/')}{SOURCES}/rows/{token}"
    id = hashlib.sha256(token.encode()).hexdigest()[:16]
    return table.model_copy(update={"id": id, "csv": url if len(url) <= LONGEST else ""})


def page_of(url: str) -> int:
    """Return the page that an address of a passage ends with; 0 for a document without pages."""
    page = _PAGE.search(url)
    return int(page[1]) if page else 0


def placed(event: Event, public_url: str, seal: SealTable | None = None) -> Event:
    """Return the event with the addresses of its items as clients see them, and with `seal` those
    of its tables."""
    match event:
        case SearchComplete() if event.tables and seal is not None:
            tables = tuple(_sealed(each, seal, public_url) for each in event.tables)
            return event.model_copy(update={"tables": tables})
        case SearchFound():
            return _replace_item(event, item=_set_address(event.item, public_url))
        case CitationSeen() if event.item is not None:
            return _replace_item(event, item=_set_address(event.item, public_url))
        case StreamEnd() if event.citations:
            cited = tuple(_set_address(each, public_url) for each in event.citations)
            return event.model_copy(update={"citations": cited})
        case _:
            return event


def _replace_item(event: SearchFound | CitationSeen, item: Item) -> SearchFound | CitationSeen:
    return event if item is event.item else event.model_copy(update={"item": item})


def _set_address(found: _Addressed, public_url: str) -> _Addressed:
    url = address(found, public_url)
    return found if url == found.url else found.model_copy(update={"url": url})


def _segment(name: str) -> str:
    # A slash in a name must not become a step of the path.
    return quote(name, safe="")


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
