"""Conditions on related records, one step far: "orders of customers from Berlin", "customers with
orders over 100", "albums by Iron Maiden", "customers without orders"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field, Relation
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.conditions import after_prepositions, conditions, listed
from groundhook.handlers.db.question.numbers import counts
from groundhook.handlers.db.question.question import TokenizedQuestion

MOST_INNER = 4  # conditions on related records


def related(here: Here, i: int) -> Iterator[Clause]:
    """Yield the conditions on related records that begin at a position."""
    yield from _with_noun(here, i)
    yield from _by_name(here, i)
    yield from _lacking(here, i)
    yield from _did(here, i)
    yield from _in_places(here, i)
    yield from _counted(here, i)


def _counted(here: Here, i: int) -> Iterator[Clause]:
    """ "with more than 6 invoices"; a field that may have this number is another reading."""
    for at, op, count in counts(here, i, "having"):
        for end, relation in here.named(at, "relations"):
            if relation.many:
                yield Clause("R", end, count=count, direction=op, relation=relation.name)
                for one in _numbers_of(here, relation):
                    yield Clause("c", end, (Where(field=one.name, op=op, value=count),))


def _numbers_of(here: Here, relation: Relation) -> list[Field]:
    """Return the fields that may have the number of related records: "planned participants"."""
    scope = here.scope
    phrases = (phrase for phrase, named in scope.relations.items() if relation in named)
    names = {" ".join(phrase) for phrase in phrases}
    numbers = [one for one in scope.own if one.kind == "integer" and "." not in one.name]
    return [one for one in numbers if not names.isdisjoint(scope.words_of(one))]


def _in_places(here: Here, i: int) -> Iterator[Clause]:
    """ "events in Hamburg", where the venue is in a city and the event has none."""
    for at, kinds in after_prepositions(here.question, i):
        own = any(value.free for value in here.values.at.get(at, ()))
        for relation, inner in _offered(here) if "place" in kinds and not own else ():
            for value in inner.values.at.get(at, ()) if not relation.many else ():
                if value.free and inner.scope.is_kind(value.field, "place"):
                    for stop, where in listed(inner, value):
                        yield Clause("c", stop, (where,))


def _offered(here: Here) -> list[tuple[Relation, Here]]:
    """Return the relations whose records are offered, each with the same question for these."""
    relations = here.scope.schema.relations
    return [
        (relations[name], here.within(name)) for name in relations if name in here.scope.related
    ]


def _with_noun(here: Here, i: int) -> Iterator[Clause]:
    having = here.question.is_(i, "having")
    for at in dict.fromkeys(_led(here, i)):
        for end, relation, wheres in _related_nouns(here, at):
            if relation.many and not (having or relation.through):
                continue
            alone = relation.many and having
            exists = (Where(field=relation.name, op="not null"),) if alone else ()
            for stop, inner in _inner(here.within(relation.name), end):
                if found := (*wheres, *inner) or exists:
                    yield Clause("R", stop, found, relation=relation.name)


def _led(here: Here, i: int) -> Iterator[int]:
    """Yield the positions behind the words that may come before a related record."""
    question = here.question
    for lead in question.past(i, "having", "of", "prepositions", "place_verbs", "made_verbs"):
        for start in question.past(lead, "prepositions") if lead > i else [lead]:
            yield from question.past(start, "articles")


def _related_nouns(here: Here, i: int) -> Iterator[tuple[int, Relation, tuple[Where, ...]]]:
    """Yield the names of relations at a position, also behind an adjective: "German customers"."""
    yield from ((end, relation, ()) for end, relation in here.named(i, "relations"))
    for relation, inner in _offered(here):
        for clause in inner.once(conditions, i):
            for end, named in here.named(clause.end, "relations") if clause.kind in "pN" else ():
                if named == relation:
                    yield end, relation, clause.wheres


def _inner(inner: Here, i: int, most: int = MOST_INNER) -> Iterator[tuple[int, tuple[Where, ...]]]:
    """Yield the conditions on the related records from a position on, none included."""
    yield i, ()
    if not most:
        return
    question = inner.question
    at = question.behind(i, "relatives", "be", "articles", "place_verbs")
    joined = [at, *(end for end, _ in question.all(at, "and"))] if most < MOST_INNER else [i, at]
    for start in dict.fromkeys(joined):
        for clause in inner.once(conditions, start):
            # "sales of wines in November": the sale was in November.
            event = clause.kind == "z" and not inner.many
            if not clause.list_only and clause.wheres and not event:
                for end, rest in _inner(inner, clause.end, most - 1):
                    yield end, (*clause.wheres, *rest)


def _by_name(here: Here, i: int) -> Iterator[Clause]:
    """ "albums by Iron Maiden", "orders of Anna Berg", "does Anna Berg have"."""
    question = here.question
    for at, kinds in after_prepositions(question, i):
        yield from _names_of_related(here, at, kinds)
    for at in (*question.after(i, "do"), *question.after(i, "have")):
        for clause in _names_of_related(here, at, {""}):
            yield from (replace(clause, end=stop) for stop in question.past(clause.end, "have"))


def _names_of_related(here: Here, i: int, kinds: set[str]) -> Iterator[Clause]:
    """Yield the conditions on the names of related records. No figure comes of a last name alone,
    which several may have."""
    for relation, inner in _offered(here):
        if not relation.many and kinds & _kinds_of(inner, relation):
            for clause in inner.once(conditions, i):
                if clause.kind == "N":
                    part = len(clause.wheres) < len(inner.scope.titles)
                    yield replace(clause, kind="c", list_only=part)


def _kinds_of(inner: Here, relation: Relation) -> set[str]:
    """Return the prepositions that may come before the names of related records."""
    words = inner.scope.words
    called = {relation.name.replace("_", " "), *inner.scope.schema.names}
    own = {word for name in called for word in words.stems(name)}
    kinds = {kind for kind in words.file.prepositions if own & set(words.kinds.get(kind, ()))}
    if inner.scope.of_persons:
        return {"", "about", "maker", "destination", *kinds}
    return {"", "about", *kinds, *(() if "maker" in kinds else ("place",))}


def _did(here: Here, i: int) -> Iterator[Clause]:
    """ "who never ordered", "that were rented", of the verb to the noun "order" or "rental"."""
    question = here.question
    for begin in question.past(i, "relatives", "who"):
        for start in question.past(begin, "have", "be"):
            never = [(end, "null") for end, _ in question.all(start, "negations")]
            ever = [(start, "not null")] if begin > i else []
            for at, op in (*never, *ever):
                for verb in question.past(at, "have", "be", "having"):
                    for end, relation in _happened(here, verb):
                        where = Where(field=relation.name, op=op)
                        yield Clause("V", end, (where,), relation=relation.name)


def _happened(here: Here, i: int) -> Iterator[tuple[int, Relation]]:
    """Yield the to-many relations of "ordered" and "placed an order"."""
    yield from ((i + 1, relation) for relation in _verbal(here, i))
    for verb, _ in here.question.all(i, "made_verbs"):
        for at in here.question.past(verb, "articles"):
            named = here.named(at, "relations")
            yield from ((end, relation) for end, relation in named if relation.many)


def _verbal(here: Here, i: int) -> list[Relation]:
    """Return the to-many relations to whose name the word at a position is the verb."""
    stems = nouns_of_verb(here.question, i)
    found = [one for stem in stems for one in here.scope.relations.get((stem,), ()) if one.many]
    return list(dict.fromkeys(found))


def nouns_of_verb(question: TokenizedQuestion, i: int) -> set[str]:
    """Return the stems of the nouns of which the word at a position may be the verb."""
    words, word = question.words, question.norm(i)
    return {
        words.stem(word[: len(word) - len(verbal)] + nominal)
        for nominal, verbal in words.file.verbs_of_nouns
        if word.endswith(verbal) and len(word) > len(verbal) + 2
    }


def _lacking(here: Here, i: int) -> Iterator[Clause]:
    """ "customers without orders", "who have never had an order"."""
    question = here.question
    for kind, op in (("lacking", "null"), ("having", "not null")):
        for at in question.after(i, kind):
            for end, relation in here.named(at, "relations"):
                name = relation.name if relation.many else relation.foreign
                if kind == "lacking" or not relation.many:
                    yield Clause("R", end, (Where(field=name, op=op),), relation=relation.name)
