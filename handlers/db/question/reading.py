"""Reads a question: all queries that it may mean, or why it means none. Pure.

Every word of the question must belong to a clause, and the clauses must have a form; what remains
is `unread`, and nothing is guessed for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from groundhook.core.types.query_language import group_field
from groundhook.handlers.db.model.schema import Schema
from groundhook.handlers.db.query.dsl import QueryDSL, conditions
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.covers import best_partial, covers, least_price, strange_words
from groundhook.handlers.db.question.forms import QueryReading, compose
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import OfferedModel, QuestionScope
from groundhook.handlers.db.question.sentence import Teller
from groundhook.handlers.db.question.spelling import nearest
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.values import all_values, known_words, scopes_of, start_of
from groundhook.handlers.db.question.vocabulary import Vocabulary

MOST_READINGS = 12  # that are run
MOST_TRIED = 32  # models that a decline may be about, those with most of the words first
MOST_NEAR = 4
MOST_FIELDS = 8  # of a model that a decline names
MOST_CORRECTED = 3


@dataclass(frozen=True)
class Reads:
    """The queries that a question may mean. Without any, `unread` are its words that became
    nothing (none where all are known, but not together), `understood` is the query of the rest, if
    that is one, and `near` are known words that unread ones resemble, by the word. `corrected`:
    words that were read as others."""

    readings: tuple[QueryReading, ...] = ()
    unread: tuple[str, ...] = ()
    understood: QueryDSL | None = None
    near: Mapping[str, str] | None = None
    corrected: Mapping[str, str] | None = None
    about: Schema | None = None
    cut: bool = False

    @property
    def names_records(self) -> bool:
        """Whether there are readings that name their records, with the words as they are: no model
        that the question does not name has others."""
        return bool(self.readings) and self.readings[0].named and not self.corrected


def read_question(
    text: str, offers: Sequence[OfferedModel], words: Vocabulary, now: datetime
) -> Reads:
    """Return the readings of a question. If only misspelt words stand in the way, it is read with
    the words that they must mean, for a list alone."""
    scopes = scopes_of(text, offers, words)
    found = _read(text, scopes, words, now)
    if found.readings or not found.unread:
        return found
    typed = [word for phrase in found.unread for word in phrase.split()]
    wrong = [word for word in typed if not _is_spoken(word, words)]
    near = _near(wrong, scopes, words)
    if near and len(near) == len(wrong) <= MOST_CORRECTED:
        again = text
        for word, meant in near.items():
            again = again.replace(word, meant, 1)
        second = _read(again, scopes_of(again, offers, words), words, now)
        lists = [not (one.query.computed or one.query.select) for one in second.readings]
        if lists and all(lists):
            return replace(second, corrected=near)
    return replace(found, near=near)


def _read(text: str, scopes: Sequence[QuestionScope], words: Vocabulary, now: datetime) -> Reads:
    known = [known_words(scope) for scope in scopes]
    question = TokenizedQuestion.of(text, words, now, frozenset[str]().union(*known))
    places = [
        (here := Here(question, scope), strange_words(here, own))
        for scope, own in zip(scopes, known, strict=True)
    ]
    found: dict[str, QueryReading] = {}
    for here, strange in places:
        for clauses in () if strange else covers(here):
            for reading in compose(here, clauses):
                key = str(reading.query.wire())
                if key not in found or _is_better(reading, found[key]):
                    found[key] = reading
    if found:
        best = min(map(_rank, found.values()))
        kept = [reading for reading in found.values() if _rank(reading) == best]
        return Reads(tuple(kept[:MOST_READINGS]), cut=question.cut)
    return _declined(question, places)


def _rank(reading: QueryReading) -> tuple[bool, int]:
    """Return the order of readings: the one that names its records first, then, where none does,
    that of the model whose own fields are meant."""
    if reading.named:
        return False, 0
    query = reading.query
    names = [
        *map(group_field, query.groups),
        *query.select,
        *(one.field for one in query.aggregates),
    ]
    names += [where.name for where in conditions(query.wheres)]
    return True, sum("." in name for name in names)


def _is_better(one: QueryReading, other: QueryReading) -> bool:
    """Return whether a reading of the same query is more certain."""
    return (one.named, -len(one.notes)) > (other.named, -len(other.notes))


def _declined(question: TokenizedQuestion, places: Sequence[tuple[Here, Sequence[int]]]) -> Reads:
    """Return the words that no clause has, by the model that leaves fewest, and what the rest
    means. A model whose own names the question has comes before one that knows other words."""
    spoken = question.words.spoken
    named = {
        word
        for here, _ in places
        for phrase in (*here.scope.nouns, *here.scope.fields)
        for word in phrase
        if word not in spoken
    }
    least = [least_price(here, strange, named) for here, strange in places]
    tried: dict[int, tuple[float, list[Clause], list[int]]] = {}
    for at in sorted(range(len(places)), key=lambda at: least[at])[:MOST_TRIED]:
        if tried and least[at] > min(price for price, *_ in tried.values()):
            break
        tried[at] = best_partial(places[at][0], named)
    best = min(
        sorted(tried),
        key=lambda at: (tried[at][0], not any(one.kind == "n" for one in tried[at][1])),
    )
    here, (_, clauses, left) = places[best][0], tried[best]
    unread = _phrases(question, left)
    return Reads(
        unread=unread,
        understood=_understood(here, clauses) if unread else _most_understood(here, clauses),
        about=here.scope.schema if any(one.kind == "n" for one in clauses) else None,
        cut=question.cut,
    )


def _is_spoken(word: str, words: Vocabulary) -> bool:
    return any(norm in words.spoken or len(norm) == 1 for norm in phrase_of(word)[:1])


def _phrases(question: TokenizedQuestion, left: Sequence[int]) -> tuple[str, ...]:
    """Return the words at these positions as typed, neighbours together."""
    runs: list[list[int]] = []
    groups = {question.tokens[i].group for i in left}
    whole = (i for i, token in enumerate(question.tokens) if token.group in groups)
    for i in whole:
        if runs and runs[-1][1] == i:
            runs[-1][1] = i + 1
        else:
            runs.append([i, i + 1])
    return tuple(question.typed(first, last) for first, last in runs)


def _understood(here: Here, clauses: Sequence[Clause]) -> QueryDSL | None:
    kept = [one for one in clauses if one.kind not in "Oxkbhw"]
    return next((reading.query for reading in compose(here, kept)), None)


def _most_understood(here: Here, clauses: Sequence[Clause]) -> QueryDSL | None:
    """Return what all parts of a question but one mean together, the last that may be left out."""
    fewer = ([*clauses[:at], *clauses[at + 1 :]] for at in reversed(range(len(clauses))))
    return next(filter(None, (_understood(here, some) for some in fewer)), None)


def _near(
    unread: Sequence[str], scopes: Sequence[QuestionScope], words: Vocabulary
) -> dict[str, str]:
    """Return for each unread word the known one that it resembles, in names and values."""
    pool = _spellings(words)
    starts = frozenset(start_of(text)[:1] for text in unread)
    for scope in scopes:
        names = (*scope.schema.names, *(one.shown for one in scope.own))
        for word in (word for name in names for word in name.replace("_", " ").split()):
            pool |= {word.casefold(): word, f"{word.casefold()}s": f"{word}s"}
        for each in (scope, *scope.related.values()):
            pool |= _spelled_values(each, starts)
    known = list(pool)
    meant = {text: nearest(text.casefold(), known) for text in unread}
    found = {text: pool[word] for text, word in meant.items() if word}
    return dict(list(found.items())[:MOST_NEAR])


def _spelled_values(scope: QuestionScope, starts: frozenset[str]) -> dict[str, str]:
    """Return the values that begin with one of these letters, by their words."""
    texts = [one for one in scope.own if one.kind == "text" and not one.long]
    values = (value for one in texts for value in all_values(scope, one))
    alike = (value for value in values if start_of(value)[:1] in starts)
    return {" ".join(phrase_of(value.replace("_", " "))): value for value in alike}


def _spellings(words: Vocabulary) -> dict[str, str]:
    """Return the words of the language that a misspelt one may be: a misspelt verb may be
    another."""
    kinds = {"requests", "figures", "superlatives", "orders"}
    return {
        phrase[0]: phrase[0]
        for phrase, meanings in words.phrases.items()
        if len(phrase) == 1 and any(word.kind in kinds for word in meanings)
    }


def explain(reads: Reads, teller: Teller, offers: Sequence[OfferedModel]) -> str:
    """Return why a question was not answered, as sentences for readers."""
    parts: list[str] = []
    if reads.unread:
        parts.append(teller.phrase("unread", words=teller.quoted(reads.unread)))
        if slow := [offer.schema.name for offer in offers if offer.looked_up is None]:
            parts.append(teller.phrase("not_looked_up", models=", ".join(slow[:MOST_NEAR])))
    else:
        parts.append(teller.say["structure"])
    if reads.near:
        parts.append(teller.phrase("near", words=teller.quoted(reads.near.values())))
    if reads.understood is not None:
        parts.append(teller.phrase("understood", reading=teller.sentence(reads.understood)))
    about = reads.about or (offers[0].schema if len(offers) == 1 else None)
    if about is not None:
        shown = [one.shown for one in about.visible if one.name not in about.keys][:MOST_FIELDS]
        parts.append(teller.phrase("known", model=about.name, fields=", ".join(shown)))
    return " ".join(parts)


def notes_of(reading: QueryReading, teller: Teller, schema: Schema) -> list[str]:
    """Return what is not certain of a reading, as sentences for readers."""
    title = schema.fields.get(schema.title)
    field = title.shown if title else schema.name
    found = [teller.phrase(note, field=field) for note in dict.fromkeys(reading.notes)]
    if reading.idle:
        found.append(teller.phrase("left_out", words=teller.quoted(reading.idle)))
    return found
