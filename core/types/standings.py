"""Where passages stand in each ranking of a search, for those who keep a collection: by meaning, by
words, and in both together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A passage in the rankings of a question. Places count from 1. `meaning`: its similarity, 0-1;
    `words`: its BM25 score, 0 with `words_place` 0 if it is not among the best by words."""

    key: str  # of its item
    document: str
    title: str
    content: str
    start: int
    end: int
    place: int
    meaning: float
    meaning_place: int
    words: float
    words_place: int


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The passages of a collection in the order of a search, before its threshold. `by_words`: the
    question's words counted; `guessed`: the similarities rest on a curve that nobody measured, so
    that a search has no threshold."""

    passages: tuple[Standing, ...]
    by_words: bool
    guessed: bool
