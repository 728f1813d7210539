"""The meanings of phrases for one model: the language's words, the model's names, fields and
values, and the same for its related models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from groundhook.handlers.db.model.schema import TITLES, Field, Schema, short_pieces
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.sense import Phrase
from groundhook.handlers.db.question.spelling import nearest
from groundhook.handlers.db.question.tokens import Token, phrase_of
from groundhook.handlers.db.question.vocabulary import Vocabulary

# Letters of the words that may correct a misspelt one, from the model and from the language. Short
# words are too near to others.
SHORTEST_MODEL_WORD = 4
SHORTEST_LANGUAGE_WORD = 7
JSON = "json"  # how the pieces of a JSON list are parted


OF_SIDE = ("depth", "width")  # kinds of lengths that no other length stands for
K = TypeVar("K")
V = TypeVar("V")


def _copy_table(table: Mapping[K, list[V]]) -> dict[K, list[V]]:
    return {key: list(found) for key, found in table.items()}


def _words_in(phrases: Iterable[Phrase]) -> set[str]:
    return {word for phrase in phrases for word in phrase}


@dataclass
class Lexicon:
    """Phrases and their meanings for one model.

    `exact` is looked up with the words as they are, `stems` without plural endings, `roots` without
    any endings. `longest` has the word count of the longest phrase that begins with a word. `words`
    are the possible corrections of a misspelt word. `parts` are the words of names, with the fields
    that have such names. `names` are values such as "Nice" that are also words of the language, in
    their own spelling. `lists` are the fields whose values are lists, with how their pieces are
    parted, "json" or a separator, and `pieces` the known ones. `acts` maps the root of a
    related model's name ("order" for "ordered") to that relation."""

    schema: Schema
    vocabulary: Vocabulary
    fields: dict[str, Field] = field(default_factory=dict)
    exact: dict[Phrase, list[sense.Sense]] = field(default_factory=dict)
    stems: dict[Phrase, list[sense.Sense]] = field(default_factory=dict)
    roots: dict[Phrase, list[sense.Sense]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    parts: dict[str, list[Field]] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)
    acts: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[sense.ValueRef]] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    pieces: dict[str, frozenset[str]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _roots: set[str] = field(default_factory=set)
    _fields_of_kind: dict[tuple[str, ...], list[Field]] = field(default_factory=dict)

    def meanings(self, tokens: Sequence[Token], at: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return the meanings of the longest phrase that begins at a token, and the position after
        it."""
        words, norm = self.vocabulary, tokens[at].norm
        longest = max(
            self.longest.get(key, 0) for key in (norm, words.stem(norm), words.root(norm))
        )
        norms = tuple(token.norm for token in tokens[at : at + longest])
        for length in range(len(norms), 0, -1):
            found = self._look_up(norms[:length])
            behind = tokens[at + length].norm if at + length < len(tokens) else ""
            if found and not (length > 1 and self._belongs_apart(norms[0], found, behind)):
                return tuple(dict.fromkeys(found)), at + length
        return (), at

    def _look_up(self, key: Phrase) -> list[sense.Sense]:
        """Return the meanings of a phrase."""
        words = self.vocabulary
        found = [*self.stems.get(tuple(map(words.stem, key)), ()), *self.exact.get(key, ())]
        if not sense.has(found, sense.ModelRef, sense.RelationRef):  # "orders" are not "ordered"
            forms = self.roots.get(tuple(map(words.root, key)), ())
            named = sense.has(found, sense.FieldRef)  # an "adopter" is not "adopted"
            found += [one for one in forms if not (named and isinstance(one, sense.ValueRef))]
        return [*found, *words.phrases.get(key, ())]

    def _belongs_apart(self, first: str, found: Sequence[sense.Sense], behind: str) -> bool:
        """Return whether the words of a longer phrase belong to different parts of the question."""
        after = self.vocabulary.phrases.get((behind,), ())
        if sense.has(found, sense.Postfix, when.DatePostfix) and sense.has(after, sense.Than):
            return True  # "or more than 100" does not contain the phrase "or more"
        if sense.has(found, when.Ahead) and any(map(str.isdigit, behind)):
            return True  # what "is over 100" is not past
        # lessons "held in" the attic, that may be booked or held
        own = sense.has(self.exact.get((first,), ()), sense.ValueRef)
        return own and all(isinstance(one, sense.Preposition) for one in found)

    def read(self, tokens: Iterable[Token]) -> list[tuple[Token, Token]]:
        """Return each token as typed and as it is looked up: a prefix that the language attaches to
        a word is separated from it, and a misspelt word is replaced by the word of the model that
        it must mean."""
        return [piece for token in tokens for piece in self._read_token(token)]

    def of_kind(self, kind: str, relation: str = "") -> Field | None:
        """Return the number field of a kind, of the model or of `relation`. The words of a kind are
        listed best first."""
        return next(iter(self._of_kind(kind, ("integer", "number"), relation)), None)

    def date_of_kind(self, kind: str, relation: str = "") -> Field | None:
        """Return the date of a kind, of the model or of `relation`."""
        return next(iter(self._of_kind(kind, ("date", "moment"), relation)), None)

    def numbers_of_kind(self, kind: str) -> list[Field]:
        return self._of_kind(kind, ("integer", "number"), "")

    def mentions(self, candidate: Field, words: Iterable[str]) -> bool:
        """Return whether one of these words is in the field's name, label or comment."""
        return not words_of(candidate).isdisjoint(" ".join(phrase_of(word)) for word in words)

    def texts_of_kind(self, kind: str) -> list[Field]:
        return self._of_kind(kind, ("text", "json"), "")

    def in_unit_of_time(self, units: Iterable[str], first: Field | None = None) -> Field | None:
        """Return the model's number field that has such a unit of time in its name, label or
        comment, `first` before the others. An amount for a time or a year of the calendar is no
        length of time."""
        words = {" ".join(phrase_of(unit)) for unit in units}
        numbers = [one for one in self.schema.visible if one.kind in ("integer", "number")]
        own = dict.fromkeys([*self.numbers_of_kind("duration"), *numbers])
        for candidate in [first, *own] if first else own:
            calendar = self.is_kind(candidate, "year") or self._is_rate(candidate)
            if not calendar and not words_of(candidate).isdisjoint(words):
                return candidate
        return None

    def is_kind(self, candidate: Field, *kinds: str) -> bool:
        """Return whether a field is of one of these kinds."""
        return any(
            not self._words_for(kind, candidate).isdisjoint(self.vocabulary.kinds.get(kind, ()))
            for kind in kinds
            if not (kind == "year" and self._is_rate(candidate))
        )

    def is_category(self, candidate: Field) -> bool:
        return bool(candidate.options) or self.is_kind(candidate, "category")

    def is_place(self, candidate: Field) -> bool:
        """Return whether a text field has places, by its own name or as a title of related
        places."""
        path, _, name = candidate.name.rpartition(".")
        relation = self.schema.relations.get(path)
        called = f"{path} {relation.model.rpartition('.')[2]}" if relation else ""
        words = phrase_of(called.replace("_", " ")) if name in TITLES else ()
        places = self.vocabulary.kinds.get("place", ())
        return self.is_kind(candidate, "place") or any(word in places for word in words)

    @property
    def of_persons(self) -> bool:
        """Return whether the model's records are persons."""
        names = (word for name in self.schema.names for word in phrase_of(name))
        price, born = self.of_kind("money"), self.date_of_kind("birth")
        alive = born is not None and (price is None or self.is_kind(price, "earnings"))
        return alive or any(word in self.vocabulary.persons for word in names)

    @property
    def day_field(self) -> Field | None:
        """Return the model's main date: the first that it declares, else the creation time of its
        rows. For persons the day on which they joined comes first; their birthday never counts."""
        dated = [one for one in self.schema.fields.values() if one.kind in ("date", "moment")]
        own = [one for one in dated if not (one.hidden or one == self.date_of_kind("birth"))]
        if self.of_persons:
            own.sort(key=lambda one: not self.is_kind(one, "begun"))
        made = [one for one in dated if one.name == "created_at"]
        return next(iter(own or made), None)

    def units_of(self, candidate: Field) -> list[sense.Unit]:
        """Return the units that the field's label or comment names."""
        phrases = (phrase_of(word) for word in words_of(candidate))
        meanings = (one for phrase in phrases for one in self.vocabulary.phrases.get(phrase, ()))
        return [one for one in meanings if isinstance(one, sense.Unit)]

    def with_unit(self, kind: str, compared: str = "") -> list[Field]:
        """Return the number fields with a unit of a kind of measure. If some are of the kind
        `compared`, only those are returned."""
        numbers = (one for one in self.schema.visible if one.kind in ("integer", "number"))
        units = ((one, unit) for one in numbers for unit in self.units_of(one))
        found = [one for one, unit in units if unit.scale and unit.kind == kind]
        named = [one for one in found if self.is_kind(one, compared)]
        return named if named or compared in OF_SIDE else found

    # ---- making

    def add(
        self, phrase: Phrase, meaning: sense.Sense, *, plural: bool, forms: bool = False
    ) -> None:
        """Add a phrase. `plural`: the question may use the other grammatical number than the model;
        `forms`: it may use any form ("earning" for "earns")."""
        if not phrase:
            return
        stem = tuple(map(self.vocabulary.stem, phrase))
        keys = [(self.exact, phrase), (self.stems if plural else self.exact, stem)]
        if plural:  # "movies" has another stem than "movie"
            many = (*stem[:-1], self.vocabulary.stem(f"{phrase[-1]}s"))
            keys.append((self.stems, many))
        if forms and all(len(word) > 2 or len(phrase) > 1 for word in phrase):
            keys.append((self.roots, tuple(map(self.vocabulary.root, phrase))))
        for table, key in keys:
            period = sense.has(self.vocabulary.phrases.get(key, ()), when.Period)
            there = table.setdefault(key, [])
            if meaning not in there and (key == phrase or not period):
                there.append(meaning)  # what "lasts" 60 minutes is not "last week"

    def copy(self) -> Lexicon:
        """Return a lexicon to which phrases can be added without changing this one."""
        return replace(
            self,
            exact=_copy_table(self.exact),
            stems=_copy_table(self.stems),
            parts=_copy_table(self.parts),
            names=_copy_table(self.names),
            longest=dict(self.longest),
            _fields_of_kind={},
        )

    def complete(self) -> None:
        """Complete the tables that are derived from the phrases; to be called after the last
        `add`."""
        phrases = self.vocabulary.phrases
        for phrase in (*phrases, *self.exact, *self.stems, *self.roots):
            self.longest[phrase[0]] = max(len(phrase), self.longest.get(phrase[0], 0))
        own, spoken = _words_in(self.exact), _words_in(phrases)
        self._known = own | spoken | _words_in(self.stems)
        self._roots = _words_in(self.roots)
        self._fields_of_kind.clear()
        meant = _words_in(
            phrase
            for phrase, found in phrases.items()
            if not all(isinstance(one, (sense.Filler, sense.NumberVerb)) for one in found)
        )
        long = {word for word in meant if len(word) >= SHORTEST_LANGUAGE_WORD}
        self.words = sorted({one for one in own - spoken if len(one) >= SHORTEST_MODEL_WORD} | long)

    def _read_token(self, token: Token) -> list[tuple[Token, Token]]:
        if token.kind != "word" or self._knows(token.norm):
            return [(token, self._correct_same_root(token))]
        if parted := self._split_prefixes(token):
            return [(piece, piece) for piece in parted]
        if (meant := self._correct(token.norm)) or len(token.norm) != len(token.text):
            return [(token, replace(token, norm=meant) if meant else token)]
        for prefix, instead in self.vocabulary.file.prefixes.items():
            rest = token.norm[len(prefix) :]
            if token.norm.startswith(prefix) and (meant := self._correct(rest)):
                first = replace(token, text=token.text[: len(prefix)], norm=instead)
                second = replace(token, text=token.text[len(prefix) :], norm=rest)
                return [(first, first), (second, replace(second, norm=meant))]
        return [(token, token)]

    def _correct_same_root(self, token: Token) -> Token:
        """Return the token with its misspelling corrected if the meant word has the same root:
        "delaied" for "delayed"."""
        root = self.vocabulary.root
        if token.norm in self._known or self.vocabulary.stem(token.norm) in self._known:
            return token
        meant = nearest(token.norm, self.words)
        if not meant or root(meant) != root(token.norm):
            return token
        found = (*self.exact.get((meant,), ()), *self.stems.get((self.vocabulary.stem(meant),), ()))
        model = sense.has(found, sense.ModelRef, sense.RelationRef)
        return token if model else replace(token, norm=meant)  # who has "driven" is no "driver"

    def _correct(self, word: str) -> str | None:
        return nearest(word, self.words) or nearest(self.vocabulary.stem(word), self.words)

    def _split_prefixes(self, token: Token, most: int = 2) -> list[Token]:
        """Split a token into prefixes and a known word or a number. Returns an empty result if that
        is impossible."""
        norm = token.norm
        for prefix, instead in self.vocabulary.file.prefixes.items():
            rest = norm[len(prefix) :]
            if not norm.startswith(prefix) or len(rest) < 2 or len(token.text) != len(norm):
                continue
            first = replace(token, text=token.text[: len(prefix)], norm=instead)
            second = replace(token, text=token.text[len(prefix) :], norm=rest)
            if self._knows(rest):
                return [first, second]
            if more := self._split_prefixes(second, most - 1) if most > 1 else []:
                return [first, *more]
        return []

    def _knows(self, word: str) -> bool:
        stem, root = self.vocabulary.stem(word), self.vocabulary.root(word)
        return word in self._known or stem in self._known or root in self._roots

    def _of_kind(self, kind: str, kinds: tuple[str, ...], relation: str) -> list[Field]:
        """Return the fields of a kind, by the order of the kind's words."""
        key = (kind, *kinds, relation)
        if key not in self._fields_of_kind:
            self._fields_of_kind[key] = self._rank_fields(kind, kinds, relation)
        return self._fields_of_kind[key]

    def _rank_fields(self, kind: str, kinds: tuple[str, ...], relation: str) -> list[Field]:
        own = (
            one
            for one in self.fields.values()
            if one.kind in kinds
            and not one.hidden
            and one.name.rpartition(".")[0] == relation
            and one.name != self.schema.key
            and not (kind == "year" and self._is_rate(one))
        )
        places = {one: place for one in own if (place := self._place(kind, one)) is not None}
        return sorted(places, key=lambda one: places[one])

    def _place(self, kind: str, candidate: Field) -> int | None:
        """Return the place of the best word of a kind that the field has; None without one."""
        words = self._words_for(kind, candidate)
        places = (i for i, one in enumerate(self.vocabulary.kinds.get(kind, ())) if one in words)
        return next(places, None)

    def _words_for(self, kind: str, candidate: Field) -> frozenset[str]:
        """Return the words of a field that may say that it is of a kind. A length in metres lasts
        no time."""
        measured = kind == "duration" and any(unit.scale for unit in self.units_of(candidate))
        return frozenset() if measured else words_of(candidate)

    def fitting_too(self, kind: str, chosen: Field) -> list[Field]:
        """Return the other fields of the same record that fit a kind as well as the chosen one: the
        cost of labour beside that of parts."""
        relation, place = chosen.name.rpartition(".")[0], self._place(kind, chosen)
        alike = self._of_kind(kind, ("integer", "number"), relation) if place is not None else []
        return [one for one in alike if one != chosen and self._place(kind, one) == place]

    def _is_rate(self, candidate: Field) -> bool:
        """Return whether a field is an amount for a length of time, such as a "salary per year"."""
        phrases = self.vocabulary.phrases
        return any(sense.has(phrases.get((word,), ()), sense.Per) for word in words_of(candidate))


@lru_cache(maxsize=4096)
def words_of(candidate: Field) -> frozenset[str]:
    """Return the words and phrases in the field's name, label and comment."""
    name = candidate.name.rpartition(".")[2].replace("_", " ")
    phrases = map(phrase_of, (name, candidate.label, *short_pieces(candidate.comment)))
    return frozenset(text for phrase in phrases for text in (" ".join(phrase), *phrase))
