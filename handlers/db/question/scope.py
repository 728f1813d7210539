"""The names that a model has in questions: of its records, its fields and its relations, and which
fields are of which kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from groundhook.handlers.db.model.schema import Field, Relation, Schema, short_pieces
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.vocabulary import Phrase, Vocabulary

TIMES = ("date", "moment")
NUMBERS = ("integer", "number")
NAME_ENDINGS = ("at", "on", "date", "time")  # of columns: `released_at` is called "released"
TITLES = ("name", "title")
REPEATING = 0.34  # a column with fewer different values than this share of its rows has kinds
FEW_ROWS = 12

Counts = Mapping[str, Mapping[str, int]]  # by field, sampled values with their number of rows


@dataclass(frozen=True)
class OfferedModel:
    """A model that a question may be about. `samples` are values of its fields with their number of
    rows, `looked_up` the values that the question names, None if they were not found out in time;
    `related` are the models of its relations."""

    schema: Schema
    samples: Counts
    looked_up: Mapping[str, Collection[str]] | None = field(default_factory=dict)
    related: Mapping[str, OfferedModel] = field(default_factory=dict)


@dataclass
class QuestionScope:
    """A model as a question speaks of it. `starts` are the beginnings of the question's words:
    other values need not be known. Within a relation `path` is its name with a dot, which begins
    the names of all fields. `values` are those that the question may name, by model and field; they
    are the same for all scopes of a question."""

    offer: OfferedModel
    words: Vocabulary
    starts: frozenset[str]
    path: str = ""
    fields: dict[Phrase, list[Field]] = field(default_factory=dict)
    relations: dict[Phrase, list[Relation]] = field(default_factory=dict)
    values: dict[tuple[str, str], Mapping[Phrase, tuple[str, ...]]] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in self.own:
            for name in self._names_of(one):
                self._add(self.fields, name, one)
        self._add_synonyms()
        if not self.path:
            self._add_relations()
        self._add_heads()

    @property
    def schema(self) -> Schema:
        return self.offer.schema

    @cached_property
    def related(self) -> dict[str, QuestionScope]:
        """The models of the relations, as questions about this model speak of them."""
        offers = self.offer.related.items()
        return {
            name: QuestionScope(one, self.words, self.starts, f"{name}.", values=self.values)
            for name, one in offers
        }

    @cached_property
    def nouns(self) -> frozenset[Phrase]:
        """The stems of the names of the records."""
        names = (self.words.stems(name) for name in self.schema.names)
        return frozenset(filter(None, names))

    @cached_property
    def foreign(self) -> frozenset[str]:
        """The fields that only link to other records."""
        return frozenset(one.foreign for one in self.schema.relations.values())

    @cached_property
    def own(self) -> list[Field]:
        """The model's fields, called as queries call them, without keys that mean nothing to
        readers: of a key of several fields, those that do not link to other records say something,
        such as a year."""
        alone = len(self.schema.keys) == 1
        return [
            replace(one, name=self.path + one.name) if self.path else one
            for one in self.schema.visible
            if not (one.name in self.schema.keys and (alone or one.name in self.foreign))
            and not (one.name in self.foreign and one.kind in NUMBERS)
            and not one.name.startswith("__")
        ]

    @cached_property
    def titles(self) -> list[Field]:
        """The fields that name a record: "name", "title", "Album title", or "First name" and "Last
        name"."""
        texts = [one for one in self.own if one.kind == "text" and not (one.options or one.long)]
        if parts := self._parts_of_title(texts):
            return parts
        found = [one for one in texts if self._is_called_name(one)]
        names = [one for one in found if "title" not in self.words.stems(one.shown)]
        title = self.path + self.schema.title
        unique = [one for one in texts if one.name == title and self._is_unique(one)]
        return names or found or unique  # of persons the title is a rank

    def _parts_of_title(self, texts: Iterable[Field]) -> list[Field]:
        """Return the fields of a title of several, such as "{first_name} {last_name}"."""
        titles = [self.path + name for name in self.schema.title_fields]
        declared = [one for one in texts if one.name in titles]
        return declared if len(declared) == len(titles) > 1 else []

    def _is_called_name(self, one: Field) -> bool:
        """Return whether a field is called "name" or "title", with words of the model or of a
        person's name alone: "First name", "Album title", "lastname"."""
        words = self.words
        own = {word for noun in self.nouns for word in noun}
        own |= set(map(words.stem, words.file.name_parts))
        names = {words.stem(word) for word in (*words.kinds.get("name", ())[:2], *TITLES)}
        joined = {part + "name" for part in own}
        called = map(words.stems, (one.shown, one.name.rpartition(".")[2]))
        return any(
            name[-1] in joined or (name[-1] in names and own.issuperset(name[:-1]))
            for stems in called
            for name in (stems, stems[::-1])  # "first name", "name_first"
            if name
        )

    @cached_property
    def of_persons(self) -> bool:
        """Return whether the records are persons."""
        named = any(word in self._person_words for noun in self.nouns for word in noun)
        return named or bool(self.of_kind("birth", TIMES))

    @cached_property
    def _person_words(self) -> frozenset[str]:
        return frozenset(self.words.stem(word) for word in self.words.persons)

    @cached_property
    def persons(self) -> list[list[Field]]:
        """The fields that name a person whom a record belongs to, for each such relation."""
        links = (name for name, one in self.schema.relations.items() if not one.many)
        scopes = [self.related[name] for name in links if name in self.related]
        return [each.titles for each in scopes if each.of_persons and each.titles]

    @cached_property
    def named_persons(self) -> list[Field]:
        """The texts that are called like a person: "author", "customer name"."""
        texts = (one for one in self.own if one.kind == "text")
        return [one for one in texts if not self._person_words.isdisjoint(self.words_of(one))]

    def is_title(self, one: Field) -> bool:
        return any(one.name == title.name for title in self.titles)

    def counts(self, one: Field) -> Mapping[str, int]:
        """Return the sampled values of a field with their number of rows."""
        return self.offer.samples.get(one.name.removeprefix(self.path), {})

    def repeats(self, one: Field) -> bool:
        """Return whether the values of a text field name a kind, a place or a maker, so that one
        may be named without the field."""
        if one.options or one.kind == "json" or one.name.removeprefix(self.path) in self.foreign:
            return True
        if self.is_kind(one, "category", "place", "maker", "language", "origin", "destination"):
            return True
        values, rows = len(self.counts(one)), sum(self.counts(one).values())
        return values <= rows * REPEATING or (values < rows < FEW_ROWS)

    def rows_repeat(self) -> bool:
        """Return whether several rows have the same name, so that rows are not things."""
        if len(self.titles) != 1:
            return False
        counts = self.counts(self.titles[0])
        return sum(counts.values()) > 1.3 * len(counts) if counts else False

    # ---- kinds

    def of_kind(self, kind: str, kinds: Iterable[str]) -> list[Field]:
        """Return the fields of these data types that are of a kind, by the first of its words that
        any field has: "price" comes before "cost"."""
        known = self.words.kinds.get(kind, ())
        typed = [one for one in self.own if one.kind in kinds]
        for word in known:
            if found := [one for one in typed if word in self.words_of(one)]:
                return found
        if kind in self.words.file.measures:  # of a field that only says its unit
            return [one for one in typed if any(unit == kind for unit, _ in self.units(one))]
        return []

    def is_kind(self, one: Field, *kinds: str) -> bool:
        own = self.words_of(one)
        return any(not own.isdisjoint(self.words.kinds.get(kind, ())) for kind in kinds)

    def words_of(self, one: Field) -> frozenset[str]:
        """Return the words and phrases in a field's name, label and short comments."""
        if one.name in self._words:
            return self._words[one.name]
        own = one.name.rpartition(".")[2].replace("_", " ")
        texts = (own, one.label, *short_pieces(one.comment))
        phrases = [phrase_of(text) for text in texts]
        parts = [self.words.stems(text) for text in texts]
        self._words[one.name] = frozenset(
            text for phrase in (*phrases, *parts) for text in (" ".join(phrase), *phrase)
        )
        return self._words[one.name]

    def units(self, one: Field) -> list[tuple[str, float]]:
        """Return the kind and the scale of each unit of measure that a field names."""
        texts = (one.label, one.comment, one.name.rpartition(".")[2].replace("_", " "))
        phrases = {(word,) for text in texts for word in phrase_of(text)} | {
            phrase_of(text) for text in texts
        }
        # A field that is called "G" is not one of grams.
        phrases -= {(text,) for text in map(str.casefold, texts) if len(text) == 1}
        found = (word for phrase in phrases for word in self.words.phrases.get(phrase, ()))
        return [word.value[::-1] for word in found if word.kind == "measures"]

    @cached_property
    def day(self) -> list[Field]:
        """The dates that a time may be of that names none: the one called like the record, or when
        the record was made, else the one that every record has, else any. Of persons none."""
        dates = [] if self.of_persons else [one for one in self.own if one.kind in TIMES]
        made = self.of_kind("made", TIMES) if dates else []
        titled = [one for one in dates if self._is_called_like_the_record(one)]
        rest = [one for one in dates if not self.is_kind(one, "birth", "to_come")]
        always = [one for one in rest if not one.nullable]
        chosen = (titled, *(each for each in (made, always) if len(each) == 1), rest)
        return next((each for each in chosen if each), [])

    def _is_called_like_the_record(self, one: Field) -> bool:
        stems = self.words.stems(one.shown)
        return len(stems) > 1 and any(stems[0] in noun for noun in self.nouns)

    # ---- making

    def _is_unique(self, one: Field) -> bool:
        counts = self.counts(one)
        return bool(counts) and all(number <= 1 for number in counts.values())

    def _names_of(self, one: Field) -> Iterator[Phrase]:
        own = one.name.rpartition(".")[2]
        for name in (one.label, own, *short_pieces(one.comment)):
            stems = self.words.stems(name)
            if not stems:
                continue
            yield stems
            if stems[0] == "name":  # "name_first"
                yield (*stems[1:], "name")
            linked = own in self.foreign
            if len(stems) > 1 and (stems[-1] in NAME_ENDINGS or (stems[-1] == "id" and not linked)):
                yield stems[:-1]
            if one.kind in TIMES:
                yield from ((*stems, noun) for noun in self.words.file.dates.nouns)

    def _add_synonyms(self) -> None:
        for phrases in self.words.synonyms:
            named = [one for phrase in phrases for one in self.fields.get(phrase, ())]
            for phrase in phrases:
                if phrase not in self.fields and phrase not in self.nouns:
                    for one in dict.fromkeys(named):
                        self._add(self.fields, phrase, one)

    def _add_heads(self) -> None:
        """Add the last word of a longer name ("inspection" for "next inspection") if it has no
        other meaning."""
        heads: dict[str, set[Field]] = {}
        for one in self.own:
            stems = self.words.stems(one.shown)
            if len(stems) > 1 and one.kind in (*NUMBERS, *TIMES, "text"):
                heads.setdefault(stems[-1], set()).add(one)
        taken = {*self.fields, *self.nouns, *self.relations, *self.words.phrases}
        for head, (one, *others) in heads.items():
            if not others and head not in (*TITLES, *NAME_ENDINGS) and (head,) not in taken:
                self._add(self.fields, (head,), one)

    def _add_relations(self) -> None:
        for name, related in self.offer.related.items():
            relation = self.schema.relations[name]
            names = [name, *related.schema.names]
            foreign = self.schema.fields.get(relation.foreign)
            if foreign is not None and not relation.many:
                stems = self.words.stems(foreign.shown)
                self._add(self.relations, stems, relation)
                self._add(self.relations, stems[:-1] if stems[-1:] == ("id",) else (), relation)
            for called in names:
                self._add(self.relations, self.words.stems(called), relation)
            if relation.many:
                continue
            there = self.related[name].fields
            taken = {*self.fields, *self.nouns, *self.relations}
            for phrase in there.keys() - taken:
                for one in there[phrase]:
                    self._add(self.fields, phrase, one)

    def _add(
        self, table: dict[Phrase, list[Any]], phrase: Phrase, meaning: Field | Relation
    ) -> None:
        if phrase and meaning not in table.setdefault(phrase, []):
            table[phrase].append(meaning)
