"""Rewrites a follow-up ("And how long are they kept?") into a self-contained question. Pure.

A question is a follow-up when its subject is in the conversation before it: it has a pronoun
without a noun in front of it, it begins as the continuation of another question, or it has no word
of its own. It then carries over the words of the questions before it. Every other question stays as
it is, to the letter. The words of each language are in `core/language/words/`.

The words of a conversation that a follow-up carries over (`host.turn.follow_up`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from groundhook.host.turn.follow_up_languages import (
    WORD,
    FollowUpWords,
    is_article,
    language_of,
    longest_first,
    opener_of,
    split_words,
)
from groundhook.host.turn.follow_up_times import has_time, is_time, other_time

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


def _is_of_topic(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
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


def fragment_of(question: str, language: FollowUpWords) -> list[str]:
    """Return the words after the opener when they are no question ("in April"); [] for others."""
    words = split_words(question)
    opener = opener_of([word.lower() for word in words], language)
    rest = words[len(opener) :]
    asks = {"interrogatives", "pronouns"}
    if not opener or not rest or language.id in ("zh", "he", "ar"):
        return []
    if is_time([word.lower() for word in rest], language):  # "and this year?"
        return rest
    verbs = [w for w in rest if not language.is_content(w.lower())]
    allowed = [w for w in verbs if language.has("prepositions", w.lower()) or is_article(w.lower())]
    if len(verbs) != len(allowed) or any(language.has(kind, rest[0].lower()) for kind in asks):
        return []
    return rest


def in_place(fragment: Sequence[str], before: str, language: FollowUpWords) -> str:
    """Return the question before with the fragment in the place of what it varies: after the same
    preposition, a time for a time, a number for a number, or a noun that both have ("green tea",
    "black tea") with what is in front of it; "" when there is no such place."""
    if retimed := other_time(fragment, before, language):
        return retimed
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
    if has_time(lower[place[0] : place[-1] + 1], language):  # "in September", "and in Berlin?"
        return f"{before.rstrip(_MARKS)} {' '.join(fragment)}"
    return f"{before[:start]}{' '.join(fragment)}{before[end:]}"


def _phrase_after(
    preposition: str, lower: Sequence[str], longest: int, language: FollowUpWords
) -> range:
    """Return the positions of the last such preposition and the words that belong to it, not more
    than the fragment has."""
    start = len(lower) - 1 - lower[::-1].index(preposition)
    end = start + 1
    most = min(len(lower), start + max(2, longest))
    while end < most and (language.is_content(lower[end]) or is_article(lower[end])):
        end += 1
    return range(start, end)


def _phrase_before(noun: str, lower: Sequence[str], longest: int, language: FollowUpWords) -> range:
    """Return the positions of the noun and the words in front of it, not more than the fragment
    has."""
    end = lower.index(noun) + 1
    start = end - 1
    while start > max(0, end - longest) and language.is_content(lower[start - 1]):
        start -= 1
    return range(start, end)


def _noun_phrase(fragment: Sequence[str], language: FollowUpWords) -> Sequence[str]:
    """Return a noun with what is in front of it, without its article; [] for anything else."""
    phrase = fragment[1:] if is_article(fragment[0].lower()) else fragment
    described = len(phrase) > 1 and all(language.is_content(word.lower()) for word in phrase)
    return phrase if described else []


LONGEST = 200  # characters; a longer question has a subject of its own
LOOKED_AT = 500  # characters of an earlier question
MOST_EARLIER = 6  # questions that are looked at
MOST_OWN = 5  # content words of a question with a pronoun
MOST_CONTINUED = 3  # content words of a question that begins with "and"
MOST_BARE = 2  # content words of a phrase that is no sentence
MOST_UNSPACED = 8  # characters of the same in a script without spaces

_MARKS = "?？؟ "
_SUFFIXED = {
    "es": re.compile(r"\w{2,40}[aei]r(?:lo|la|los|las|le|les)"),
    "ar": re.compile(r"\w{3,40}(?:ها|هم|هما)"),
}
_INFINITIVE = re.compile(r"\w{2,40}(?:er|ir|re)")  # French


@dataclass(frozen=True)
class StandAlone:
    """A question as it is searched: `question`, the words that were carried over, and why (""
    where the question is unchanged)."""

    question: str
    carried: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Subject:
    """What a conversation is about: the last question, self-contained. `bare`: it is only a phrase
    ("Maximum size?"), so the sources of its answer belong to the subject as well. `first`: the
    question that a chain of follow-ups began with; what was asked between it and the last one is no
    part of the subject, so that the words of a conversation do not pile up."""

    text: str = ""
    bare: bool = False
    first: str = ""


def stand_alone(question: str, earlier: Sequence[str], titles: Sequence[str] = ()) -> StandAlone:
    """Return the question with what it needs of the conversation. `earlier` are the questions
    before it, the oldest first, as the user wrote them; `titles` those of the sources that the
    last answer cites, which matter where the earlier questions have no words to carry over."""
    subject = _Subject()
    for before in earlier[-MOST_EARLIER:]:
        if text := " ".join(before[:LOOKED_AT].split()):
            subject = _next_subject(text, subject)
    return _rewritten(question, subject, titles)


def _next_subject(text: str, before: _Subject) -> _Subject:
    """Return what the conversation is about after one more question."""
    found = _rewritten(text, before, ())
    language = language_of(text, before.text)
    follows = bool(found.reason) and found.question.startswith(text.rstrip(_MARKS))
    bare = not found.reason and bool(before.text) and _is_bare(text, language)
    if not follows and not bare:
        return _Subject(found.question)
    first = before.first or before.text
    carried = carried_words(text, first, (), with_titles=False)
    return _Subject(" ".join([text.rstrip(_MARKS), *carried]), bare, first)


def _rewritten(question: str, before: _Subject, titles: Sequence[str]) -> StandAlone:
    if not question.strip() or len(question) > LONGEST or not (before.text or titles):
        return StandAlone(question)
    language = language_of(question, before.text)
    if reason := _reason(question, language):
        fragment = fragment_of(question, language)
        if fragment and (replaced := in_place(fragment, before.text, language)):
            kept = {word.lower() for word in split_words(replaced)}
            carried = [word for word in topic_words(before.text) if word.lower() in kept]
            return StandAlone(replaced, tuple(carried), reason)
        found = carried_words(question, before.text, titles, with_titles=before.bare)
        if found:
            # By measurement, a vector search finds most without the question mark and brackets.
            return StandAlone(f"{question.strip().rstrip(_MARKS)} {' '.join(found)}", found, reason)
    return StandAlone(question)


def _reason(question: str, language: FollowUpWords) -> str:
    """Return why the question is a follow-up; "" when it is self-contained."""
    if language.id == "zh":
        return _unspaced_reason(question, language)
    words = split_words(question)
    if not words:
        return ""
    lower = [word.lower() for word in words]
    content = [word for word in lower if language.is_content(word)]
    own = [word for word in content if not language.has("generic", word)]
    if all(language.has("replies", word) for word in lower):
        return ""  # "yes" and "thanks" ask for nothing
    if not own:
        return "it has no subject of its own"
    return _reason_of_subject(words, own, language)


def _reason_of_subject(words: Sequence[str], own: Sequence[str], language: FollowUpWords) -> str:
    """Return why a question with words of its `own` is a follow-up; "" when it is none."""
    opener = opener_of([word.lower() for word in words], language)
    if opener and len(own) <= MOST_CONTINUED:
        return f"it continues with {' '.join(opener)!r}"
    if _is_about_product(words, own, language):
        return ""
    if len(own) <= MOST_OWN and (pronoun := _pronoun(words, language)):
        return f"{pronoun!r} refers to an earlier question"
    return ""


def _is_about_product(words: Sequence[str], own: Sequence[str], language: FollowUpWords) -> bool:
    """Return whether a question is whole by itself, as "Can I run it on Windows?": the pronoun is
    then the program that the assistant is about, whatever was asked before."""
    named = any(word[:1].isupper() and word.lower() in own for word in words[1:])
    return named and any(language.has("running", word) for word in own)


def _unspaced_reason(question: str, language: FollowUpWords) -> str:
    text = question.strip().rstrip("?？。!！ ")
    rest = text
    for word in longest_first(language.of("function") | language.of("generic")):
        rest = rest.replace(word, " ")
    own = re.sub(r"[\W_]", "", rest)
    if not own:
        return "it has no subject of its own"
    size = len(re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+", rest))
    if size <= MOST_UNSPACED:
        if any(text.endswith(ending) for ending in language.of("endings")):
            return f"it continues with {text[-1]!r}"
        for opener in language.openers:
            if text.startswith(opener[0]) and opener[0] != "为什么":
                return f"it continues with {opener[0]!r}"
    for word in longest_first(language.of("pronouns") | language.of("places")):
        before, found, _ = text.partition(word)
        if found and size <= MOST_UNSPACED:
            for each in longest_first(language.of("function")):
                before = before.replace(each, " ")
            if len(re.sub(r"[\W_]", "", before)) <= 3 and not re.search(r"[a-zA-Z]{2}", before):
                return f"{word!r} refers to an earlier question"
    return ""


def _pronoun(words: Sequence[str], language: FollowUpWords) -> str:
    """Return the first pronoun that has no noun in front of it; ""."""
    lower = [word.lower() for word in words]
    skipped = _expletive(lower, language)
    suffixed = _SUFFIXED.get(language.id)
    for at, word in enumerate(lower):
        if at in skipped:
            continue
        ends = bool(suffixed and suffixed.fullmatch(word) and language.is_content(word))
        place = language.has("places", word) and at == len(lower) - 1
        if ends or place or (language.has("pronouns", word) and _stands_for(words, at, language)):
            if _is_object_of_preposition(lower, at, language):
                return words[at]
            return "" if _has_noun(words[:at], language) else words[at]
    return ""


def _is_bare(text: str, language: FollowUpWords) -> bool:
    """Return whether a text is a phrase without a verb, of a word or two."""
    if language.id not in ("en", "de", "fr", "es"):
        return False
    lower = [word.lower() for word in split_words(text)]
    content = [word for word in lower if language.is_content(word)]
    others = [word for word in lower if not language.is_content(word)]
    return len(content) <= MOST_BARE and all(
        is_article(word) or language.has("prepositions", word) for word in others
    )


def _stands_for(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return whether the pronoun at `at` stands for something before the question."""
    rule = _PRONOUN_RULES.get(language.id)
    return rule is None or rule(words, at, language)


