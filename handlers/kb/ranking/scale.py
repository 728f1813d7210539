"""The vector that a question's passages are ranked by, and the scale on which its cosines are those
of the whole question and comparable between languages (`balance`). Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groundhook.handlers.kb.balance import Balance
from groundhook.handlers.kb.ranking.fusion import Group
from groundhook.handlers.kb.store import Question, Spoken

_ROUNDING = 1e-6  # more than an engine's cosines in float32 differ from exact ones


@dataclass(frozen=True)
class Scale:
    """`vector` is what an engine is asked with, as float32; `factor` and, for each language of the
    collection, one of `shifts` make similarities of the cosines it finds."""

    vector: array[float]
    factor: float = 1.0
    shifts: Sequence[float] = (0.0,)

    @classmethod
    def of(cls, question: Question, balance: Balance | None) -> Scale:
        """Where the languages of passages are not known, the whole vector and its own cosines."""
        whole = array("f", question.vector)
        if balance is None or (len(balance.languages) < 2 and not question.freed):
            return cls(whole)
        length = math.hypot(*whole) or 1.0
        unit = [value / length for value in whole]
        if not question.freed:
            return cls(whole, 1.0, balance.shifts(unit, unit))
        freed = array("f", question.freed)
        ranked = [value / length for value in freed]
        return cls(freed, math.hypot(*ranked), balance.shifts(unit, ranked))

    def similar(self, language: int, cosine: float) -> float:
        """The similarity, on the scale of cosines, of a passage in one of the languages."""
        return self.factor * cosine + self.shifts[language]

    def cosine(self, language: int, similarity: float) -> float:
        """Return the cosine that has this similarity in one of the languages, rounded down."""
        return (similarity - self.shifts[language]) / (self.factor or 1.0) - _ROUNDING

    def spoken(self, balance: Balance | None, groups: Sequence[Group]) -> Mapping[str, Spoken]:
        """What an answer says of the languages."""
        if balance is None:
            return {}
        return {
            language: Spoken(balance.share(language), shift, group.weight)
            for language, shift, group in zip(balance.languages, self.shifts, groups, strict=True)
        }
