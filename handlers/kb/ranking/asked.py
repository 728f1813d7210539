"""The word of a question that a passage must have to answer it: the property that is asked of a
named thing ("what is the default *port* of MariaDB"), or what a question for yes or no is about
("does psutil run on *Android*"). A near passage has all other words of such a question and does not
say it. A question for a figure ("how many …") needs a number, and one for a thing itself ("how do
citations work") a passage about it. Pure; only languages whose file has `asks property`,
`asks whether`, `asks figure` and `asks what` are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from groundhook.core.language.catalogue import language

_HEADING = re.compile(r"^#{1,6} [^\n]*$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
_AMOUNT = re.compile(r"([^\W\d_]{1,12}|[$€£¥₪])? ?\d[\d.,]{0,15} ?([^\W\d_]{1,12}|[$€£¥₪])?")
_LONGEST = 200  # characters of a question: a longer one is not of these kinds
_MOST_NAMES = 4  # words that name a thing
_MORE = ("subject ends", "joining questions")  # words behind which more than a name is asked
_MARKS = "?？؟!.,;:\"'“”«»"


def decisive(question: str, spoken: str, rarity: Mapping[str, float]) -> str:
    """Return the word as typed, of those that have a `rarity`; "" if the question is of neither
    kind, or no word of it tells."""
    known = language(spoken or "-")
    text = question.strip()
    if known is None or len(text) > _LONGEST:
        return ""
    if text.partition(" ")[0].lower() in known.words("asks whether"):
        return max(rarity, key=lambda word: rarity[word], default="")
    for pattern in _patterns(spoken, "asks property"):
        if found := pattern.match(text):
            head = found["property"]
            vague = head.lower() in known.words("vague properties")
            return head if head in rarity and not vague else ""
    return ""


def subject(question: str, spoken: str) -> str:
    """Return X of a question that asks for nothing but X: "what is X", "how does X work"; "" for
    others."""
    known = language(spoken or "-")
    if known is None or len(question) > _LONGEST:
        return ""
    for pattern in _patterns(spoken, "asks what"):
        if found := pattern.match(question):
            rest = [word.strip(_MARKS) for word in question[found.end() :].split()]
            if not known.words(*_MORE).isdisjoint(map(str.lower, rest)):
                return ""
            no_name = known.words("function", "vague")
            named = [word for word in rest if word.lower() not in no_name]
            return " ".join(named) if len(named) <= _MOST_NAMES else ""
    return ""


def has_amount(word: str, spoken: str, passage: str) -> bool:
    """Return whether a word asks for a price, and the passage has an amount of money."""
    known = language(spoken or "-")
    if known is None or word.lower() not in known.words("prices"):
        return False
    marks = known.words("money")
    parts = _AMOUNT.findall(passage.lower())
    return any(not marks.isdisjoint(part) for part in parts)


def headings(passage: str) -> list[str]:
    """Return the headings of Markdown in a passage."""
    return _HEADING.findall(passage)


def lacks_figure(question: str, spoken: str, passage: str) -> bool:
    """Return whether a question asks for a figure and the passage has none below its headings, as
    digits or as a word."""
    known = language(spoken or "-")
    if known is None or not any(
        pattern.match(question[:_LONGEST]) for pattern in _patterns(spoken, "asks figure")
    ):
        return False
    body = _HEADING.sub("", passage).lower()
    if any(map(str.isdigit, body)):
        return False
    return known.words("numbers", "figures").isdisjoint(_WORD.findall(body))


@lru_cache(maxsize=64)
def _patterns(spoken: str, section: str) -> tuple[re.Pattern[str], ...]:
    known = language(spoken)
    lines = known.lines(section) if known else ()
    return tuple(re.compile(rf"\W{{0,9}}{line}", re.I) for line in lines)
