"""Builds the lexicon of a model from its names, fields and sampled values, and caches lexicons."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from groundhook.handlers.db.model.schema import Field, Schema, list_members, short_pieces
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.lexicon import JSON, SHORTEST_MODEL_WORD, Lexicon
from groundhook.handlers.db.question.sense import Phrase
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.vocabulary import Vocabulary

NAME_ENDINGS = (
    "_at",
    "_on",
    "_date",
    "_time",
)  # of columns: questions call `released_at` "released"

MEASURED = ("integer", "number", "date", "moment")
LONGEST_PIECE = 2  # words of one piece of a list
SEPARATORS = ",;|"  # of the pieces of a list in a text

LONGEST_VALUE, MOST_WORDS = 4, 60  # words of a value, and of a question, that are looked up
LONGEST_NAME = 4  # words of what a person or a thing is called

# By field, its values; a mapping has the number of rows of each.
Samples = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Offer:
    """A model that a question may be about, with samples of its values and, by relation, its
    related models. `looked_up` are values beyond the samples that the question may name."""

    schema: Schema
    samples: Samples
    related: Mapping[str, Offer] = field(default_factory=dict)
    looked_up: Mapping[str, Collection[str]] = field(default_factory=dict)


def build_lexicon(offer: Offer, words: Vocabulary, others: Iterable[Schema]) -> Lexicon:
    """Return the lexicon of one model."""
    schema = offer.schema
    lexicon = Lexicon(schema, words, dict(schema.fields))
    for name in schema.names:
        lexicon.add(phrase_of(name), sense.ModelRef(), plural=True)
    _add_model(lexicon, offer, "")
    for relation, related in offer.related.items():
        _add_relation(lexicon, relation, related)
    _add_synonyms(lexicon)
    _add_heads(lexicon, schema)
    near = {related.schema.id for related in offer.related.values()}
    for other in (one for one in others if one.id not in near):
        for name in other.names:
            if phrase_of(name) not in lexicon.exact:
                lexicon.add(phrase_of(name), sense.OtherModel(other.id), plural=True)
    lexicon.complete()
    return lexicon


def _add_relation(lexicon: Lexicon, relation: str, related: Offer) -> None:
    """Add the names of a related model, and its fields and values."""
    title = related.schema.fields.get(related.schema.title)
    reference = sense.RelationRef(
        relation, replace(title, name=f"{relation}.{title.name}") if title else None
    )
    for name in (relation.replace("_", " "), *related.schema.names):
        phrase = phrase_of(name)
        lexicon.add(phrase, reference, plural=True)
        if lexicon.schema.relations[relation].many and len(phrase) == 1:
            lexicon.acts[lexicon.vocabulary.root(phrase[0])] = relation
    _add_model(lexicon, related, f"{relation}.")


def _add_model(lexicon: Lexicon, offer: Offer, path: str) -> None:
    schema = offer.schema
    relation = lexicon.schema.relations.get(path.removesuffix("."))
    back = relation.key if relation and relation.many else ""  # it is called like this model
    for candidate in schema.fields.values():
        if path and (candidate.hidden or candidate.name == schema.key):
            continue
        here = replace(candidate, name=path + candidate.name)
        lexicon.fields[here.name] = here
        if candidate.name != back:
            _add_field(lexicon, here)
    # Titles last: where a brand and a product share their name, the brand is meant.
    for name in sorted(offer.samples, key=lambda name: name == schema.title):
        if path + name in lexicon.fields:
            _add_samples(lexicon, lexicon.fields[path + name], offer.samples[name])


def _add_samples(lexicon: Lexicon, of: Field, samples: Collection[str]) -> None:
    rows = samples if isinstance(samples, Mapping) else dict.fromkeys(samples, 0)
    pieces, sign = _split_lists(of, rows)
    counts: Counter[str] = Counter()
    for value, number in rows.items():
        for piece in pieces.get(value, ()) if pieces is not None else (value,):
            counts[piece] += number
    if sign:
        lexicon.lists[of.name] = sign
        lexicon.pieces[of.name] = frozenset(counts)
    for piece, number in counts.items():
        _add_value(lexicon, of, piece, number)


def _split_lists(
    of: Field, values: Collection[str]
) -> tuple[Mapping[str, Sequence[str]] | None, str]:
    """Return the pieces of each value of a field, and how they are parted; (None, "") if its
    values are no lists."""
    if of.kind == JSON:
        return None, JSON
    members = {value: found for value in values if (found := list_members(value))}
    if members:
        return members, JSON
    pieces = _split_at_signs(list(values))
    if pieces is None:
        return None, ""
    return pieces, next(sign for sign in SEPARATORS if sign in "".join(values))


def _split_at_signs(values: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the pieces of each value if the values are lists ("English, Hebrew"), else None. In
    lists, several pieces recur."""
    parted = {
        value: [piece.strip() for piece in re.split(f"[{SEPARATORS}]", value) if piece.strip()]
        for value in values
    }
    pieces = Counter(piece for each in parted.values() for piece in each)
    several = sum(len(each) > 1 for each in parted.values())
    short = all(len(piece.split()) <= LONGEST_PIECE for piece in pieces)
    recurring = sum(number > 1 for number in pieces.values())
    return parted if several > 1 and short and recurring > 1 else None


