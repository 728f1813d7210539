"""Finds the known word that a misspelt one must mean. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA

SHORTEST = 5  # letters; shorter words are too near to others
WRONG_LETTER = (
    6  # letters from which one may be another, or the last one miss: "boots" are no "books"
)
TWO_ERRORS = 7  # letters from which two errors are let pass
ALIKE = 3  # letters that begin a word with two errors


def nearest(word: str, words: Sequence[str]) -> str | None:
    """Return the word of `words` that is at most one error away (two in a long word) and begins
    with the same letter; None if there is none, if two are equally near, or if it is one of them
    itself. An error is an extra,
    missing or wrong letter, or two swapped ones."""
    if len(word) < SHORTEST or word in words:
        return None
    most = 2 if len(word) >= TWO_ERRORS else 1
    found = process.extract(word, words, scorer=OSA.distance, score_cutoff=most, limit=5)
    near = [(known, errors) for known, errors, _ in found if _may_mean(word, known, int(errors))]
    if not near or (len(near) > 1 and near[0][1] == near[1][1]):
        return None
    return str(near[0][0])


def _may_mean(word: str, known: str, errors: int) -> bool:
    if errors > 1:
        return known[:ALIKE] == word[:ALIKE]
    if len(known) == len(word) and known[:-1] == word[:-1]:
        return False  # who has "driven" is no "driver"
    swapped = sorted(known) == sorted(word)
    wrong = len(known) == len(word) or known[-1] != word[-1]  # an "applet" is no "apple"
    short = len(min(word, known, key=len)) < WRONG_LETTER
    return known[0] == word[0] and (swapped or not (short and wrong))
