"""Passages are judged by the company they keep: by what the foremost of a search have in common
with each other.

Passages on one matter answer the same questions (the cluster hypothesis: van Rijsbergen,
Information Retrieval, 1979, chapter 3). One beside which good ones stand, and which says what they
say, is likelier to answer than one that shares a few words with the question and nothing with the
others. A passage gains

- by meaning: a share of what the leaders are worth, on the average of those near it, each weighted
  with how near it is, squared, beyond what two of them are on the average (score regularisation:
  Diaz, Regularizing ad hoc retrieval scores, CIKM 2005);
- by words: how far the question goes in its direction, among the few topics that the words of the
  foremost make up, in which words that stand together are one (local latent semantic indexing:
  Hull, Improving text retrieval for the routing problem using latent semantic indexing, SIGIR
  1994).

Both count in standard deviations of a ranking, as a passage's worth does (`fusion`), and as much as
words count: passages that only share a language with the question have nothing to say of each
other. Where one passage is first by meaning and by words (`fusion.clear`) there is no doubt to be
settled, and company is not asked: that is so for half of all questions to nine tenths of them.
`bench/ablation.py` tells what each is worth. Pure.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate, islice
from struct import pack
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from groundhook.handlers.kb.analyse import Sparse, is_run
from groundhook.handlers.kb.store import POOL

_LEAST = 5  # passages that have company
_LEADERS = 30  # of them those from whom a passage gains
_TOPICS, _SPACE, _MORE = 5, 20, 3  # topics, and in how many dimensions they are looked for
_BUCKETS, _KINDS = (
    15,
    2,
)  # bits of a word's index that tell it apart, after those that say what kind of token it is
_DIGITS = 9  # of a passage's worth: beyond them, equal ones differ
_TINY = 1e-9


class Gains(NamedTuple):
    """What counts in a passage's gain: of what those near it are worth, and of how far the question
    goes in its direction."""

    meaning: float = 0.3
    words: float = 3.0


GAINS = Gains()
_WORD = np.dtype([("bucket", np.uint32), ("weight", np.float32)])
Numbers = npt.NDArray[np.floating[Any]]
Name = Hashable


class Portrait(NamedTuple):
    """What a passage is compared by: its embedding, of length 1, as float32, and its words, each a
    `_WORD`: eighty pieces of memory are put together faster than eighty arrays."""

    vector: bytes
    words: bytes


def portraits(stored: Sequence[tuple[Sequence[float], Sparse]]) -> list[Portrait]:
    """Of passages whose two vectors these are."""
    indices = np.frombuffer(b"".join([array("I", words.indices) for _, words in stored]), np.uint32)
    weights = np.frombuffer(b"".join([_floats(words.values) for _, words in stored]), np.float32)
    whole = ~is_run(indices)  # beside words, the runs of their letters say nothing new
    words = np.empty(np.count_nonzero(whole), _WORD)
    words["bucket"], words["weight"] = _bucket(indices[whole]), weights[whole]
    upto = np.append(0, whole.cumsum() * _WORD.itemsize)  # bytes of the whole words among so many
    ends, pieces = (
        upto[[*accumulate(len(words.indices) for _, words in stored)]].tolist(),
        words.tobytes(),
    )
    return [
        Portrait(_floats(vector), pieces[start:end])
        for (vector, _), start, end in zip(stored, [0, *ends], ends, strict=False)
    ]


class Portraits:
    """Those of the passages that were looked at last, by names that never come to mean another
    passage: to make one of what an engine stores takes longer than all that is done with it."""

    def __init__(self, most: int = 8192) -> None:
        self._most = most
        self._kept: dict[Name, Portrait] = {}

    def missing(self, names: Sequence[Name]) -> list[Any]:
        """Those of the names of which there is none yet. Forgets what there is too much of."""
        for oldest in list(islice(self._kept, max(0, len(self._kept) - self._most))):
            del self._kept[oldest]
        return [name for name in names if name not in self._kept]

    def of(
        self, names: Sequence[Name], stored: Mapping[Any, tuple[Sequence[float], Sparse]]
    ) -> list[Portrait | None]:
        """Portraits of these passages. `stored` are both vectors of those that were missing; None:
        it has not even these."""
        if stored:
            self._kept |= zip(stored, portraits([*stored.values()]), strict=True)
        return [*map(self._kept.get, names)]


def judged(
    order: Sequence[int],
    worth: Mapping[int, float],
    portraits: Sequence[Portrait | None],
    question: Sparse,
    weight: float,
    gains: Gains = GAINS,
) -> list[int]:
    """Passages in the order of what they are worth in their company: what each is worth alone, of
    which `order` is made, and what it gains, times `weight`, that of words. `portraits` are those
    of the foremost, behind whom the others stay."""
    there = [(id, each) for id, each in zip(order, portraits, strict=False) if each is not None]
    if len(there) < _LEAST:
        return [*order]
    seen, faces = zip(*there, strict=True)
    vectors, words = zip(*faces, strict=True)
    alone = np.array([*map(worth.__getitem__, seen)])
    enough = weight * len(seen) / POOL  # few of them tell little
    together = alone + enough * (
        gains.meaning * _by_meaning(alone, vectors) + gains.words * _by_words(words, question)
    )
    now = dict(zip(seen, together.round(_DIGITS).tolist(), strict=True))
    first = sorted(seen, key=now.__getitem__, reverse=True)
    return first + [id for id in order if id not in now]


def _by_meaning(worth: Numbers, pieces: Sequence[bytes]) -> Numbers:
    vectors = np.frombuffer(b"".join(pieces), np.float32).reshape(len(pieces), -1)
    nearness = vectors @ vectors.T
    nearness -= nearness.sum() / nearness.size
    np.maximum(nearness, 0, out=nearness)
    nearness *= nearness
    nearness.ravel()[:: len(pieces) + 1] = 0  # to itself
    leading = np.maximum(worth - worth[min(_LEADERS, len(worth) - 1)], 0)
    gained: Numbers = nearness @ leading.astype(np.float32) / (nearness.sum(axis=0) + _TINY)
    return gained


def _by_words(pieces: Sequence[bytes], question: Sparse) -> Numbers:
    table, asked = _table(pieces, question)
    alike = table.T @ table
    lengths = np.sqrt(np.maximum(alike.diagonal(), _TINY))
    alike /= lengths
    alike /= lengths[:, np.newaxis]
    values, topics = _topics(alike)
    # Among the topics, each as long as the root of its value, a passage's place times that of the
    # question, and its length.
    towards, length = topics @ ((asked @ table / lengths) @ topics), np.sqrt(topics**2 @ values)
    gained: Numbers = towards / (length + _TINY)
    return gained


def _table(pieces: Sequence[bytes], question: Sparse) -> tuple[Numbers, Numbers]:
    """A row for each word that two have at least, a column for each passage, and what the question
    has of the words, which weigh more the fewer of the passages have them. The table holds until
    the next is made in this thread."""
    held_by_each = np.frombuffer(b"".join(pieces), _WORD)
    words, weights = held_by_each["bucket"].astype(np.intp), held_by_each["weight"]
    wanted = {
        _bucket(index): weight for index, weight in zip(*question, strict=True) if not is_run(index)
    }
    buckets, places, everywhere = [*wanted], _SCRATCH.places, np.arange(len(words))
    # A word is known by one of the places where it stands: nothing here is as long as there are
    # buckets.
    places[buckets] = len(words)
    places[words] = everywhere
    place = places[words]
    held = np.bincount(place, minlength=len(words) + 1)
    shared = (held > 1).nonzero()[0]
    rows = np.full(
        len(words) + 1, len(shared)
    )  # the last, which stays empty, is that of all other words
    rows[shared] = everywhere[: len(shared)]
    rare = np.zeros(len(shared) + 1, np.float32)
    rare[:-1] = np.log((len(pieces) + 1) / (held[shared] + 0.5))
    table = _SCRATCH.blank(len(shared) + 1, len(pieces))
    row = rows[place]
    column = np.repeat(np.arange(len(pieces)), np.array([*map(len, pieces)]) // _WORD.itemsize)
    table.ravel()[row * len(pieces) + column] = weights * rare[row]
    asked = np.zeros(len(shared) + 1, np.float32)
    row = rows[places[buckets]]
    asked[row] = rare[row] * [*wanted.values()]
    return table, asked


class _Scratch(threading.local):
    """Memory that is used again and again: to get as much anew, page by page, takes the system
    longer than all that is done with it. Of each thread its own."""

    def __init__(self) -> None:
        self.places = np.zeros(1 << _BUCKETS, np.intp)
        self._table = np.zeros(1 << 17, np.float32)

    def blank(self, rows: int, columns: int) -> npt.NDArray[np.float32]:
        """A table of zeros."""
        if self._table.size < rows * columns:
            self._table = np.zeros(rows * columns, np.float32)
        table = self._table[: rows * columns]
        table.fill(0)
        return table.reshape(rows, columns)


_SCRATCH = _Scratch()


def _topics(alike: Numbers) -> tuple[Numbers, Numbers]:
    """The greatest eigenvalues of a matrix, and their vectors in columns, from the space that the
    columns of its eighth power are in but for very little: a quarter of the time that all of them
    take."""
    alike = alike.astype(np.float64)
    squared = alike @ alike
    power = squared[:, :_SPACE]
    for _ in range(_MORE):
        power = squared @ power
    space = np.linalg.qr(power)[0]
    values, turned = np.linalg.eigh(space.T @ alike @ space)
    return np.maximum(values[-_TOPICS:], _TINY), space @ turned[:, -_TOPICS:]


def _floats(values: Sequence[float]) -> bytes:
    """As float32: what makes an array of Python's numbers takes three times as long."""
    return pack(f"{len(values)}f", *values)


def _bucket(index: Any) -> Any:
    return index >> _KINDS & (1 << _BUCKETS) - 1
