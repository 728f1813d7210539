"""Recognises what plain text has instead of the marks of Markdown: lines that are a list, and
paragraphs that are indented below their heading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

LEAST_LINES = 3  # of a list without bullets
LEAST_WORDS = 8  # of an indented paragraph that is not code
ENDS = (".", "!", "?", ",", ";", "。", "！", "？", "，")  # of a sentence, or of a part of one

BOLD_LINE = re.compile(r"^(\*\*|__)(?P<text>(?>(?:(?!\1)[^\n]){1,80}))\1\s*+(?::\s*+)?$")
_SYMBOL = re.compile(r"[(){}\[\]=<>;$#@\\_/]")


def are_entries(lines: Sequence[str]) -> bool:
    """Return whether the lines of a paragraph are a list without bullets: each begins anew and
    none ends like a sentence or in the middle of one, and the first word of nearly every line
    would have fitted into the line before it, so that the text was not wrapped there."""
    if len(lines) < LEAST_LINES or any(
        line[:1].islower() or BOLD_LINE.match(line) or line.rstrip().endswith(ENDS)
        for line in lines
    ):
        return False
    width = max(map(len, lines))
    wrapped = sum(
        len(line.rstrip()) + 1 + len(after.split(None, 1)[0] if after.split() else "") > width
        for line, after in pairwise(lines)
    )
    return wrapped <= max(1, len(lines) // 5)


def reads_as_prose(text: str) -> bool:
    """Return whether an indented paragraph is text rather than code: words that end as a sentence
    does."""
    words = text.split()
    plain = sum(character.isalpha() or character.isspace() for character in text)
    return (
        len(words) >= LEAST_WORDS
        and words[-1].rstrip("\"'”’)").endswith((".", "!", "?", ":", "。"))
        and plain >= 0.88 * len(text)
        and not _SYMBOL.search(words[0])
    )
