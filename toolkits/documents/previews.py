"""Titles and contents of summaries as a ranker gets them. Pure."""

from __future__ import annotations

import unicodedata

_JOINER, _NON_JOINER = "\u200d", "\u200c"  # scripts and emoji are written with them
_FLAGS = ("\U0001f1e6", "\U0001f1ff")  # two of these letters are a flag
_TONES = ("\U0001f3fb", "\U0001f3ff")  # colours of the emoji before
_JAMO = ("\u1160", "\u11ff")  # vowels and finals of the Hangul syllable before


def plain(text: str) -> str:
    """Return a text as one line, without control characters and other invisible ones."""
    line = " ".join(text.split())
    if line.isprintable():  # the usual case
        return line
    return " ".join("".join(c if _is_shown(c) else " " for c in line).split())


def beginning(text: str, most: int) -> str:
    """Return the first `most` characters of a text, or a few less: nothing that a reader sees as
    one character is cut in two."""
    if len(text) <= most:
        return text
    end = most
    while end and _joined(text, end):
        end -= 1
    return text[: end or most].rstrip()  # signs without end are cut


def _joined(text: str, place: int) -> bool:
    """Return whether the characters before and after a place are seen as one. This covers what
    https://www.unicode.org/reports/tr29/ calls extended grapheme clusters, except for signs that
    precede their letter, which are rare."""
    before, after = text[place - 1], text[place]
    if before == _JOINER or after in (_JOINER, _NON_JOINER):
        return True
    if _within(after, _FLAGS):
        flags = 0
        while flags < place and _within(text[place - 1 - flags], _FLAGS):
            flags += 1
        return flags % 2 == 1
    return (
        unicodedata.category(after) in ("Mn", "Mc", "Me")
        or _within(after, _TONES)
        or _within(after, _JAMO)
    )


def _within(character: str, bounds: tuple[str, str]) -> bool:
    return bounds[0] <= character <= bounds[1]


def _is_shown(character: str) -> bool:
    return character in (_JOINER, _NON_JOINER) or unicodedata.category(character) not in (
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
    )
