"""Translates a question to QueryDSL: the model that it is about, its conditions, orders and limit,
and the words left over.

Words that became no condition are never dropped: they become a text search over the model's text
fields, and are reported. An unknown word never becomes a condition on a field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from groundhook.core.types.query_language import Order, Where
from groundhook.handlers.db.query.dsl import EVERY_TEXT, MATCH, MATCH_NONE, QueryDSL, conditions
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, Cursor
from groundhook.handlers.db.question.joining import join_conditions
from groundhook.handlers.db.question.lexicon import Lexicon
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.parsed import Parsed, Piece
from groundhook.handlers.db.question.rules import RULES, RULES_UNKNOWN
from groundhook.handlers.db.question.tokens import LONGEST_QUESTION, MOST_TOKENS, Token, tokens_of
from groundhook.handlers.db.question.vocabulary import Vocabulary

MOST_CONDITIONS = 100  # on fields: half of what a query takes, since joining adds some
MOST_SEARCHED = 16  # words that were not understood and are searched for; engines limit an OR


@dataclass(frozen=True)
class Reading:
    """A question as a query on one model. `not_understood` are the words that became no condition,
    `understood` all others; both in order and as typed. `left_out` are those of `not_understood`
    that are not searched for either. `notes` report words that were read differently than typed.
    `named_at` is the position of the model's name, None without one. `requests_something`: "thank
    you" requests nothing of the model. `lists`: whether it requests a list that unknown words
    describe. Of several readings the one with the lowest `rank` fits best."""

    dsl: QueryDSL
    understood: tuple[str, ...]
    not_understood: tuple[str, ...]
    notes: tuple[str, ...]
    named_at: int | None
    requests_something: bool
    left_out: tuple[str, ...] = ()
    refused: bool = False
    lists: bool = False
    rank: tuple[int, ...] = ()


def read_question(
    question: str,
    offers: Sequence[Offer],
    words: Vocabulary,
    now: datetime,
    lexicons: Lexicons | None = None,
) -> list[Reading]:
    """Return the readings of a question: one for the model that it names or fits best, several if
    models fit equally well."""
    tokens, lexicons = tokens_of(question, words.file.decimal), lexicons or Lexicons()
    moment = now if now.tzinfo else now.replace(tzinfo=UTC)
    readings = []
    for offer in offers:
        rest = [other.schema for other in offers if other.schema.id != offer.schema.id]
        readings.append(read_for(tokens[:MOST_TOKENS], lexicons.get(offer, words, rest), moment))
    found = _choose(readings)
    if len(question) > LONGEST_QUESTION or len(tokens) > MOST_TOKENS:
        length = f"{LONGEST_QUESTION} characters and {MOST_TOKENS} words"
        note = f"at most the first {length} of a question are read; its end was not"
        return [replace(one, notes=(*one.notes, note)) for one in found]
    return found


def read_for(tokens: Sequence[Token], lexicon: Lexicon, now: datetime) -> Reading:
    """Return the reading of a question for one model."""
    cursor, draft = Cursor(tokens, lexicon, now), Parsed()
    while (i := draft.end) < len(cursor.tokens):
        rules = RULES if cursor.at(i)[0] or cursor.tokens[i].kind != "word" else RULES_UNKNOWN
        tried = (rule(cursor, draft, i) for rule in rules)
        found = next((one for one in tried if one is not None), None) or _leave_over(cursor, i)
        cursor.about = found.about or cursor.about
        draft = draft.then(_note_corrections(cursor, i, found))
    return _finish(cursor, draft)


def _leave_over(cursor: Cursor, i: int) -> Parsed:
    """Return the words here as not understood."""
    if cursor.is_(i, sense.Qualifier):
        return Parsed(cursor.after(i)).unplaced(range(i, cursor.after(i)))
    return Parsed(i + 1, not_understood=(i,))


def _choose(readings: list[Reading]) -> list[Reading]:
    """Return the readings of the model that the question names first, else of those that fit
    best."""
    named = [reading for reading in readings if reading.named_at is not None]
    if not named:
        best = min((reading.rank for reading in readings), default=None)
        return [reading for reading in readings if reading.rank == best]
    first = min(named, key=lambda reading: reading.named_at or 0)
    better = [one for one in readings if not first.refused and _explains_more(one, first)]
    return better if len(better) == 1 else [first]


def _explains_more(one: Reading, first: Reading) -> bool:
    """Return whether a reading, of a model that is named or has figures, explains every word, or at
    least the figure that the first one leaves over."""
    figures, left = one.dsl.computed, len(one.not_understood)
    if left and (first.dsl.computed or not figures):
        return False
    return left < len(first.not_understood) and (one.named_at is not None or figures)


def _withdraw_uncertain(cursor: Cursor, draft: Parsed) -> Parsed:
    """Remove conditions that may be wrong: the one after a "not" that was not understood, which may
    mean the opposite, and the object of a comparison that was not understood ("more expensive than
    the iPad" is not about the iPad)."""
    for at in draft.not_understood:
        if cursor.is_(at, sense.Not, sense.But, sense.Compare):
            piece = _find_object(cursor, draft, at)
            draft = draft.without([piece]) if piece else draft
    return draft


def _limit_conditions(draft: Parsed) -> Parsed:
    """Remove the conditions that are more than a query takes: a value may be one of many fields."""
    count = 0
    for number, piece in enumerate(draft.pieces):
        count += sum(1 for _ in conditions(piece.wheres))
        if count > MOST_CONDITIONS:
            return draft.without(draft.pieces[number:])
    return draft


def _find_object(cursor: Cursor, draft: Parsed, at: int) -> Piece | None:
    """Return the first piece after a word at `at`, if only words without a meaning of their own are
    between them; after a "not" also words that were not understood."""
    start, negated = cursor.at(at)[1], cursor.is_(at, sense.Not, sense.But)
    piece = next((piece for piece in draft.pieces if piece[0] >= start), None)
    if piece is None:
        return None
    near = all(
        (negated and i in draft.not_understood)
        or cursor.is_(i, sense.Filler, sense.ValueLink, sense.FieldRef, sense.RelationRef)
        for i in range(start, piece[0])
    )
    return piece if near else None


def _finish(cursor: Cursor, draft: Parsed) -> Reading:
    """Return the reading of a question whose last word has been read."""
    given = _withdraw_uncertain(cursor, _limit_conditions(draft))
    joined, draft = join_conditions(cursor, given)
    words = _sort_words(cursor, draft, draft.not_understood)
    excluded = _sort_words(cursor, draft, draft.excluded)
    wheres = (*joined, *_search_words([*draft.phrases, *words.searched], excluded.searched))
    omitted = [f"records with {word!r} were omitted" for word in excluded.searched]
    left, reported = {*draft.not_understood, *draft.excluded}, (*words.reported, *excluded.reported)
    listed = draft.named_at is not None or cursor.said(sense.Everything)
    return Reading(
        _build_query(cursor, draft, wheres),
        understood=tuple(token.text for i, token in enumerate(cursor.typed) if i not in left),
        not_understood=reported,
        notes=tuple(dict.fromkeys([*draft.notes, *omitted])),
        named_at=draft.named_at,
        requests_something=bool(wheres or _count_effects(given) or listed),
        left_out=tuple(words.left_out),
        refused=draft.refused,
        lists=_requests_list(cursor, draft),
        rank=_rank(cursor, given, len(reported)),
    )


def _rank(cursor: Cursor, draft: Parsed, left: int) -> tuple[int, ...]:
    """Return the sort key of readings: the number of words that are left over, whether persons are
    requested of a model that has none, the number of fields of related records, how much is
    requested, and where the first condition on the record's own fields is; then whether no record
    is named by its title."""
    person = cursor.said(sense.Person) and not cursor.lexicon.of_persons
    far, title = _count_far(draft), cursor.lexicon.schema.title
    own = (piece.start for piece in draft.pieces if "." not in piece.wheres[0].field)
    untitled = all(where.field != title for where in draft.conditions)
    return left, person, far, -_count_effects(draft), next(own, 0) if far else 0, untitled


def _requests_list(cursor: Cursor, draft: Parsed) -> bool:
    """Return whether the question requests a list that unknown words only describe: "splendid
    books", "flights with a Swiss airline", not "books by Tolstoy"."""
    if (
        draft.named_at is None
        or draft.phrases
        or (draft.singular and not cursor.said(sense.Everything))
    ):
        return False
    return not any(_names_something(cursor, i) for i in draft.not_understood)


def _names_something(cursor: Cursor, i: int) -> bool:
    """Return whether an unknown word is a name, of which there is nothing if it is not found."""
    if i == 0 or not cursor.unknown(i):
        return False
    described = cursor.is_(i + 1, sense.RelationRef, sense.FieldRef)
    before = i - 2 if cursor.is_(i - 1, when.Definite, sense.Single) else i - 1
    governing = (sense.Preposition, sense.ValueLink, sense.FieldRef, sense.RelationRef)
    name = cursor.typed[i].text[:1].isupper() or cursor.is_(before, *governing)
    return name and not described


def _build_query(cursor: Cursor, draft: Parsed, wheres: tuple[Where, ...]) -> QueryDSL:
    """Return the query of a question. Figures are sorted by figures only, and one figure needs no
    limit."""
    figures = [*draft.groups, *(one.called for one in draft.aggregates)]
    orders = list(draft.orders)
    if figures:
        orders = [order for order in orders if order.field in figures]
    elif not orders:
        orders = _imply_order(cursor, wheres)
    return QueryDSL(
        model=cursor.lexicon.schema.id,
        wheres=wheres,
        groups=tuple(draft.groups),
        aggregates=tuple(draft.aggregates),
        orders=tuple(orders),
        limit=None if draft.aggregates and not draft.groups else draft.limit,
    )


def _search_words(words: Sequence[str], excluded: Sequence[str]) -> list[Where]:
    """Return the conditions of the words that became no condition on a field."""
    return [
        Where(field=EVERY_TEXT, op=op, value=found[:MOST_SEARCHED])
        for op, found in ((MATCH, [*words]), (MATCH_NONE, [*excluded]))
        if found
    ]


def _count_effects(draft: Parsed) -> int:
    """Return in how many ways the question restricts, sorts or computes records."""
    parts = [*draft.conditions, *draft.orders, *draft.aggregates, *draft.groups]
    return len(parts) + (draft.limit is not None)


def _count_far(draft: Parsed) -> int:
    """Return how many of the fields that the question uses are of related records."""
    names = [where.field for where in draft.conditions] + [order.field for order in draft.orders]
    names += [*(one.field for one in draft.aggregates), *draft.groups]
    names += [draft.mention.name] if draft.mention else []
    return sum("." in name for name in names)


class _LeftWords(NamedTuple):
    """Words that became no condition: those to search for, those to report, and those of the
    reported ones that are not searched for."""

    searched: list[str]
    reported: list[str]
    left_out: list[str]


def _sort_words(cursor: Cursor, draft: Parsed, places: Sequence[int]) -> _LeftWords:
    """Sort the words at these positions. The pieces of a compound are one word."""
    words = _LeftWords([], [], [])
    for first, last in _join_compounds(cursor, places):
        text = cursor.text(first, last)
        words.reported.append(text)
        idle = all(i in draft.idle or _is_compared(cursor, draft, i) for i in range(first, last))
        if idle or not any(character.isalnum() for character in text):
            words.left_out.append(text)
        elif (searched := _search_form(cursor, first, last)) not in words.searched:
            words.searched.append(searched)
    return words


def _join_compounds(cursor: Cursor, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each run of positions that were typed as one word."""
    at = 0
    while at < len(places):
        end = at + 1
        while end < len(places) and _is_same_word(cursor, places[end - 1], places[end]):
            end += 1
        yield places[at], places[end - 1] + 1
        at = end


def _is_same_word(cursor: Cursor, one: int, other: int) -> bool:
    return other == one + 1 and cursor.typed[one].group == cursor.typed[other].group


def _search_form(cursor: Cursor, first: int, last: int) -> str:
    """Return the text to search for: a word without its plural ending, but with its accents."""
    text, token = cursor.text(first, last), cursor.typed[first]
    if last - first > 1 or token.kind != "word":
        return text
    return cursor.lexicon.vocabulary.stem(token.norm if text.isascii() else text.casefold())


def _is_compared(cursor: Cursor, draft: Parsed, i: int) -> bool:
    """Return whether a number is compared with something unknown: a search for its digits would
    find anything."""
    return (i - 1 in draft.idle or cursor.is_(i - 1, sense.Than)) and cursor.number(i) is not None


def _note_corrections(cursor: Cursor, start: int, found: Parsed) -> Parsed:
    """Return what was found with notes on its words that were read differently than typed, or that
    name another model."""
    pairs = zip(cursor.typed[start : found.end], cursor.tokens[start : found.end], strict=True)
    changed = [
        f"{typed.text!r} was read as {read.norm!r}"
        for i, (typed, read) in enumerate(pairs, start)
        if typed.norm != read.norm and i not in (*found.excluded, *found.not_understood)
    ]
    typed = cursor.typed[start].text
    others = cursor.all(start, sense.OtherModel) if start in found.not_understood else ()
    named = [f"{typed!r} names the model {other.id!r}; models are not joined" for other in others]
    return replace(found, notes=(*found.notes, *changed, *named))


def _imply_order(cursor: Cursor, wheres: Sequence[Where]) -> list[Order]:
    """Return the order that a condition implies: cheapest first below a price, newest first since a
    day."""
    for where in wheres:
        field = cursor.lexicon.fields.get(where.field)
        if field is None or "." in where.field:
            continue
        if field.kind in NUMBERS and where.op in ("<", "<=", "between"):
            return [Order(field=where.field, order="asc")]
        if field.kind in (*NUMBERS, "date", "moment") and where.op in (">", ">=", "<"):
            return [Order(field=where.field, order="desc")]
    return []