def _add_field(lexicon: Lexicon, candidate: Field) -> None:
    own = candidate.name.rpartition(".")[2]
    if own.startswith("__"):
        return
    names = [candidate.label, own.replace("_", " "), *short_pieces(candidate.comment)]
    names += [own.removesuffix(end).replace("_", " ") for end in NAME_ENDINGS if own.endswith(end)]
    if candidate.kind in ("date", "moment"):
        names += [
            f"{name} {noun}"
            for name in filter(None, names)
            for noun in lexicon.vocabulary.file.dates.nouns
        ]
    for name in names:
        lexicon.add(phrase_of(name), sense.FieldRef(candidate), plural=True, forms=True)
    for option in candidate.options:
        _add_value(lexicon, candidate, option)
        if option.endswith(lexicon.vocabulary.file.dates.verb_endings) and " " not in option:
            chosen = sense.ValueRef(candidate, option)  # "did we cancel", of "cancelled"
            lexicon.add(phrase_of(option), chosen, plural=False, forms=True)
        for ending in lexicon.vocabulary.file.adverbs:
            lexicon.add(phrase_of(option + ending), sense.ValueRef(candidate, option), plural=False)


def _add_synonyms(lexicon: Lexicon) -> None:
    """Add other names of a field that nothing else has."""
    for group in lexicon.vocabulary.file.synonyms:
        phrases = list(map(phrase_of, group))
        named = [
            meaning
            for phrase in phrases
            for meaning in lexicon.exact.get(phrase, ())
            if isinstance(meaning, sense.FieldRef)
        ]
        for phrase in (phrase for phrase in phrases if phrase not in lexicon.exact):
            for meaning in dict.fromkeys(named):
                if not _is_part(lexicon.vocabulary, phrase, meaning.field):
                    lexicon.add(phrase, meaning, plural=True, forms=True)


def _is_part(words: Vocabulary, phrase: Phrase, of: Field) -> bool:
    """Return whether a phrase names a part of a date: no date is called "year"."""
    unit = any(isinstance(one, when.DateUnit) for one in words.phrases.get(phrase, ()))
    return unit and of.kind in ("date", "moment")


def _add_heads(lexicon: Lexicon, schema: Schema) -> None:
    """Add the last word of a longer name ("inspection" for "next inspection") if it has no other
    meaning."""
    heads: dict[str, set[Field]] = {}
    keys = {schema.key, *(relation.foreign for relation in schema.relations.values())}
    for candidate in schema.visible:
        if candidate.kind in MEASURED and candidate.name not in keys:
            for name in (candidate.label, *short_pieces(candidate.comment)):
                if head := _find_head(lexicon.vocabulary, phrase_of(name)):
                    heads.setdefault(head, set()).add(candidate)
    for word, fields in heads.items():
        known = (*lexicon.exact.get((word,), ()), *lexicon.stems.get((word,), ()))
        if len(fields) == 1 and all("." in _path(one) for one in known):
            lexicon.add((word,), sense.FieldRef(*fields), plural=True)


def _find_head(words: Vocabulary, phrase: Phrase) -> str:
    """Return the stem of the last word of a longer name that is no word of the language; "" if that
    is too short."""
    own = [word for word in phrase if (word,) not in words.phrases]
    long = len(phrase) > 1 and own and len(own[-1]) >= SHORTEST_MODEL_WORD
    return words.stem(own[-1]) if long else ""


