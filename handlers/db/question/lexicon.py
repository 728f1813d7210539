"""What a question's phrases mean for one model: the language's words, the model's names and fields, and the values it has."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rapidfuzz import process
from rapidfuzz.distance import OSA

from handlers.db.question.meanings import FieldRef, Meaning, ModelRef, OtherModel, Phrase, ValueRef
from handlers.db.question.tokens import Token, phrase_of
from handlers.db.question.vocabulary import Vocabulary
from handlers.db.schema import Field, Schema, short_pieces

NAME_ENDINGS = ("_at", "_on", "_date", "_time")  # of columns: `released_at` is asked about as "released"
SHORTEST_CORRECTED = 5  # letters; shorter words are too near to others
SHORTEST_MEANT = 6
Samples = Mapping[str, tuple[str, ...]]


@dataclass
class Lexicon:
    """Phrases and their meanings for one model. `exact` is looked up with the words as they are, `stems` without their
    plural endings; `longest` says how many words the phrases beginning with a word have; `words` are those that a misspelt
    word may have meant."""

    schema: Schema
    vocabulary: Vocabulary
    exact: dict[Phrase, list[Meaning]] = field(default_factory=dict)
    stems: dict[Phrase, list[Meaning]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    longest: dict[str, int] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def meanings(self, tokens: Sequence[Token], at: int) -> tuple[tuple[Meaning, ...], int]:
        """The meanings of the longest phrase that begins at a token, and the position after it."""
        longest = self.longest.get(tokens[at].norm, 0) or self.longest.get(self.vocabulary.stem(tokens[at].norm), 0)
        norms = [token.norm for token in tokens[at : at + longest]]
        for length in range(len(norms), 0, -1):
            key = tuple(norms[:length])
            found = [*self.exact.get(key, ()), *self.vocabulary.phrases.get(key, ())]
            stemmed = self.stems.get(tuple(self.vocabulary.stem(word) for word in key), ())
            found = [*(meaning for meaning in stemmed if meaning not in found), *found]
            if found:
                return tuple(found), at + length
        return (), at

    def corrected(self, token: Token) -> Token:
        """The token, its misspelt word replaced by the one of the model's words that it must have meant, if there is one."""
        word = token.norm
        if token.kind != "word" or len(word) < SHORTEST_CORRECTED or self._knows(word):
            return token
        distance = 2 if len(word) >= 9 else 1
        near = process.extract(word, self.words, scorer=OSA.distance, score_cutoff=distance, limit=2)
        near = [found for found in near if found[0][0] == word[0]]
        if not near or (len(near) > 1 and near[0][1] == near[1][1]):
            return token
        return replace(token, norm=near[0][0])

    def of_kind(self, kind: str) -> Field | None:
        """The model's number field of a kind; the words of a kind are listed best first."""
        words = self.vocabulary.file.kinds.get(kind, ())
        ranked = [
            (words.index(word), place, candidate)
            for place, candidate in enumerate(self.schema.visible)
            if candidate.kind in ("integer", "number") and candidate.name != self.schema.key
            for word in self._words_of(candidate)
            if word in words
        ]
        return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None

    def is_category(self, candidate: Field) -> bool:
        return bool(candidate.options) or not self._words_of(candidate).isdisjoint(self.vocabulary.file.kinds.get("category", ()))

    @property
    def day_field(self) -> Field | None:
        """The model's own date: the first that it declares, else when its rows were made."""
        dated = [candidate for candidate in self.schema.fields.values() if candidate.kind in ("date", "moment")]
        own = [candidate for candidate in dated if not candidate.hidden]
        made = [candidate for candidate in dated if candidate.name == "created_at"]
        return next(iter(own or made), None)

    # ---- making

    def add(self, phrase: Phrase, meaning: Meaning, *, plural: bool) -> None:
        """`plural`: the question may say it in the plural where the model does not, and the other way round."""
        if not phrase:
            return
        stem = tuple(self.vocabulary.stem(word) for word in phrase)
        for table, key in [(self.exact, phrase), (self.stems if plural else self.exact, stem)]:
            there = table.setdefault(key, [])
            if meaning not in there:
                there.append(meaning)

    def close(self) -> None:
        own = {word for key in self.exact for word in key}
        spoken = {word for key in self.vocabulary.phrases for word in key}
        for key in (*self.vocabulary.phrases, *self.exact, *self.stems):
            self.longest[key[0]] = max(len(key), self.longest.get(key[0], 0))
        self._known = own | spoken | {word for key in self.stems for word in key}
        self.words = sorted(word for word in own if len(word) >= SHORTEST_MEANT and word not in spoken)

    def _knows(self, word: str) -> bool:
        return word in self._known or self.vocabulary.stem(word) in self._known

    def _words_of(self, candidate: Field) -> set[str]:
        names = (candidate.name.replace("_", " "), candidate.label, *short_pieces(candidate.comment))
        return {candidate.name, *(word for name in names for word in phrase_of(name))}


def lexicon(schema: Schema, samples: Samples, words: Vocabulary, others: Iterable[Schema]) -> Lexicon:
    """The lexicon of one model."""
    made = Lexicon(schema, words)
    for name in schema.names:
        made.add(phrase_of(name), ModelRef(), plural=True)
    for candidate in schema.fields.values():
        _add_field(made, candidate)
    # Titles last: where a brand and a product share their name, the brand is meant.
    for name in sorted(samples, key=lambda name: name == schema.title):
        for value in samples[name]:
            _add_value(made, schema.fields[name], value)
    for other in others:
        for name in other.names:
            if phrase_of(name) not in made.exact:
                made.add(phrase_of(name), OtherModel(other.id), plural=True)
    made.close()
    return made


def _add_field(made: Lexicon, candidate: Field) -> None:
    if candidate.name.startswith("__"):
        return
    names = [candidate.label, candidate.name.replace("_", " "), *short_pieces(candidate.comment)]
    names += [candidate.name.removesuffix(end).replace("_", " ") for end in NAME_ENDINGS if candidate.name.endswith(end)]
    for name in names:
        made.add(phrase_of(name), FieldRef(candidate), plural=True)
    for option in candidate.options:
        _add_value(made, candidate, option)


def _add_value(made: Lexicon, candidate: Field, value: str) -> None:
    phrase = phrase_of(value.replace("_", " "))
    # A value that is a word such as "in", or a mere number or letter, would be found in questions that do not mean it.
    code = len(phrase) > 1 and any(word.isdecimal() and len(word) > 2 for word in phrase)  # "SO-10744"
    function = made.vocabulary.function_words
    if not code and all(word in function or word.replace(".", "").isdecimal() or len(word) < 2 for word in phrase):
        return
    made.add(phrase, ValueRef(candidate, value), plural=made.is_category(candidate))


class Lexicons:
    """Lexicons that were made, kept while the samples they were made of are the current ones."""

    KEPT = 64

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, str, int], tuple[Samples, Lexicon]] = OrderedDict()

    def get(self, schema: Schema, samples: Samples, words: Vocabulary, others: Sequence[Schema]) -> Lexicon:
        key = (schema.id, words.language + "".join(f"|{other.id}" for other in others), id(samples))
        kept = self._made.get(key)
        # The samples are held with their lexicon, so their id is theirs for as long as it is a key.
        if kept is None or kept[0] is not samples:
            kept = (samples, lexicon(schema, samples, words, others))
            self._made[key] = kept
        self._made.move_to_end(key)
        while len(self._made) > self.KEPT:
            self._made.popitem(last=False)
        return kept[1]
