"""Builds the lexicon of a model from its names, fields and sampled values, and caches lexicons."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.lexicon import JSON, SHORTEST_MODEL_WORD, Lexicon
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.vocabulary import Vocabulary
from groundhook.handlers.db.schema import Field, Schema, list_members, short_pieces

NAME_ENDINGS = (
    "_at",
    "_on",
    "_date",
    "_time",
)  # of columns: questions call `released_at` "released"

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
    made = Lexicon(schema, words, dict(schema.fields))
    for name in schema.names:
        made.add(phrase_of(name), sense.ModelRef(), plural=True)
    _add_model(made, offer, "")
    for relation, related in offer.related.items():
        title = related.schema.fields.get(related.schema.title)
        reference = sense.RelationRef(
            relation, replace(title, name=f"{relation}.{title.name}") if title else None
        )
        for name in (relation.replace("_", " "), *related.schema.names):
            made.add(phrase_of(name), reference, plural=True)
            if schema.relations[relation].many and len(phrase_of(name)) == 1:
                made.acts[words.root(phrase_of(name)[0])] = relation
        _add_model(made, related, f"{relation}.")
    _add_synonyms(made)
    _add_heads(made, schema)
    near = {related.schema.id for related in offer.related.values()}
    for other in others:
        for name in other.names:
            if phrase_of(name) not in made.exact and other.id not in near:
                made.add(phrase_of(name), sense.OtherModel(other.id), plural=True)
    made.close()
    return made


def _add_model(made: Lexicon, offer: Offer, path: str) -> None:
    schema = offer.schema
    relation = made.schema.relations.get(path.removesuffix("."))
    back = relation.key if relation and relation.many else ""  # it is called like this model
    for candidate in schema.fields.values():
        if path and (candidate.hidden or candidate.name == schema.key):
            continue
        here = replace(candidate, name=path + candidate.name)
        made.fields[here.name] = here
        if candidate.name != back:
            _add_field(made, here)
        if path and made.is_birth(here):
            made.births.setdefault(path.removesuffix("."), here)
    # Titles last: where a brand and a product share their name, the brand is meant.
    for name in sorted(offer.samples, key=lambda name: name == schema.title):
        if path + name in made.fields:
            _add_samples(made, made.fields[path + name], offer.samples[name])


def _add_samples(made: Lexicon, of: Field, samples: Collection[str]) -> None:
    rows = samples if isinstance(samples, Mapping) else dict.fromkeys(samples, 0)
    members = {value: list_members(value) for value in rows}
    parted = _parted(list(rows)) if of.kind != "json" else None
    if of.kind == "json":
        made.lists[of.name] = JSON
    elif any(members.values()):
        made.lists[of.name] = JSON
        parted = {value: found for value, found in members.items() if found is not None}
    elif parted is not None:
        made.lists[of.name] = next(sign for sign in SEPARATORS if sign in "".join(rows))
    counts: Counter[str] = Counter()
    for value, number in rows.items():
        for piece in parted.get(value, ()) if parted is not None else (value,):
            counts[piece] += number
    if of.name in made.lists:
        made.pieces[of.name] = frozenset(counts)
    for piece, number in counts.items():
        _add_value(made, of, piece, number)


def _parted(values: Sequence[str]) -> dict[str, list[str]] | None:
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


def _add_field(made: Lexicon, candidate: Field) -> None:
    own = candidate.name.rpartition(".")[2]
    if own.startswith("__"):
        return
    names = [candidate.label, own.replace("_", " "), *short_pieces(candidate.comment)]
    names += [own.removesuffix(end).replace("_", " ") for end in NAME_ENDINGS if own.endswith(end)]
    if candidate.kind in ("date", "moment"):
        names += [
            f"{name} {noun}"
            for name in filter(None, names)
            for noun in made.vocabulary.file.dates.nouns
        ]
    for name in names:
        made.add(phrase_of(name), sense.FieldRef(candidate), plural=True, forms=True)
    for option in candidate.options:
        _add_value(made, candidate, option)
        if option.endswith(made.vocabulary.file.dates.verb_endings) and " " not in option:
            chosen = sense.ValueRef(candidate, option)  # "did we cancel", of "cancelled"
            made.add(phrase_of(option), chosen, plural=False, forms=True)
        for ending in made.vocabulary.file.adverbs:
            made.add(phrase_of(option + ending), sense.ValueRef(candidate, option), plural=False)


def _add_synonyms(made: Lexicon) -> None:
    """Add other names of a field that nothing else has."""
    groups = [list(map(phrase_of, group)) for group in made.vocabulary.file.synonyms]
    for group in groups:
        named = [
            meaning
            for phrase in group
            for meaning in made.exact.get(phrase, ())
            if isinstance(meaning, sense.FieldRef)
        ]
        for phrase in group:
            if phrase not in made.exact:
                for meaning in dict.fromkeys(named):
                    made.add(phrase, meaning, plural=True, forms=True)


def _add_heads(made: Lexicon, schema: Schema) -> None:
    """Add the last word of a longer name ("inspection" for "next inspection") if it has no other
    meaning."""
    heads: dict[str, list[Field]] = {}
    keys = {relation.foreign for relation in schema.relations.values()}
    for candidate in schema.visible:
        if (
            candidate.kind not in ("integer", "number", "date", "moment")
            or candidate.name == schema.key
        ):
            continue
        for name in (candidate.label, *short_pieces(candidate.comment)):
            if candidate.name in keys:
                continue
            words = [word for word in phrase_of(name) if (word,) not in made.vocabulary.phrases]
            if len(phrase_of(name)) > 1 and words and len(words[-1]) >= SHORTEST_MODEL_WORD:
                heads.setdefault(made.vocabulary.stem(words[-1]), []).append(candidate)
    for word, fields in heads.items():
        known = (*made.exact.get((word,), ()), *made.stems.get((word,), ()))
        if len(set(fields)) == 1 and all("." in _path(one) for one in known):
            made.add((word,), sense.FieldRef(fields[0]), plural=True)


def _path(meaning: sense.Sense) -> str:
    """Return the field of a field or value; "" for other meanings."""
    return meaning.field.name if isinstance(meaning, (sense.FieldRef, sense.ValueRef)) else ""


def _add_value(made: Lexicon, candidate: Field, value: str, rows: int = 0) -> None:
    phrase = phrase_of(value.replace("_", " "))
    # A value that is a word such as "in", or a mere number or letter, would be found in questions
    # that do not mean it.
    code = len(phrase) > 1 and any(
        word.isdecimal() and len(word) > 2 for word in phrase
    )  # "SO-10744"
    function = made.vocabulary.function_words
    if not candidate.options:
        function |= made.vocabulary.adjectives  # no town is meant by "nice", but by "Nice"
    chosen = len(phrase) > 1 and bool(candidate.options)  # "no-show", "on time"
    if len(phrase) == 1 and len(phrase[0]) > 2 and phrase[0] in function and value[:1].isupper():
        made.names.setdefault(value, []).append(sense.ValueRef(candidate, value, rows))
    if not (code or chosen) and all(
        word in function or word.replace(".", "").isdecimal() or len(word) < 2 for word in phrase
    ):
        return
    if made.is_kind(candidate, "name") and 1 < len(phrase) <= LONGEST_NAME:
        for word in phrase:
            there = made.parts.setdefault(word, [])
            if len(word) > 2 and candidate not in there:
                there.append(candidate)
    found = sense.ValueRef(candidate, value, rows)
    made.add(phrase, found, plural=made.is_category(candidate))
    if candidate.name == made.schema.title and len(phrase) == 1 and not made.of_persons:
        made.add((f"{phrase[0]}s",), found, plural=False)  # "hammers", of an item called Hammer


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


def with_looked_up(made: Lexicon, offer: Offer) -> Lexicon:
    """Return the lexicon with the values that were looked up for one question."""
    found = [(f"{name}.", related) for name, related in offer.related.items()]
    paths = [(path, one) for path, one in (("", offer), *found) if one.looked_up]
    if not paths:
        return made
    copy = made.copy()
    for path, one in paths:
        for name, values in one.looked_up.items():
            for value in values:
                _add_value(copy, copy.fields[path + name], value)
    copy.close()
    return copy


class Lexicons:
    """A cache of lexicons. An entry is used as long as the samples that it was made from are
    current."""

    KEPT = 64

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[object, ...], tuple[Offer, Lexicon]] = OrderedDict()
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
            kept = self._made.get(key)
            if kept is None:
                # The offer is held with its lexicon, so the ids of its samples are theirs for as
                # long as they are in the key.
                kept = (offer, build_lexicon(offer, words, others))
                self._made[key] = kept
            self._made.move_to_end(key)
            while len(self._made) > self.KEPT:
                self._made.popitem(last=False)
            return with_looked_up(kept[1], offer)
