"""Rewrites a follow-up ("And how long are they kept?") into a self-contained question. Pure.

A question is a follow-up when its subject is in the conversation before it: it has a pronoun
without a noun in front of it, it begins as the continuation of another question, or it has no word
of its own. It then carries over the words of the questions before it. Every other question stays as
it is, to the letter. The words of each language are in `follow_up_words/`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LONGEST = 200  # characters; a longer question has a subject of its own
LOOKED_AT = 500  # characters of an earlier question
MOST_EARLIER = 6  # questions that are looked at
MOST_CARRIED = 8  # words
MOST_OWN = 5  # content words of a question with a pronoun
MOST_CONTINUED = 3  # content words of a question that begins with "and"
MOST_UNSPACED = 8  # characters of the same in a script without spaces

_WORDS = Path(__file__).with_name("follow_up_words")
_MARKS = "?？؟ "
_WORD = re.compile(r"[^\W_]+(?:['’\-.:/_][^\W_]+)*")
_LATIN = ("en", "de", "fr", "es")
_SCRIPTS = (
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("he", re.compile(r"[\u05d0-\u05ea]")),
    ("ar", re.compile(r"[\u0621-\u064a]")),
)
_SUFFIXED = {
    "es": re.compile(r"\w{2,}[aei]r(?:lo|la|los|las|le|les)"),
    "ar": re.compile(r"\w{3,}(?:ها|هم|هما)"),
}
# "sont-ils" is two words; so is "l'installer".
_INVERTED = re.compile(r"-(?:t-)?(?=(?:ils?|elles?|on|je|tu|nous|vous|ce)\b)", re.I)
_ELIDED = re.compile(r"^(?:[ldjcnmts]|qu)['’](?=\w{2})", re.I)


_ARTICLES = {"a", "an", "the", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen"}
_ARTICLES |= {"einem", "einer", "le", "la", "les", "l", "un", "une", "el", "los", "las"}


@dataclass(frozen=True)
class StandAlone:
    """A question as it is searched: `question`, the words that were carried over, and why (""
    where the question is unchanged)."""

    question: str
    carried: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Language:
    """The words of one language, in lower case."""

    id: str
    words: dict[str, frozenset[str]]
    openers: tuple[tuple[str, ...], ...]  # the longest first
    expletives: tuple[tuple[str, ...], ...]

    def has(self, kind: str, word: str) -> bool:
        return word in self.words.get(kind, frozenset())

    def is_content(self, word: str) -> bool:
        return not self.has("function", word)


def stand_alone(question: str, earlier: Sequence[str], titles: Sequence[str] = ()) -> StandAlone:
    """Return the question with what it needs of the conversation. `earlier` are the questions
    before it, the oldest first, as the user wrote them; `titles` those of the sources that the
    last answer cites, which matter where the earlier questions have no words to carry over."""
    subject = ""
    for before in earlier[-MOST_EARLIER:]:
        text = " ".join(before[:LOOKED_AT].split())
        subject = _rewritten(text, subject, ()).question if text else subject
    return _rewritten(question, subject, titles)


def _rewritten(question: str, before: str, titles: Sequence[str]) -> StandAlone:
    if not question.strip() or len(question) > LONGEST or not (before or titles):
        return StandAlone(question)
    language = _language_of(question, before)
    if reason := _reason(question, language):
        fragment = _fragment(question, language)
        if fragment and (replaced := _in_place(fragment, before, language)):
            return StandAlone(replaced, tuple(_content(before, _language_of(before))), reason)
        carried = _carried(question, before, titles)
        if carried:
            # By measurement, a vector search finds most without the question mark and brackets.
            return StandAlone(
                f"{question.strip().rstrip(_MARKS)} {' '.join(carried)}", carried, reason
            )
    return StandAlone(question)


# ------------------------------------------------------------------------------------- recognition


def _reason(question: str, language: _Language) -> str:
    """Return why the question is a follow-up; "" when it is self-contained."""
    if language.id == "zh":
        return _unspaced_reason(question, language)
    words = _words(question)
    if not words:
        return ""
    lower = [word.lower() for word in words]
    content = [word for word in lower if language.is_content(word)]
    own = [word for word in content if not language.has("generic", word)]
    if not own:
        return "it has no subject of its own"
    opener = _opener(lower, language)
    if opener and len(own) <= MOST_CONTINUED:
        return f"it continues with {' '.join(opener)!r}"
    if len(own) <= MOST_OWN and (pronoun := _pronoun(words, language)):
        return f"{pronoun!r} refers to an earlier question"
    return ""


def _unspaced_reason(question: str, language: _Language) -> str:
    text = question.strip().rstrip("?？。!！ ")
    rest = text
    for word in _longest_first(language.words["function"] | language.words["generic"]):
        rest = rest.replace(word, " ")
    own = re.sub(r"[\W_]", "", rest)
    if not own:
        return "it has no subject of its own"
    size = len(re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+", rest))
    if size <= MOST_UNSPACED:
        if any(text.endswith(ending) for ending in language.words["endings"]):
            return f"it continues with {text[-1]!r}"
        for opener in language.openers:
            if text.startswith(opener[0]) and opener[0] != "为什么":
                return f"it continues with {opener[0]!r}"
    for word in _longest_first(language.words["pronouns"] | language.words["places"]):
        before, found, _ = text.partition(word)
        if found and size <= MOST_UNSPACED:
            for each in _longest_first(language.words["function"]):
                before = before.replace(each, " ")
            if len(re.sub(r"[\W_]", "", before)) <= 3 and not re.search(r"[a-zA-Z]{2}", before):
                return f"{word!r} refers to an earlier question"
    return ""


def _pronoun(words: Sequence[str], language: _Language) -> str:
    """Return the first pronoun that has no noun in front of it; ""."""
    lower = [word.lower() for word in words]
    skipped = _expletive(lower, language)
    suffixed = _SUFFIXED.get(language.id)
    for at, word in enumerate(lower):
        if at in skipped:
            continue
        ends = bool(suffixed and suffixed.fullmatch(word) and language.is_content(word))
        place = language.has("places", word) and at == len(lower) - 1
        if ends or place or (language.has("pronouns", word) and _stands_for(lower, at, language)):
            if _is_object_of_preposition(lower, at, language):
                return words[at]
            return "" if _has_noun(words[:at], language) else words[at]
    return ""


def _stands_for(lower: Sequence[str], at: int, language: _Language) -> bool:
    """Return whether the pronoun at `at` stands for something before the question."""
    rule = _PRONOUN_RULES.get(language.id)
    return rule is None or rule(lower, at, language)


def _english_stands_for(lower: Sequence[str], at: int, language: _Language) -> bool:
    """Return False for `one thing`, and for `that` before a clause."""
    if lower[at] in ("one", "ones"):
        return at > 0 and lower[at - 1] in ("which", "that", "this", "other", "first", "last")
    if lower[at] == "that":
        return at + 1 == len(lower) or not language.is_content(lower[at + 1])
    return True


def _german_stands_for(lower: Sequence[str], at: int, _: _Language) -> bool:
    """Return False for `welche` before a noun, and for `sein` as the last verb."""
    if lower[at] == "welche":
        return at == 0 and lower[1:2] in (["davon"], ["von"])
    return lower[at] not in ("sein", "seine", "ihr") or at < len(lower) - 1


def _spanish_stands_for(lower: Sequence[str], at: int, language: _Language) -> bool:
    """Return False for an article, and for `este` before a noun."""
    if lower[at] in ("los", "las", "este", "esta"):
        return False
    if lower[at] in ("lo", "le", "les"):
        return at + 1 < len(lower) and language.is_content(lower[at + 1])
    return True


_PRONOUN_RULES = {
    "en": _english_stands_for,
    "de": _german_stands_for,
    "es": _spanish_stands_for,
}


def _is_object_of_preposition(lower: Sequence[str], at: int, language: _Language) -> bool:
    """Return whether the question ends with a preposition and the pronoun: in "How do I add files
    to it?" it is not the files. Only in a question of one clause."""
    if at == 0 or at != len(lower) - 1 or not language.has("prepositions", lower[at - 1]):
        return False
    return not any(language.has("joining", word) for word in lower[:at])


