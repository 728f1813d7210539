"""What the collections of one search answered, and one result of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from groundhook.handlers.kb.one_collection import MOST_VALUES, Answered
from groundhook.handlers.kb.paging import COUNTED
from groundhook.handlers.kb.ranking import cross_collection
from groundhook.host.core.errors import HostError
from groundhook.host.core.ports import Found, Scope
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.search import FacetCount, KBOptions, TotalIs


@dataclass
class Gathered:
    """What the collections of one call answered: for each collection the answers to all
    questions, and the counts of each facet; and the errors of collections."""

    answers: dict[str, list[Answered]] = field(default_factory=dict)
    facets: dict[str, Counter[Scalar]] = field(default_factory=dict)
    problems: dict[str, HostError] = field(default_factory=dict)

    def add_counts(self, counts: Mapping[str, Sequence[tuple[Scalar, int]]]) -> None:
        """Add the counts of one collection: facet → (value, documents)."""
        for name, counted in counts.items():
            self.facets.setdefault(name, Counter()).update(dict(counted))

    async def report(
        self,
        options: KBOptions,
        scope: Scope,
        uncounted: Sequence[tuple[str, str]],
    ) -> None:
        """Warn of collections that could not answer; raise the first error if none could."""
        problems = [
            self.problems[id]
            for id in dict.fromkeys(options.collections or ())
            if id in self.problems
        ]
        if problems and not self.answers:
            raise problems[0]
        await warn(scope, [(problem.code, str(problem)) for problem in problems])
        await warn(scope, uncounted)

    async def counted(self, scope: Scope) -> dict[str, tuple[FacetCount, ...]]:
        """Return the most frequent values of each facet. Warns of a facet with more values."""
        counted = {}
        for name, counts in self.facets.items():
            values = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
            if len(values) > MOST_VALUES:
                await scope.warn(
                    "facet_cut",
                    f"the facet {name!r} has more than {MOST_VALUES} values; the most frequent are"
                    " returned",
                )
            counted[name] = tuple(
                FacetCount(value=value, count=count) for value, count in values[:MOST_VALUES]
            )
        return counted


def merged(
    answers: Sequence[tuple[tuple[str, str, int], Answered]],
    options: KBOptions,
    limit: int,
    facets: Mapping[str, tuple[FacetCount, ...]] | None,
    *,
    several: bool,
) -> Found:
    """Return what several collections answered to one question, as one result. Each answer comes
    with the embedding model of its similarities."""
    lists = [(embedded_by, one.items) for embedded_by, one in answers if one.items]
    offset = options.offset or 0
    items = (
        cross_collection.page(lists, offset, limit)
        if offset and several
        else cross_collection.merged(lists)
    )
    total = sum(one.total for _, one in answers)
    exact = total <= COUNTED and all(one.total_is == "exact" for _, one in answers)
    total_is: TotalIs = "exact" if exact else "at_least"
    nodes = sorted(
        (node for _, one in answers for node in one.nodes), key=lambda node: (-node.score, node.id)
    )
    return Found(
        items=items[: options.limit],
        total=min(total, COUNTED),
        total_is=total_is,
        below=sum(one.below for _, one in answers),
        facets=facets,
        graph_nodes=tuple(nodes) if options.graph else None,
    )


async def warn(scope: Scope, warnings: Iterable[tuple[str, str]]) -> None:
    for code, text in warnings:
        await scope.warn(code, text)
