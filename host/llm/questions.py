"""Parses a question into its parts, and the shape that the answer to each part has. Pure;
the words are those of the language files (`core.language.catalogue`). A question of a language
without them is one part whose answer is prose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from groundhook.core.language.catalogue import languages
from groundhook.core.language.terms import spelt_like, terms

MOST_PARTS = 3


def _lines(section: str) -> str:
    """Return the lines of a section of all languages as the alternatives of a pattern."""
    return "|".join(line for each in languages().values() for line in each.lines(section))


def _words(section: str) -> str:
    """Return the words of a section of all languages likewise."""
    words = " ".join(line for each in languages().values() for line in each.lines(section))
    return "|".join(dict.fromkeys(words.split()))


@cache
def _asks_number() -> re.Pattern[str]:
    """The answer is a number. These words ("how long does it take") are not searched for."""
    return re.compile(_lines("asks number"), re.I)


@cache
def _asks_value() -> re.Pattern[str]:
    """The answer is often in a table: a default, a limit, a key, a list."""
    return re.compile(_lines("asks value"), re.I)


@cache
def _asks_what() -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:{_lines('asks what')})\s*(?P<subject>.+)$", re.I)


@cache
def _asks_how() -> re.Pattern[str]:
    """The answer is often an example."""
    return re.compile(rf"^\W*(?:{_lines('asks how')})\b", re.I)


@cache
def vague_terms() -> frozenset[str]:
    """Return the terms that passages on any subject have: "work", "use"."""
    asked = [each for each in languages().values() if each.lines("asking")]
    return frozenset(term for each in asked for term in terms(" ".join(each.words("vague"))))


@cache
def _subject_ends() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_words('subject ends')})\b", re.I)


@cache
def _between_parts() -> re.Pattern[str]:
    return re.compile(
        rf"[?？؟;]++\s*+|(?:,|(?<!\s))\s++(?:{_words('joining questions')})\s++"
        rf"(?=(?:{_words('opening questions')})\b)",
        re.I,
    )


@cache
def _refers_back() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_words('referring back')})\b", re.I)


@dataclass(frozen=True)
class QuestionPart:
    """One question. `subject` has the terms of X when the question is "what is X" or "how
    does X work"; `how`: it asks how something is done; `about` has the
    terms of the first part when this part refers back to it ("and how is it …"). `respelt` has
    terms that the sources spell otherwise."""

    text: str
    number: bool = False
    value: bool = False
    how: bool = False
    subject: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()
    respelt: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> frozenset[str]:
        """The terms that an answer should contain."""
        own = (self.respelt.get(term, term) for term in terms(_asks_number().sub(" ", self.text)))
        return frozenset(own) | self.about

    def spelt_as(self, known: frozenset[str]) -> QuestionPart:
        """Return the part with each term that is not among the known ones as the one that is spelt
        most like it, as the search reads it."""
        near = {term: spelt_like(term, known) for term in self.wanted - known}
        respelt = {term: others[0] for term, others in near.items() if others}
        return replace(self, respelt=respelt) if respelt else self


def parts(question: str) -> tuple[QuestionPart, ...]:
    """Return the parts of a question, 1 to MOST_PARTS; parts without a term of their own are
    dropped."""
    found = [_part(text) for text in _between_parts().split(question) if terms(text)]
    if not 0 < len(found) <= MOST_PARTS:
        return (_part(question),)
    first, *others = found
    return first, *(
        replace(part, about=first.wanted) if _refers_back().search(part.text) else part
        for part in others
    )


def _part(text: str) -> QuestionPart:
    text = text.strip()
    subject: frozenset[str] = frozenset()
    definition = _asks_what().match(text)
    if definition and not _subject_ends().search(definition["subject"]):
        named = frozenset(terms(definition["subject"]))
        subject = named - vague_terms() or named
    return QuestionPart(
        text,
        bool(_asks_number().search(text)),
        bool(_asks_value().search(text)),
        bool(_asks_how().match(text)),
        subject if len(subject) <= 4 else frozenset(),
    )
