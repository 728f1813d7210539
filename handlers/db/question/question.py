"""A question as pieces with all their meanings: words of the language, numbers with units, names of
a model, and values that occur in its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from groundhook.handlers.db.model.schema import Field, Schema
from groundhook.handlers.db.question.scope import OfferedModel, QuestionScope
from groundhook.handlers.db.question.tokens import (
    CLOSING,
    MOST_TOKENS,
    Token,
    folded,
    phrase_of,
    tokens_of,
)
from groundhook.handlers.db.question.vocabulary import Phrase, Vocabulary

LONGEST_VALUE = 6  # words
LONGEST_START = 8  # signs, with accents, of two letters
SMALL = 2  # letters; a value this short counts where it is written in capitals
LIST_SIGNS = ",;|"  # of lists in a text
# Kinds of words that an option may be, too: "available", "medium".
HARMLESS = frozenset(
    {"conditions", "date_seasons", "units", "orders", "adjectives", "made_verbs", "place_verbs"}
)


@dataclass(frozen=True)
class Amount:
    """A number of a question, with its unit: kinds of fields that it may be of, each with how many
    of the smallest unit one is; 0 for a unit that is not converted."""

    value: float
    end: int
    units: tuple[tuple[str, float], ...] = ()


@dataclass
class TokenizedQuestion:
    """The tokens of a question, and the meanings of words of the language."""

    text: str
    words: Vocabulary
    now: datetime
    tokens: list[Token] = field(default_factory=list)
    cut: bool = False
    times: dict[int, list[tuple[Any, int]]] = field(default_factory=dict)  # filled by `times.spans`
    _starts: dict[tuple[int, str], list[tuple[int, Any]]] = field(default_factory=dict)
    _inside: set[tuple[int, int]] = field(default_factory=set)

    @staticmethod
    def of(
        text: str, words: Vocabulary, now: datetime, known: Collection[str] = ()
    ) -> TokenizedQuestion:
        """Make a question. A prefix that the language attaches to a word is separated from words in
        `known`, the names and values of the models."""
        tokens = tokens_of(text, words.file.decimal)
        while tokens and tokens[-1].norm in CLOSING:
            tokens.pop()
        cut = len(tokens) > MOST_TOKENS
        parted = [piece for token in tokens[:MOST_TOKENS] for piece in _part(token, words, known)]
        made = TokenizedQuestion(text, words, now, parted, cut)
        made._find_words()
        return made

    def __len__(self) -> int:
        return len(self.tokens)

    def norm(self, i: int) -> str:
        return self.tokens[i].norm if 0 <= i < len(self.tokens) else ""

    def norms(self, i: int, end: int) -> Phrase:
        return tuple(token.norm for token in self.tokens[i:end])

    def stems(self, i: int, end: int) -> Phrase:
        return self._stems[i:end]

    @cached_property
    def _stems(self) -> Phrase:
        return tuple(self.words.stem(token.norm) for token in self.tokens)

    def typed(self, i: int, end: int) -> str:
        """Return the words from `i` to `end` as typed."""
        return self.text[self.tokens[i].start : self.tokens[end - 1].end]

    def all(self, i: int, kind: str) -> list[tuple[int, Any]]:
        """Return the words of a kind that begin at a position: the end of each and its value."""
        return self._starts.get((i, kind), [])

    def is_(self, i: int, kind: str) -> bool:
        return (i, kind) in self._starts

    def past(self, i: int, *kinds: str) -> list[int]:
        """Return the position itself, and that behind a word of one of the kinds there."""
        return [i, *(end for kind in kinds for end, _ in self.all(i, kind))]

    def leads(self, i: int, *kinds: str) -> list[int]:
        """Return the positions behind an optional word of these kinds and an optional article."""
        return list(
            dict.fromkeys(
                at for start in self.past(i, *kinds) for at in self.past(start, "articles")
            )
        )

    def after(self, i: int, kind: str) -> list[int]:
        """Return the positions behind a word of a kind and an optional article."""
        ends = [end for end, _ in self.all(i, kind)]
        return [at for end in ends for at in self.past(end, "articles")]

    def behind(self, i: int, *kinds: str) -> int:
        """Return the position behind all words of these kinds from here on."""
        while ends := [end for kind in kinds for end, _ in self.all(i, kind)]:
            i = max(ends)
        return i

    def is_mark(self, i: int, sign: str) -> bool:
        return self.norm(i) == sign and self.tokens[i].kind == "mark"

    def inside(self, i: int, end: int) -> bool:
        """Return whether words are part of a longer phrase of the language."""
        return (i, end) in self._inside

    # ---- numbers

    def number(self, i: int) -> Amount | None:
        """Return the number at a position, without its unit."""
        if i >= len(self):
            return None
        behind = self.tokens[i + 1 : i + 2]
        if self.is_mark(i, "-") and behind and behind[0].start == self.tokens[i].start + 1:
            found = self.number(i + 1) if behind[0].kind == "number" else None
            return found and replace(found, value=-found.value)
        token = self.tokens[i]
        if token.kind == "number":
            amount = Amount(token.number, i + 1, (("money", 0.0),) if token.money else ())
        elif numeral := self.all(i, "numerals"):
            amount = Amount(numeral[0][1], numeral[0][0])
        else:
            return None
        if times := self.all(amount.end, "multipliers"):
            amount = replace(amount, value=amount.value * times[0][1], end=times[0][0])
        return amount

    def amounts(self, i: int) -> list[Amount]:
        """Return the number at a position, with its unit and without."""
        bare = self.number(i)
        if bare is None:
            return []
        found = [bare]
        measures = self.all(bare.end, "measures")
        units = [(end, (value[1], value[0])) for end, value in measures]
        units += [
            (end, (kind, 0.0)) for end, kind in self.all(bare.end, "units") if isinstance(kind, str)
        ]
        for end in dict.fromkeys(end for end, _ in units):
            mine = tuple(unit for stop, unit in units if stop == end)
            if not bare.units or any(kind == "money" for kind, _ in mine):
                found.append(replace(bare, end=end, units=mine))
        return found

    # ---- making

    def _find_words(self) -> None:
        phrases, longest = self.words.phrases, self.words.longest
        for i in range(len(self)):
            for length in range(longest.get(self.norm(i), 0), 0, -1):
                if i + length > len(self):
                    continue
                for kind, value in phrases.get(self.norms(i, i + length), ()):
                    there = self._starts.setdefault((i, kind), [])
                    there.append((i + length, value))
                if length > 1 and phrases.get(self.norms(i, i + length)):
                    self._inside.update(
                        (begin, end)
                        for begin in range(i, i + length)
                        for end in range(begin + 1, i + length + 1)
                        if end - begin < length
                    )


def _part(token: Token, words: Vocabulary, known: Collection[str], most: int = 2) -> list[Token]:
    """Return a token, or its prefixes and the known word behind them."""
    norm = token.norm
    plain = token.kind == "word" and len(norm) == len(token.text)
    if not plain or _knows(norm, words, known):
        return [token]
    for prefix, meaning in words.file.prefixes.items():
        rest = norm[len(prefix) :]
        if not norm.startswith(prefix) or len(rest) < 2:
            continue
        size = len(prefix)
        first = replace(token, text=token.text[:size], norm=meaning)
        second = replace(token, text=token.text[size:], norm=rest, start=token.start + size)
        if _knows(rest, words, known):
            return [first, second]
        more = _part(second, words, known, most - 1) if most > 1 else []
        if len(more) > 1:
            return [first, *more]
    return [token]


def _knows(word: str, words: Vocabulary, known: Collection[str]) -> bool:
    return word in words.spoken or word in known or words.stem(word) in known


def phrases_to_look_up(text: str, words: Vocabulary) -> list[str]:
    """Return the texts that may be values: up to six words, as typed, without the ending of a
    plural or possessive, and without prefixes of the language."""
    tokens = tokens_of(text, words.file.decimal)[:MOST_TOKENS]
    found: dict[str, None] = {}
    for i, token in enumerate(tokens):
        if token.kind in ("mark", "date"):
            continue
        for end in range(i + 1, min(len(tokens), i + LONGEST_VALUE) + 1):
            last = tokens[end - 1]
            if last.kind == "mark" and last.norm not in "-&.":
                break
            typed = text[token.start : last.end].strip("\"“”„«»'")
            for form in _forms(typed, words):
                found[form] = None
    return list(found)


def _forms(typed: str, words: Vocabulary) -> Iterator[str]:
    yield typed
    if typed.endswith(("'s", "’s")):
        yield typed[:-2]
    head, _, last = typed.rpartition(" ")
    stem = words.stem(last.casefold())
    if stem != last.casefold() and last:
        yield f"{head} {stem}".strip()
        if stem.endswith("y"):
            yield f"{head} {last[:-1]}".strip()
    for prefix in words.file.prefixes:
        if len(prefix) == 1 and typed.startswith(prefix) and len(typed) > SMALL + 1:
            yield typed[1:]


@dataclass(frozen=True)
class FoundValue:
    """A value in a question: the field, its spellings there, and whether it may stand without the
    field's name."""

    end: int
    field: Field
    spellings: tuple[str, ...]
    free: bool
    exact: bool = True


