"""Splits a chunk into units: sentences, list entries, table rows, lines of code; headings belong to
the unit that follows them. Knows which units only announce what comes next. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from groundhook.core.language.sentences import spans

LONGEST = 480  # bytes of a unit: a longer sentence is cut at clauses or blanks
TITLE = 8  # words of a title after a number: "4. How long it takes."
# Chunks whose units, tokens and runs are cached, since many questions find the same ones.
REMEMBERED = 1024

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ENTRY = re.compile(r"[ \t]*(?:[-*+•‣▪–]|\(?\d{1,3}[.)])[ \t]+\S")
# The line between the header of a table and its rows.
RULE = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?>(?:\|[ \t]*+:?-++:?[ \t]*+)*)\|?[ \t]*+$")
_CLAUSE = re.compile(r"[;,、，；،][ \t\n]*|[ \t\n]+")
_ANNOUNCES = (":", "：")
_ASKS = ("?", "？", "؟", "՞", "⁇")
_NUMBER = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*)[.)]?")

_Kind = Literal["heading", "text", "entry", "row", "code"]


class Unit(NamedTuple):
    """Characters `start` to `end` of a chunk; the text itself begins at `body`, after headings.
    Units of one paragraph, list, table or block of code share their `block` number."""

    start: int
    body: int
    end: int
    kind: _Kind
    block: int


@lru_cache(maxsize=REMEMBERED)
def units(content: str) -> tuple[Unit, ...]:
    """Return the units of a chunk, in order. Only blanks lie between them."""
    found: list[Unit] = []
    begin = -1  # start of headings that wait for the unit they belong to
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


def _pieces(content: str, kind: _Kind, start: int, end: int) -> Iterator[tuple[int, int]]:
    if kind in ("row", "code"):
        lines = _lines(content, start, end)
        if kind == "row" and len(lines) > 1 and RULE.match(content[slice(*lines[1])]):
            lines[:2] = [(lines[0][0], lines[1][1])]
        yield from lines
        return
    for low, high in _entries(content, start, end) if kind == "entry" else [(start, end)]:
        for first, last in spans(content, low, high):
            yield from _cut(content, first, last)


def _lines(content: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the lines that are not blank, without the line feed."""
    return [
        (low, high) for low, high in _every_line(content, start, end) if content[low:high].strip()
    ]


def _every_line(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for line in content[start:end].split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _entries(content: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the entries of a list; a line that does not begin an entry continues the one
    before."""
    found: list[tuple[int, int]] = []
    for low, high in _lines(content, start, end):
        if found and not _ENTRY.match(content[low:high]):
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _cut(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return the sentence in pieces of at most `LONGEST` bytes."""
    while (size := _bytes(content, start, end)) > LONGEST:
        reach = start + max(1, (end - start) * LONGEST // (2 * size))
        ends = [
            found.end() for found in _CLAUSE.finditer(content, start + (reach - start) // 2, reach)
        ]
        stop = ends[-1] if ends else reach
        yield start, start + len(content[start:stop].rstrip())
        start = stop
    if content[start:end].strip():
        yield start, end


def _bytes(content: str, start: int, end: int) -> int:
    if content.isascii():  # without copying
        return end - start
    return len(content[start:end].encode(errors="replace"))


def _blocks(content: str) -> Iterator[tuple[_Kind, int, int]]:
    """Return headings, paragraphs, lists, tables and blocks of code, recognised by how their lines
    begin."""
    block: tuple[_Kind, int, int] | None = None
    for kind, low, high, begins in _kinds_of_lines(content):
        if block and kind == block[0] and not begins:
            block = (kind, block[1], high)
        else:
            if block:
                yield block
            block = (kind, low, high)
    if block:
        yield block


def _kinds_of_lines(content: str) -> Iterator[tuple[_Kind, int, int, bool]]:
    """Yield the kind, the start and the end of each line, and whether it begins a block even after
    a line of its kind. Empty lines outside fenced code are omitted."""
    fence, parted = "", False
    before: _Kind | None = None
    for low, high in _every_line(content, 0, len(content)):
        line = content[low:high]
        if fence:
            yield "code", low, high, False
            if line.strip().startswith(fence) and not line.strip(f" \t{fence[0]}"):
                fence = ""
        elif not line.strip():
            parted = True
        else:
            opened = _FENCE.match(line)
            fence = opened[1] if opened else ""
            before = "code" if opened else _kind(line, before, parted=parted)
            apart = parted and before not in ("entry", "code")
            yield before, low, high, bool(opened) or before == "heading" or apart
            parted = False


def _kind(line: str, before: _Kind | None, *, parted: bool) -> _Kind:
    """Return the kind of a line that is not empty and not in fenced code. `parted`: an empty line
    comes before it."""
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


@lru_cache(maxsize=REMEMBERED)
def labels(content: str) -> tuple[bool, ...]:
    """Return for each unit whether it only announces what follows it: a heading, a colon, a number
    such as "4.", the title after such a number, a question that is not followed by another."""
    all = units(content)
    return tuple([_is_label(content, all, at) for at in range(len(all))])


def _is_label(content: str, all: Sequence[Unit], at: int) -> bool:
    unit, after = all[at], all[at + 1] if at + 1 < len(all) else None
    end = content[max(unit.body, unit.end - 8) : unit.end].rstrip("*_` \t")
    if unit.kind == "heading" or end.endswith(_ANNOUNCES):
        return True
    if after is None or unit.kind in ("row", "code"):
        return False
    if end.endswith(_ASKS):
        return not content[after.body : after.end].rstrip("*_` \t").endswith(_ASKS)
    if _NUMBER.fullmatch(content, unit.body, unit.end):
        return True
    return (
        at > 0
        and _NUMBER.fullmatch(content, all[at - 1].body, all[at - 1].end) is not None
        and _NUMBER.fullmatch(content, after.body, after.end) is None
        and content.count(" ", unit.body, unit.end) < TITLE
    )
