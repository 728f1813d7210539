"""Rates how well a sentence reads alone, and whether it has the shape that a question needs. Only
the form of a text is rated, not its content.
"""

from __future__ import annotations

import re

from groundhook.core.language.definitions import defined
from groundhook.core.language.terms import terms
from groundhook.host.llm.questions import QuestionPart
from groundhook.host.llm.sentences import Sentence

CODE = 0.5  # it explains itself to few
EXAMPLE = 0.8  # code where the question is how something is done
ROW_OF_HOW = 0.3  # a row where the question is how something is done
LONG_WINDED = 30  # a sentence of more words has some of the question's words by chance

_DANGLING = re.compile(
    r"^[\"“*_(]*(?:it|its|this|that|these|those|they|them|he|she|such|both|otherwise|there|then|but|so|therefore|however|also|"
    r"er|sie|es|dies|diese|dieser|dieses|daher|deshalb|dann|aber|il|elle|ils|elles|cela|ceci|esto|eso|"
    r"הוא|היא|הם|הן|זה|זו|זאת|لكن|هو|هي|هذا|هذه)\b|^(?:\S+ ){1,4}(?:also|too|auch|aussi|también)\b",
    re.I,
)
_POINTS = re.compile(
    r"^\W*(?:see|cf\.?|siehe|vgl\.?|voir|v[eé]ase|refer to|read (?:on|more)|more"
    r" (?:on|about|in)|for (?:more|details))\b"
    r"|^\W*(?:for|für|pour|para)\b[^,.!?]{1,120},? (?:please )?"
    r"(?:see|refer to|siehe|voir|v[eé]ase)\b",
    re.I,
)
_ELSEWHERE = re.compile(
    r"\((?:see|siehe|voir|v[eé]ase)\b[^()]*\)\W*$|\bas follows\b\W*$"
    r"|\b(?:is|are) (?:described|explained|documented|discussed|covered) (?:in|at|under)\b"
    r"|\bbeschrieben\W*$|\b(?:see|shown|listed) (?:below|above)\b\W*$",
    re.I,
)
_LINKS = re.compile(r"(?:\s[·|•]\s.*){3,}")
LEVEL = re.compile(r"[›»>/|–]")
STOPS = (".", "!", "…", "。", "！", "۔", "।")
_DIGIT = re.compile(r"\d")
_CODE_SPAN = re.compile(r"`[^`]*`")
_SYMBOL = re.compile(r"[(){}\[\]=<>;$#@\\_]")


def shape(
    sentence: Sentence, part: QuestionPart, title: str, *, announces: bool, leads: bool
) -> float:
    """Return a factor of about 0-1.6: how well the sentence reads as a quotation, times how well it
    fits the question. `announces`: it introduces a list or table; `leads`: it is the first below
    its heading."""
    return _rate_alone(sentence, part, announces=announces) * _rate_fit(
        sentence, part, title, leads=leads
    )


def dangling(text: str) -> bool:
    """Return whether the text begins with a word that refers to the text before."""
    return _DANGLING.match(text) is not None


def fragment(text: str) -> bool:
    """Return whether the text is less than a sentence."""
    return text[:1].islower() or len(terms(text)) < 3


def only_points(text: str) -> bool:
    """Return whether the text is nothing but a reference to another place."""
    return _POINTS.match(text) is not None or _LINKS.search(text) is not None


def points_elsewhere(text: str) -> bool:
    """Return whether the text refers to another place for what it does not say itself."""
    return only_points(text) or _ELSEWHERE.search(text) is not None


def _rate_alone(sentence: Sentence, part: QuestionPart, *, announces: bool) -> float:
    if sentence.kind == "code":
        return EXAMPLE if part.how else CODE
    if points_elsewhere(sentence.text):
        return 0.1
    return (
        _rate_completeness(sentence, part, announces=announces)
        * _rate_letters(sentence, announces=announces)
        * _rate_length(_count_words(sentence, announces=announces))
    )


def _rate_completeness(sentence: Sentence, part: QuestionPart, *, announces: bool) -> float:
    """Return a factor for the kind of sentence: a complete statement, or less than that."""
    text = sentence.text
    if announces:
        return 1.1 if part.value else 0.9
    if text.endswith((":", "：")):
        return 0.5
    if text.endswith(("?", "？", "؟")):
        return 0.4
    if sentence.kind == "row":
        return 1.0 if part.value or part.number else ROW_OF_HOW if part.how else 0.5
    if not text.rstrip("\"'”’)*_`]").endswith(STOPS):
        return 0.8 if sentence.kind == "entry" and part.value else 0.7
    return 1.0


def _rate_letters(sentence: Sentence, *, announces: bool) -> float:
    """Return a factor for the characters of the sentence: words, or symbols and numbers."""
    text = sentence.text
    prose = _CODE_SPAN.sub("", text)
    value = 1.0
    if text.startswith(("{", "[{", "<")) or len(_SYMBOL.findall(prose)) > 0.06 * len(prose):
        value *= 0.5
    if text[:1].islower() and sentence.kind == "prose" and not announces:
        value *= 0.75
    if sentence.kind != "row" and sum(map(str.isalpha, prose)) < 0.5 * len(prose):
        value *= 0.6
    return value


def _count_words(sentence: Sentence, *, announces: bool) -> int:
    """Return the number of terms, with those that are quoted with it. A row is complete with two
    cells, since the names of its columns are quoted above it."""
    words = len(terms(sentence.text)) + (5 if announces else 0)
    return max(words, 3) if sentence.kind == "row" and sentence.columns else words


def _rate_length(words: int) -> float:
    if words < 5:
        return 0.5 if words < 3 else 0.85
    return (LONG_WINDED / words) ** 0.3 if words > LONG_WINDED else 1.0


def _rate_fit(sentence: Sentence, part: QuestionPart, title: str, *, leads: bool) -> float:
    value = 1.25 if part.number and _DIGIT.search(sentence.text) else 1.0
    if not part.subject:
        return value
    if frozenset(terms(defined(sentence.text))) == part.subject:
        return value * 1.6
    headed = frozenset(terms(sentence.heading or LEVEL.split(title)[-1]))
    return value * (2.0 if leads and sentence.kind == "prose" and headed == part.subject else 1.0)
