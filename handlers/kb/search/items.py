"""Converts the answers of a store to items of a search. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.ports import Embedder
from groundhook.core.types.base import unvalidated
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.search import Extent, Item, Sentences
from groundhook.handlers.kb.ranking import fusion, passage
from groundhook.handlers.kb.store.points import HEADINGS
from groundhook.handlers.kb.store.port import Hit, MatchingDocument, VectorAnswer

# Items are made without validation, since a store's values have the right types: validating ten
# items takes as long as everything else in a search outside the store.
_ITEM = vars(Item(type="kb"))
_ITEM_SET = {
    "type",
    "key",
    "title",
    "content",
    "url",
    "score",
    "document_id",
    "collection",
    "extent",
    "data",
}
_EXTENT_SET = {"start", "end"}


def answer_items(
    spec: CollectionSpec, answer: VectorAnswer, embedder: Embedder, *, descending: bool = True
) -> tuple[Item, ...]:
    """Return the items of an answer. Their scores are their similarities; if `descending`, scores
    are raised so that none is below the one after it."""
    scores = [embedder.similarity(hit.cosine) for hit in answer.hits]
    if descending:
        scores = fusion.descending_scores(scores)
    return tuple(
        [passage_item(spec, hit, score) for hit, score in zip(answer.hits, scores, strict=True)]
    )


def cut_to_quotes(
    items: Sequence[Item], query: str, language: str, tokens: int
) -> tuple[Item, ...]:
    """Return the items with the part of their passages that answers the query as their content."""
    parts = passage.parts([item.content for item in items], query, language, tokens)
    return tuple(
        [
            item if part is None else _cut_to_part(item, part)
            for item, part in zip(items, parts, strict=True)
        ]
    )


def _cut_to_part(item: Item, part: passage.PassagePart) -> Item:
    assert item.extent is not None
    # The header of a table that continues in this passage: it is part of the content, and not of
    # the extent.
    repeated = len(item.content) - (item.extent.end - item.extent.start)
    begin = item.extent.start - repeated
    start = max(item.extent.start, begin + part.start)
    sentences = {"first": part.first, "last": part.last, "of": part.of}
    extent = {
        "start": start,
        "end": max(start, begin + part.end),
        "sentences": unvalidated(Sentences, sentences, set(sentences)),
    }
    content = {
        "content": part.text(item.content),
        "extent": unvalidated(Extent, extent, set(extent)),
    }
    return unvalidated(Item, {**vars(item), **content}, item.model_fields_set)


def document_item(spec: CollectionSpec, document: MatchingDocument) -> Item:
    """Return an item for a whole document, without its text."""
    return Item(
        type="kb",
        key=f"kb:{spec.id}/{document.document}",
        title=document.title,
        url=document.url,
        score=1.0,
        document_id=document.document,
        collection=spec.id,
        data=dict(document.fields) or None,
    )


def passage_item(spec: CollectionSpec, hit: Hit, score: float) -> Item:
    """Return an item for a passage."""
    page = f"#page={hit.page}" if hit.page and hit.url else ""
    fields = {
        **_ITEM,
        "key": f"kb:{spec.id}/{hit.document}#{hit.passage}",
        "title": (
            f"{hit.title}{HEADINGS}{hit.heading}"
            if hit.title and hit.heading
            else hit.title or hit.heading
        ),
        "content": hit.content,
        "url": hit.url + page,
        "score": score,
        "document_id": hit.document,
        "collection": spec.id,
        "extent": unvalidated(
            Extent, {"start": hit.start, "end": hit.end, "sentences": None}, _EXTENT_SET
        ),
        "data": dict(hit.fields) or None,
    }
    return unvalidated(Item, fields, _ITEM_SET)
