"""Conditions of a question on one model: values, numbers, times, what is there or not, and their
negations and alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.query.dsl import conditions as flat
from groundhook.handlers.db.question.clauses import Clause, Here, negated
from groundhook.handlers.db.question.numbers import number_conditions
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import NUMBERS, TIMES, QuestionScope
from groundhook.handlers.db.question.times import spans, time_conditions
from groundhook.handlers.db.question.values import LIST_SEPARATORS, FoundValue, lists_of
from groundhook.handlers.db.question.wheres import require_all, require_any, require_one_of

LIST_SIGNS = ",&"
TEXTS = ("text", "json")
NOTHING = ("none", "keine", "ללא")  # options that say that there is nothing


def conditions(here: Here, i: int) -> list[Clause]:
    """Return the conditions that begin at a position, also negated ones and alternatives."""
    found = [*here.once(_simple, i), *_negations(here, i)]
    return [*found, *(each for one in found for each in _alternatives(here, one))]


def _simple(here: Here, i: int) -> Iterator[Clause]:
    if i >= len(here.question):
        return
    yield from _values(here, i)
    yield from _after_preposition(here, i)
    yield from _named_values(here, i)
    yield from number_conditions(here, i)
    yield from time_conditions(here, i)
    yield from _states(here, i)
    yield from _presence(here, i)
    yield from _patterns(here, i)


# ------------------------------------------------------------------------------------------- values


def _values(here: Here, i: int) -> Iterator[Clause]:
    """Values without their field's name: "pending", "Thai or French", "Nancy Edwards"."""
    for found in here.free_values(i):
        if _is_name(here, i, found.end):
            continue
        if here.scope.is_title(found.field):
            yield from _record_names(here, found)
        elif here.scope.repeats(found.field) and not found.field.long:
            for end, where in listed(here, found):
                for stop in (end, *_noun_of(here, end, found.field)):  # "Thai cuisine"
                    yield Clause("p", stop, (where,))


def _is_name(here: Here, i: int, end: int) -> bool:
    """Return whether words name the records, a field or a relation."""
    stems, scope = here.question.stems(i, end), here.scope
    typed = here.question.typed(i, end)
    return typed.islower() and (
        stems in scope.nouns or stems in scope.fields or stems in scope.relations
    )


def _record_names(here: Here, found: FoundValue) -> Iterator[Clause]:
    """ "Nancy Edwards", of a first and a last name or of one field."""
    first = where_in(found.field, found.spellings)
    yield Clause("N", found.end, (first,))
    for last in here.values.at.get(found.end, ()):
        if here.scope.is_title(last.field) and last.field != found.field:
            yield Clause("N", last.end, (first, where_in(last.field, last.spellings)))
    for end, where in listed(here, found):
        if end > found.end:
            yield Clause("N", end, (where,), plural=True)


def _noun_of(here: Here, i: int, one: Field) -> list[int]:
    return [end for end, named in here.fields_at(i, *TEXTS) if named == one]


def where_in(one: Field, spellings: Sequence[str]) -> Where:
    return require_one_of(one.name, spellings)


def listed(here: Here, found: FoundValue) -> list[tuple[int, Where]]:
    """Return the condition on a value, and on the values that are listed with it: "A, B or C". Of a
    field with lists "A and B" are both required."""
    one, question = found.field, here.question
    results = [(found.end, [found.spellings], False)]
    for end, values, both in results:
        for at in _separated(here, end, one):
            joined = both or question.is_(end, "and") or question.is_mark(end, "&")
            for other in here.values.at.get(at, ()):
                if other.field == one and not here.within_name(at, other.end):
                    results.append((other.end, [*values, other.spellings], joined))
    return [(end, _one_of(here, one, values, both)) for end, values, both in results]


def _separated(here: Here, i: int, one: Field) -> list[int]:
    """Return the positions behind "or", "and" and a comma, and a preposition of the field."""
    question = here.question
    starts = [i + 1] if any(question.is_mark(i, sign) for sign in LIST_SIGNS) else []
    for start in (i, *starts):
        starts += [end for kind in ("or", "and", "nor") for end, _ in question.all(start, kind)]
    again = [
        end
        for start in starts
        for end, kind in question.all(start, "prepositions")
        if here.scope.is_kind(one, kind)
    ]
    return [at for start in (*starts, *again) for at in question.past(start, "articles")]


def _one_of(here: Here, one: Field, values: Sequence[Sequence[str]], both: bool) -> Where:
    parted = lists_of(here.scope, one)
    if parted is None:
        return require_one_of(one.name, [each for spelled in values for each in spelled])
    elements = {element for each in parted.values() for element in each}
    sign = next((each for each in LIST_SEPARATORS if any(each in value for value in parted)), "")
    wheres = [_has_element(one, spelled[0], elements, sign) for spelled in values]
    return require_all(wheres) if both else require_any(wheres)


