"""Collects what the collections of one search return, and merges it into one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from groundhook.handlers.kb.one_collection import MOST_VALUES, CollectionResult
from groundhook.handlers.kb.paging import COUNTED
from groundhook.handlers.kb.ranking import cross_collection
from groundhook.host.core.errors import HostError
from groundhook.host.core.ports import Scope, SourceResult
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.search import FacetCount, KBOptions, TotalIs


@dataclass
class SearchResults:
    """What the collections of one call return. Filled while they are searched."""

    # collection → a result for each question
    by_collection: dict[str, list[CollectionResult]] = field(default_factory=dict)
    # facet → value → documents, of all collections together
    facets: dict[str, Counter[Scalar]] = field(default_factory=dict)
    # collection → why it could not be searched
    errors: dict[str, HostError] = field(default_factory=dict)

    def add_counts(self, counts: Mapping[str, Sequence[tuple[Scalar, int]]]) -> None:
        """Add the counts of one collection: facet → (value, documents)."""
        for name, values in counts.items():
            self.facets.setdefault(name, Counter()).update(dict(values))

    async def report_errors(self, collections: Sequence[str], scope: Scope) -> None:
        """Warn of collections that could not be searched, in the order of `collections`. Raises the
        first error if none could be searched."""
        errors = [self.errors[id] for id in dict.fromkeys(collections) if id in self.errors]
        if errors and not self.by_collection:
            raise errors[0]
        await warn(scope, [(error.code, str(error)) for error in errors])

    async def facet_counts(self, scope: Scope) -> dict[str, tuple[FacetCount, ...]]:
        """Return the most frequent values of each facet. Warns of a facet with more values."""
        facets = {}
        for name, counts in self.facets.items():
            values = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
            if len(values) > MOST_VALUES:
                await scope.warn(
                    "facet_cut",
                    f"the facet {name!r} has more than {MOST_VALUES} values; the most frequent are"
                    " returned",
                )
            facets[name] = tuple(
                FacetCount(value=value, count=count) for value, count in values[:MOST_VALUES]
            )
        return facets


def merge_results(
    results: Sequence[tuple[tuple[str, str, int], CollectionResult]],
    options: KBOptions,
    limit: int,
    facets: Mapping[str, tuple[FacetCount, ...]] | None,
    *,
    is_merged: bool,
) -> SourceResult:
    """Return the results of collections for one question as one. Each is given with the embedding
    model that its similarities come from. `is_merged`: more than one collection was searched, even
    if only one of them has a result."""
    lists = [(embedded_by, one.items) for embedded_by, one in results if one.items]
    offset = options.offset or 0
    items = (
        cross_collection.page(lists, offset, limit)
        if offset and is_merged
        else cross_collection.merge(lists)
    )
    total = sum(one.total for _, one in results)
    exact = total <= COUNTED and all(one.total_is == "exact" for _, one in results)
    total_is: TotalIs = "exact" if exact else "at_least"
    nodes = sorted(
        (node for _, one in results for node in one.nodes), key=lambda node: (-node.score, node.id)
    )
    return SourceResult(
        items=items[: options.limit],
        total=min(total, COUNTED),
        total_is=total_is,
        below=sum(one.below for _, one in results),
        facets=facets,
        graph_nodes=tuple(nodes) if options.graph else None,
    )


async def warn(scope: Scope, warnings: Iterable[tuple[str, str]]) -> None:
    """Send warnings, given as (code, text)."""
    for code, text in warnings:
        await scope.warn(code, text)
