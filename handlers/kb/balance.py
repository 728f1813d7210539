"""Makes the similarities of passages in several languages comparable. Pure.

A multilingual model puts texts of one language near each other, whatever their subject, a small
model more so: a question finds passages of its own language first. The product of the question and
the mean of a language is the same for all passages of that language, so it is subtracted:

    similarity = q·p − q·mean(language of p) + the greatest q·mean of all languages

The last term is the same for all passages. It keeps similarities on their scale, so that thresholds
stay valid; in a collection of one language nothing changes. The order within a language does not
change either. Vectors are not normalised again afterwards, since that makes the order worse
(`bench/ablation.py`).

Means are stored as sums, which change when a document is added or removed. Each mean includes the
mean of all passages once, as if it were one more passage: a passage that is the only one of its
language would otherwise have nothing but its language. Languages of a few passages in a large
collection, often recognised by mistake, are searched with the collection's main one.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add, mul, sub
from typing import NamedTuple

_Vector = Sequence[float]

# Passages, or the share of all, that make a language one of the collection's.
MIN_PASSAGES, MIN_SHARE = 5, 0.05
MAX_LANGUAGES = 8  # languages that are searched one by one


class Sum(NamedTuple):
    """The passages of a language: their number, and the sum of their vectors at length 1."""

    passages: int
    total: _Vector


Sums = Mapping[str, Sum]  # by language


def sum_vectors(passages: Iterable[tuple[str, _Vector]]) -> dict[str, Sum]:
    """Return the sums of passages, given as (language, vector)."""
    sums: dict[str, Sum] = {}
    for language, vector in passages:
        length = math.hypot(*vector) or 1.0
        own = Sum(1, [value / length for value in vector])
        sums[language] = _add(sums[language], own, 1) if language in sums else own
    return sums


def add_sums(sums: Sums, by: Sums, sign: int = 1) -> dict[str, Sum]:
    """Return the sums with the passages of `by` added, or removed if `sign` is -1."""
    now = dict(sums)
    for language, own in by.items():
        before = now.pop(language, Sum(0, [0.0] * len(own.total)))
        if before.passages + sign * own.passages > 0:
            now[language] = _add(before, own, sign)
    return now


def format_sums(sums: Sums) -> str:
    """Format the sums as text. Means are written in half precision, which is enough."""
    return json.dumps(
        {
            language: [own.passages, base64.b64encode(_mean_bytes(own)).decode()]
            for language, own in sorted(sums.items())
        }
    )


def parse_sums(text: str) -> dict[str, Sum]:
    """Parse what `format_sums` wrote. The result is exactly what was written, so that sums can be
    subtracted again."""
    sums = {}
    for language, (passages, encoded) in json.loads(text).items():
        data = base64.b64decode(encoded)
        mean = struct.unpack(f"{len(data) // 2}e", data)
        sums[language] = Sum(passages, [passages * value for value in mean])
    return sums


def _mean_bytes(own: Sum) -> bytes:
    return struct.pack(f"{len(own.total)}e", *(value / own.passages for value in own.total))


def _add(one: Sum, other: Sum, sign: int) -> Sum:
    return Sum(
        one.passages + sign * other.passages,
        [*map(add if sign > 0 else sub, one.total, other.total)],
    )


@dataclass(frozen=True)
class Balance:
    """The languages of a collection, the one with most passages first."""

    sums: Sums

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that are searched one by one; the first also serves all others."""
        often = sorted(self.sums, key=lambda language: (-self.sums[language].passages, language))
        least = min(MIN_PASSAGES, MIN_SHARE * self._passages)
        return tuple(
            language
            for at, language in enumerate(often[:MAX_LANGUAGES])
            if at == 0 or self.sums[language].passages >= least
        )

    def share(self, language: str) -> float:
        """Return the share of the collection's passages that are in a language."""
        return self.sums[language].passages / self._passages if language in self.sums else 0.0

    def shifts(self, question: _Vector, ranked: _Vector) -> list[float]:
        """Return for each of `languages` the value that is added to the product of `ranked` and a
        passage. Both vectors belong to one question: the whole one, and the one without its own
        language (or the whole one as well), on the scale of a question of length 1."""
        if len(self.languages) < 2 and ranked is question:
            return [0.0] * len(self.languages)
        nearest = max(math.fsum(map(mul, question, mean)) for mean in self._means)
        return [nearest - math.fsum(map(mul, ranked, mean)) for mean in self._means]

    @cached_property
    def _passages(self) -> int:
        return sum(own.passages for own in self.sums.values())

    @cached_property
    def _means(self) -> list[_Vector]:
        totals = [own.total for own in self.sums.values()]
        mean_of_all = [math.fsum(values) / self._passages for values in zip(*totals, strict=True)]
        return [
            [
                (value + usual) / (self.sums[language].passages + 1)
                for value, usual in zip(self.sums[language].total, mean_of_all, strict=True)
            ]
            for language in self.languages
        ]
