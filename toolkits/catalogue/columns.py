"""Columns of files: as a package declares them, of the portal's datastore, or from the first line
of a CSV file. Nothing here fails a sync: columns that cannot be read are not known."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from groundhook.core.errors import HostError
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import ClientOf
from groundhook.core.settings import HttpSettings
from groundhook.core.unseen import clean
from groundhook.toolkits.catalogue.ckan import Portal
from groundhook.toolkits.catalogue.names import entries, format_of, parts_of
from groundhook.toolkits.catalogue.settings import CatalogueSource

MOST_COLUMNS = 200
LONGEST_COLUMN = 100  # characters
HEAD_KB = 64  # of a CSV file
_TABLES = ("CSV", "TSV")
_DELIMITERS = ",;\t|"
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\W]+")
_NUMBER = re.compile(r"[\d\s.,:/+-]*")


def declared(resource: Mapping[str, Any]) -> list[str]:
    """Return the columns that a resource of a package declares: `schema` (a table schema, also as
    JSON text), or `columns`."""
    schema = resource.get("schema")
    if isinstance(schema, str):
        with suppress(NotJson):
            schema = read_json(schema, nan=True)
    fields = schema.get("fields") if isinstance(schema, Mapping) else resource.get("columns")
    return _clean(_names(fields, "name"))


def header(data: bytes) -> list[str]:
    """Return the columns that the first line of a CSV file names; `[]` if it has none: one column
    alone, or numbers."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        # The last character may be cut.
        text = data.decode("utf-8-sig" if exc.start > len(data) - 4 else "cp1252", "replace")
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        row = next(csv.reader(text.lstrip("\r\n").splitlines(keepends=True), delimiter=delimiter))
    except (csv.Error, StopIteration):
        return []
    named = [cell for cell in row if not _NUMBER.fullmatch(cell)]
    return _clean(row) if len(row) > 1 and len(named) * 2 > len(row) else []


def words(columns: Sequence[str]) -> str:
    """Return columns as words that a question may have: `postalCode` and `postal_code` are "postal
    code"."""
    return ", ".join(filter(None, (_PARTS.sub(" ", column).strip() for column in columns)))


class ColumnReader:
    """Reads the columns of a portal's files: one request for each file without declared ones."""

    def __init__(self, portal: Portal, source: CatalogueSource, client_of: ClientOf) -> None:
        self._portal = portal
        self._host = urlsplit(source.ckan).netloc.rpartition("@")[2]
        self._client = client_of(
            HttpSettings(hosts=(self._host,), timeout_ms=source.timeout_ms, max_kb=HEAD_KB)
        )

    async def of(self, package: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the columns of a package's files, by the id of the resource."""
        found: dict[str, list[str]] = {}
        for resource in entries(package, "resources"):
            if not resource.get("id") or declared(resource):
                continue
            with suppress(HostError):
                if columns := await self._read(resource):
                    found[str(resource["id"])] = columns
        return found

    async def _read(self, resource: Mapping[str, Any]) -> list[str]:
        if resource.get("datastore_active"):
            fields = await self._portal.columns(str(resource["id"]))
            return _clean(name for name in _names(fields, "id") if name != "_id")
        url = str(resource.get("url") or "")
        if format_of(dict(resource)) not in _TABLES or parts_of(url).netloc != self._host:
            return []
        # A host that ignores the range sends a larger file whole, which the client refuses.
        last = HEAD_KB * 1024 - 1
        answer = await self._client.request("GET", url, headers={"Range": f"bytes=0-{last}"})
        html = answer.media_type == "text/html"
        return [] if html or answer.status not in (200, 206) else header(answer.body)


def _names(fields: Any, key: str) -> Iterator[str]:
    for field in fields if isinstance(fields, list) else ():
        name = field.get(key) if isinstance(field, Mapping) else field
        if isinstance(name, str):
            yield name


def _clean(names: Any) -> list[str]:
    texts = (" ".join(clean(str(name)).split())[:LONGEST_COLUMN] for name in names)
    return list(dict.fromkeys(filter(None, texts)))[:MOST_COLUMNS]
