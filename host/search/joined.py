"""Joins several sources of one search type into one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from groundhook.core.errors import HostError, SourceNotConfigured
from groundhook.core.ports import ChoosesRequests, Handler, Scope, SourceResult
from groundhook.core.types.search import Item, SearchAccount, SearchRequest
from groundhook.host.search.certainty import ORDER
from groundhook.host.search.searcher import run_all


class Joined:
    """A `Handler` that searches all of its sources at the same time. Items are ordered by score; at
    equal scores, and of items with one key, those of the earlier source come first. A source that
    fails is a warning unless all fail; one that does not take the search is left out."""

    def __init__(self, sources: Mapping[str, Handler]) -> None:
        self._sources = sources

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return the items of all sources as one result. Raises the SourceError of the first source
        if all fail, SourceNotConfigured if none takes the search."""
        answers = await run_all(
            [partial(_attempt, source, request, scope) for source in self._sources.values()]
        )
        if all(answer is None for answer in answers):
            names = ", ".join(self._sources)
            raise SourceNotConfigured(
                f"no source takes this {request.type} search", hint=f"asked: {names}"
            )
        found = [answer for answer in answers if isinstance(answer, SourceResult)]
        failed = {
            name: answer
            for name, answer in zip(self._sources, answers, strict=True)
            if isinstance(answer, HostError)
        }
        if not found:
            raise next(iter(failed.values()))
        for name, error in failed.items():
            await scope.warn(error.code, f"the search source {name!r} failed: {error}")
        return _merge(found, request.limit)


async def _attempt(
    source: Handler, request: SearchRequest, scope: Scope
) -> SourceResult | HostError | None:
    """Return what a source found, or its error; None if it does not take the search."""
    try:
        if isinstance(source, ChoosesRequests) and not source.can_handle(request, scope):
            return None
        return await source.search(request, scope)
    except HostError as exc:
        return exc


def _merge(found: list[SourceResult], limit: int | None) -> SourceResult:
    items: list[Item] = []
    keys: set[str] = set()
    # `sorted` is stable: at equal scores the items of the earlier source come first.
    for item in sorted((item for each in found for item in each.items), key=_score, reverse=True):
        # An item without a key gets one when it is cited; until then it cannot be compared.
        if not item.key or item.key not in keys:
            items.append(item)
            keys.add(item.key)
    # Facets, related nodes and queries of several sources cannot be added up: the first source has
    # them.
    first = found[0]
    return SourceResult(
        items=tuple(items[:limit]),
        total=sum(len(each.items) if each.total is None else each.total for each in found),
        total_is="exact" if all(each.total_is == "exact" for each in found) else "at_least",
        provider=", ".join(each.provider for each in found if each.provider),
        facets=first.facets,
        graph_nodes=first.graph_nodes,
        dsl=first.dsl,
        account=_best_account(found),
    )


def _best_account(found: list[SourceResult]) -> SearchAccount:
    """Return the account of the source that is the most certain: the merged items begin there."""
    return min((each.account for each in found), key=lambda each: ORDER.index(each.certainty))


def _score(item: Item) -> float:
    return item.score
