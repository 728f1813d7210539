"""Reads the markers in a streamed answer: a fold over text. Pure.

The result is the same for every way of splitting an answer into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from groundhook.core.types.markers import halves
from groundhook.host.search.citations.ids import LONGEST, SHORTEST

SHORTEST_FENCE = 3  # backticks or tildes that make a fence of code
DISTINCTIVE = 3  # characters; a marker with a prefix of this length is not ordinary text


LONGEST_CODE = 300  # characters of a piece of code in a line; a longer one is read as prose
LONGEST_NEAR = 80  # characters of a near miss, all of which are held back until it is decided
LONGEST_WORD = 20
LONGEST_NEAR_ID = 12
MOST_IN_GROUP = 5
LONGEST_NUMBER = 3  # digits of `{index}`
LONGEST_PART, MOST_LINES = 4096, 200  # characters and lines that are read at a time
Form = tuple[str, str, bool]  # the text before an id, after it, and whether the id is a number


@dataclass(frozen=True)
class Plain:
    """Text without a marker."""

    text: str


@dataclass(frozen=True)
class Marker:
    """A marker in the answer: its text, and the id in it. `near`: it is not written as the format
    has it, or as a group: it is a citation if `id` has ids of sources alone, with commas between
    them."""

    text: str
    id: str
    near: bool = False


Piece = Plain | Marker


@dataclass(frozen=True)
class MarkdownLine:
    """The properties of a line that decide whether it is a fence of code (CommonMark 0.31, 4.5)."""

    indent: int = 0  # leading blanks
    sign: str = ""  # its first character if a backtick or tilde; `-` for any other
    run: int = 0  # length of the run of that character
    rest: Literal["", "blank", "text", "backtick"] = ""  # the text after the run

    def extend(self, text: str) -> MarkdownLine:
        """Return the line with more text."""
        line = self
        if not line.sign:
            rest = text.lstrip(" ")
            indent = line.indent + len(text) - len(rest)
            text, sign = rest, rest[:1]
            # Most lines end here, and `replace` takes longer than all else that is read of them.
            line = MarkdownLine(indent, sign if not sign or (sign in "`~" and indent <= 3) else "-")
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
        """Whether the line opens a block of code if it ends here."""
        fence = self.sign in ("`", "~") and self.run >= SHORTEST_FENCE
        return fence and not (self.sign == "`" and self.rest == "backtick")

    def closes(self, opener: MarkdownLine) -> bool:
        """Return whether the line closes the block of `opener` if it ends here."""
        return self.sign == opener.sign and self.run >= opener.run and self.rest in ("", "blank")


@dataclass(frozen=True)
class Reading:
    """The state of the reader: `held` may be the beginning of a marker, or of a line that may be a
    fence; `line` is the current line before it; `fence` is the line that opened a block of code."""

    held: str = ""
    line: MarkdownLine = MarkdownLine()
    fence: MarkdownLine | None = None


@dataclass(frozen=True)
class Grammar:
    """The markers of one `citation.format`, or of several."""

    forms: tuple[Form, ...]
    pattern: re.Pattern[str]
    anyhow: re.Pattern[str]  # also near misses: `(ref:a1b2)`, `[a1b2]`, `[1, 2]`
    begun: re.Pattern[str]  # the beginning of a near miss

    @staticmethod
    @lru_cache(maxsize=64)
    def of(*formats: str) -> Grammar:
        """Return the grammar of these formats."""
        # The longer form first: one may be the beginning of another.
        forms = sorted({halves(format) for format in formats}, key=_sort_key)
        strict = "|".join(_form(*form) for form in forms)
        anyhow = "|".join([strict, *_near_misses(forms)])
        return Grammar(tuple(forms), re.compile(strict), re.compile(anyhow), _begun(forms))

    def find(self, text: str, start: int = 0) -> tuple[int, Marker] | None:
        """Return the first marker from `start` on with its position, or None."""
        match = self.anyhow.search(text, start)
        if match is None:
            return None
        near = (match.lastindex or 0) > len(self.forms)
        return match.start(), Marker(match[0], match[match.lastindex or 0], near)

    @property
    def reads_code(self) -> bool:
        """Whether code in a line has markers, because a form is written with its backticks."""
        return any("`" in before + after for before, after, _ in self.forms)

    def could_begin(self, text: str) -> bool:
        """Return whether `text` may be the beginning of a marker that is not complete yet."""
        return any(_could_begin(text, *form) for form in self.forms) or (
            len(text) <= LONGEST_NEAR and self.begun.fullmatch(text) is not None
        )

    def beginning(self, text: str, start: int = 0) -> int:
        """Return the position from `start` on where an incomplete marker may begin; without one the
        length of the text."""
        reach = max(len(before) + LONGEST + len(after) for before, after, _ in self.forms)
        reach = max(reach, LONGEST_NEAR)
        return next(
            (
                at
                for at in range(max(start, len(text) - reach), len(text))
                if self.could_begin(text[at:])
            ),
            len(text),
        )


_ID = (
    rf"(?=[0-9]{{0,{LONGEST}}}[A-Za-z])(?=[A-Za-z]{{0,{LONGEST}}}[0-9])"
    rf"[A-Za-z0-9]{{{SHORTEST},{LONGEST}}}"
)
_SHORT_ID = _ID.replace(f"{{{SHORTEST},{LONGEST}}}", f"{{{SHORTEST},{LONGEST_NEAR_ID}}}")


def _near_misses(forms: Iterable[Form]) -> list[str]:
    """Return the patterns of what can only mean a marker of these forms: the word of a form in
    another spelling, an id alone in brackets, and several ids or numbers in one bracket."""
    found: dict[str, None] = {}
    for before, _, numbered in forms:
        id = rf"[0-9]{{1,{LONGEST_NUMBER}}}" if numbered else _SHORT_ID
        if word := _word(before):
            found[rf"#?(?i:{word}): ?({id})(?![A-Za-z0-9])"] = None
        if not numbered:
            found[rf"\[({id})\](?![(\[:])"] = None
        found[rf"\[({id}(?:, ?{id}){{1,{MOST_IN_GROUP - 1}}})\](?![(\[:])"] = None
    return list(found)


def _begun(forms: Iterable[Form]) -> re.Pattern[str]:
    """Return the pattern of what may become a near miss with more text."""
    words = {word for before, _, _ in forms if (word := _word(before))}
    parts = [
        "".join(f"(?:(?i:{sign})" for sign in word) + "(?:: ?[A-Za-z0-9]*)?" + ")?" * len(word)
        for word in words
    ]
    return re.compile(
        "|".join([r"\[[A-Za-z0-9]*(?:, ?[A-Za-z0-9]*)*\]?", *(f"#?{part}" for part in parts)])
    )


def _word(before: str) -> str:
    """Return the word of a form, such as `ref`; "" without one."""
    letters = "".join(sign for sign in before if sign.isascii() and sign.isalpha())
    return letters.lower() if DISTINCTIVE <= len(letters) <= LONGEST_WORD else ""


def _sort_key(form: Form) -> tuple[int, int, Form]:
    return (-len(form[0]), -len(form[1]), form)


def _form(before: str, after: str, numbered: bool) -> str:
    if numbered:  # `[2024]` is text
        id = rf"[0-9]{{1,{LONGEST_NUMBER}}}"
    elif len(before.strip()) >= DISTINCTIVE:
        id = rf"[A-Za-z0-9]{{1,{LONGEST}}}"
    else:  # `[note]` and `[2024]` are text: an id has a letter and a digit
        id = _ID
    return re.escape(before) + f"({id})" + (re.escape(after) or "(?![A-Za-z0-9])")


def _could_begin(text: str, before: str, after: str, numbered: bool) -> bool:
    if len(text) <= len(before):
        return before.startswith(text)
    if not text.startswith(before):
        return False
    body = text[len(before) :]
    id = re.match(r"[0-9]*" if numbered else r"[A-Za-z0-9]*", body)
    assert id is not None
    if len(id[0]) > (LONGEST_NUMBER if numbered else LONGEST):
        return False
    rest = body[id.end() :]
    return rest == "" or (len(rest) < len(after) and after.startswith(rest))


def parts(text: str) -> Iterator[str]:
    """Yield a text in parts, each of which is read within a few milliseconds."""
    at = 0
    while at < len(text):
        part = text[at : at + LONGEST_PART]
        if len(lines := part.split("\n", MOST_LINES)) > MOST_LINES and lines[-1]:
            part = part[: -len(lines[-1])]
        yield part
        at += len(part)


def read(
    reading: Reading, text: str, grammar: Grammar, *, last: bool = False
) -> tuple[Reading, list[Piece]]:
    """Read more of an answer and return the new state and the complete pieces. Text that may still
    become a marker is held back until the next call, or the `last` one."""
    pieces: list[Piece] = []
    state = replace(reading, held="")
    for line in _split_lines(reading.held + text):
        state, found = _read_line(state, line, grammar, last=last)
        pieces += found
    return state, _join(pieces)


def _read_line(
    state: Reading, text: str, grammar: Grammar, *, last: bool
) -> tuple[Reading, list[Piece]]:
    """Read a line or a part of one and return the new state and the pieces."""
    ended = text.endswith("\n")
    line = state.line.extend(text.rstrip("\n"))
    # A line that begins with backticks is prose if another backtick follows in it.
    decided = last or ended or line.sign != "`"
    pieces: list[Piece] = [Plain(text)]
    held = ""
    if state.fence is None and not line.opens:
        pieces, held = _read_prose(text, grammar, last=last or ended)
    elif state.fence is None and not decided:
        begun = len(text) < LONGEST_CODE and not state.line.sign and not grammar.reads_code
        pieces, held = ([], text) if begun else _split_before_marker(text, grammar)
    if not ended:
        seen = text[: len(text) - len(held)]
        return replace(state, line=state.line.extend(seen), held=held), pieces
    if state.fence is None:
        return Reading(fence=line if line.opens else None), pieces
    return Reading(fence=None if line.closes(state.fence) else state.fence), pieces


def _read_prose(text: str, grammar: Grammar, *, last: bool) -> tuple[list[Piece], str]:
    pieces: list[Piece] = []
    done = at = 0  # the ends of what is in pieces, and of what is read
    found = grammar.find(text)
    begins = -1  # where the incomplete marker does, once it is known
    while True:
        if found is not None and found[0] < at:
            found = grammar.find(text, at)
        tick = -1 if grammar.reads_code else text.find("`", at)
        if tick >= 0 and (found is None or tick < found[0]):
            end = _end_of_code(text, tick, last=last)
            unsure = tick
            if end is not None:
                at = end
                continue
        else:
            if begins < at:
                begins = len(text) if last else grammar.beginning(text, at)
            unsure = begins
            if found is not None and found[0] < unsure:
                start, marker = found
                pieces += [Plain(text[done:start]), marker]
                done = at = start + len(marker.text)
                continue
        pieces.append(Plain(text[done:unsure]))
        return [piece for piece in pieces if piece.text], text[unsure:]


def _end_of_code(text: str, start: int, *, last: bool) -> int | None:
    """Return the end of the code that the backticks at `start` open; that of the backticks if they
    open none, and None if more text decides."""
    opener = _RUN.match(text, start)
    assert opener is not None
    end, limit = opener.end(), opener.end() + LONGEST_CODE
    if end - start > LONGEST_CODE:
        return start + LONGEST_CODE
    if end == len(text):
        return end if last else None
    for run in _RUN.finditer(text, end):
        if run.start() >= limit:
            return end
        if run.end() == len(text) and not last:
            return None
        if run.end() - run.start() == end - start:
            return run.end()
    return end if last or len(text) >= limit else None


_RUN = re.compile("`+")


def _split_before_marker(text: str, grammar: Grammar) -> tuple[list[Piece], str]:
    """Return the text before the first possible marker, and the rest, which is held back."""
    found = grammar.find(text)
    end = min(grammar.beginning(text), found[0] if found else len(text))
    return [Plain(text[:end])] if end else [], text[end:]


def _split_lines(text: str) -> Iterator[str]:
    # With the empty lines after it, which decide nothing.
    yield from re.findall(r"[^\n]*\n+|[^\n]+", text)


def _join(pieces: Iterable[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, Plain) and isinstance(before := joined[-1], Plain):
            joined[-1] = Plain(before.text + piece.text)
        else:
            joined.append(piece)
    return joined


def defuse(text: str, grammar: Grammar) -> str:
    """Return `text` with an invisible word joiner in every marker: a document that contains
    `#ref:a1b2` is quoted without citing a source."""
    # Repeated, since a marker that overlaps with a broken one is found only in the next round.
    while grammar.pattern.search(text):
        text = grammar.pattern.sub(_break_marker, text)
    return text


def _break_marker(match: re.Match[str]) -> str:
    """Return the marker with a joiner before the id, which breaks it in every format."""
    at = match.start(match.lastindex or 0) - match.start()
    return f"{match[0][:at]}\u2060{match[0][at:]}"