def _path(meaning: sense.Sense) -> str:
    """Return the field of a field or value; "" for other meanings."""
    return meaning.field.name if isinstance(meaning, sense.OfField) else ""


def _add_value(lexicon: Lexicon, of: Field, value: str, rows: int = 0) -> None:
    phrase, found = phrase_of(value.replace("_", " ")), sense.ValueRef(of, value, rows)
    function = lexicon.vocabulary.function_words
    if not of.options:
        function |= lexicon.vocabulary.adjectives  # no town is meant by "nice", but by "Nice"
    name = len(phrase) == 1 and len(phrase[0]) > 2 and value[:1].isupper()
    if name and phrase[0] in function:
        lexicon.names.setdefault(value, []).append(found)
    if not _is_distinct(phrase, of, function):
        return
    if lexicon.is_kind(of, "name") and 1 < len(phrase) <= LONGEST_NAME:
        _add_parts(lexicon, of, phrase)
    lexicon.add(phrase, found, plural=lexicon.is_category(of))
    if of.name == lexicon.schema.title and len(phrase) == 1 and not lexicon.of_persons:
        lexicon.add((f"{phrase[0]}s",), found, plural=False)  # "hammers", of an item called Hammer


def _is_distinct(phrase: Phrase, of: Field, function: frozenset[str]) -> bool:
    """Return whether a value is found only in questions that mean it. One that consists of words
    such as "in", or is a mere number or letter, is not."""
    if len(phrase) > 1 and of.options:
        return True  # "no-show", "on time"
    if len(phrase) > 1 and any(word.isdecimal() and len(word) > 2 for word in phrase):
        return True  # "SO-10744"
    return not all(
        word in function or word.replace(".", "").isdecimal() or len(word) < 2 for word in phrase
    )


def _add_parts(lexicon: Lexicon, of: Field, name: Phrase) -> None:
    """Add the words of what a person or a thing is called."""
    for word in name:
        fields = lexicon.parts.setdefault(word, [])
        if len(word) > 2 and of not in fields:
            fields.append(of)


def spellings(question: str) -> list[str]:
    """Return the texts by which a question may name a value: up to `LONGEST_VALUE` of its words, as
    typed, in small and in capital letters."""
    words = re.findall(r"[^\s,;:!?()\"“”„«»]+", question)[:MOST_WORDS]
    runs = [
        " ".join(words[i : i + length]).rstrip(".")
        for length in range(1, LONGEST_VALUE + 1)
        for i in range(len(words) - length + 1)
    ]
    forms = [form for run in runs for form in (run, run.lower(), run.upper(), run.title())]
    return [form for form in dict.fromkeys(forms) if len(form) > 2]


def with_looked_up(lexicon: Lexicon, offer: Offer) -> Lexicon:
    """Return the lexicon with the values that were looked up for one question."""
    found = [(f"{name}.", related) for name, related in offer.related.items()]
    paths = [(path, one) for path, one in (("", offer), *found) if one.looked_up]
    if not paths:
        return lexicon
    copy = lexicon.copy()
    for path, one in paths:
        for name, values in one.looked_up.items():
            for value in values:
                _add_value(copy, copy.fields[path + name], value)
    copy.complete()
    return copy


class Lexicons:
    """A cache of lexicons. An entry is used as long as the samples that it was made from are
    current."""

    KEPT = 64

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[object, ...], tuple[Offer, Lexicon]] = OrderedDict()
        self._lock = Lock()  # questions are read in threads

    def get(self, offer: Offer, words: Vocabulary, others: Sequence[Schema]) -> Lexicon:
        samples = (offer.samples, *(related.samples for related in offer.related.values()))
        key = (
            offer.schema.id,
            words.language,
            *(other.id for other in others),
            *offer.related,
            *map(id, samples),
        )
        with self._lock:
            kept = self._cache.get(key)
            if kept is None:
                # The offer is held with its lexicon, so the ids of its samples are theirs for as
                # long as they are in the key.
                kept = (offer, build_lexicon(offer, words, others))
                self._cache[key] = kept
            self._cache.move_to_end(key)
            while len(self._cache) > self.KEPT:
                self._cache.popitem(last=False)
            return with_looked_up(kept[1], offer)
