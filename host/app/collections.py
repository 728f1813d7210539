"""The collections of a toolkit: `core.tool_ports.Collections` over the knowledge base, bound
to an identity and to the names of one assistant, or to a sync.

A document of a toolkit is stored like a row of a feed, under its raw id. The tenant of a document
is its owner (`partition`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from groundhook.core.errors import (
    ConfigError,
    NotPermitted,
    SourceNotConfigured,
    UsageError,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.trace import span
from groundhook.core.types.collection_queries import (
    CollectionAnswer,
    CollectionDocument,
    CollectionMatch,
    CollectionQuery,
    Owner,
    PutReport,
    partition,
)
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.filters import DOCUMENT
from groundhook.core.types.search import FacetCount, Item, KBOptions
from groundhook.host.app.exact_texts import same_letters
from groundhook.host.config.packages import App

if TYPE_CHECKING:
    from groundhook.handlers.kb.knowledge_base import KnowledgeBase
    from groundhook.host.app.exact_texts import ExactTexts


@dataclass(frozen=True)
class AppCollections:
    """The collections of an app for one toolkit. `assistant_id` is the assistant whose names count
    ("": the app's). Without a `scope` it is that of a sync: documents bring their tenant, and
    nothing is filtered by identity."""

    app: App
    knowledge_base: Callable[[], KnowledgeBase]
    texts: Callable[[], ExactTexts]
    assistant_id: str
    scope: Scope | None = None

    async def find(self, queries: Sequence[CollectionQuery], /) -> list[CollectionAnswer]:
        alike: dict[str, list[int]] = {}  # questions that differ only in their text
        for place, query in enumerate(queries):
            alike.setdefault(
                repr(replace(query, text="?" if query.text.strip() else "")), []
            ).append(place)
        answers: dict[int, CollectionAnswer] = {}

        async def answer(places: Sequence[int]) -> None:
            found = await self._find([queries[place] for place in places])
            answers.update(zip(places, found, strict=True))

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                for places in alike.values():
                    tasks.start_soon(answer, places)
        return [answers[place] for place in range(len(queries))]

    async def _find(self, queries: Sequence[CollectionQuery]) -> list[CollectionAnswer]:
        """Return the answers to questions that differ only in their text."""
        query = queries[0]
        spec = self._find_spec(query.collection)
        scope = self._make_scope(spec, query.owner)
        options = KBOptions(
            collections=(spec.id,),
            limit=query.limit,
            offset=query.offset or None,
            threshold=query.threshold,
            filter=dict(query.filter) if query.filter else None,
            facets=tuple(query.facets) or None,
            groups=1,
        )
        if not query.text.strip():  # a listing has no embedding, which `search_many` would compute
            return [await self._list_documents(query, options, scope)] * len(queries)
        texts = [each.text for each in queries]
        try:
            found = await self.knowledge_base().search_many(texts, options, scope)
        except NotPermitted:
            raise
        except SourceNotConfigured:
            if await self._count_all(options, scope):
                raise  # the key of an embedding service is missing
            return [CollectionAnswer(facets=_select_facets(query, None), filled=False)] * len(
                queries
            )
        return [await self._answer(query, options, each, scope) for each in found]

    async def _answer(
        self, query: CollectionQuery, options: KBOptions, found: SourceResult, scope: Scope
    ) -> CollectionAnswer:
        total = len(found.items) if found.total is None else found.total
        below = 0
        # Counting is a request of its own: only where a tool may have to explain a short answer.
        if query.threshold != 0 and found.total_is == "exact" and len(found.items) < query.limit:
            below = max(0, await self.knowledge_base().count(options, scope) - total)
        return CollectionAnswer(
            matches=tuple(_make_match(item) for item in found.items),
            total=total,
            total_is=found.total_is,
            below=below,
            facets=_select_facets(query, found.facets),
        )

    async def _list_documents(
        self, query: CollectionQuery, options: KBOptions, scope: Scope
    ) -> CollectionAnswer:
        """Return the documents that fulfil the filter, in the order of a field."""
        knowledge_base = self.knowledge_base()
        listed = await knowledge_base.matching_documents(options, scope)
        counted = await knowledge_base.facets(options, scope) if listed and query.facets else None
        rest = [_make_match(item) for item in listed if item.document_id > query.after]
        ordered = _sort_matches(rest, query.order_by)
        return CollectionAnswer(
            matches=tuple(ordered[query.offset : query.offset + query.limit]),
            total=len(listed),
            facets=_select_facets(query, counted),
            filled=bool(listed) or bool(await self._count_all(options, scope)),
        )

    async def _count_all(self, options: KBOptions, scope: Scope) -> int:
        every = options.model_copy(update={"filter": None})
        return await self.knowledge_base().count(every, scope)

    async def get(
        self, collection: str, ids: Sequence[str], /, *, owner: Owner = "tenant"
    ) -> dict[str, CollectionDocument]:
        spec = self._find_spec(collection)
        scope = self._make_scope(spec, owner)
        with span("documents", spec.id, ids=len(ids)) as node:
            wanted = list(dict.fromkeys(ids))
            found = await self.knowledge_base().fetch_documents(spec.id, wanted, scope)
            node.data["found"] = len(found)
        tenant = _get_tenant(spec, scope)
        exact = await self.texts().get(spec.id, tenant, wanted)
        if missing := [id for id in exact if id not in found]:
            # Stored since the first look, or removed by another program: a text comes after its
            # passages, so that a second look tells.
            late = await self.knowledge_base().fetch_documents(spec.id, missing, scope)
            await self.texts().remove(spec.id, tenant, [id for id in missing if id not in late])
            found = {**found, **late}
        return {
            id: _make_document(id, found[id].items, tenant, exact.get(id, ""))
            for id in wanted
            if id in found
        }

    async def count(
        self,
        collection: str,
        /,
        *,
        filter: Mapping[str, Any] | None = None,
        owner: Owner = "tenant",
        tenant: str = "",
    ) -> int:
        spec = self._find_spec(collection)
        if self.scope is None:
            return await self._count_of_sync(spec, filter or {}, tenant)
        options = KBOptions(collections=(spec.id,), filter=dict(filter) if filter else None)
        return await self.knowledge_base().count(options, self._make_scope(spec, owner))

    async def _count_of_sync(
        self, spec: CollectionSpec, filter: Mapping[str, Any], tenant: str
    ) -> int:
        """Count the documents of a tenant, or those of some ids."""
        tenant = tenant if spec.tenant_field else ""
        if not filter:
            listed = await self.knowledge_base().list_collections([spec.id], tenant=tenant or None)
            return len(listed[0].documents)
        if filter.keys() != {DOCUMENT}:
            raise UsageError(f"a sync counts documents only by {DOCUMENT!r}")
        ids = list(filter[DOCUMENT])
        return len(await self.knowledge_base().existing_ids(spec.id, ids, tenant=tenant))

    async def put(
        self,
        collection: str,
        documents: Sequence[CollectionDocument],
        /,
        *,
        owner: Owner = "tenant",
    ) -> PutReport:
        spec = self._find_spec(collection)
        if self.scope is not None:
            scope = self._make_scope(spec, owner)
            tenant = _get_tenant(spec, scope)
            documents = [replace(document, tenant=tenant) for document in documents]
        if not documents:
            return PutReport()
        failed = _find_unusable(documents)
        rows = [_make_row(spec, document) for document in documents if document.id not in failed]
        feed = io.BytesIO("\n".join(rows).encode("utf-8", "replace"))
        # `prune=False`: documents that are not in this call stay.
        report = await self.knowledge_base().add(spec.id, feed=feed, prune=False)
        failed |= {file.document: file.error for file in report.files if file.error}
        # After the passages: no text of a document that was not stored may remain.
        await self.texts().put(spec.id, [each for each in documents if each.id not in failed])
        return PutReport(
            added=report.counts.get("added", 0),
            replaced=report.counts.get("replaced", 0),
            unchanged=report.counts.get("unchanged", 0),
            failed=failed,
        )

    async def remove(
        self, collection: str, ids: Sequence[str], /, *, owner: Owner = "tenant", tenant: str = ""
    ) -> tuple[str, ...]:
        spec = self._find_spec(collection)
        if self.scope is not None:
            tenant = _get_tenant(spec, self._make_scope(spec, owner))
        tenant = tenant if spec.tenant_field else ""
        removed = await self.knowledge_base().remove(
            spec.id, list(ids), tenant=tenant, missing_ok=True
        )
        await self.texts().remove(spec.id, tenant, ids)
        return removed

    def _find_spec(self, name: str) -> CollectionSpec:
        return self.app.resolve_collection(self.assistant_id, name)

    def _make_scope(self, spec: CollectionSpec, owner: Owner) -> Scope:
        """Return the scope of the documents of an owner. Raises NotPermitted, ConfigError."""
        assert self.scope is not None, "a sync puts and removes documents, and reads none"
        return owned_scope(spec, owner, self.scope)


def owned_scope(spec: CollectionSpec, owner: Owner, scope: Scope) -> Scope:
    """Return the scope of the documents of an owner. Raises NotPermitted; ConfigError for a
    collection that does not keep teams or users apart."""
    # Imported here because the package of the knowledge base is loaded when it is first used.
    from groundhook.handlers.kb.access import permitted_tenant

    identity = scope.identity
    if owner in ("app", "tenant"):
        permitted_tenant(spec, identity)
        return scope
    if not spec.tenant_field:
        raise ConfigError(
            f"the collection {spec.id!r} does not separate the documents of each {owner}",
            hint="declare tenant_field in its .kb.yao",
        )
    # Without the field: the permission alone, since the tenant is replaced below.
    permitted_tenant(spec.model_copy(update={"tenant_field": ""}), identity)
    tenant = partition(identity, owner)
    if not tenant:
        raise NotPermitted(
            f"not permitted: collection {spec.id!r} separates the documents of each {owner}, and"
            " the request names none"
        )
    return replace(scope, partition=tenant)


def _get_tenant(spec: CollectionSpec, scope: Scope) -> str:
    """Return the value of the collection's `tenant_field` for the documents of a scope."""
    return (scope.partition or scope.identity.tenant_id) if spec.tenant_field else ""


def _select_facets(
    query: CollectionQuery, counted: Mapping[str, tuple[FacetCount, ...]] | None
) -> Mapping[str, tuple[FacetCount, ...]]:
    """Return the counts of each field that the question names."""
    return {name: (counted or {}).get(name, ()) for name in query.facets}


def _sort_matches(matches: list[CollectionMatch], order_by: str) -> list[CollectionMatch]:
    """Return the matches in the order of a field, `title` or `id`; those without a value last, and
    equal ones by id."""
    name, falling = order_by.removeprefix("-"), order_by.startswith("-")

    def value(match: CollectionMatch) -> Any:
        if name in ("id", "title"):
            return getattr(match, name)
        return match.fields.get(name)

    def key(match: CollectionMatch) -> tuple[bool, Any]:
        found = value(match)
        number = isinstance(found, (int, float))
        # Numbers before text: the two cannot be compared with each other.
        return (not number, found) if number else (True, str(found))

    by_id = sorted(matches, key=lambda match: match.id)
    there = [match for match in by_id if value(match) is not None]
    absent = [match for match in by_id if value(match) is None]
    return [*sorted(there, key=key, reverse=falling), *absent]


def _make_match(item: Item) -> CollectionMatch:
    return CollectionMatch(
        id=item.document_id,
        collection=item.collection,
        title=item.title,
        url=item.url,
        passage=item.content,
        score=item.score,
        fields=item.data or {},
    )


def _make_document(
    id: str, passages: Sequence[Item], tenant: str, exact: str
) -> CollectionDocument:
    """Return a document; `exact` is its text if it is still the same."""
    first, rebuilt = passages[0], _join_passages(passages)
    return CollectionDocument(
        id=id,
        text=exact if exact and same_letters(exact, rebuilt) else rebuilt,
        title=first.title,
        url=first.url,
        fields=first.data or {},
        tenant=tenant,
    )


def _join_passages(passages: Sequence[Item]) -> str:
    """Return the text of a document from its passages, which may overlap."""
    text, end = "", 0
    for item in passages:
        extent = item.extent
        if extent is None or not 0 < extent.end - extent.start <= len(item.content):
            text = f"{text}\n\n{item.content}" if text else item.content
            continue
        # Content that is longer than its extent begins with the repeated header of a table.
        own = item.content[len(item.content) - (extent.end - extent.start) :]
        missing = extent.start - end if text else 0
        text += own[-missing:] if missing < 0 else "\n" * missing + own
        end = extent.end
    return text


def _make_row(spec: CollectionSpec, document: CollectionDocument) -> str:
    # Imported here because the package of the knowledge base is loaded when it is first used.
    from groundhook.handlers.kb.reading.columns import ABOUT

    rows = spec.rows
    row: dict[str, Any] = {
        name: _without_nuls(value)
        if isinstance(value, str) and name in spec.fields and spec.fields[name].type == "text"
        else value
        for name, value in document.fields.items()
    }
    row[rows.id or "id"] = document.id
    row[rows.text[0] if rows.text else "content"] = _without_nuls(document.text)
    if document.title:
        row[rows.title or "title"] = _without_nuls(document.title)
    if document.url:
        row[rows.url or "url"] = document.url
    if spec.tenant_field:
        row[spec.tenant_field] = document.tenant
    if document.about:
        row[ABOUT] = _without_nuls(document.about)
    return json.dumps(row, ensure_ascii=False)


def _without_nuls(text: str) -> str:
    """Return the text as searches read it. In a row of a file many NUL characters are damage, which
    is refused; here they are what a program wrote, and the exact text is kept apart."""
    return text.replace("\0", " ")


def _find_unusable(documents: Sequence[CollectionDocument]) -> dict[str, str]:
    """Return the problems of documents that cannot be stored, by id."""
    wrong: dict[str, str] = {}
    for document in documents:
        if not document.id.strip():
            wrong[document.id] = "the document has no id"
        elif not document.text.strip():
            wrong[document.id] = "the document has no text"
    return wrong
