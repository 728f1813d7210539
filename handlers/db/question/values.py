"""The values in a question: those that occur in the tables of the models, and where the question
names them. Only values that begin like one of its words are taken apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from groundhook.handlers.db.model.schema import Field, Schema
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import OfferedModel, QuestionScope
from groundhook.handlers.db.question.tokens import MOST_TOKENS, folded, phrase_of, tokens_of
from groundhook.handlers.db.question.vocabulary import Phrase, Vocabulary

LONGEST_VALUE = 6  # words
LONGEST_START = 8  # signs, with accents, of two letters
SMALL = 2  # letters; a value this short counts where it is written in capitals
LIST_SEPARATORS = ",;|"  # of lists in a text
# Kinds of words that an option may be, too: "available", "medium".
HARMLESS = frozenset(
    {"conditions", "date_seasons", "units", "orders", "adjectives", "made_verbs", "place_verbs"}
)


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
    values: dict[tuple[str, str], Mapping[Phrase, tuple[str, ...]]] = {}
    return [QuestionScope(offer, words, starts, values=values) for offer in offers]


def all_values(scope: QuestionScope, one: Field) -> Iterable[str]:
    """Return the values of a field that are known, of lists their elements."""
    parted = lists_of(scope, one)
    looked_up = (scope.offer.looked_up or {}).get(one.name.removeprefix(scope.path), ())
    if parted is not None:
        return dict.fromkeys((*(piece for each in parted.values() for piece in each), *looked_up))
    return dict.fromkeys((*one.options, *scope.counts(one), *looked_up))


def known_values(scope: QuestionScope, one: Field) -> Mapping[Phrase, tuple[str, ...]]:
    """Return the values of a field that the question may name, since they start like one of its
    words, by their words; those of options also by their stems, behind an empty word."""
    key = (scope.schema.id, one.name.removeprefix(scope.path))
    if key in scope.values:
        return scope.values[key]
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
    scope.values[key] = made
    return made


def lists_of(scope: QuestionScope, one: Field) -> Mapping[str, list[str]] | None:
    """Return the elements of each sampled value of a field with lists ("English, Hebrew", or JSON);
    None of another field."""
    values = scope.counts(one)
    if one.kind == "json":
        return {value: [value] for value in values}
    if one.options or scope.is_title(one):
        return None
    parted = (_parted(values, sign) for sign in LIST_SEPARATORS)
    return next((each for each in parted if each is not None), None)


def _parted(values: Collection[str], sign: str) -> dict[str, list[str]] | None:
    """Return the pieces of each value; None if the values are no lists: in lists, short pieces
    recur, or most of all."""
    parted = {value: list(filter(None, map(str.strip, value.split(sign)))) for value in values}
    several = [pieces for pieces in parted.values() if len(pieces) > 1]
    often = Counter(piece for pieces in parted.values() for piece in pieces)
    short = all(piece.count(" ") <= 1 for piece in often) and often.total() > len(often)
    recurring = [often[piece] > 1 for pieces in several for piece in pieces]
    is_list = short or 2 * sum(recurring) > len(recurring)
    return parted if len(several) > 1 and is_list else None


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
