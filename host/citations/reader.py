"""The reader of markers in a streamed answer: a fold over text. Pure.

Any splitting of the same answer into pieces gives the same text and the same markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from groundhook.host.citations.ids import LONGEST, SHORTEST

SHORTEST_FENCE = 3  # backticks or tildes that make a fence of code
DISTINCTIVE = 3  # a marker's prefix of this many characters does not occur in text by chance


@dataclass(frozen=True)
class Plain:
    """Text without a marker."""

    text: str


@dataclass(frozen=True)
class Marker:
    """A marker in the answer: as written, and the id in it."""

    text: str
    id: str


Piece = Plain | Marker


@dataclass(frozen=True)
class Line:
    """What has been seen of a line, as far as it says whether the line is a fence of code
    (CommonMark 0.31, 4.5)."""

    indent: int = 0  # blanks in front
    sign: str = ""  # the backtick or tilde that it begins with; `-` for anything else
    run: int = 0  # how many of them
    rest: Literal["", "blank", "text", "backtick"] = ""  # what stands behind them

    def further(self, text: str) -> Line:
        """With more of the line."""
        line = self
        if not line.sign:
            rest = text.lstrip(" ")
            indent = line.indent + len(text) - len(rest)
            text, sign = rest, rest[:1]
            line = replace(
                line,
                indent=indent,
                sign=sign if not sign or (sign in "`~" and indent <= 3) else "-",
            )
        if line.sign in ("", "-"):
            return line
        if not line.rest:
            rest = text.lstrip(line.sign)
            line, text = replace(line, run=line.run + len(text) - len(rest)), rest
        if not text:
            return line
        if line.run < SHORTEST_FENCE:
            return replace(line, sign="-")
        if "`" in text or line.rest == "backtick":
            return replace(line, rest="backtick")
        return replace(line, rest="text" if text.strip(" \t\r") or line.rest == "text" else "blank")

    @property
    def opens(self) -> bool:
        """Whether the line, if it ended here, would open a block of code."""
        fence = self.sign in ("`", "~") and self.run >= SHORTEST_FENCE
        return fence and not (self.sign == "`" and self.rest == "backtick")

    def closes(self, opener: Line) -> bool:
        """Whether the line, if it ended here, would close the block that `opener` began."""
        return self.sign == opener.sign and self.run >= opener.run and self.rest in ("", "blank")


@dataclass(frozen=True)
class Reading:
    """Where the reader stands: `held` may be the beginning of a marker, or waits for its line to be
    known as code; `line` is what stands before it in the current line; `fence` is the line that
    opened a block of code."""

    held: str = ""
    line: Line = Line()
    fence: Line | None = None


@dataclass(frozen=True)
class Grammar:
    """What a marker looks like under one `citation.format`, or under several."""

    forms: tuple[tuple[str, str], ...]  # what stands before an id, and behind it
    pattern: re.Pattern[str]

    @staticmethod
    @lru_cache(maxsize=64)
    def of(*formats: str) -> Grammar:
        # The longer form first, where one is the beginning of the other.
        forms = sorted(
            (
                (before, after)
                for before, _, after in (format.partition("{id}") for format in formats)
            ),
            key=_longest,
        )
        return Grammar(
            tuple(forms), re.compile("|".join(_form(before, after) for before, after in forms))
        )

    def find(self, text: str, start: int = 0) -> tuple[int, Marker] | None:
        """The first marker from `start` on, and where it begins."""
        match = self.pattern.search(text, start)
        return (match.start(), Marker(match[0], match[match.lastindex or 0])) if match else None

    def could_begin(self, text: str) -> bool:
        """Whether `text` may be the beginning of a marker whose rest has not come yet."""
        return any(_could_begin(text, before, after) for before, after in self.forms)

    def beginning(self, text: str, start: int = 0) -> int:
        """Where from `start` on a marker may begin whose rest has not come yet; the end of the text
        when none does."""
        reach = max(len(before) + LONGEST + len(after) for before, after in self.forms)
        return next(
            (
                at
                for at in range(max(start, len(text) - reach), len(text))
                if self.could_begin(text[at:])
            ),
            len(text),
        )


def _longest(form: tuple[str, str]) -> tuple[int, int, tuple[str, str]]:
    return (-len(form[0]), -len(form[1]), form)


def _form(before: str, after: str) -> str:
    if len(before.strip()) >= DISTINCTIVE:
        id = rf"[A-Za-z0-9]{{1,{LONGEST}}}"
    else:  # `[note]` and `[2024]` are text: an id holds a letter and a digit
        id = rf"(?=[A-Za-z0-9]*[A-Za-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{{{SHORTEST},{LONGEST}}}"
    return re.escape(before) + f"({id})" + (re.escape(after) or "(?![A-Za-z0-9])")


def _could_begin(text: str, before: str, after: str) -> bool:
    if len(text) <= len(before):
        return before.startswith(text)
    if not text.startswith(before):
        return False
    body = text[len(before) :]
    id = re.match(r"[A-Za-z0-9]*", body)
    assert id is not None
    if len(id[0]) > LONGEST:
        return False
    rest = body[id.end() :]
    return rest == "" or (len(rest) < len(after) and after.startswith(rest))


def read(
    reading: Reading, text: str, grammar: Grammar, *, last: bool = False
) -> tuple[Reading, list[Piece]]:
    """Read more of an answer. What may still become a marker is held back until the next call or
    the `last`."""
    pieces: list[Piece] = []
    state = replace(reading, held="")
    for line in _lines(reading.held + text):
        state, found = _read_line(state, line, grammar, last=last)
        pieces += found
    return state, _joined(pieces)


def _read_line(
    state: Reading, text: str, grammar: Grammar, *, last: bool
) -> tuple[Reading, list[Piece]]:
    """Read (part of) one line → state, pieces."""
    ended = text.endswith("\n")
    line = state.line.further(text.removesuffix("\n"))
    decided = (
        last or ended or line.sign != "`"
    )  # a backtick further on in its line makes an opening fence prose
    pieces: list[Piece] = [Plain(text)]
    held = ""
    if state.fence is None and not line.opens:
        pieces, held = _read_prose(text, grammar, last=last or ended)
    elif state.fence is None and not decided:
        pieces, held = _before_markers(text, grammar)
    if not ended:
        seen = text[: len(text) - len(held)]
        return replace(state, line=state.line.further(seen), held=held), pieces
    if state.fence is None:
        return Reading(fence=line if line.opens else None), pieces
    return Reading(fence=None if line.closes(state.fence) else state.fence), pieces


def _read_prose(text: str, grammar: Grammar, *, last: bool) -> tuple[list[Piece], str]:
    pieces: list[Piece] = []
    done = 0
    while True:
        unsure = len(text) if last else grammar.beginning(text, done)
        found = grammar.find(text, done)
        if found is None or found[0] >= unsure:
            pieces.append(Plain(text[done:unsure]))
            return [piece for piece in pieces if piece.text], text[unsure:]
        start, marker = found
        pieces += [Plain(text[done:start]), marker]
        done = start + len(marker.text)


def _before_markers(text: str, grammar: Grammar) -> tuple[list[Piece], str]:
    """The text up to where a marker begins or may begin, and what is held back."""
    found = grammar.find(text)
    end = min(grammar.beginning(text), found[0] if found else len(text))
    return [Plain(text[:end])] if end else [], text[end:]


def _lines(text: str) -> Iterator[str]:
    yield from re.findall(r"[^\n]*\n|[^\n]+", text)


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, Plain) and isinstance(before := joined[-1], Plain):
            joined[-1] = Plain(before.text + piece.text)
        else:
            joined.append(piece)
    return joined


def defuse(text: str, grammar: Grammar) -> str:
    """`text` with every marker broken by an invisible word joiner: a document that contains
    `#ref:a1b2` is quoted without citing anything."""
    while grammar.pattern.search(
        text
    ):  # again, since what was broken may have hidden the beginning of the next
        text = grammar.pattern.sub(_broken, text)
    return text


def _broken(match: re.Match[str]) -> str:
    """With the joiner before the id, where it breaks this marker under every format."""
    at = match.start(match.lastindex or 0) - match.start()
    return f"{match[0][:at]}\u2060{match[0][at:]}"
