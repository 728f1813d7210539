"""Reranking by a language model, an assistant or an MCP tool: `search.rerank` with the type `agent`
or `mcp`, and `uses.rerank`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from groundhook.core.addresses import shared
from groundhook.core.errors import DelegateError, RerankError, UnknownName
from groundhook.core.extras import reranker_hint
from groundhook.core.ports import Ranked, Scope
from groundhook.core.settings import RerankSettings
from groundhook.core.types.delegation import (
    RankedEntry,
    RerankAnswer,
    RerankAsk,
    RerankEntry,
)
from groundhook.core.types.search import Item
from groundhook.core.types.uses import RERANK
from groundhook.rerankers.judgement import rank_by_order, rank_by_scores, text_of

DEFAULT_MAX_CHARS = 2000  # of an item's text, unless `search.rerank.max_chars` is set
_TIMEOUT = "search.rerank.timeout_ms"


@dataclass(frozen=True)
class DelegatedReranker:
    """A `core.ports.Reranker` that calls the assistant, model (`connector:<id>` in place of an
    assistant) or tool named in `options`. If the
    answer has a score of its own for each of its items, the scores are used as they are; otherwise
    the answer is an order, and the scores are chosen to produce that order."""

    kind: Literal["agent", "mcp"]

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        delegate = self._delegate_name(options)
        positions = _positions(items)

        def wrong(answer: RerankAnswer) -> str:
            if any(_position(entry, positions, len(items)) is not None for entry in answer.items):
                return ""
            return "it names no item of the request; name items by their citation_id"

        request = RerankAsk(
            query=query,
            items=_entries(items, options.max_chars or DEFAULT_MAX_CHARS),
            top_n=options.top_k,
        )
        ask = scope.delegates.ask
        try:
            answer = await ask(
                RERANK, delegate, request, timeout_ms=options.timeout_ms, hint=_TIMEOUT, wrong=wrong
            )
        except DelegateError as exc:
            if isinstance(unknown := exc.__cause__, UnknownName) and unknown.name == delegate:
                raise RerankError(
                    f"no reranker or assistant {delegate!r}",
                    hint=reranker_hint(delegate, unknown.hint),
                ) from exc
            raise RerankError(exc.message, hint=exc.hint) from exc
        return ranking(answer, items)

    def _delegate_name(self, options: RerankSettings) -> str:
        if self.kind == "mcp":
            if options.mcp:
                return f"mcp:{options.mcp.removeprefix('mcp:')}"
        elif options.agent:
            return options.agent
        raise RerankError(
            f"search.rerank.type is {self.kind!r}, but search.rerank.{self.kind} is not set",
            hint=f"set search.rerank.{self.kind}",
        )


def ranking(answer: RerankAnswer, items: Sequence[Item]) -> list[Ranked]:
    """Return the rank scores of `items` in an answer. Items that it does not name are omitted, and
    names of unknown items are ignored."""
    positions = _positions(items)
    named = [
        (place, entry.score)
        for entry in answer.items
        if (place := _position(entry, positions, len(items))) is not None
    ]
    scores = [(place, score) for place, score in named if score is not None]
    # Entries of the request that were only sorted still have the scores from before.
    sorted_only = all(score == items[place].score for place, score in scores)
    return (
        rank_by_scores(scores, len(items))
        if len(scores) == len(named) and not sorted_only
        else rank_by_order((place for place, _ in named), items)
    )


def _entries(items: Sequence[Item], max_chars: int) -> tuple[RerankEntry, ...]:
    return tuple(
        RerankEntry(
            citation_id=item.citation_id,
            type=item.type,
            title=item.title,
            content=text_of(item, max_chars),
            url=shared(item.url),
            score=item.score,
            weight=item.weight,
        )
        for item in items
    )


def _positions(items: Sequence[Item]) -> Mapping[str, int]:
    """Return the position of each item by its citation id, as it is and without punctuation: models
    often drop the characters around an id."""
    positions = {item.citation_id: index for index, item in enumerate(items)}
    for index, item in enumerate(items):
        positions.setdefault(_strip_id(item.citation_id), index)
    return positions


def _position(entry: RankedEntry, positions: Mapping[str, int], count: int) -> int | None:
    """Return the position of the item that an entry names by id or index; None if unknown."""
    if entry.citation_id:
        return positions.get(entry.citation_id, positions.get(_strip_id(entry.citation_id)))
    return entry.index if entry.index is not None and 0 <= entry.index < count else None


def _strip_id(marker: str) -> str:
    """Return a citation id without its punctuation: `#ref:k3x9` → `k3x9`."""
    name = marker.rstrip("])}> ")
    cut = max(name.rfind(sign) for sign in ":[#({< ")
    return name[cut + 1 :]
