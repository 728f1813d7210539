"""Maps the cosines of a search to similarities that are comparable between languages (`balance`)
and between a question's vector with and without its language. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from groundhook.handlers.kb.balance import Balance
from groundhook.handlers.kb.ranking.fusion import LanguageGroup
from groundhook.handlers.kb.store.port import LanguageShare, VectorQuestion

P = TypeVar("P")
_ROUNDING = 1e-6  # more than an engine's cosines in float32 differ from exact ones


@dataclass(frozen=True)
class Scale:
    """`vector` is the one to search with, as float32. A cosine times `factor`, plus the one of
    `shifts` for the passage's language, is its similarity."""

    vector: array[float]
    factor: float = 1.0
    shifts: Sequence[float] = (0.0,)

    @classmethod
    def of(cls, question: VectorQuestion, balance: Balance | None) -> Scale:
        """Return the scale of a question; cosines stay unchanged if the languages of passages are
        unknown."""
        whole = array("f", question.vector)
        if balance is None or (len(balance.languages) < 2 and not question.neutral_vector):
            return cls(whole)
        length = math.hypot(*whole) or 1.0
        unit = [value / length for value in whole]
        if not question.neutral_vector:
            return cls(whole, 1.0, balance.shifts(unit, unit))
        neutral = array("f", question.neutral_vector)
        ranked = [value / length for value in neutral]
        return cls(neutral, math.hypot(*ranked), balance.shifts(unit, ranked))

    def similarity(self, language: int, cosine: float) -> float:
        """The similarity, on the scale of cosines, of a passage in the language of this number."""
        return self.factor * cosine + self.shifts[language]

    def similarities(self, language: int, cosines: Mapping[P, float]) -> dict[P, float]:
        """The similarities of passages in the language of this number, by their cosines."""
        factor, shift = self.factor, self.shifts[language]
        return {place: factor * cosine + shift for place, cosine in cosines.items()}

    def cosine(self, language: int, similarity: float) -> float:
        """Return the cosine that has this similarity in one of the languages, rounded down."""
        return (similarity - self.shifts[language]) / (self.factor or 1.0) - _ROUNDING

    def language_shares(
        self, balance: Balance | None, groups: Sequence[LanguageGroup]
    ) -> Mapping[str, LanguageShare]:
        """Each language's share, shift and weight of words, for the trace."""
        if balance is None:
            return {}
        return {
            language: LanguageShare(balance.share(language), shift, group.weight)
            for language, shift, group in zip(balance.languages, self.shifts, groups, strict=True)
        }