def _has_element(one: Field, element: str, elements: set[str], sign: str) -> Where:
    """Return the condition that a list in a text, parted by `sign`, has an element."""
    if one.kind == "json":
        return Where(field=one.name, op="like", value=f'%"{element}"%')
    folded = element.casefold()
    if not any(folded in other.casefold() and other != element for other in elements):
        return Where(field=one.name, op="like", value=f"%{element}%")
    before = (f"%{sign}", f"%{sign} ")
    patterns = [f"{each}{element}{end}" for each in before for end in ("", f"{sign}%")]
    patterns.append(f"{element}{sign}%")
    return Where(
        any_of=(
            Where(field=one.name, value=element),
            *(Where(field=one.name, op="like", value=pattern) for pattern in patterns),
        )
    )


def _after_preposition(here: Here, i: int) -> Iterator[Clause]:
    """ "from Berlin", "by Lucia Ferrante", "in German": the preposition says which field."""
    for at, kinds in after_prepositions(here.question, i):
        for value in _fitting_values(here, at, kinds):
            for end, where in listed(here, value):
                for stop in (end, *_noun_of(here, end, value.field)):
                    yield Clause("c", stop, (where,))


def after_prepositions(question: TokenizedQuestion, i: int) -> Iterator[tuple[int, set[str]]]:
    """Yield the positions behind a preposition and an article, with the kinds of fields that it may
    lead; "" of "of"."""
    for start in question.past(i, "place_verbs", "made_verbs"):
        kinds: dict[int, set[str]] = {}
        led = [*question.all(start, "prepositions"), *question.all(start, "of")]
        for end, kind in led:
            kinds.setdefault(end, set()).add(kind or "")
        for end, fitting in kinds.items():
            yield from ((at, fitting) for at in question.past(end, "articles"))


def _fitting_values(here: Here, i: int, kinds: set[str]) -> list[FoundValue]:
    """Return the values that a preposition may lead: of a field of its kinds, else of any that is
    no other kind's."""
    scope = here.scope
    found = [each for each in here.free_values(i) if not scope.is_title(each.field)]
    if said := _of_kinds(scope, found, kinds):
        return said
    repeated = [value for value in found if scope.repeats(value.field)]
    if "" in kinds:
        return repeated
    if kinds & {"place", "origin"}:  # "in the Cellar", "from Globex"
        apart = {"destination"} if "origin" in kinds else {"maker", "origin", "destination"}
        other = _of_kinds(scope, repeated, apart)
        return [value for value in repeated if value not in other]
    return _of_kinds(scope, found, {"category"}) if "about" in kinds else []


def _of_kinds(
    scope: QuestionScope, values: Sequence[FoundValue], kinds: set[str]
) -> list[FoundValue]:
    return [value for value in values if scope.is_kind(value.field, *kinds)]


def _named_values(here: Here, i: int) -> Iterator[Clause]:
    """ "city Berlin", "whose status is pending", "brand = Acme", "with private insurance"."""
    question = here.question
    for at in question.leads(i, "having", "relatives"):
        for end, one in here.fields_at(at, *TEXTS):
            for found in here.values_of(one, _behind_name(here, end)):
                yield from (Clause("c", stop, (where,)) for stop, where in listed(here, found))
    for at in question.after(i, "having"):
        for found in here.values.at.get(at, ()):
            if found.free or found.exact:
                for end, where in listed(here, found):
                    named = _noun_of(here, end, found.field)
                    yield from (Clause("c", stop, (where,)) for stop in named)


def _behind_name(here: Here, i: int) -> list[int]:
    """Return where the value of a field may begin that was named before `i`."""
    question = here.question
    starts = question.past(i, "be", "of", "called")
    starts += [i + 1] if question.is_mark(i, "=") or question.is_mark(i, ":") else []
    return [at for start in starts for at in question.past(start, "articles", "prepositions")]


# -------------------------------------------------------------------------------- states, presence


def _states(here: Here, i: int) -> Iterator[Clause]:
    """ "online", "vegan"; "shipped" of a date; "in stock"."""
    question = here.question
    for end, one in here.fields_at(i, "boolean"):
        yield Clause("p", end, (Where(field=one.name, value=True),))
        for at in question.past(end, "be"):
            for word, value in (("yes", True), ("no", False)):
                stops = [stop for stop, _ in question.all(at, word)]
                yield from (Clause("c", stop, (_equals(one, value),)) for stop in stops)
    for end, one in here.fields_at(i, *TIMES):
        if _is_participle(here, i, end) and one.nullable and "." not in one.name:
            yield Clause("p", end, (Where(field=one.name, op="not null"),))
    for end, entry in question.all(i, "conditions"):
        kinds = NUMBERS if entry.value is not None else TIMES
        fields = [] if _is_option(here, i, end) else here.scope.of_kind(entry.kind, kinds)
        for one in fields:
            yield Clause("p", end, (Where(field=one.name, op=entry.op, value=entry.value),))