@dataclass
class NamedValues:
    """The values of one scope that a question names, by the position where they begin, the longest
    first."""

    at: dict[int, list[FoundValue]] = field(default_factory=dict)

    @staticmethod
    def of(question: TokenizedQuestion, scope: QuestionScope) -> NamedValues:
        found = NamedValues()
        for one in scope.own:
            if one.kind in ("text", "json"):
                for place in _places(question, scope, one):
                    found.at.setdefault(place[0], []).append(place[1])
        for listed in found.at.values():
            listed.sort(key=lambda each: -each.end)
        return found


def _places(
    question: TokenizedQuestion, scope: QuestionScope, one: Field
) -> Iterator[tuple[int, FoundValue]]:
    known = known_values(scope, one)
    longest = max(map(len, known), default=0)
    for i in range(len(question)):
        if question.tokens[i].kind in ("mark", "date"):
            continue
        for end in range(min(len(question), i + longest), i, -1):
            norms = question.norms(i, end)
            if question.tokens[i].kind == "quoted" and end == i + 1:
                norms = phrase_of(question.tokens[i].text)
            exact = known.get(norms, ())
            kinds = one.options or one.kind == "json" or scope.is_kind(one, "category")
            stems = (*norms[:-1], question.words.stem(norms[-1])) if norms else ()
            spellings = exact or (known.get(stems, ()) if stems != norms else ())
            if not spellings and kinds:
                spellings = known.get(("", *question.stems(i, end)), ())
            if spellings:
                yield i, _found(question, one, spellings, i, end, exact=bool(exact))