def _has_noun(words: Sequence[str], language: _Language) -> bool:
    """Return whether a word before the pronoun can be what it stands for."""
    wanted = _wanted_nouns([word.lower() for word in words], language)
    return any(_is_noun(words, at, language) for at in range(len(words)) if at not in wanted)


def _is_noun(words: Sequence[str], at: int, language: _Language) -> bool:
    lower = [word.lower() for word in words]
    if not language.is_content(lower[at]) or language.has("generic", lower[at]):
        return False
    if language.id == "de" and (at == 0 or not words[at][0].isupper()):
        return False  # German nouns are capitalised
    before, after = "".join(lower[at - 1 : at]), "".join(lower[at + 1 : at + 2])
    if before in _ARTICLES or (before == "to" and lower[at].endswith("s")):
        return True
    if language.has("subjects", before) or language.has("subjects", after):
        return False  # it is their verb
    # In these languages the word in front of the pronoun is its verb: "pourquoi faire cela".
    return language.id not in ("fr", "es", "he", "ar") or at < len(words) - 1


def _wanted_nouns(lower: Sequence[str], language: _Language) -> range:
    """Return the positions of the noun that the question asks for: "which database" of "Which
    database does it use?"."""
    first = 1 if lower and language.has("prepositions", lower[0]) else 0
    if not lower[first:] or not language.has("interrogatives", lower[first]):
        return range(0)
    end = first + 1
    while end < len(lower) and (
        language.is_content(lower[end]) or language.has("quantities", lower[end])
    ):
        end += 1
    return range(first, end)


