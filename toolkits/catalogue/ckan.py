"""Reads the packages of a CKAN portal: page by page without losing one, and only the changes if the
portal proves that it can list them.

Pages are requested in the order of ids, so that a package that is changed meanwhile keeps its
place, and each page begins with the last package of the one before: if that is missing, packages
were removed in between and the reader steps back. Portals that refuse to sort, or do not, are read
with wider overlaps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import anyio

from groundhook.core.errors import (
    NotPermitted,
    SourceError,
    SourceMalformed,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import ClientOf, Clock
from groundhook.core.retry_after import retry_after_s
from groundhook.core.settings import HttpSettings
from groundhook.core.types.web import WebAnswer
from groundhook.toolkits.catalogue.settings import CatalogueSource

_Package = Mapping[str, Any]

TRIES = 3
# If a portal requests a longer pause, the sync ends, and the next one tries again.
LONGEST_PAUSE_S = 60.0
_TEMPORARY = (429, 500, 502, 503, 504)
_SORTS = ("id", "name", "")  # fields to sort by, in the order in which they are tried
_LATE = timedelta(hours=1)  # clocks differ, and an index lags behind its database
_SOLR = "%Y-%m-%dT%H:%M:%SZ"
_API = "/api/3/action"


@dataclass(frozen=True)
class PackageListing:
    """A page of packages. `position` is where the next one begins, `total` what the portal counts
    without packages that are omitted (drafts, deleted and private ones)."""

    packages: Sequence[_Package]
    position: str
    total: int
    last: bool


@dataclass(frozen=True)
class _Place:
    """A position in a listing: the number of packages before it, the last package read (by the
    field that the portal sorts by, "": none, then by id), and how many were omitted."""

    start: int = 0
    last: str = ""
    sort: str = "id"
    left_out: int = 0

    def text(self) -> str:
        return json.dumps(vars(self))


class Portal:
    """A CKAN portal, as its toolkit's file (`shown` in messages) names it."""

    def __init__(
        self, source: CatalogueSource, page: int, client_of: ClientOf, now: Clock, shown: str
    ) -> None:
        address = urlsplit(source.ckan)
        host = address.hostname or ""
        self.base = source.ckan.rstrip("/").removesuffix(_API)
        self.name = f"the CKAN portal {host!r}"
        self._source = source
        self._page = page
        self._now = now
        self._shown = shown
        named = f"[{host}]" if ":" in host else host
        port = f":{address.port}" if address.port else ""
        self._client = client_of(
            HttpSettings(
                hosts=(f"{named}{port}",), timeout_ms=source.timeout_ms, max_kb=source.max_kb
            )
        )

    # ---- the interface of the sync

    async def newest(self) -> str:
        """Return the moment of the latest change, never one in the future; "" if the portal cannot
        say. Raises SourceError."""
        try:
            found = await self._search(rows=1, sort="metadata_modified desc")
        except SourceRefused:
            return ""
        moments = [moment for package in found.packages if (moment := _modified(package))]
        return min(max(moments), self._now().astimezone(UTC)).isoformat() if moments else ""

    async def lists_changes(self, since: str, known: int) -> bool:
        """Return whether the portal has at least the `known` number of packages, finds all of them
        by a change since 1900 and none by one in the year 9999. There are portals behind proxies
        that drop the filter, and portals that answer it with nothing. Raises SourceError."""
        try:
            every = (await self._search(rows=0)).total
            past = (await self._search(rows=0, changed="1900-01-01T00:00:00Z")).total
            future = (await self._search(rows=0, changed="9999-01-01T00:00:00Z")).total
        except SourceRefused:
            return False
        return bool(since) and every >= max(known, 1) and past == every and future == 0

    async def read(self, position: str, since: str) -> PackageListing:
        """Return a page of the listing. Raises SourceError."""
        place = _Place(**read_json(position)) if position else _Place()
        changed = _solr(since) if since else ""
        back = 0
        while True:
            start = max(0, place.start - self._overlap(place) - back)
            try:
                found = await self._search(
                    rows=self._page,
                    start=start,
                    sort=f"{place.sort} asc" if place.sort else "",
                    changed=changed,
                )
            except SourceRefused:
                if place.start or not place.sort:
                    raise
                place = _Place(sort=_SORTS[_SORTS.index(place.sort) + 1])
                continue
            if place.sort and not _ascending(found.packages, place.sort):
                place = _Place(sort="")
                continue
            if start and _is_gap(found.packages, place):
                back += self._page
                continue
            return self._listing(found, place, start)

    def _overlap(self, place: _Place) -> int:
        if not place.last:
            return 0
        return 1 if place.sort else max(1, self._page // 4)

    def _listing(self, found: _Found, place: _Place, start: int) -> PackageListing:
        end = start + len(found.packages)
        if not found.packages and end < found.total:
            raise SourceMalformed(
                f"{self.name} ended its list early: {end:,} of {found.total:,} datasets"
            )
        public = [package for package in found.packages if _is_public(package)]
        left_out = place.left_out + sum(
            not _is_public(package) for package in found.packages[max(0, place.start - start) :]
        )
        key = place.sort or "id"
        last = str(found.packages[-1].get(key) or "") if found.packages else place.last
        # With one package per page, the overlap would repeat the same package for ever.
        only_overlap = end == place.start and start < place.start
        return PackageListing(
            packages=public,
            position=_Place(end, "" if only_overlap else last, place.sort, left_out).text(),
            total=max(0, found.total - left_out),
            last=end >= found.total,
        )

    async def columns(self, resource: str) -> Any:
        """Return the fields of a table in the portal's datastore, as it lists them. Raises
        SourceError."""
        query = {"resource_id": resource, "limit": 0}
        body = await self._json(f"{self.base}{_API}/datastore_search", query)
        result = body.get("result") if isinstance(body, dict) else None
        return result.get("fields") if isinstance(result, dict) else None

    # ---- requests

    async def _search(
        self, *, rows: int, start: int = 0, sort: str = "", changed: str = ""
    ) -> _Found:
        query: dict[str, Any] = {"q": "*:*", "rows": rows, "start": start}
        if sort:
            query["sort"] = sort
        if changed:
            query["fq"] = f"metadata_modified:[{changed} TO *]"
        return self._read_found(await self._json(f"{self.base}{_API}/package_search", query))

    async def _json(self, url: str, query: Mapping[str, Any]) -> Any:
        """Return the JSON of an answer, after at most `TRIES` requests. Raises SourceError."""
        pause = self._source.retry_ms / 1000
        for left in reversed(range(TRIES)):
            try:
                answer = await self._client.request(
                    "GET", url, headers=self._headers(), query=query
                )
                return self._parsed(answer)
            except SourceMalformed as exc:
                error = exc if self.name in exc.message else self._cut(exc)
            except NotPermitted as exc:
                hint = f"check source.ckan in {self._shown}"
                raise SourceRefused(f"{self.name}: {exc.message}", hint=hint) from exc
            except SourceError as exc:
                error = exc
            if not left or not _may_pass(error):
                raise error
            wait = pause if error.after is None else error.after
            if wait > LONGEST_PAUSE_S:
                raise error
            await anyio.sleep(wait)
            pause *= 2
        raise AssertionError("unreachable")

    def _headers(self) -> dict[str, str]:
        key = {"Authorization": self._source.key} if self._source.key else {}
        return {"Accept": "application/json", **key, **self._source.headers}

    def _parsed(self, answer: WebAnswer) -> Any:
        if answer.status in (401, 403):
            reason = "the key" if self._source.key else "the request: it wants a key"
            raise SourceRefused(
                f"{self.name} refused {reason} ({answer.status})",
                hint=f"set source.key in {self._shown}",
            )
        if answer.status in _TEMPORARY:
            raise self._temporary(answer)
        text = answer.text.lstrip("\ufeff \r\n\t")
        if answer.media_type in ("text/html", "application/xhtml+xml") or text[:1] == "<":
            raise SourceMalformed(
                f"{self.name} answered with HTML, not JSON (a login or a bot check?)"
            )
        if answer.status == 404 and '"success"' not in text:
            raise SourceRefused(
                f"{self.name} has no CKAN API: {_API}/package_search is not there (404)",
                hint=f"check source.ckan in {self._shown}",
            )
        try:
            return read_json(text, nan=True)
        except NotJson as exc:
            raise self._cut(exc) from exc

    def _cut(self, exc: Exception) -> SourceError:
        error = SourceMalformed(f"{self.name} sent an answer that is cut off or not JSON")
        error.again = True
        error.__cause__ = exc
        return error

    def _temporary(self, answer: WebAnswer) -> SourceError:
        if answer.status != 429:
            error: SourceError = SourceError(f"{self.name} failed ({answer.status})")
        else:
            error = SourceRateLimited(f"{self.name} wants fewer requests (429)")
        error.again = True
        error.after = retry_after_s(answer.headers, self._now())
        if error.after is not None and error.after > LONGEST_PAUSE_S:
            error.hint = f"it asks to wait {error.after:,.0f} seconds"
        return error

    def _read_found(self, body: Any) -> _Found:
        if not isinstance(body, dict) or body.get("success") is not True:
            raise SourceRefused(f"{self.name} refused the request: {_why(body)}")
        result = body.get("result")
        packages = result.get("results") if isinstance(result, dict) else None
        count = result.get("count") if isinstance(result, dict) else None
        if (
            not isinstance(packages, list)
            or not isinstance(count, int)
            or not all(isinstance(each, dict) and each.get("id") for each in packages)
        ):
            raise SourceMalformed(
                f"{self.name} answered without a count and a list of datasets with ids"
            )
        return _Found(packages, count)


@dataclass(frozen=True)
class _Found:
    """The answer to a search of packages."""

    packages: Sequence[_Package]
    total: int


def _may_pass(error: SourceError) -> bool:
    """Return whether the same request may succeed a moment later."""
    return error.again or isinstance(error, SourceTimeout) or type(error) is SourceError


def _is_public(package: _Package) -> bool:
    return package.get("state", "active") == "active" and package.get("private") is not True


def _ascending(packages: Sequence[_Package], key: str) -> bool:
    values = [str(package.get(key) or "") for package in packages]
    return values == sorted(values)


def _is_gap(packages: Sequence[_Package], place: _Place) -> bool:
    """Return whether packages may be missing between a page and the one before it."""
    if not packages or not place.last:
        return False
    if place.sort:
        return str(packages[0].get(place.sort) or "") > place.last
    return all(str(package.get("id")) != place.last for package in packages)


def _modified(package: _Package) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(package.get("metadata_modified")))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter in the first and the last year
        return None


def _solr(since: str) -> str:
    return (datetime.fromisoformat(since).astimezone(UTC) - _LATE).strftime(_SOLR)


def _why(body: Any) -> str:
    """Return the portal's reason, in one short line."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        named = error.get("message") or {
            name: value for name, value in error.items() if name != "__type"
        }
        kind = str(error.get("__type") or "")
        text = ": ".join(filter(None, [kind, named if isinstance(named, str) else str(named)]))
    else:
        text = str(error or "`success` is not true")
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"
