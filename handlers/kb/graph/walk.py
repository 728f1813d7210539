"""The walk: personalised PageRank over the entities and passages of one tenant, in memory.

Nodes are entities and passages; an edge joins a passage and an entity that it mentions, or two
entities that a passage relates. The walk starts at the entities of the question and the passages
found, follows edges by weight, and restarts with probability 1 - DAMPING; nodes that it visits
often are related to the question (Page et al. 1999, personalised as in Haveliwala 2002). A tenant's
matrix has only that tenant's rows, so no walk reaches another tenant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from groundhook.handlers.kb.graph.file import Rows
from groundhook.handlers.kb.graph.rules import KnownNames

DAMPING = 0.5
TOLERANCE = 1e-4  # of the probability that still moves
MOST_STEPS = 40
RELATED = 0.3  # weight of a relation relative to a mention
ABOUT = 2.0  # weight of the subject of a document relative to other mentions

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class _GraphEntity:
    key: str
    name: str
    kind: str
    description: str
    passages: int


@dataclass(frozen=True, kw_only=True)
class PassagePosition:
    """The position of a passage in the collection."""

    document: str
    ordinal: int
    passage: str


class Graph:
    """One tenant's graph as it was when it was loaded. Entities are nodes 0, 1, …; passages
    follow."""

    def __init__(self, rows: Rows) -> None:
        at = {id: node for node, (id, *_) in enumerate(rows.entities)}
        first = len(at)
        passage_at = {id: first + number for number, (id, *_) in enumerate(rows.passages)}
        mentions = np.array(
            [(passage_at[p], at[e], c, a) for p, e, c, a in rows.mentions], dtype=np.int64
        ).reshape(-1, 4)
        self.size = first + len(passage_at)
        self.first_passage = first
        frequency = np.bincount(mentions[:, 1], minlength=first)
        self.entities = [
            _GraphEntity(
                key=key,
                name=name,
                kind=kind,
                description=description,
                passages=int(frequency[node]),
            )
            for node, (_, key, name, kind, description) in enumerate(rows.entities)
        ]
        self.places = [
            PassagePosition(document=document, ordinal=ordinal, passage=name)
            for _, document, ordinal, name in rows.passages
        ]
        self.node_of = {entity.key: node for node, entity in enumerate(self.entities)}
        self.known = KnownNames(
            names={entity.key: (entity.name, entity.kind) for entity in self.entities}
        )
        # keys of the subjects of documents
        self.subjects = {
            self.entities[node].key for node in np.unique(mentions[mentions[:, 3] > 0, 1])
        }
        self.words: dict[tuple[int, int], str] = {}
        related = [
            (at[source], at[target], words, count)
            for source, target, words, count in rows.relations
        ]
        for source, target, words, _ in related:
            if words:
                self.words.setdefault((source, target), words)
        self.rarity = np.log1p(max(1, len(self.places)) / np.maximum(1, frequency))
        self._steps = self._stochastic(mentions, related)

    @cached_property
    def passage_nodes(self) -> Mapping[tuple[str, str], int]:
        """(document, passage) → node."""
        return {
            (place.document, place.passage): self.first_passage + number
            for number, place in enumerate(self.places)
        }

    def neighbours(self, node: int) -> list[int]:
        """Return the nodes that share an edge with a node."""
        return self._steps.sources(node)

    def rank(self, seeds: Mapping[int, float]) -> Vector:
        """Return the probability of the walk at each node, in sum 1; all zeros without seeds."""
        start = np.zeros(self.size, dtype=np.float32)
        for node, weight in seeds.items():
            start[node] += weight
        total = float(start.sum())
        if total <= 0:
            return start
        start /= total
        scores = start
        for _ in range(MOST_STEPS):
            following = DAMPING * self._steps.times(scores)
            # restarts, including those from nodes without edges
            following += (1.0 - float(following.sum())) * start
            moved = float(np.abs(following - scores).sum())
            scores = following
            if moved < TOLERANCE:
                break
        return scores

    def best(self, values: Vector, most: int) -> list[PassagePosition]:
        """Return the passages with the highest values above 0; ties in file order."""
        of_passages = values[self.first_passage :]
        order = np.argsort(-of_passages, kind="stable")[:most]
        return [self.places[number] for number in order if of_passages[number] > 0]

    def arrivals(self, scores: Vector, seeds: Mapping[int, float]) -> Vector:
        """Return the probability of arriving at each node along an edge: `scores` without the
        restarts there."""
        start = np.zeros(self.size, dtype=np.float32)
        for node, weight in seeds.items():
            start[node] += weight
        arrived: Vector = scores - (1.0 - DAMPING) * start / max(float(start.sum()), 1e-12)
        return np.maximum(arrived, 0.0)

    def _stochastic(
        self, mentions: npt.NDArray[np.int64], related: list[tuple[int, int, str, int]]
    ) -> _Steps:
        """Return the transition matrix: a column has the probabilities of the steps from a node.
        Edges of rare entities weigh more than those of frequent ones."""
        passages, entities = mentions[:, 0], mentions[:, 1]
        weights = (
            (1 + np.log(np.maximum(1, mentions[:, 2])))
            * np.where(mentions[:, 3] > 0, ABOUT, 1.0)
            * self.rarity[entities]
        )
        sources = np.array([source for source, *_ in related], dtype=np.int64)
        targets = np.array([target for _, target, *_ in related], dtype=np.int64)
        strength = np.array([RELATED * (1 + math.log(count)) for *_, count in related])
        rows = np.concatenate([passages, entities, sources, targets])
        columns = np.concatenate([entities, passages, targets, sources])
        values = np.concatenate([weights, weights, strength, strength])
        leaving = np.bincount(columns, weights=values, minlength=self.size)
        return _Steps(rows, columns, values / leaving[columns], self.size)


class _Steps:
    """A sparse matrix by rows; entries with equal indices are added. numpy is enough: a product
    with 50,000 edges takes 0.2 ms, and a sparse matrix library would add 140 MB."""

    def __init__(
        self,
        rows: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
        size: int,
    ) -> None:
        places, entry = np.unique(rows * size + columns, return_inverse=True)
        self._columns = places % size
        self._values = np.bincount(entry, weights=values).astype(np.float32)
        # of the rows that have entries, their numbers and where each begins
        self._rows, self._starts = np.unique(places // size, return_index=True)
        self._size = size

    def sources(self, row: int) -> list[int]:
        """Return the columns of a row's entries."""
        at = np.searchsorted(self._rows, row)
        if at == len(self._rows) or self._rows[at] != row:
            return []
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._columns)
        return [int(column) for column in self._columns[self._starts[at] : end]]

    def times(self, vector: Vector) -> Vector:
        """Return the product with a vector."""
        product = np.zeros(self._size, dtype=np.float32)
        if len(self._rows):
            terms = np.take(vector, self._columns)
            terms *= self._values
            product[self._rows] = np.add.reduceat(terms, self._starts)
        return product