def _expletive(lower: Sequence[str], language: _Language) -> set[int]:
    """Return the positions of words in phrases such as "is it possible"."""
    return {
        place
        for phrase in language.expletives
        for at in range(len(lower) - len(phrase) + 1)
        if tuple(lower[at : at + len(phrase)]) == phrase
        and (phrase != ("there",) or at < len(lower) - 1)
        for place in range(at, at + len(phrase))
    }


def _opener(lower: Sequence[str], language: _Language) -> tuple[str, ...]:
    for phrase in language.openers:
        if tuple(lower[: len(phrase)]) == phrase:
            return phrase
    return ()


# ------------------------------------------------------------------------------------ carrying over


def _carried(question: str, before: str, titles: Sequence[str]) -> tuple[str, ...]:
    """Return the words to carry over: those of the question before, which has what it needed of
    those before it; of the titles where it has none."""
    has = {word.lower() for word in _words(question)}
    found: dict[str, str] = {}
    for text in (before, *titles):
        if text == before or not found:
            for word in _content(text, _language_of(text)):
                if word.lower() not in has:
                    found.setdefault(word.lower(), word)
    return tuple(found.values())[:MOST_CARRIED]


def _content(text: str, language: _Language) -> Iterator[str]:
    if language.id == "zh":
        rest = text
        for word in _longest_first(language.words["function"]):
            rest = rest.replace(word, " ")
        yield from _WORD.findall(rest)
        return
    for word in _words(text):
        if language.is_content(word.lower()) and not language.has("quantities", word.lower()):
            yield word


def _fragment(question: str, language: _Language) -> list[str]:
    """Return the words after the opener when they are no question ("in April")."""
    words = _words(question)
    opener = _opener([word.lower() for word in words], language)
    rest = words[len(opener) :]
    asks = {"interrogatives", "pronouns"}
    if not opener or not rest or language.id in ("zh", "he", "ar"):
        return []
    verbs = [w for w in rest if not language.is_content(w.lower())]
    allowed = [
        w for w in verbs if language.has("prepositions", w.lower()) or w.lower() in _ARTICLES
    ]
    if len(verbs) != len(allowed) or any(language.has(kind, rest[0].lower()) for kind in asks):
        return []
    return rest


def _in_place(fragment: Sequence[str], before: str, language: _Language) -> str:
    """Return the question before with the fragment in the place of what it varies: after the same
    preposition, a number for a number, or a noun that both have ("green tea", "black tea") with
    what is in front of it; "" when there is no such place."""
    words = list(re.finditer(_WORD, before))
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


def _phrase_after(
    preposition: str, lower: Sequence[str], longest: int, language: _Language
) -> range:
    """Return the positions of the last such preposition and the words that belong to it, not more
    than the fragment has."""
    start = len(lower) - 1 - lower[::-1].index(preposition)
    end = start + 1
    most = min(len(lower), start + max(2, longest))
    while end < most and (language.is_content(lower[end]) or lower[end] in _ARTICLES):
        end += 1
    return range(start, end)


def _phrase_before(noun: str, lower: Sequence[str], longest: int, language: _Language) -> range:
    """Return the positions of the noun and the words in front of it, not more than the fragment
    has."""
    end = lower.index(noun) + 1
    start = end - 1
    while start > max(0, end - longest) and language.is_content(lower[start - 1]):
        start -= 1
    return range(start, end)


def _noun_phrase(fragment: Sequence[str], language: _Language) -> Sequence[str]:
    """Return a noun with what is in front of it, without its article; [] for anything else."""
    phrase = fragment[1:] if fragment[0].lower() in _ARTICLES else fragment
    described = len(phrase) > 1 and all(language.is_content(word.lower()) for word in phrase)
    return phrase if described else []


# --------------------------------------------------------------------------------------- languages


def _longest_first(words: Collection[str]) -> list[str]:
    """Return the words so that a part of another one comes after it; in one order, always."""
    return sorted(words, key=lambda word: (-len(word), word))


def _words(text: str) -> list[str]:
    return [_ELIDED.sub("", word) for word in _WORD.findall(_INVERTED.sub(" ", text))]


def _language_of(text: str, context: str = "") -> _Language:
    """Return the language of a text: by its script, else the one that has most of its words;
    `context` decides between equals."""
    for id, script in _SCRIPTS:
        if script.search(text):
            return _language(id)
    words = [word.lower() for word in _words(text)]
    around = [word.lower() for word in _words(context)]

    def known(id: str, of: Collection[str]) -> int:
        return sum(_language(id).has("function", word) for word in of)

    return _language(max(_LATIN, key=lambda id: (known(id, words), known(id, around))))


@cache
def _language(id: str) -> _Language:
    words: dict[str, frozenset[str]] = {}
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {"openers": (), "expletives": ()}
    kind = ""
    for line in (_WORDS / f"{id}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            if kind in phrases:
                phrases[kind] += (tuple(line.split()),)
            else:
                words[kind] = words.get(kind, frozenset()) | frozenset(line.split())
    ordered = {kind: tuple(sorted(found, key=len, reverse=True)) for kind, found in phrases.items()}
    return _Language(id, words, ordered["openers"], ordered["expletives"])
