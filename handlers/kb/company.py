"""Passages are judged by the company they keep: by what the foremost of a search have in common with each other.

Passages on one matter answer the same questions (the cluster hypothesis: van Rijsbergen, Information Retrieval, 1979, chapter 3).
One beside which good ones stand, and which says what they say, is likelier to answer than one that shares a few words with the
question and nothing with the others. A passage gains

- by meaning: a share of what the leaders are worth, on the average of those near it, each weighted with how near it is, squared,
  beyond what two of them are on the average (score regularisation: Diaz, Regularizing ad hoc retrieval scores, CIKM 2005);
- by words: how far the question goes in its direction, among the few topics that the words of the foremost make up, in which
  words that stand together are one (local latent semantic indexing: Hull, Improving text retrieval for the routing problem using
  latent semantic indexing, SIGIR 1994).

Both count in standard deviations of a ranking, as a passage's worth does (`fusion`), and as much as words count: passages that
only share a language with the question have nothing to say of each other. `bench/ablation.py` tells what each is worth. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from handlers.kb.analyse import Sparse, is_run
from handlers.kb.fusion import ordered
from handlers.kb.store import POOL

_LEAST = 5  # passages that have company
_LEADERS = 30  # of them those from whom a passage gains
_TOPICS, _SPACE = 5, 20  # topics, and in how many dimensions they are looked for
_BUCKETS, _KINDS = 15, 2  # bits of a word's index that tell it apart, after those that say what kind of token it is
_DIGITS = 9  # of a passage's worth: beyond them, equal ones differ
_TINY = 1e-9


class Gains(NamedTuple):
    """What counts in a passage's gain: of what those near it are worth, and of how far the question goes in its direction."""

    meaning: float = 0.3
    words: float = 2.0


GAINS = Gains()
Numbers = npt.NDArray[np.floating[Any]]
Name = Hashable


class Portrait(NamedTuple):
    """What a passage is compared by: its embedding, of length 1, and its words, each with its weight."""

    vector: npt.NDArray[np.float32]
    words: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float32]


def portrait(vector: Sequence[float], words: Sparse) -> Portrait:
    return Portrait(np.array(vector, np.float32), *_words(words))


class Portraits:
    """Those of the passages that were looked at last, by names that never come to mean another passage: to make one of what an
    engine stores takes longer than all that is done with it."""

    def __init__(self, most: int = 8192) -> None:
        self._most = most
        self._kept: dict[Name, Portrait] = {}

    def missing(self, names: Sequence[Name]) -> list[Any]:
        """Those of the names of which there is none yet. Forgets what there is too much of."""
        for oldest in list(islice(self._kept, max(0, len(self._kept) - self._most))):
            del self._kept[oldest]
        return [name for name in names if name not in self._kept]

    def of(self, names: Sequence[Name], stored: Mapping[Any, tuple[Sequence[float], Sparse]]) -> list[Portrait | None]:
        """Portraits of these passages. `stored` are both vectors of those that were missing; None: it has not even these."""
        for name, (vector, words) in stored.items():
            self._kept[name] = portrait(vector, words)
        return [self._kept.get(name) for name in names]


def foremost(worth: Mapping[int, float]) -> list[int]:
    """The passages that are looked at together, best first; equal ones by id."""
    return ordered(worth)[:POOL]


def judged(
    worth: Mapping[int, float], portraits: Sequence[Portrait | None], question: Sparse, weight: float, gains: Gains = GAINS
) -> list[int]:
    """The passages in the order of what they are worth in their company: what each is worth alone, and what it gains, times
    `weight`, that of words. `portraits` are those of the foremost, behind whom the others stay."""
    order = ordered(worth)
    seen = [(id, each) for id, each in zip(order, portraits, strict=False) if each is not None]
    if len(seen) < _LEAST:
        return order
    alone, faces = np.array([worth[id] for id, _ in seen]), [each for _, each in seen]
    enough = weight * len(seen) / POOL  # few of them tell little
    together = alone + enough * (gains.meaning * _by_meaning(alone, faces) + gains.words * _by_words(faces, question))
    ranking = np.argsort(-together.round(_DIGITS), kind="stable").tolist()
    first = dict.fromkeys(seen[at][0] for at in ranking)
    return [*first, *(id for id in order if id not in first)]


def _by_meaning(worth: Numbers, portraits: Sequence[Portrait]) -> Numbers:
    vectors = np.array([each.vector for each in portraits])
    nearness = vectors @ vectors.T
    nearness = np.maximum(nearness - nearness.mean(), 0) ** 2
    np.fill_diagonal(nearness, 0)
    leading = np.maximum(worth - worth[min(_LEADERS, len(worth) - 1)], 0)
    gained: Numbers = nearness @ leading / (nearness.sum(axis=1) + _TINY)
    return gained


def _by_words(portraits: Sequence[Portrait], question: Sparse) -> Numbers:
    table, asked = _table(portraits, question)
    alike = table @ table.T
    lengths = np.sqrt(np.maximum(alike.diagonal(), _TINY))
    values, topics = _topics(alike / lengths / lengths[:, np.newaxis])
    roots = np.sqrt(values)
    places = topics * roots  # of the passages among the topics
    place = topics.T @ (table @ asked / lengths) / roots  # of the question
    gained: Numbers = places @ place / (np.sqrt((places**2).sum(axis=1)) + _TINY)
    return gained


def _table(portraits: Sequence[Portrait], question: Sparse) -> tuple[Numbers, Numbers]:
    """A row for each passage, a column for each word that two have at least, and what the question has of them; words weigh more
    the fewer of the passages have them."""
    words = np.concatenate([each.words for each in portraits])
    held = np.bincount(words, minlength=1 << _BUCKETS)
    shared = np.flatnonzero(held > 1)
    having = held[shared]
    rare = np.zeros(1 << _BUCKETS, np.float32)
    rare[shared] = np.log1p((len(portraits) - having + 0.5) / (having + 0.5))
    column = np.full(1 << _BUCKETS, len(shared), np.uint16)  # the last, which stays empty, of all other words
    column[shared] = np.arange(len(shared))
    table = np.zeros((len(portraits), len(shared) + 1), np.float32)
    rows = np.repeat(np.arange(len(portraits)), [len(each.words) for each in portraits])
    table[rows, column[words]] = np.concatenate([each.weights for each in portraits]) * rare[words]
    asked = np.zeros(len(shared) + 1, np.float32)
    wanted, weights = _words(question)
    asked[column[wanted]] = weights * rare[wanted]
    return table, asked


def _topics(alike: Numbers) -> tuple[Numbers, Numbers]:
    """The greatest eigenvalues of a matrix, and their vectors in columns, from the space that the columns of its eighth power
    are in but for very little: a quarter of the time that all of them take."""
    power = alike.astype(np.float64)
    for _ in range(3):
        power = power @ power
    space = np.linalg.qr(power[:, :_SPACE])[0]
    values, turned = np.linalg.eigh(space.T @ alike @ space)
    return np.maximum(values[-_TOPICS:], _TINY), space @ turned[:, -_TOPICS:]


def _words(words: Sparse) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]:
    """Buckets and weights of whole words: beside them, the runs of their letters say nothing new."""
    indices, weights = np.array(words.indices, np.uint32), np.array(words.values, np.float32)
    runs = is_run(indices)
    if runs.any():
        indices, weights = indices[~runs], weights[~runs]
    return (indices >> _KINDS & (1 << _BUCKETS) - 1).astype(np.uint16), weights
