"""What a collection is about, for a model that writes search words: its description, the titles of
its documents and the headings in them. Everything comes from documents that the search itself may
find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.delegation import Outline
from groundhook.core.types.filters import Filter
from groundhook.handlers.kb.store.points import HEADINGS
from groundhook.handlers.kb.store.port import DocumentRecord, VectorStore

MOST_DOCUMENTS = 2000  # of a larger collection nothing is listed
MOST_READ = 3000  # passages whose headings are read
LONGEST = 8000  # characters of all headings
_LONGEST_HEADING = 80
_LEVELS = 2  # of headings, below the title


async def read_outline(
    store: VectorStore, spec: CollectionSpec, tenant: str | None, filter: Filter | None
) -> Outline | None:
    """Return the outline of what one tenant may see; None if that is nothing. Raises
    StorageError."""
    documents_seen = await store.count(spec.id, tenant, filter)
    if not documents_seen:
        return None
    headings: list[str] = []
    if documents_seen <= MOST_DOCUMENTS:
        documents = await store.matching_documents(spec.id, tenant, filter)
        ids = [each.document for each in documents]
        records = await store.document_records(spec.id, tenant, ids)
        read = await store.passages(spec.id, tenant, dict.fromkeys(_few(records)))
        titles = [each.title or each.document for each in documents]
        inner = [list(_inner(hit.heading for hit in read.get(id, ()))) for id in ids]
        headings = _shortened(titles, inner)
    return Outline(
        name=spec.name or spec.id, description=spec.description, headings=tuple(headings)
    )


def _few(documents: Iterable[DocumentRecord]) -> Iterator[str]:
    """Yield the ids of documents as long as their passages are few enough to be read."""
    left = MOST_READ
    for each in documents:
        left -= each.chunks
        if left < 0:
            return
        yield each.document


def _inner(headings: Iterable[str]) -> Iterator[str]:
    """Yield each heading below a title once, without deeper ones."""
    seen = dict.fromkeys(
        HEADINGS.join(part[:_LONGEST_HEADING] for part in heading.split(HEADINGS)[:_LEVELS])
        for heading in headings
    )
    yield from filter(None, seen)


def _shortened(titles: Sequence[str], inner: Sequence[Sequence[str]]) -> list[str]:
    """Return the titles, then one heading of each document after the other, up to the limit."""
    turns = (heading for turn in zip_longest(*inner) for heading in turn if heading)
    kept, left = [], LONGEST
    for heading in dict.fromkeys([*(title[:_LONGEST_HEADING] for title in titles), *turns]):
        left -= len(heading)
        if left < 0:
            break
        kept.append(heading)
    return kept
