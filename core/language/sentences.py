"""Splits text into sentences, in any script. Pure; the only markup it knows is code between
backticks."""

from __future__ import annotations

import re
from functools import cache

from groundhook.core.language.catalogue import all_words

# A terminator, closing quotes and brackets, then white space, which scripts without spaces do not
# need. Possessive quantifiers read a long run of terminators only once. The first character class
# has every character that a match can begin with: the engine skips all others seven times as fast.
_END = re.compile(
    r"[.!?…؟۔।॥։。！？｡]"
    r"(?:(?<=[.!?…؟۔।॥։])(?<![.!?…؟۔।॥։]{2})[.!?…؟۔।॥։]*+[\"'”’»“)\]}*_`]*(?=\s)|(?<=[。！？｡])[。"
    r"！？｡]*[」』”’）】》]*)"
)
_CODE_SPAN = re.compile(r"(?<!`)(``*+)[^`\n]++\1")
_BEFORE_WORD = re.compile(r"[\s(\[\"“„«‹]")
_INITIALS = re.compile(r"^(?:[^\W\d_]\.)+$")
_CONTINUES = re.compile(r"\s*(?:[a-zß-öø-ÿа-яα-ω,;:)\]]|[-–—]\s)")
_LONGEST_WORD = 64  # characters before a terminator that can belong to its word


@cache
def _after_ordinal() -> re.Pattern[str]:
    """Return the pattern of a word that a number with a full stop belongs to: "3. Auflage"."""
    words = "|".join(map(re.escape, sorted(all_words("after ordinals"))))
    return re.compile(rf"\s{{0,64}}+(?:{words})\b", re.I)


def spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence in `text[start:end]`, in characters, without blanks at
    its ends. Text without a terminator is one sentence."""
    end = len(text) if end is None else end
    code = [match.span() for match in _CODE_SPAN.finditer(text, start, end)]
    found: list[tuple[int, int]] = []
    begin = start
    passed = 0  # pieces of code that end before the terminator
    for match in _END.finditer(text, start, end):
        while passed < len(code) and code[passed][1] - 1 <= match.start():
            passed += 1
        in_code = passed < len(code) and code[passed][0] < match.start()
        if in_code or not _ends_sentence(text, begin, end, match):
            continue
        found.append((begin, match.end()))
        begin = match.end()
    found.append((begin, end))
    return [trimmed for low, high in found if (trimmed := _trim(text, low, high))[0] < trimmed[1]]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _ends_sentence(text: str, start: int, stop: int, end: re.Match[str]) -> bool:
    """Return whether a terminator ends a sentence, from the word before it and the text after
    it."""
    after = text[end.end() : min(stop, end.end() + _LONGEST_WORD)]
    if end[0][0] in "。！？｡!?؟۔।॥։":
        return not after[:1].islower()
    if _CONTINUES.match(after):
        return False
    if end[0].startswith(("…", "..")):  # "from `a` … `b`" goes on
        between = end.start() > start and text[end.start() - 1].isspace()
        return not between or after.lstrip()[:1].isupper()
    if not end[0].startswith("."):
        return True
    before = text[max(start, end.start() - _LONGEST_WORD) : end.start()]
    word = before.rpartition(" ")[2].lower()
    if not word.isalpha():  # most are
        word = _BEFORE_WORD.split(word)[-1].lstrip("'’").strip("*_`")
    if word in all_words("abbreviations") or _INITIALS.match(word + "."):
        return False
    numbered = after.lstrip()[:1].isdigit()
    if word in all_words("abbreviations before numbers") and numbered:
        return False
    return not (word.isdigit() and len(word) <= 2 and _after_ordinal().match(after))
