"""Which part of a long chunk answers a question: whole sentences that follow one another. Pure,
quick, the same every time.

A chunk is cut into units: sentences, entries of a list, rows of a table, lines of code. Lists,
tables and code stay whole where they fit, with the sentence that announces them, and a heading goes
with what follows it. Of all runs of units that fit, the one is taken that has most of the
question's words: a word weighs what the collection's analyser gives it in a question, times how
rare it is among the units of everything that was found, and saturates as in BM25; what one unit of
the run has all by itself counts once more, and so does the beginning of a chunk, which says what
the rest is about. Where the question's words do not tell, the chunk stays whole: it was found by
its meaning, and nothing here knows which sentence that is.

Measured by `bench.passages`, on sections of this repository's documents and on paragraphs of
XQuAD-en, three to a chunk.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from typing import Literal, NamedTuple

from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embed import estimated_tokens
from groundhook.host.core.sentences import spans

LONGEST = 480  # bytes of a unit: what no terminator ends is cut at clauses or blanks
SATURATION = 0.9  # k of BM25
OF_BEST = 1.0  # of what the best unit of a run has by itself, beside what the run has
# of the weight of all words of the question that were found anywhere: what the beginning of a chunk
# is worth
LEAD = 0.3
LEAST_SHARE = 0.25  # of the same: a run with less does not tell
SPARE = 1.25  # times as much as a part may have: a chunk with no more is not worth cutting
# chunks of which all is kept that does not depend on the question: the same ones answer many
REMEMBERED = 1024

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ENTRY = re.compile(r"[ \t]*(?:[-*+•‣▪–]|\(?\d{1,3}[.)])[ \t]+\S")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CLAUSE = re.compile(r"[;,、，；،][ \t\n]*|[ \t\n]+")
_ANNOUNCES = ":："

Kind = Literal["heading", "text", "entry", "row", "code"]


class Unit(NamedTuple):
    """Characters `start` to `end` of a chunk; what is said begins at `body`, behind headings.
    `block` tells paragraphs, lists, tables and pieces of code apart."""

    start: int
    body: int
    end: int
    kind: Kind
    block: int


@dataclass(frozen=True)
class Part:
    """Characters `start` to `end` of a chunk, its units `first` to `last` of `of`, counted from 1.
    `header` is that of the table in whose middle the part begins; it is told before the part."""

    start: int
    end: int
    first: int
    last: int
    of: int
    header: str = ""

    def text(self, content: str) -> str:
        return self.header + content[self.start : self.end]


def parts(contents: Sequence[str], question: str, language: str, most: int) -> list[Part | None]:
    """For each chunk the part of at most `most` tokens, as `estimated_tokens` counts them, that
    answers the question; more only where a unit alone has more, or the names of a table's columns
    with its first row. None: the chunk as it is, since it has hardly more, or the question's words
    do not tell."""
    if max(map(estimated_tokens, contents), default=0) <= SPARE * most:
        return [None] * len(contents)
    analyser = Analyser(language)
    asked = analyser.question(question)
    wanted = dict(zip(asked.indices, asked.values, strict=True))
    among = frozenset(wanted)
    words = [[among & unit for unit in _said(content, language)] for content in contents]
    seen = Counter(chain.from_iterable(chain.from_iterable(words)))
    number = sum(map(len, words))
    worth = {
        word: wanted[word] * math.log(1 + (number - count + 0.5) / (count + 0.5))
        for word, count in seen.items()
    }
    return [_part(content, own, worth, most) for content, own in zip(contents, words, strict=True)]


@lru_cache(maxsize=REMEMBERED)
def _said(content: str, language: str) -> tuple[frozenset[int], ...]:
    """The tokens of each unit of a chunk."""
    analyser = Analyser(language)
    return tuple([analyser.indices(content[unit.start : unit.end]) for unit in units(content)])


def _part(
    content: str, words: Sequence[frozenset[int]], worth: Mapping[int, float], most: int
) -> Part | None:
    if estimated_tokens(content) <= SPARE * most or not any(words):
        return None
    all = units(content)
    every = math.fsum(worth.values())
    having = [at for at, unit in enumerate(words) if unit]
    alone = {at: math.fsum(map(worth.__getitem__, words[at])) for at in having}

    def value(run: tuple[int, int]) -> tuple[float, int]:
        """What the units of a run have of the question's words, and how near to its middle the one
        is that has most."""
        lead = 0.0 if run[0] else LEAD * every
        inside = having[bisect_left(having, run[0]) : bisect_right(having, run[1])]
        if not inside:
            return round(lead, 6), 0
        counts: dict[int, int] = {}  # of very few, for which a Counter takes longer
        for word in chain.from_iterable([words[at] for at in inside]):
            counts[word] = counts.get(word, 0) + 1
        saturated = [
            worth[word] * count * (SATURATION + 1) / (count + SATURATION)
            for word, count in counts.items()
        ]
        best = max(inside, key=alone.__getitem__)
        return round(math.fsum(saturated) + OF_BEST * alone[best] + lead, 6), -abs(
            2 * best - run[0] - run[1]
        )

    first, last = max(_runs(content, most), key=value)
    had = {word for unit in words[first : last + 1] for word in unit}
    if (first, last) == (0, len(all) - 1) or math.fsum(
        worth[word] for word in had
    ) <= LEAST_SHARE * every:
        return None
    return Part(
        all[first].start, all[last].end, first + 1, last + 1, len(all), _header(content, all, first)
    )


# --------------------------------------------------------------------------------------------- runs


@lru_cache(maxsize=REMEMBERED)
def _runs(content: str, most: int) -> tuple[tuple[int, int], ...]:
    """The first and the last unit of each run that fits and to which nothing can be added; at least
    one whole segment."""
    all = units(content)
    segments = _segments(content, all, most)
    runs: list[tuple[int, int]] = []
    reached, end = -1, 0
    for begin, (first, _) in enumerate(segments):
        room = most - estimated_tokens(_header(content, all, first))
        end = max(begin, end)
        while end > begin and _tokens(content, all, first, segments[end][1]) > room:
            end -= 1
        while (
            end + 1 < len(segments) and _tokens(content, all, first, segments[end + 1][1]) <= room
        ):
            end += 1
        if end > reached:
            runs.append((first, segments[end][1]))
        reached = max(reached, end)
    return tuple(runs)


def _segments(content: str, all: Sequence[Unit], most: int) -> list[tuple[int, int]]:
    """What is not parted, as first and last unit: lists, tables and code that fit, with what
    announces them; else each unit."""
    segments: list[tuple[int, int]] = []
    for _, block in groupby(range(len(all)), key=lambda at: all[at].block):
        places = list(block)
        first, last = places[0], places[-1]
        if all[first].kind == "text":
            segments += [(place, place) for place in places]
            continue
        if _tokens(content, all, first, last) > most:
            names = (
                1 if len(places) > 1 and all[first].kind == "row" else 0
            )  # of columns, with the first row
            segments += [(first, places[names]), *((place, place) for place in places[names + 1 :])]
            continue
        before = segments[-1] if segments else None
        if (
            before
            and content[all[before[1]].end - 1] in _ANNOUNCES
            and _tokens(content, all, before[0], last) <= most
        ):
            segments[-1] = (before[0], last)
        else:
            segments.append((first, last))
    return segments


def _tokens(content: str, all: Sequence[Unit], first: int, last: int) -> int:
    return estimated_tokens(content[all[first].start : all[last].end])


def _header(content: str, all: Sequence[Unit], first: int) -> str:
    """The header of the table in whose middle a run begins."""
    unit = all[first]
    if unit.kind != "row" or first == 0 or all[first - 1].block != unit.block:
        return ""
    top = next(other for other in all if other.block == unit.block)
    header = content[top.body : top.end]
    return f"{header}\n" if _RULE.match(header.rpartition("\n")[2]) and "\n" in header else ""


# -------------------------------------------------------------------------------------------- units


@lru_cache(maxsize=REMEMBERED)
def units(content: str) -> tuple[Unit, ...]:
    """The units of a chunk, in its order. Between them are blanks alone."""
    found: list[Unit] = []
    begin = -1  # of headings that nothing follows yet
    for number, (kind, start, end) in enumerate(_blocks(content)):
        if kind == "heading":
            begin = start if begin < 0 else begin
            continue
        for low, high in _pieces(content, kind, start, end):
            found.append(Unit(low if begin < 0 else begin, low, high, kind, number))
            begin = -1
    if begin >= 0:  # headings alone, or at the end
        end = len(content.rstrip())
        found.append(Unit(begin, begin, end, "heading", len(content)))
    return tuple(found)


def _pieces(content: str, kind: Kind, start: int, end: int) -> Iterator[tuple[int, int]]:
    if kind in ("row", "code"):
        lines = _lines(content, start, end)
        if kind == "row" and len(lines) > 1 and _RULE.match(content[slice(*lines[1])]):
            lines[:2] = [(lines[0][0], lines[1][1])]
        yield from lines
        return
    for low, high in _entries(content, start, end) if kind == "entry" else [(start, end)]:
        for first, last in spans(content, low, high):
            yield from _cut(content, first, last)


def _lines(content: str, start: int, end: int) -> list[tuple[int, int]]:
    """Lines with something in them, without the line feed."""
    return [
        (low, high) for low, high in _every_line(content, start, end) if content[low:high].strip()
    ]


def _every_line(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for line in content[start:end].split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _entries(content: str, start: int, end: int) -> list[tuple[int, int]]:
    """The entries of a list; what does not begin one goes on with the one before."""
    found: list[tuple[int, int]] = []
    for low, high in _lines(content, start, end):
        if found and not _ENTRY.match(content[low:high]):
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _cut(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, in pieces where it is too long to be one."""
    while (size := len(content[start:end].encode(errors="replace"))) > LONGEST:
        reach = start + max(1, (end - start) * LONGEST // (2 * size))
        ends = [
            found.end() for found in _CLAUSE.finditer(content, start + (reach - start) // 2, reach)
        ]
        stop = ends[-1] if ends else reach
        yield start, start + len(content[start:stop].rstrip())
        start = stop
    if content[start:end].strip():
        yield start, end


def _blocks(content: str) -> Iterator[tuple[Kind, int, int]]:
    """Headings, paragraphs, lists, tables and pieces of code, by how their lines begin: as much of
    Markdown as it takes to keep together what belongs together."""
    block: tuple[Kind, int, int] | None = None
    fence, parted = "", False
    for low, high in _every_line(content, 0, len(content)):
        line = content[low:high]
        if not fence and not line.strip():
            parted = True
            continue
        opened = None if fence else _FENCE.match(line)
        kind: Kind = (
            "code" if fence or opened else _kind(line, block[0] if block else None, parted=parted)
        )
        goes_on = fence or (
            kind not in ("heading", opened and "code") and (not parted or kind in ("entry", "code"))
        )
        if block and goes_on and kind == block[0]:
            block = (kind, block[1], high)
        else:
            if block:
                yield block
            block = (kind, low, high)
        if opened:
            fence = opened[1]
        elif fence and line.strip().startswith(fence) and not line.strip(f" \t{fence[0]}"):
            fence = ""
        parted = False
    if block:
        yield block


def _kind(line: str, before: Kind | None, *, parted: bool) -> Kind:
    """Of a line outside of fenced code that is not empty. `parted`: an empty one stands before
    it."""
    if line[0].isalpha():  # as most are
        return "entry" if before == "entry" and not parted else "text"
    if _HEADING.match(line):
        return "heading"
    if line.lstrip().startswith("|"):
        return "row"
    if _ENTRY.match(line) or (before == "entry" and (not parted or line[:2].isspace())):
        return "entry"
    indented = line.startswith(("    ", "\t"))
    return "code" if indented and (before in (None, "code") or parted) else "text"
