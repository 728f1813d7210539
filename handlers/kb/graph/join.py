"""Combine a walk through the graph with a search: rank the passages of both, and list the entities.
Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

from groundhook.core.types.search import GraphNode
from groundhook.handlers.kb.graph.walk import Graph, Vector

T = TypeVar("T")

# Chosen with bench.graph on the first twenty questions of bench/graph_questions, and on 50
# questions about the docs: HEAD = 2 finds the right section among the first three for 45 of them,
# HEAD = 3 and a search without the graph for 47.
HEAD = 3  # first ranks that the search keeps, whatever the walk found
RANK = 5  # added to ranks, so that rank 1 does not dominate
# Weight of the walk's ranking relative to the search's, and the weight if the question names no
# subject of a document: then the walk only fills free ranks, since the search alone was better
# (abstracts of SciFact: nDCG@10 .919 with 0, .900 with 4).
WALKED, UNNAMED = 8.0, 0.0
# shares in the start of the walk: the question's entities, and the passages found
QUESTION, HITS = 1.0, 0.3
STARTS = 10  # passages that the walk starts from
REACHED = 20  # passages that the walk may add, before they are compared with the question
LISTED = 20  # entities in a result
_SMALLEST = 0.01  # of the best entity's score


def seeds(graph: Graph, named: Sequence[str], found: Sequence[tuple[str, str]]) -> dict[int, float]:
    """Return the start of the walk, node → weight: the entities that the question names, rare ones
    with more weight, and the passages found (document, passage), better ones with more weight."""
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
    """Merge both lists into one of at most `limit` passages: the first ranks of the search, then
    all others by the sum of the reciprocal ranks in the search and, times `weight`, in the walk
    (`walked`: rank from 1). Ties keep the order of the search; the best `limit / 2` passages of the
    search always stay."""
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
    """Return the entities with the highest scores of the walk, best first, each with its relation
    to one that the question names."""
    best = sorted(
        range(graph.first_passage),
        key=lambda node: (-float(scores[node]), graph.entities[node].key),
    )[:LISTED]
    top = float(scores[best[0]]) if best else 0.0
    in_question = [graph.node_of[key] for key in named if key in graph.node_of]
    return tuple(
        GraphNode(
            id=node_id(collection, graph.entities[node].key),
            type=graph.entities[node].kind,
            name=graph.entities[node].name,
            description=graph.entities[node].description,
            relation=_relation(graph, node, in_question),
            score=round(float(scores[node]) / top, 4),
            metadata={"collection": collection, "passages": graph.entities[node].passages},
        )
        for node in best
        if top > 0 and float(scores[node]) >= _SMALLEST * top
    )


def node_id(collection: str, key: str) -> str:
    """Return the id of an entity, which is the same in every search."""
    return hashlib.blake2b(
        f"{collection}\0{key}".encode(errors="replace"), digest_size=6
    ).hexdigest()


def _relation(graph: Graph, node: int, in_question: Sequence[int]) -> str:
    """Return in words how a passage relates the entity to one of the question."""
    if node in in_question:
        return "named in the question"
    for other in in_question:
        if (other, node) in graph.words:
            return f"{graph.entities[other].name}: {graph.words[other, node]}"
        if (node, other) in graph.words:
            return f"{graph.words[node, other]} {graph.entities[other].name}"
    for other in in_question:
        if node in graph.neighbours(other):
            return f"mentioned with {graph.entities[other].name}"
    return "in the passages that were found"
