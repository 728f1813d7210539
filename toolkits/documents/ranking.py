"""Candidates, the answers of a ranking model, and the order of all pages together. Pure.

Ids in an answer that were not sent are ignored: models invent ids, repeat them and renumber
documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.json_text import NotJson, read_json_at

_PERCENT = re.compile(r"\s*+([0-9]++(?:[.,][0-9]++)?)\s*+(%?)\s*+")
_LISTS = ("documents", "rankedDocuments", "results", "ids", "order", "ranking")
_IDS = ("id", "documentId", "document_id", "summaryId")
_SCORES = ("relevanceScore", "relevance_score", "relevance", "score")
# Phrases of a summary that address a ranking model. A false alarm costs one more request, and only
# if such a summary comes first.
_ORDERS = re.compile(
    r"relevance_?\s?score|\brank(?:ing|ed)?\b.{0,40}\b(?:first|top|highest|1)\b"
    r"|\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|above|previous|quer(?:y|ies)|prompt)\b"
    r"|\bmost relevant\b|\b(?:system|developer) (?:prompt|message)\b|[\"']id[\"']\s*:|===",
    re.IGNORECASE | re.DOTALL,
)
MOST_READ_AGAIN = 1_000_000  # characters that are read once more as a part of another value
_MOST_STARTS = 200  # brackets of an answer that are tried as the start of a value


@dataclass(frozen=True)
class RankCandidate:
    """A summary as a ranker gets it. `page` and `place` count from 0."""

    id: int | str
    title: str | None
    preview: str
    page: int
    place: int

    @property
    def key(self) -> str:
        """The id as text, for comparison."""
        return str(self.id)


@dataclass(frozen=True)
class JudgedSummary:
    """A candidate with its relevance of 0-1."""

    candidate: RankCandidate
    score: float


@dataclass(frozen=True)
class RankReading:
    """The ranking in an answer. `ranked` is best first, `invented` the number of ids that were not
    sent; `usable` is False for an answer that names no candidate and is not an empty list."""

    ranked: tuple[JudgedSummary, ...] = ()
    invented: int = 0
    usable: bool = False


def read_answer(text: str, candidates: Sequence[RankCandidate]) -> RankReading:
    """Return the ranking in a model's answer: the first JSON value in it that names a candidate, as
    objects with a score or as bare ids, in any of the shapes that models use. Scores may be
    percentages; documents without one that can be used get 1.0 down to 0.5 in their order."""
    sent = {candidate.key: candidate for candidate in candidates}
    empty = False
    for value in values_in(text):
        entries = _entries(value)
        if entries is None:
            continue
        if not entries:
            empty = True
            continue
        reading = _reading(entries, sent)
        if reading.usable:
            return reading
    return RankReading(usable=empty)


def gives_orders(candidate: RankCandidate) -> bool:
    """Return whether a title or summary addresses the model that ranks it."""
    return _ORDERS.search(f"{candidate.title or ''}\n{candidate.preview}") is not None


def values_in(text: str) -> Iterator[Any]:
    """Yield the JSON lists and objects in a text, from the first bracket on, except for those that
    are nested very deeply; what is within one is yielded after it."""
    left = 2 * len(text) + MOST_READ_AGAIN
    for count, match in enumerate(re.finditer(r"[\[{]", text)):
        if count == _MOST_STARTS or left <= 0:
            return
        try:
            value, end = read_json_at(text, match.start(), nan=True)
        except NotJson as exc:
            left -= max(exc.position - match.start(), 0)
            continue
        left -= end - match.start()
        yield value


def joined(pages: Iterable[Sequence[JudgedSummary]], keep: int) -> list[JudgedSummary]:
    """Return the best of all pages: each document once, with its best score, by falling score, then
    page and place."""
    best: dict[str, JudgedSummary] = {}
    for page in pages:
        for one in page:
            known = best.get(one.candidate.key)
            if known is None or one.score > known.score:
                best[one.candidate.key] = one
    order = sorted(
        best.values(), key=lambda one: (-one.score, one.candidate.page, one.candidate.place)
    )
    return order[:keep]


def at_least(ranked: Iterable[JudgedSummary], least: float, top: int) -> list[JudgedSummary]:
    """Return the best `top` of those that reach the least relevance."""
    order = sorted(ranked, key=lambda one: (-one.score, one.candidate.page, one.candidate.place))
    return [one for one in order if one.score >= least][:top]


def _entries(value: Any) -> list[Any] | None:
    """Return the list of documents in an answer; None for another value."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in _LISTS:
            if isinstance(value.get(name), list):
                return list(value[name])
        if _id(value) is not None:
            return [value]
    return None


def _reading(entries: Sequence[Any], sent: Mapping[str, RankCandidate]) -> RankReading:
    numbers: dict[str, float | None] = {}
    invented = 0
    for entry in entries:
        id = _id(entry)
        if id is None:
            continue
        if id not in sent:
            invented += 1
        elif id not in numbers:
            numbers[id] = _number(entry)
    last = max(len(numbers) - 1, 1)
    ranked = tuple(
        JudgedSummary(sent[id], 1.0 - 0.5 * place / last if score is None else score)
        for place, (id, score) in enumerate(_scores(numbers).items())
    )
    return RankReading(ranked, invented, usable=bool(ranked))


def _scores(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the numbers of an answer as scores of 0-1. A number above 1 is a percentage; a 1 is
    one as well beside such numbers, if no number is a fraction."""
    known = [number for number in numbers.values() if number is not None]
    percentages = any(n > 1 for n in known) and not any(0 < n < 1 for n in known)
    return {
        id: number / 100 if number and (number > 1 or percentages) else number
        for id, number in numbers.items()
    }


def _id(entry: Any) -> str | None:
    if isinstance(entry, dict):
        return next((id for name in _IDS if (id := _id(entry.get(name))) is not None), None)
    if isinstance(entry, bool):
        return None
    if isinstance(entry, float):
        return str(int(entry)) if entry.is_integer() else None
    if isinstance(entry, int | str):
        return str(entry).strip()
    return None


def _number(entry: Any) -> float | None:
    """Return the relevance of an entry, 0-100; None if there is none that can be used."""
    value = (
        next((entry[name] for name in _SCORES if name in entry), None)
        if isinstance(entry, dict)
        else None
    )
    percent = False
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        if match is None:
            return None
        value, percent = float(match[1].replace(",", ".")), bool(match[2])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        return None
    return value / 100 if percent else float(value)
