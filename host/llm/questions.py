"""Parses a question into its parts, and the shape that the answer to each part has. Pure;
recognises a few words of a few languages. Any other question is one part whose answer is prose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from groundhook.core.language.terms import spelt_like, terms

MOST_PARTS = 3

# The answer is a number. These words ("how long does it take") are not searched for.
_NUMBER = re.compile(
    r"\bhow (?:long|many|much|old|far|fast|big|large|often|high|tall)\b(?: (?:does|do|did|will) it"
    r" take)?"
    r"|^\W*(?:(?:since|until|till|from|by) )?when\b|\bwhat (?:year|date|time|percentage|number)\b"
    r"|\bwie (?:lange|viele?|alt|weit|schnell|groß|oft|hoch)\b|\bwann\b"
    r"|\bcombien\b|\bquand\b|\bcu[aá]ntos?\b|\bcu[aá]ndo\b|\bכמה\b|\bמתי\b|\bكم\b|\bمتى\b|多少|几|何时",
    re.I,
)
# The answer is often in a table: a default, a limit, a key, a list.
_VALUE = re.compile(
    r"\b(?:defaults?|values?|limits?|maximum|minimum|max|min|timeouts?|sizes?|settings?|options?"
    r"|keys?|fields?|columns?|parameters?|pay|fees?|"
    r"arguments?|flags?|variables?|types?|units?|prices?|costs?|versions?|codes?|abbreviations?"
    r"|lists?|table|overview)\b"
    r"|\bwhich\s+\w{2,}s\b|\bwhat\s+\w{3,}s\s+(?:are|do|does|can|may|exist|have)\b"
    r"|\bwhat (?:can|does|do|may)\b.{0,200}?\b(?:return|take|accept|contain|hold|support)s?\b"
    r"|\b(?:standardwert|vorgabe|grenzwert|höchst\w*|mindest\w*|einstellung(?:en)?|schlüssel"
    r"|felder?|spalten?|liste|welche)\b"
    r"|\b(?:par"
    r" d[ée]faut|valeur|limite|clés?|champs?|liste|quels|quelles|valor|l[ií]mite|clave|lista"
    r"|cu[aá]les)\b"
    r"|ברירת המחדל|רשימ|اذكر|قائمة|默认|列表|哪些",
    re.I,
)
_DEFINITION = re.compile(
    r"^\W*(?:what(?:'s|’s| is| are| was| were)|who (?:is|was|are|were)|define|explain|was"
    r" (?:ist|sind)|wer (?:ist|war)|"
    r"qu['’]est-ce (?:que|qu['’])|qui est|qu[eé] (?:es|son)|qui[eé]n es)\s*(?P<subject>.+)$",
    re.I,
)
_SUBJECT_ENDS = re.compile(
    r"\b(?:of|in|for|when|if|that|which|by|on|at|from|to|used|called|von|für|wenn|de|dans|pour)\b",
    re.I,
)
_PARTS = re.compile(
    r"[?？؟;]++\s*+|(?:,|(?<!\s))\s++(?:and|und|et|y)\s++(?="
    r"(?:how|what|why|when|where|which|who|whose|does|do|did|is|are|was|were|can|could|will"
    r"|should|must|may|has|have|"
    r"wie|was|warum|wann|wo|welche[rsmn]?|wer|ist|sind|kann|comment|pourquoi|quand|où"
    r"|quel(?:le)?s?|qui|c[oó]mo|cu[aá]ndo|d[oó]nde)\b)",
    re.I,
)
_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her|one|er|sie|es|ihn|ihm|ihr"
    r"|dies\w*|il|elle|ils|elles|eso|esto)\b",
    re.I,
)


@dataclass(frozen=True)
class QuestionPart:
    """One question. `subject` has the terms of X when the question is "what is X"; `about` has the
    terms of the first part when this part refers back to it ("and how is it …"). `respelt` has
    terms that the sources spell otherwise."""

    text: str
    number: bool = False
    value: bool = False
    subject: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()
    respelt: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> frozenset[str]:
        """The terms that an answer should contain."""
        own = (self.respelt.get(term, term) for term in terms(_NUMBER.sub(" ", self.text)))
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
    found = [_part(text) for text in _PARTS.split(question) if terms(text)]
    if not 0 < len(found) <= MOST_PARTS:
        return (_part(question),)
    first, *others = found
    return first, *(
        replace(part, about=first.wanted) if _BACK.search(part.text) else part for part in others
    )


def _part(text: str) -> QuestionPart:
    text = text.strip()
    subject: frozenset[str] = frozenset()
    definition = _DEFINITION.match(text)
    if definition and not _SUBJECT_ENDS.search(definition["subject"]):
        subject = frozenset(terms(definition["subject"]))
    return QuestionPart(
        text,
        bool(_NUMBER.search(text)),
        bool(_VALUE.search(text)),
        subject if len(subject) <= 4 else frozenset(),
    )
