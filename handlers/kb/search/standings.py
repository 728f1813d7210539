"""Reads from a store's answer where its passages stand in each ranking. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.standings import Standing, Standings
from groundhook.handlers.kb.embed import guesses
from groundhook.handlers.kb.search.items import passage_item
from groundhook.handlers.kb.store.port import VectorAnswer


def standings_of(spec: CollectionSpec, answer: VectorAnswer, embedder: Embedder) -> Standings:
    """Return the standings of an answer's passages."""
    hits = answer.hits
    by_meaning = _places({n: hit.cosine for n, hit in enumerate(hits)})
    by_words = _places({n: hit.words for n, hit in enumerate(hits) if hit.words > 0})
    return Standings(
        passages=tuple(
            Standing(
                key=(item := passage_item(spec, hit, 0.0)).key,
                document=hit.document,
                title=item.title,
                content=hit.content,
                start=hit.start,
                end=hit.end,
                place=n + 1,
                meaning=round(embedder.similarity(hit.cosine), 6),
                meaning_place=by_meaning[n],
                words=round(hit.words, 3),
                words_place=by_words.get(n, 0),
            )
            for n, hit in enumerate(hits)
        ),
        by_words=answer.lexical == "used",
        guessed=guesses(embedder),
    )


def _places(scores: Mapping[int, float]) -> dict[int, int]:
    """Return the place of each passage by its score, from 1; equal ones keep their order."""
    order = sorted(scores, key=lambda n: -scores[n])
    return {n: place for place, n in enumerate(order, 1)}
