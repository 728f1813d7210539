"""What a walk through the graph adds to a search: where the passages that it reached stand among
those that were found, and which entities are told. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

from groundhook.handlers.kb.graph.walk import Graph, Vector
from groundhook.host.core.types.search import GraphNode

T = TypeVar("T")

# Chosen with bench.graph on the first twenty questions of bench/graph_questions, and on questions
# about these pages, which lost with HEAD = 2 (of 50, 45 sections among the first three, without the
# graph and with 3 there are 47).
HEAD = 3  # places that what the search found keeps, whatever the walk says
RANK = 5  # added to ranks, so that a first place does not count for everything
# Weight of the walk's ranking beside the search's, and where the question names nothing that a
# document is about: then what the walk reaches fills places that are free, since the search alone
# was better (abstracts of SciFact: nDCG@10 .919, with 4 .900).
WALKED, UNNAMED = 8.0, 0.0
QUESTION, HITS = (
    1.0,
    0.3,
)  # share in the start of the walk: of the question's entities, of the passages that were found
STARTS = 10  # passages that the walk starts from
REACHED = 20  # passages that the walk may bring, before they are compared with the question
TOLD = 20  # entities in a result
_SMALLEST = 0.01  # of the best entity's score


def seeds(graph: Graph, named: Sequence[str], found: Sequence[tuple[str, str]]) -> dict[int, float]:
    """Where the walk begins: at the entities that the question names, rare ones above all, and at
    the passages that were found (document, passage), the best above all."""
    start: dict[int, float] = {}
    entities = [graph.node_of[key] for key in named if key in graph.node_of]
    rarity = sum(float(graph.rarity[node]) for node in entities)
    for node in entities:
        start[node] = QUESTION * float(graph.rarity[node]) / rarity
    nodes = [graph.passage_nodes[place] for place in found[:STARTS] if place in graph.passage_nodes]
    weights = [1 / rank**2 for rank in range(1, len(nodes) + 1)]
    for node, weight in zip(nodes, weights, strict=True):
        start[node] = start.get(node, 0.0) + HITS * weight / sum(weights)
    return start


def ordered(
    found: Sequence[T],
    reached: Sequence[T],
    walked: Mapping[T, int],
    *,
    limit: int,
    weight: float = WALKED,
) -> list[T]:
    """Both lists as one, at most `limit` long: the first places as they were found, then by the sum
    of the reciprocal ranks of the search and, with `weight`, of the walk (`walked`: rank from 1).
    Equal ones keep the order of the search; of what was found, the better half of `limit` stays."""
    rank = {one: place for place, one in enumerate(found, 1)}
    last = max(walked.values(), default=0) + 1

    def score(one: T) -> float:
        by_search = 1 / (RANK + rank[one]) if one in rank else 0.0
        return by_search + weight / (RANK + walked.get(one, last))

    rest = [*found[HEAD:], *(one for one in reached if one not in rank)]
    order = [
        *found[:HEAD],
        *sorted(rest, key=lambda one: (-score(one), rank.get(one, len(rank) + 1))),
    ]
    kept = set(found[: limit // 2])
    others = [one for one in order if one not in kept][: limit - len(kept)]
    kept.update(others)
    return [one for one in order if one in kept]


def nodes(
    collection: str, graph: Graph, scores: Vector, named: Sequence[str]
) -> tuple[GraphNode, ...]:
    """The entities that the walk was at most, best first, each with how it is related to one that
    the question names."""
    best = sorted(
        range(graph.first_passage),
        key=lambda node: (-float(scores[node]), graph.entities[node].key),
    )[:TOLD]
    top = float(scores[best[0]]) if best else 0.0
    asked = [graph.node_of[key] for key in named if key in graph.node_of]
    return tuple(
        GraphNode(
            id=node_id(collection, graph.entities[node].key),
            type=graph.entities[node].kind,
            name=graph.entities[node].name,
            description=graph.entities[node].description,
            relation=_relation(graph, node, asked),
            score=round(float(scores[node]) / top, 4),
            metadata={"collection": collection, "passages": graph.entities[node].passages},
        )
        for node in best
        if top > 0 and float(scores[node]) >= _SMALLEST * top
    )


def node_id(collection: str, key: str) -> str:
    """The same entity of a collection has the same id in every search."""
    return hashlib.blake2b(
        f"{collection}\0{key}".encode(errors="replace"), digest_size=6
    ).hexdigest()


def _relation(graph: Graph, node: int, asked: Sequence[int]) -> str:
    """In words: how a passage relates the entity to one of the question, or that it does."""
    if node in asked:
        return "named in the question"
    for other in asked:
        if (other, node) in graph.words:
            return f"{graph.entities[other].name}: {graph.words[other, node]}"
        if (node, other) in graph.words:
            return f"{graph.words[node, other]} {graph.entities[other].name}"
    for other in asked:
        if node in graph.neighbours(other):
            return f"mentioned with {graph.entities[other].name}"
    return "in the passages that were found"
