"""Prepares streamed text for a terminal: escapes control characters and breaks lines.

Answers, titles and documents are untrusted. `visible` removes every character that a terminal would
interpret. `Flow` breaks lines at spaces while the text arrives; it is independent of terminal
libraries and receives the function that measures characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

# C0 without tab and line feed, DEL, C1; the overrides of writing direction, with which a title
# could rewrite its line; halves of surrogate pairs, which cannot be encoded.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a\u202b\u202d\u202e\ud800-\udfff]")
_POP = "\u2069"
_ISOLATE = re.compile("[\u2066-\u2069]")
_ISOLATING = re.compile("[\u2066-\u2069\n]")

Styled: TypeAlias = tuple[str, str]  # text, style
_Measure = Callable[[str], int]  # characters → cells of the terminal


def visible(text: str) -> str:
    """Return the text with escaped control characters (`\\x1b`) and every isolate closed. Tabs,
    line feeds and \\r\\n stay."""
    isolates = Isolates()
    return isolates.feed(text) + isolates.end()


class Isolates:
    """Makes text that arrives in pieces visible. Right-to-left text separates names and numbers
    with directional isolates (U+2066 to U+2069); an open one would reverse the text after it. Each
    is closed at the end of its line at the latest, and an end without a beginning is removed."""

    def __init__(self) -> None:
        self._open = 0

    def feed(self, text: str) -> str:
        """Return the next piece, made visible."""
        text = _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))
        return _ISOLATING.sub(self._balance, text) if self._open or _ISOLATE.search(text) else text

    def end(self) -> str:
        """Return the characters that close the open isolates."""
        open_, self._open = self._open, 0
        return _POP * open_

    def _balance(self, match: re.Match[str]) -> str:
        sign = match[0]
        if sign == "\n":
            return self.end() + sign
        if sign != _POP:
            self._open += 1
            return sign
        if not self._open:
            return ""
        self._open -= 1
        return sign


def one_line(text: str) -> str:
    """Return the text, visible, on one line."""
    return visible(" ".join(text.split()))


def compact(value: Any) -> str:
    """Return a value as the shortest text that shows it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters; a cut text ends with "…"."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Flow:
    """Breaks text into lines of at most `width` cells, at spaces and around wide characters. Width
    0: never.

    A word is held back until it is complete; the terminal breaks a word wider than a line.
    """

    def __init__(self, width: int, measure: _Measure) -> None:
        self._width = width
        self._measure = measure
        self._column = 0
        self._space = ""
        self._word: list[Styled] = []

    def feed(self, text: str, style: str = "") -> list[Styled]:
        """Add text; return the pieces that can be written."""
        if not self._width:
            return [(text, style)] if text else []
        out: list[Styled] = []
        for part in re.findall(r"\n|[^\S\n]+|\S+", text):
            if part == "\n":
                out += [*self._place(), ("\n", "")]
                self._column, self._space = 0, ""
            elif part.isspace():
                out += self._place()
                self._space = (self._space + part).expandtabs(4)
            else:
                out += self._lengthen(part, style)
        return out

    def end(self) -> list[Styled]:
        """Return the text that was held back; the next text begins a new line."""
        out = self._place()
        self._column, self._space = 0, ""
        return out

    def _lengthen(self, part: str, style: str) -> list[Styled]:
        """Add to the word. Scripts without spaces between words may be broken around each wide
        character."""
        if self._measure(part) <= len(part):
            self._word.append((part, style))
            return []
        out: list[Styled] = []
        for char in part:
            cells = self._measure(char)
            if cells == 2:
                out += self._place()
            self._word.append((char, style))
            if cells == 2:
                out += self._place()
        return out

    def _place(self) -> list[Styled]:
        """Return the word, on this line if it fits, else on the next."""
        if not self._word:
            return []
        word, self._word = self._word, []
        space, self._space = self._space, ""
        cells = sum(self._measure(text) for text, _ in word)
        if cells and self._column and self._column + len(space) + cells > self._width:
            self._column = cells
            return [("\n", ""), *word]
        self._column += len(space) + cells
        return [(space, ""), *word] if space else word