def _found(
    question: TokenizedQuestion,
    one: Field,
    spellings: Iterable[str],
    i: int,
    end: int,
    *,
    exact: bool,
) -> FoundValue:
    typed, token = question.typed(i, end), question.tokens[i]
    same = tuple(each for each in spellings if each == typed)
    small = end == i + 1 and token.kind != "quoted" and _is_small(question, i, one)
    free = not small or (bool(same) and not typed.islower() and (i > 0 or typed.isupper()))
    chosen = same if small and same else tuple(dict.fromkeys(spellings))
    return FoundValue(end, one, chosen, free, exact)


def _is_small(question: TokenizedQuestion, i: int, one: Field) -> bool:
    """Return whether a value is a number or has two letters at most, or is also a word of the
    language, such as one for a person."""
    token = question.tokens[i]
    if token.kind == "number" or len(token.norm) <= SMALL:
        return True
    if token.norm in question.words.persons and not one.options:
        return True
    meanings = question.words.phrases.get((token.norm,), ())
    return any(word.kind not in HARMLESS or not one.options for word in meanings)


def start_of(text: str) -> str:
    """Return the two letters or digits that a text starts with, which no ending of a plural
    changes; the first alone where another sign follows."""
    start = folded(text.lstrip("_ ")[:LONGEST_START])[:2]
    return start if start.isalpha() or start.isdecimal() else start[:1]


