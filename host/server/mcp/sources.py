"""Finds and reads the sources of an app for MCP clients: documents, records and pages of the web.
Knows no SDK. The ids of sources:

    kb:<collection>/<document>    db:<model>/<primary key>
    web:<signature>/<address>     rows:<token of a table>

An id is resolved anew with the identity of its caller, so it gives no access by itself. A page or
all rows of a table are read only for the caller to whom a search returned them, which the id
proves, a page through the guarded client. So the server cannot be used as an open proxy.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio

from groundhook.core.errors import (
    ConfigError,
    IngestError,
    NotPermitted,
    SourceError,
    StorageError,
    UnknownName,
    UsageError,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.tool_ports import Collections
from groundhook.core.types.collection_queries import CollectionMatch, CollectionQuery
from groundhook.core.types.search import Item, LongTable, SearchResult, SearchType
from groundhook.core.types.tables import Exported, long_tables
from groundhook.core.unseen import clean
from groundhook.host.app.host import Host
from groundhook.host.output.csv_text import csv_text
from groundhook.host.output.dialects.places import address
from groundhook.host.search.searcher import run_all
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.values import (
    LONGEST_ID,
    MOST_RESULTS,
    FetchedDocument,
    FoundPassage,
    FoundSource,
)
from groundhook.host.server.reading import read_record, reading_scope, record_title, shown_fields
from groundhook.host.server.whole_tables import WholeTables

log = logging.getLogger("groundhook.server")

PAGE = 100  # resources of one listing
_AT_ONCE = 4  # sources that are read, or searched, at a time
_LONGEST_CURSOR = 2 * LONGEST_ID  # characters, of which JSON escapes some
_PURPOSE = "mcp-web"  # of signatures
LONGEST_CSV = 200_000  # characters of all rows of a table


class Unavailable(SourceError):
    """A source exists and cannot be read now. The message is shown to clients."""


@dataclass(frozen=True, kw_only=True)
class McpSources:
    """The sources of one server. `public_url` is the address of the HTTP server, for links; "" if
    there is none."""

    host: Host
    secret: Secret
    public_url: str = ""

    # ---- finding

    async def search(self, query: str, caller: McpCaller) -> tuple[list[FoundSource], list[str]]:
        """Search the collections, and what the assistants search before each answer: databases and
        the web. Returns the best results of all, each document once, and a sentence for each search
        that failed or did not understand the query whole. Raises Unavailable if nothing was found
        and a search failed, Refused above the limits of the caller."""
        passages, failed = await self._passages(
            query, caller, caller.collections(self.host), limit=MOST_RESULTS
        )
        found: list[tuple[float, FoundSource]] = [(one.score, _drop_text(one)) for one in passages]
        notes: list[str] = []
        if self.searches_web(caller):
            await caller.count_call()
        with unwrap_exception_groups():
            results = await run_all(
                [
                    partial(self._searched, type, query, caller, assistant)
                    for type, assistant in caller.searches(self.host)
                ],
                at_once=_AT_ONCE,
            )
        for answer in results:
            if answer.error is not None:
                failed.append(f"the search of type {answer.type} failed")
            elif answer.explanation:
                notes.append(answer.explanation)
            found += self._found_in(answer, caller)
        if failed and not found:
            raise Unavailable("; ".join(dict.fromkeys(failed)))
        best: dict[str, FoundSource] = {}
        for _, result in sorted(found, key=lambda pair: -pair[0]):
            best.setdefault(result.id, result)
        return list(best.values())[:MOST_RESULTS], list(dict.fromkeys([*failed, *notes]))

    def _found_in(
        self, answer: SearchResult, caller: McpCaller
    ) -> Iterator[tuple[float, FoundSource]]:
        """Yield the items of a result, and all rows of its long tables, each with its score."""
        for item in answer.items:
            if id := self._id(item, caller):
                title = clean(item.title) or id
                yield item.score, FoundSource(id=id, title=title, url=self._linked(item))
        best = max((item.score for item in answer.items), default=0.0)
        for table in long_tables(answer.items):
            if id := self.rows_id(table, caller):
                yield best, FoundSource(id=id, title=whole_title(table), url="")

    async def passages(
        self,
        query: str,
        caller: McpCaller,
        *,
        collections: Sequence[str] = (),
        filter: Mapping[str, Any] | None = None,
        limit: int,
    ) -> tuple[list[FoundPassage], list[str]]:
        """Search collections; none given: all that the caller reaches. Returns the best passage of
        each document with its score, and a sentence for each search that failed. Raises UnknownName
        for a collection, UsageError for a wrong filter, Unavailable if nothing was found and a
        search failed."""
        known = caller.collections(self.host)
        for name in collections:
            if name not in known:
                raise UnknownName("collection", name, known)
        found, failed = await self._passages(
            query, caller, collections or known, filter=filter, limit=limit
        )
        if failed and not found:
            raise Unavailable("; ".join(failed))
        return found, failed

    async def _passages(
        self,
        query: str,
        caller: McpCaller,
        names: Sequence[str],
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int,
    ) -> tuple[list[FoundPassage], list[str]]:
        """Return the best passages of collections, and a sentence for each search that failed.
        Raises UsageError."""
        reached = self._reached(caller)
        failed: list[str] = []

        async def of(name: str) -> Sequence[CollectionMatch]:
            wanted = CollectionQuery(collection=name, text=query, filter=filter, limit=limit)
            try:
                return await self._matches(wanted, reached)
            except (SourceError, StorageError, ConfigError) as exc:
                log.warning("the collection %r is not searched: %s", name, exc.message)
                failed.append(f"the search of the collection {name!r} failed")
            return ()

        with unwrap_exception_groups():
            found = await run_all([partial(of, name) for name in names], at_once=_AT_ONCE)
        best = sorted((match for each in found for match in each), key=lambda match: -match.score)
        passages = [
            FoundPassage(
                **self._result(match).model_dump(),
                text=clean(match.passage),
                score=match.score,
                metadata=dict(match.fields),
            )
            for match in best[:limit]
        ]
        return passages, sorted(failed)

    async def listed(self, caller: McpCaller, cursor: str) -> tuple[list[FoundSource], str]:
        """Return a page of the documents that the identity may read, by collection and id, and the
        cursor of the next page ("": none). Raises UsageError for a wrong cursor."""
        collection, last = _place_of(cursor)
        reached = self._reached(caller)
        names = [name for name in caller.collections(self.host) if name >= collection]
        for name in names:
            after = last if name == collection else ""
            query = CollectionQuery(collection=name, limit=PAGE + 1, after=after)
            try:
                found = await self._matches(query, reached)
            except (SourceError, StorageError, ConfigError) as exc:
                log.warning("the documents of %r are not listed: %s", name, exc.message)
                continue
            if page := sorted(found, key=lambda match: match.id)[:PAGE]:
                is_last = name == names[-1] and len(page) == len(found)
                following = "" if is_last else json.dumps([name, page[-1].id], ensure_ascii=False)
                return [self._result(match) for match in page], following
        return [], ""

    def searches_web(self, caller: McpCaller) -> bool:
        """Return whether a search may reach the web."""
        return any(type == "web" for type, _ in caller.searches(self.host))

    # ---- reading

    async def fetch(self, id: str, caller: McpCaller) -> FetchedDocument:
        """Return the whole text of the source with this id. Raises UnknownName, with the same
        message for a source that does not exist and for one that the identity may not see;
        Unavailable for one that cannot be read, Refused above the limits of the caller."""
        try:
            return await self._fetched(id, caller)
        except (SourceError, StorageError, ConfigError) as exc:
            if isinstance(exc, Unavailable):
                raise
            log.warning("a source for an MCP client could not be read: %s", exc.message)
            raise Unavailable("the source could not be read") from exc

    async def _fetched(self, id: str, caller: McpCaller) -> FetchedDocument:
        kind, _, rest = id.partition(":")
        place, _, name = rest.partition("/")
        if kind == "kb":
            return await self._document(id, place, name, caller)
        if kind == "db":
            return await self._record(id, place, name, caller)
        if kind == "web":
            return await self._page(id, place, name, caller)
        if kind == "rows":
            return await self._rows(id, rest, caller)
        raise _missing("document", id)

    async def fetch_all(
        self, ids: Sequence[str], caller: McpCaller
    ) -> tuple[list[FetchedDocument], list[str], list[str]]:
        """Return the sources with these ids, in their order, the ids of those that cannot be read,
        and a sentence for each of these that may be read later."""
        found: dict[str, FetchedDocument] = {}
        failed: dict[str, str] = {}
        few = anyio.CapacityLimiter(_AT_ONCE)

        async def read(id: str) -> None:
            async with few:
                try:
                    found[id] = await self.fetch(id, caller)
                except UnknownName:
                    return
                except Unavailable as exc:
                    failed[id] = f"{id[:200]}: {exc.message}"

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                for id in dict.fromkeys(ids):
                    tasks.start_soon(read, id)
        missing = [id for id in ids if id not in found]
        return [found[id] for id in ids if id in found], missing, [*failed.values()]

    async def _document(
        self, id: str, collection: str, document: str, caller: McpCaller
    ) -> FetchedDocument:
        if collection not in caller.collections(self.host) or not document:
            raise _missing("document", id)
        found = None
        for owner in self.host.owners_of(collection):
            with suppress(NotPermitted):
                read = await self._reached(caller).get(collection, [document], owner=owner)
                found = found or read.get(document)
        if found is None:
            raise _missing("document", id)
        item = Item(type="kb", url=found.url, collection=collection, document_id=document)
        return FetchedDocument(
            id=id,
            title=clean(found.title) or document,
            text=clean(found.text),
            url=self._linked(item),
            metadata=dict(found.fields),
        )

    async def _record(self, id: str, model: str, key: str, caller: McpCaller) -> FetchedDocument:
        if model not in caller.models(self.host):
            raise _missing("record", id)
        try:
            record = await read_record(self.host, model, key, caller.identity)
        except UnknownName as exc:
            raise _missing("record", id) from exc
        spec = self.host.app.models.named(model)
        shown = shown_fields(spec, record)
        return FetchedDocument(
            id=id,
            title=clean(record_title(spec, record)),
            text=clean("\n".join(f"{name}: {value}" for name, value in shown.items())),
            url=self._linked(Item(type="db", model=model, record_id=key)),
            metadata=record,
        )

    async def _rows(self, id: str, token: str, caller: McpCaller) -> FetchedDocument:
        try:
            found = await self._tables.read(token, caller.identity)
        except UnknownName as exc:
            raise _missing("table", id) from exc
        return await anyio.to_thread.run_sync(_csv_document, id, found)

    async def _page(
        self, id: str, signature: str, address: str, caller: McpCaller
    ) -> FetchedDocument:
        readers = [one for type, one in caller.searches(self.host) if type == "web"]
        if not readers or not self.secret.is_signature(
            _PURPOSE, _offer(address, caller), signature
        ):
            raise _missing("page", id)
        await caller.count_call()
        for reader in readers:  # each may have hosts of its own
            scope = reading_scope(self.host, caller.identity, self.host.settings(reader))
            with suppress(NotPermitted, SourceError, IngestError):
                page = await self.host.sources.fetch_page(address, scope)
                return FetchedDocument(
                    id=id,
                    title=page.title,
                    text=page.content,
                    url=address,
                    metadata={"published": page.published} if page.published else {},
                )
        raise Unavailable("the page could not be read")

    async def _searched(
        self, type: SearchType, query: str, caller: McpCaller, assistant: str
    ) -> SearchResult:
        request = {"type": type, "query": query, "limit": MOST_RESULTS}
        return await self.host.search(request, identity=caller.identity, assistant=assistant)

    async def _matches(
        self, query: CollectionQuery, reached: Collections
    ) -> Sequence[CollectionMatch]:
        """Return what the caller owns of a collection, or shares with its tenant, team or user;
        nothing where it may see nothing."""
        found: dict[str, CollectionMatch] = {}
        for owner in self.host.owners_of(query.collection):
            with suppress(NotPermitted):
                [answer] = await reached.find([replace(query, owner=owner)])
                for match in answer.matches:
                    found.setdefault(match.id, match)
        return list(found.values())

    def _reached(self, caller: McpCaller) -> Collections:
        return self.host.collections(identity=caller.identity, assistant=caller.assistant or None)

    # ---- ids and links

    def _id(self, item: Item, caller: McpCaller) -> str:
        """Return the id of a record or a page; "" for a result that has none, such as figures."""
        if item.type == "db" and item.model and item.record_id is not None:
            id = f"db:{item.model}/{item.record_id}"
        elif item.type == "web" and item.url:
            signature = self.secret.signature(_PURPOSE, _offer(item.url, caller))
            id = f"web:{signature}/{item.url}"
        else:
            return ""
        return id if len(id) <= LONGEST_ID else ""

    def rows_id(self, table: LongTable, caller: McpCaller) -> str:
        """Return the id of all rows of a table for a caller; "" for a query that is too long."""
        id = f"rows:{self._tables.token(table, caller.identity)}"
        return id if len(id) <= LONGEST_ID else ""

    @property
    def _tables(self) -> WholeTables:
        return WholeTables(self.host, self.secret)

    def _result(self, match: CollectionMatch) -> FoundSource:
        item = Item(type="kb", url=match.url, collection=match.collection, document_id=match.id)
        return FoundSource(
            id=f"kb:{match.collection}/{match.id}",
            title=clean(match.title) or match.id,
            url=self._linked(item),
        )

    def _linked(self, item: Item) -> str:
        """Return the address of a source; "" for one of the server's own when the server has no
        address."""
        found = address(item, self.public_url)
        return found if found == item.url or self.public_url else ""


def _drop_text(passage: FoundPassage) -> FoundSource:
    return FoundSource(id=passage.id, title=passage.title, url=passage.url)


def whole_title(table: LongTable) -> str:
    """Return the title of all rows of a table."""
    least = "at least " if table.total_is == "at_least" else ""
    return f"All {least}{table.total} rows of {clean(table.name)} (CSV)"


def _csv_document(id: str, found: Exported) -> FetchedDocument:
    """Return rows as CSV, as many as a model may read."""
    rows = len(found.rows)
    while len(text := csv_text(found.columns, found.rows[:rows])) > LONGEST_CSV and rows > 1:
        rows = max(1, min(rows - 1, rows * LONGEST_CSV // len(text)))
    return FetchedDocument(
        id=id,
        title=f"{rows} of {found.total} rows",
        text=text,
        url="",
        metadata={"rows": rows, "total": found.total, "total_is": found.total_is},
    )


def _offer(address: str, caller: McpCaller) -> str:
    """Return the text that the signature of a page signs: its address, and the caller to whom it
    was returned."""
    who = caller.identity
    return json.dumps([who.tenant_id, who.team_id, who.user_id, address])


def _missing(noun: str, id: str) -> UnknownName:
    return UnknownName(noun, id, [], hint="use an id that search returned")


def _place_of(cursor: str) -> tuple[str, str]:
    """Return the collection and the id of the last document before a page."""
    if len(cursor) <= _LONGEST_CURSOR:
        with suppress(NotJson):
            match read_json(cursor or '["", ""]'):
                case [str(collection), str(last)]:
                    return collection, last
    raise UsageError("wrong cursor", hint="use the one of the last page")
