"""Lines in the order in which the eye sees them, from left to right, turned into the order in which
they are read. Pure; the directions are those of Unicode Standard Annex 9, table 4."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DIRECTIONS = {"R": True, "AL": True, "L": False, "EN": False}
_ARABIC_DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9]+(?:[.,/:\u066b\u066c][\u0660-\u0669\u06f0-\u06f9]+)*"
)
_LOOSE = " !\"&'()*+,-./:;<=>?@"  # no part of the run that they end


@dataclass(frozen=True)
class _Run:
    """Text of one direction in reading order; or, without a direction (None), as it is seen."""

    text: str
    backward: bool | None


def is_right_to_left(text: str) -> bool:
    """Return whether a text begins with a letter, or an Arabic digit, of a script that is written
    from right to left."""
    return text > "\u0590" and unicodedata.bidirectional(text[0]) in ("R", "AL", "AN")


def as_read(seen: str, *, backward: bool | None = None) -> str:
    """Return the text of a line in reading order. `backward`: the direction of the text around it,
    which is that of a line without letters."""
    runs = list(_runs(seen))
    if not any(run.backward for run in runs):
        return seen
    read = _reordered(runs, _direction(runs, backward))
    for pair in ("()", "[]", "{}"):
        read = _in_pairs(read, pair)
    return read


def _in_pairs(text: str, pair: str) -> str:
    """Return a text whose brackets open and close in turn: some files have the sign that is seen,
    others the one that is meant, which is its mirror image."""
    level, least = 0, 0
    for sign in text:
        level += (sign == pair[0]) - (sign == pair[1])
        least = min(least, level)
    places = [at for at, sign in enumerate(text) if sign in pair]
    if (not level and not least) or len(places) % 2:
        return text
    signs = list(text)
    for number, at in enumerate(places):
        signs[at] = pair[number % 2]
    return "".join(signs)


def _runs(seen: str) -> Iterator[_Run]:
    begin, current = 0, None
    for at, sign in enumerate(seen):
        here = _DIRECTIONS.get(unicodedata.bidirectional(sign))
        if here is not None and current is not None and here != current:
            yield _run(seen[begin:at], current)
            begin = at
        current = current if here is None else here
    yield _run(seen[begin:], current)


def _run(seen: str, backward: bool | None) -> _Run:
    return _Run(seen[::-1] if backward else seen, backward)


def _direction(runs: Sequence[_Run], around: bool | None) -> bool | None:
    """Return the direction of a line: that of both ends if they agree, else that of most letters;
    without letters, that of the text around it."""
    known = [run.backward for run in runs if run.backward is not None]
    if not known:
        return around
    if known[0] == known[-1]:
        return known[0]
    letters = sum(
        sign.isalpha() if run.backward else -sign.isalpha() for run in runs for sign in run.text
    )
    return letters > 0


def _reordered(runs: Sequence[_Run], backward: bool | None) -> str:
    """Return runs, given from left to right, in reading order. Characters without a direction at
    the ends of a run have its direction only if it is the direction of the whole."""
    ordered: list[tuple[str, bool | None]] = []
    for run in runs:
        core = run.text.strip(_LOOSE)
        if run.backward is None or not core:
            ordered.append((run.text, None))
            continue
        start, end = run.text.split(core, 1)
        left, right = (end[::-1], start[::-1]) if run.backward else (start, end)
        ordered += [(left, None), (core, run.backward), (right, None)]
    if backward:
        ordered = [
            (text[::-1], True) if direction is None else (text, direction)
            for text, direction in ordered
        ]
        ordered.reverse()
    return "".join(
        _ARABIC_DIGITS.sub(lambda found: found.group()[::-1], text) if direction else text
        for text, direction in ordered
    )
