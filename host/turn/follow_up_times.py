"""The time of a follow-up in the place of the time of the question before ("how many orders last
month", "and in september?"). Pure. Only languages whose file has the sections `months` and
`follow-up spans` are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundhook.host.turn.follow_up_languages import WORD, FollowUpWords, is_article

_YEAR = re.compile(r"(?:19|20)\d\d")


def other_time(fragment: Sequence[str], before: str, language: FollowUpWords) -> str:
    """Return the question before with the fragment instead of its last time; "" where one of both
    has no time, or the fragment has something else too."""
    lower = [word.lower() for word in fragment]
    if not is_time(lower, language):
        return ""
    words = list(re.finditer(WORD, before))
    known = [match[0].lower() for match in words]
    place = _last_time(known, language)
    if not place:
        return ""
    # "in 2024", "and 2025?": what stands before a year or a month stays where none comes with it.
    bare = not language.has("prepositions", lower[0]) and not any(
        language.has("days", word) or _is_said_of(word, language) for word in lower
    )
    if bare and language.has("prepositions", known[place[0]]) and len(place) > 1:
        place = place[1:]
    start, end = words[place[0]].start(), words[place[-1]].end()
    return f"{before[:start]}{' '.join(fragment)}{before[end:]}"


def is_time(lower: Sequence[str], language: FollowUpWords) -> bool:
    """Return whether words in lower case are a time and nothing else."""
    return bool(lower) and len(_last_time(lower, language)) == len(lower)


def has_time(lower: Sequence[str], language: FollowUpWords) -> bool:
    """Return whether there is a time among words in lower case."""
    return bool(_last_time(lower, language))


def _last_time(lower: Sequence[str], language: FollowUpWords) -> range:
    """Return the positions of the last time with the words that belong to it ("in", "the last")."""
    for end in range(len(lower), 0, -1):
        if _is_time(lower, end - 1, language):
            start = end - 1
            while start and _belongs(lower, start - 1, language):
                start -= 1
            if start and language.has("prepositions", lower[start - 1]):
                start -= 1
            return range(start, end)
    return range(0)


def _is_time(lower: Sequence[str], at: int, language: FollowUpWords) -> bool:
    word = lower[at]
    if language.is_month(word) and not language.is_content(word):  # "may" is a verb elsewhere
        return language.has("prepositions", "".join(lower[at - 1 : at]))
    if language.is_month(word) or _YEAR.fullmatch(word) or language.has("days", word):
        return True
    beside = {*lower[max(0, at - 2) : at], *lower[at + 1 : at + 2]}
    said = any(_is_said_of(each, language) for each in beside)
    return (language.has("spans", word) and said) or (
        _is_said_of(word, language) and language.has("spans", "".join(lower[at - 1 : at]))
    )


def _belongs(lower: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return whether the word in front of a time belongs to it."""
    word = lower[at]
    return (
        _is_time(lower, at, language)
        or _is_said_of(word, language)
        or is_article(word)
        or word.isdigit()
    )


def _is_said_of(word: str, language: FollowUpWords) -> bool:
    """Return whether a word says which span is meant: "last", "this"."""
    return language.has("which span", word)