def _is_option(here: Here, i: int, end: int) -> bool:
    return any(found.end == end and found.free for found in here.values.at.get(i, ()))


def _is_participle(here: Here, i: int, end: int) -> bool:
    """Return whether a date's name says that something happened, and no time follows."""
    question = here.question
    led = any(question.is_(end, kind) for kind in ("date_relations", "orders", "date_periods"))
    verbal = end == i + 1 and question.norm(i).endswith(("ed", "t", "en"))
    return verbal and not led and not spans(question, end)


def _presence(here: Here, i: int) -> Iterator[Clause]:
    """ "with a phone", "without insurance", "whose email is missing"."""
    question = here.question
    for kind, there in (("having", True), ("lacking", False)):
        for at in question.after(i, kind):
            for end, one in here.fields_at(at):
                yield from _is_there(one, end, there=there)
                called = [found for found in here.values_of(one, [at]) if found.end == end]
                yield from (Clause("c", end, (where_in(one, each.spellings),)) for each in called)
    for start in question.past(i, "relatives"):
        for end, one in here.fields_at(start):
            for stop, _ in question.all(end, "missing"):
                yield from _is_there(one, stop, there=False)


def _is_there(one: Field, end: int, *, there: bool) -> Iterator[Clause]:
    """Yield the condition that a field has a value, or none: an empty text, 0 and the option "none"
    are none."""
    name = one.name
    if one.kind == "boolean":
        yield Clause("c", end, (_equals(one, there),))
        return
    nothing: list[Any] = [each for each in one.options if each in NOTHING]
    if not (one.nullable or nothing or one.kind in NUMBERS):
        return
    nothing += [""] if one.kind == "text" else [0] if one.kind in NUMBERS else []
    if there:
        full = tuple(Where(field=name, op="!=", value=value) for value in nothing)
        yield Clause("c", end, (Where(field=name, op="not null"), *full))
    else:
        empty = tuple(_equals(one, value) for value in nothing)
        null = Where(field=name, op="null")
        yield Clause("c", end, (Where(any_of=(null, *empty)) if empty else null,))


def _equals(one: Field, value: Any) -> Where:
    return Where(field=one.name, value=value)


def _patterns(here: Here, i: int) -> Iterator[Clause]:
    """ "whose name starts with A", "title contains 'war'"."""
    question = here.question
    for start in question.past(i, "relatives", "having"):
        for end, one in here.fields_at(start, "text"):
            said = [(stop, "") for stop, _ in question.all(end, "starts_with")]
            said += [(stop, "%") for stop, _ in question.all(end, "contains")]
            for stop, before in said if "." not in one.name else ():
                for token in question.tokens[stop : stop + 1]:
                    if not before or token.kind == "quoted":
                        where = Where(field=one.name, op="like", value=f"{before}{token.text}%")
                        yield Clause("c", stop + 1, (where,), list_only=bool(before))
    for stop, _ in question.all(i, "called"):
        for found in here.values.at.get(stop, ()):
            if here.scope.is_title(found.field):
                yield from _record_names(here, found)


# --------------------------------------------------------------------------- negation, alternatives


def _negations(here: Here, i: int) -> Iterator[Clause]:
    question = here.question
    for kind in ("negations", "exceptions"):
        for start, _ in question.all(i, kind):
            if question.inside(i, start):
                continue
            behind = question.past(start, "articles", "pronouns", "be", "who")
            behind += [end for end, _ in here.nouns_at(start)] if kind == "exceptions" else []
            behind += [
                at for end in behind[1:] for at in question.past(end, "articles", "relatives")
            ]
            for at in dict.fromkeys(behind):
                for clause in here.once(_simple, at):
                    if clause.kind == "N" and kind == "negations":
                        continue
                    yield from negated(here, clause, clause.end)


def _fields_of(clause: Clause) -> set[str]:
    return {where.field for where in flat(clause.wheres)}


def _alternatives(here: Here, first: Clause) -> Iterator[Clause]:
    """ "vegan or gluten free", "from Spain or with more than 200 planes"."""
    question = here.question
    for start, _ in question.all(first.end, "or"):
        for at in question.past(start, "articles"):
            for other in here.once(_simple, at):
                if "N" in (first.kind, other.kind) or other.relation or first.relation:
                    continue
                if _fields_of(first) == _fields_of(other):
                    continue  # a list of values
                either = require_any([require_all(first.wheres), require_all(other.wheres)])
                kind = "p" if first.kind == other.kind == "p" else "c"
                yield replace(first, kind=kind, end=other.end, wheres=(either,), figure="either")
