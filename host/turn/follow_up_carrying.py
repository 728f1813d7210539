"""The words of a conversation that a follow-up carries over (`host.turn.follow_up`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundhook.host.turn.follow_up_languages import (
    WORD,
    Words,
    is_article,
    language_of,
    longest_first,
    opener_of,
    split_words,
)

MOST_CARRIED = 8  # words


def carried_words(
    question: str, before: str, titles: Sequence[str], *, with_titles: bool
) -> tuple[str, ...]:
    """Return the words to carry over: those of the question before, which has what it needed of
    those before it; of the titles where it has none, or `with_titles`."""
    has = {word.lower() for word in split_words(question)}
    found: dict[str, str] = {}
    for text in (before, *titles):
        if text == before or with_titles or not found:
            for word in topic_words(text):
                if word.lower() not in has:
                    found.setdefault(word.lower(), word)
    return tuple(found.values())[:MOST_CARRIED]


def topic_words(text: str) -> list[str]:
    """Return the words that say what a text is about: its nouns and what describes them, as far as
    the rules of its language tell them from verbs; all content words where that leaves none."""
    language = language_of(text)
    if language.id == "zh":
        rest = text
        for word in longest_first(language.of("function")):
            rest = rest.replace(word, " ")
        return WORD.findall(rest)
    words = split_words(text)
    content = [
        at
        for at, word in enumerate(words)
        if language.is_content(word.lower()) and not language.has("quantities", word.lower())
    ]
    topic = [at for at in content if _is_of_topic(words, at, language)]
    return [words[at] for at in topic or content]


def _is_of_topic(words: Sequence[str], at: int, language: Words) -> bool:
    """Return False for a word of any question ("work", "limit"), and for what is a verb by its
    place: behind its subject in English, behind "how" in the Romance languages, and in lower case
    without a noun behind it in German."""
    word, before = words[at].lower(), "".join(words[at - 1 : at]).lower()
    if language.has("generic", word) or language.has("prepositions", word):
        return False
    if language.id == "en":
        return before == "to" or not language.has("subjects", before)
    if language.id == "de":
        after = "".join(words[at + 1 : at + 2])
        return words[at][0].isupper() or (after[:1].isupper() and at > 0)
    if language.id in ("fr", "es"):
        return not language.has("questions", before)
    return True


def fragment_of(question: str, language: Words) -> list[str]:
    """Return the words after the opener when they are no question ("in April"); [] for others."""
    words = split_words(question)
    opener = opener_of([word.lower() for word in words], language)
    rest = words[len(opener) :]
    asks = {"interrogatives", "pronouns"}
    if not opener or not rest or language.id in ("zh", "he", "ar"):
        return []
    verbs = [w for w in rest if not language.is_content(w.lower())]
    allowed = [w for w in verbs if language.has("prepositions", w.lower()) or is_article(w.lower())]
    if len(verbs) != len(allowed) or any(language.has(kind, rest[0].lower()) for kind in asks):
        return []
    return rest


def in_place(fragment: Sequence[str], before: str, language: Words) -> str:
    """Return the question before with the fragment in the place of what it varies: after the same
    preposition, a number for a number, or a noun that both have ("green tea", "black tea") with
    what is in front of it; "" when there is no such place."""
    words = list(re.finditer(WORD, before))
    lower = [match[0].lower() for match in words]
    first = fragment[0].lower()
    if language.has("prepositions", first) and first in lower:
        place = _phrase_after(first, lower, len(fragment), language)
    elif len(fragment) == 1 and first.isdigit() and any(word.isdigit() for word in lower):
        last = max(at for at, word in enumerate(lower) if word.isdigit())
        place = range(last, last + 1)
    elif (phrase := _noun_phrase(fragment, language)) and phrase[-1].lower() in lower:
        fragment = phrase
        place = _phrase_before(phrase[-1].lower(), lower, len(phrase), language)
    else:
        return ""
    start, end = words[place[0]].start(), words[place[-1]].end()
    return f"{before[:start]}{' '.join(fragment)}{before[end:]}"


def _phrase_after(preposition: str, lower: Sequence[str], longest: int, language: Words) -> range:
    """Return the positions of the last such preposition and the words that belong to it, not more
    than the fragment has."""
    start = len(lower) - 1 - lower[::-1].index(preposition)
    end = start + 1
    most = min(len(lower), start + max(2, longest))
    while end < most and (language.is_content(lower[end]) or is_article(lower[end])):
        end += 1
    return range(start, end)


def _phrase_before(noun: str, lower: Sequence[str], longest: int, language: Words) -> range:
    """Return the positions of the noun and the words in front of it, not more than the fragment
    has."""
    end = lower.index(noun) + 1
    start = end - 1
    while start > max(0, end - longest) and language.is_content(lower[start - 1]):
        start -= 1
    return range(start, end)


def _noun_phrase(fragment: Sequence[str], language: Words) -> Sequence[str]:
    """Return a noun with what is in front of it, without its article; [] for anything else."""
    phrase = fragment[1:] if is_article(fragment[0].lower()) else fragment
    described = len(phrase) > 1 and all(language.is_content(word.lower()) for word in phrase)
    return phrase if described else []
