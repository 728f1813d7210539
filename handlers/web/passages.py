"""Which part of a page answers a question: by the question's words alone, since this must take no
time. Pure.

A page is cut into passages of whole lines. Each is worth the sum over the question's terms of idf ·
tf/(tf + 1), where idf is taken over the page's own passages (Robertson and Spärck Jones' weights,
as in BM25), so that what stands on every line counts little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

SIZE = 1200  # characters of a passage; the best one comes with its neighbours up to twice that
LONGEST_LINE = 600

_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def best_passage(text: str, query: str) -> str:
    """At most 2 · SIZE characters of the text, the ones that have most of the query's words; ""
    where it has none of them."""
    passages = cut(text)
    wanted = terms(query)
    counted = [Counter(terms(passage)) for passage in passages]
    values = [_value(wanted, counts, counted) for counts in counted]
    best = max(range(len(passages)), key=lambda at: values[at], default=0)
    if not passages or values[best] <= 0:
        return ""
    first = last = best
    while True:
        near = [at for at in (first - 1, last + 1) if 0 <= at < len(passages)]
        near = [
            at
            for at in near
            if sum(map(len, passages[min(at, first) : max(at, last) + 1])) <= 2 * SIZE
        ]
        if not near:
            return "\n".join(passages[first : last + 1])
        at = max(near, key=lambda at: values[at])
        first, last = min(at, first), max(at, last)


def cut(text: str) -> list[str]:
    """The text in passages of at most SIZE characters: whole lines, and pieces of lines that are
    too long."""
    passages: list[str] = []
    for line in text.split("\n"):
        for piece in _pieces(line.strip()):
            if passages and len(passages[-1]) + len(piece) < SIZE:
                passages[-1] += f"\n{piece}"
            else:
                passages.append(piece)
    return passages


def terms(text: str) -> list[str]:
    """The words of a text without case and endings; pairs of ideographs, which have no spaces
    between words."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _IDEOGRAPHS.fullmatch(word):
            found += [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
        else:
            found.append(word[: max(4, len(word) - 2)] if word.isalpha() else word)
    return found


def _value(wanted: Sequence[str], counts: Counter[str], all: Sequence[Counter[str]]) -> float:
    value = 0.0
    for term in set(wanted):
        if counts[term]:
            having = sum(1 for other in all if other[term])
            value += (
                math.log(1 + (len(all) - having + 0.5) / (having + 0.5))
                * counts[term]
                / (counts[term] + 1)
            )
    return value


def _pieces(line: str) -> list[str]:
    """A line whole, or in pieces that end at a blank where there is one."""
    pieces: list[str] = []
    while len(line) > LONGEST_LINE:
        at = line.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE)
        at = at if at > 0 else LONGEST_LINE
        pieces.append(line[:at].strip())
        line = line[at:].strip()
    return [*pieces, line] if line else pieces
