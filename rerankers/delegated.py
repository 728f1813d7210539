"""Rerankers that are assistants or MCP tools: `search.rerank` with the type `agent` or `mcp`, and
`uses.rerank`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from groundhook.host.core.errors import DelegateError, RerankError
from groundhook.host.core.ports import Ranked, Scope
from groundhook.host.core.settings import RerankSettings
from groundhook.host.core.types.delegation import (
    RERANK,
    RankedEntry,
    RerankAnswer,
    RerankAsk,
    RerankEntry,
)
from groundhook.host.core.types.search import Item
from groundhook.rerankers.judgement import in_order, scored, text_of

LONGEST = 2000  # characters of an item, unless `search.rerank.max_chars` says otherwise
_TIMEOUT = "search.rerank.timeout_ms"


@dataclass(frozen=True)
class DelegatedReranker:
    """A `host.core.ports.Reranker` that asks whoever `options` names. An answer with a score for
    each of its items is multiplied in; any other is an order, and stands as it is."""

    kind: Literal["agent", "mcp"]

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        doer = self._doer(options)
        places = _places(items)

        def wrong(answer: RerankAnswer) -> str:
            if any(_place(entry, places, len(items)) is not None for entry in answer.items):
                return ""
            return "none of the items that it names was sent; name them by their citation_id"

        asked = RerankAsk(
            query=query, items=_entries(items, options.max_chars or LONGEST), top_n=options.top_k
        )
        ask = scope.delegates.ask
        try:
            answer = await ask(
                RERANK, doer, asked, timeout_ms=options.timeout_ms, hint=_TIMEOUT, wrong=wrong
            )
        except DelegateError as exc:
            raise RerankError(exc.message, hint=exc.hint) from exc
        return ranking(answer, items)

    def _doer(self, options: RerankSettings) -> str:
        if self.kind == "mcp":
            if options.mcp:
                return f"mcp:{options.mcp.removeprefix('mcp:')}"
        elif options.agent:
            return options.agent
        raise RerankError(
            f"search.rerank.type is {self.kind!r}, and there is no {self.kind!r} beside it",
            hint=f"set search.rerank.{self.kind}",
        )


def ranking(answer: RerankAnswer, items: Sequence[Item]) -> list[Ranked]:
    """What an answer says of these items; of those that it does not know, nothing."""
    places = _places(items)
    named = [
        (place, entry.score)
        for entry in answer.items
        if (place := _place(entry, places, len(items))) is not None
    ]
    scores = [(place, score) for place, score in named if score is not None]
    return (
        scored(scores, len(items))
        if len(scores) == len(named)
        else in_order((place for place, _ in named), items)
    )


def _entries(items: Sequence[Item], longest: int) -> tuple[RerankEntry, ...]:
    return tuple(
        RerankEntry(
            citation_id=item.citation_id,
            type=item.type,
            title=item.title,
            content=text_of(item, longest),
            url=item.url,
            score=item.score,
            weight=item.weight,
        )
        for item in items
    )


def _places(items: Sequence[Item]) -> Mapping[str, int]:
    """Where each item is, by its marker and by the letters and digits of it: models drop what
    stands around an id."""
    places = {item.citation_id: index for index, item in enumerate(items)}
    for index, item in enumerate(items):
        places.setdefault(_bare(item.citation_id), index)
    return places


def _place(entry: RankedEntry, places: Mapping[str, int], count: int) -> int | None:
    if entry.citation_id:
        return places.get(entry.citation_id, places.get(_bare(entry.citation_id)))
    return entry.index if entry.index is not None and 0 <= entry.index < count else None


def _bare(marker: str) -> str:
    """`#ref:k3x9` → `k3x9`"""
    name = marker.rstrip("])}> ")
    cut = max(name.rfind(sign) for sign in ":[#({< ")
    return name[cut + 1 :]