def _english_stands_for(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return False for `one thing`, and for `that` before a clause."""
    lower = [word.lower() for word in words]
    if lower[at] in ("one", "ones"):
        last = at == len(lower) - 1
        return at > 0 and (last or language.has("ordinals", lower[at - 1]))
    if lower[at] == "that":
        follows_verb = at == 1 and not language.is_content(lower[0])  # "Does that apply to …"
        return at + 1 == len(lower) or follows_verb or not language.is_content(lower[at + 1])
    return True


def _german_stands_for(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return False for `welche` before a noun, for the article `das`, and for `sein` as the last
    verb."""
    lower = [word.lower() for word in words]
    if lower[at] == "welche":
        return at == 0 and lower[1:2] in (["davon"], ["von"])
    if lower[at] == "das":
        rest = words[at + 1 :]  # "Gilt das auch …", "Wie wird das gemacht?"
        return at > 0 and (
            not rest
            or not language.is_content(rest[0].lower())
            or (len(rest) == 1 and rest[0].islower())
        )
    return lower[at] not in ("sein", "seine", "ihr") or at < len(lower) - 1


def _french_stands_for(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return False for the articles `le`, `la`, `les`: they are pronouns between a question word
    or the subject and a verb ("Qui les approuve ?", "Comment les ajouter ?")."""
    lower = [word.lower() for word in words]
    if lower[at] not in ("le", "la", "les"):
        return True
    return _is_clitic(lower, at, language, _INFINITIVE)


def _spanish_stands_for(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return False for an article, and for `este` before a noun."""
    lower = [word.lower() for word in words]
    if lower[at] in ("este", "esta"):
        return False
    if lower[at] in ("la", "los", "las"):
        return _is_clitic(lower, at, language, None)
    if lower[at] in ("lo", "le", "les"):
        return at + 1 < len(lower) and language.is_content(lower[at + 1])
    return True


def _is_clitic(
    lower: Sequence[str], at: int, language: FollowUpWords, infinitive: re.Pattern[str] | None
) -> bool:
    """Return whether a word that may be an article is the object of the verb behind it."""
    before, after = "".join(lower[at - 1 : at]), "".join(lower[at + 1 : at + 2])
    if at == 0 or not after or not language.is_content(after):
        return False
    if language.has("persons", before):  # "Quién la …", "je les …"
        return True
    asked = language.has("questions", before)
    is_verb = bool(infinitive and infinitive.fullmatch(after)) or at + 2 == len(lower)
    return asked and is_verb


_PRONOUN_RULES = {
    "en": _english_stands_for,
    "de": _german_stands_for,
    "fr": _french_stands_for,
    "es": _spanish_stands_for,
}


def _is_object_of_preposition(lower: Sequence[str], at: int, language: FollowUpWords) -> bool:
    """Return whether the question ends with a preposition and the pronoun: in "How do I add files
    to it?" it is not the files. Only in a question of one clause, as "What if …" is as well."""
    if at == 0 or at != len(lower) - 1 or not language.has("prepositions", lower[at - 1]):
        return False
    clause = lower[2:at] if tuple(lower[:2]) == ("what", "if") else lower[:at]
    return not any(language.has("joining", word) for word in clause)


def _has_noun(words: Sequence[str], language: FollowUpWords) -> bool:
    """Return whether a word before the pronoun can be what it stands for."""
    wanted = _wanted_nouns([word.lower() for word in words], language)
    return any(_is_noun(words, at, language) for at in range(len(words)) if at not in wanted)


def _is_noun(words: Sequence[str], at: int, language: FollowUpWords) -> bool:
    lower = [word.lower() for word in words]
    if not language.is_content(lower[at]) or language.has("generic", lower[at]):
        return False
    if language.id == "de" and (at == 0 or not words[at][0].isupper()):
        return False  # German nouns are capitalised
    before, after = "".join(lower[at - 1 : at]), "".join(lower[at + 1 : at + 2])
    if is_article(before) or (before == "to" and lower[at].endswith("s")):
        return True
    if language.has("subjects", before) or language.has("subjects", after):
        return False  # it is their verb
    # In these languages the word in front of the pronoun is its verb: "pourquoi faire cela".
    return language.id not in ("fr", "es", "he", "ar") or at < len(words) - 1


def _wanted_nouns(lower: Sequence[str], language: FollowUpWords) -> range:
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


def _expletive(lower: Sequence[str], language: FollowUpWords) -> set[int]:
    """Return the positions of words in phrases such as "is it possible"."""
    return {
        place
        for phrase in language.expletives
        for at in range(len(lower) - len(phrase) + 1)
        if tuple(lower[at : at + len(phrase)]) == phrase
        and (phrase != ("there",) or at < len(lower) - 1)
        for place in range(at, at + len(phrase))
    }