def _parts_of(text: str, words: Vocabulary) -> list[str]:
    """Return the words of a question, and what is left of them without prefixes of the language."""
    tokens = tokens_of(text, words.file.decimal)[:MOST_TOKENS]
    parts = list(dict.fromkeys(token.norm for token in tokens))
    for part in parts:
        rests = (part[len(each) :] for each in words.file.prefixes if part.startswith(each))
        parts += [rest for rest in rests if rest and rest not in parts]
    return parts


def models_named(text: str, schemas: Iterable[Schema], words: Vocabulary) -> list[str]:
    """Return the models that alone can be meant where one of them can, since the question has their
    names; none where "who" or "anything" may mean records of others, too."""
    parts = _parts_of(text, words)
    loose = {word.kind for part in parts for word in words.phrases.get((part,), ())}
    if not loose.isdisjoint(("who", "pronouns")):
        return []
    stems = {words.stem(norm) for part in parts for norm in phrase_of(part)}
    return [
        schema.id
        for schema in schemas
        if any(name and stems.issuperset(name) for name in map(words.stems, schema.names))
    ]


def scopes_of(text: str, offers: Iterable[OfferedModel], words: Vocabulary) -> list[QuestionScope]:
    """Return models as a question speaks of them."""
    starts = frozenset(map(start_of, _parts_of(text, words)))
    return [QuestionScope(offer, words, starts) for offer in offers]


def all_values(scope: QuestionScope, one: Field) -> Iterable[str]:
    """Return the values of a field that are known, of lists their elements."""
    parted = lists_of(scope, one)
    if parted is not None:
        return dict.fromkeys(piece for pieces in parted.values() for piece in pieces)
    name = one.name.removeprefix(scope.path)
    raw = (*one.options, *scope.counts(one), *(scope.offer.looked_up or {}).get(name, ()))
    return dict.fromkeys(raw)


def known_values(scope: QuestionScope, one: Field) -> Mapping[Phrase, tuple[str, ...]]:
    """Return the values of a field that the question may name, since they start like one of its
    words, by their words; those of options also by their stems, behind an empty word."""
    if one.name in scope.values:
        return scope.values[one.name]
    found: dict[Phrase, list[str]] = {}
    kinds = bool(one.options) or one.kind == "json" or scope.is_kind(one, "category")
    for value in all_values(scope, one):
        start = start_of(value)
        if start.isalnum() and start not in scope.starts:
            continue
        phrase = phrase_of(value.replace("_", " "))[: LONGEST_VALUE + 1]
        if not phrase:
            continue
        found.setdefault(phrase, []).append(value)
        if kinds:
            found.setdefault(("", *map(scope.words.stem, phrase)), []).append(value)
    made = {phrase: tuple(dict.fromkeys(values)) for phrase, values in found.items()}
    scope.values[one.name] = made
    return made


def lists_of(scope: QuestionScope, one: Field) -> Mapping[str, list[str]] | None:
    """Return the elements of each sampled value of a field with lists ("English, Hebrew", or JSON);
    None of another field."""
    values = scope.counts(one)
    if one.kind == "json":
        return {value: [value] for value in values}
    if one.options or scope.is_title(one):
        return None
    parted = (_parted(values, sign) for sign in LIST_SIGNS)
    return next((each for each in parted if each is not None), None)


def _parted(values: Collection[str], sign: str) -> dict[str, list[str]] | None:
    """Return the pieces of each value; None if the values are no lists: in lists, short pieces
    recur."""
    if sum(sign in value for value in values) < 2:
        return None
    parted = {
        value: [piece for part in value.split(sign) if (piece := part.strip())] for value in values
    }
    pieces = [piece for each in parted.values() for piece in each]
    several = sum(len(each) > 1 for each in parted.values())
    short = all(piece.count(" ") <= 1 for piece in pieces)
    return parted if several > 1 and short and len(pieces) > len(set(pieces)) else None


def known_words(own: QuestionScope) -> frozenset[str]:
    """Return the stems of all names of a model, of its fields and of its relations, and the words
    of their values."""
    found: set[str] = set()
    for scope in (own, *own.related.values()):
        phrases = [*scope.nouns, *scope.fields, *scope.relations]
        for one in scope.own:
            if one.kind in ("text", "json"):
                phrases += known_values(scope, one)
        found.update(word for phrase in phrases for word in phrase)
    return frozenset(found)
