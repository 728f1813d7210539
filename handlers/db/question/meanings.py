"""What the tokens of a question can mean at their positions, for one model.

A position is an index of a token. A method that takes tokens returns the position after them, or
None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.lexicon import Lexicon
from groundhook.handlers.db.question.parsed import About
from groundhook.handlers.db.question.tokens import Token

M = TypeVar("M", bound=sense.Sense)
NOWHERE = Token("mark", "", "", -1)  # before and behind all tokens


class Never(sense.Sense):
    """The meaning of no word."""


class Meanings:
    """The tokens of one question and what they mean for one model."""

    def __init__(self, tokens: Sequence[Token], lexicon: Lexicon, now: datetime) -> None:
        pieces = lexicon.read(tokens)
        self.typed, self.tokens = [typed for typed, _ in pieces], [read for _, read in pieces]
        self.lexicon, self.now = lexicon, now
        self.about = About("")  # the topic of the next words: the last one mentioned
        self._memo: dict[int, tuple[tuple[sense.Sense, ...], int]] = {}
        self._raw: dict[int, tuple[tuple[sense.Sense, ...], int]] = {}
        self._unnamed = self._relations_unnamed()
        named = [i for i in range(len(self.tokens)) if self._may_be(i, sense.ModelRef)]
        self._only_name = named[0] if len(named) == 1 else -1

    def at(self, i: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return all meanings of the longest phrase at a position, and the position after it.
        Meanings of related records whose model the question does not name are omitted."""
        found = self._memo.get(i)
        if found is None:
            meanings, end = self._meanings(i)
            meant = tuple(meaning for meaning in meanings if self._is_meant(meaning, i, end))
            found = self._memo[i] = (meant, end if meant else i)
        return found

    def _is_meant(self, meaning: sense.Sense, i: int, end: int) -> bool:
        """Return whether a phrase from `i` to `end` can have a meaning in this question."""
        if isinstance(meaning, sense.ValueRef) and i == self._only_name:
            return False  # "firefighters" are the records, and not those of that rank
        if isinstance(meaning, (sense.LeadIn, sense.LinkingVerb, sense.Request)):
            return self._idle(meaning, i, end)
        return _relation_of(meaning) not in self._unnamed

    def _idle(self, word: sense.Filler, i: int, end: int) -> bool:
        """Return whether a word that may be content carries no condition at its place. The meanings
        of its neighbours are looked up without their places, which would not end."""
        described = (sense.FieldRef, sense.ValueRef)
        governing = (sense.Preposition, when.DateRelation, sense.Compare)
        if isinstance(word, sense.Request):
            return self._begins(i)
        if isinstance(word, sense.LinkingVerb):
            return self._leads_to(end, *described, sense.Superlative, sense.Compare)
        if self._may_be(i, *described):
            return False
        if self._may_be(i - 1, sense.Relative, sense.Not) and self._may_be(end, *described):
            return True  # "who work remotely"
        if self.token(end).kind == "mark" or self._may_be(end, sense.And, sense.Or):
            return not self._may_be(i - 1, *governing, sense.Relative, sense.Person)
        further = (sense.Between, when.Period, sense.Per, sense.Not, sense.ValueLink, sense.Filler)
        return self.is_number(end) or self._may_be(end, *governing, *further)

    def _leads_to(self, i: int, *kinds: type[sense.Sense]) -> bool:
        """Return whether such a word is here, with or without an article."""
        article = self._may_be(i, when.Definite, sense.Single)
        return self._may_be(i, *kinds) or (article and self._may_be(i + 1, *kinds))

    def _may_be(self, i: int, *kinds: type[sense.Sense]) -> bool:
        return any(isinstance(meaning, kinds) for meaning in self._meanings(i)[0])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The positions at which the phrases of the question begin."""
        starts = [0]
        while (end := max(self.after(starts[-1]), starts[-1] + 1)) < len(self.tokens):
            starts.append(end)
        return tuple(starts)

    def said(self, *kinds: type[sense.Sense]) -> bool:
        """Return whether a phrase of the question has one of these meanings."""
        return any(self.is_(i, *kinds) for i in self.starts)

    def _begins(self, i: int) -> bool:
        """Return whether only fillers come before a position."""
        at = 0
        while at < i and (self.is_(at, sense.Filler) or self.tokens[at].kind == "mark"):
            at = max(self.after(at), at + 1)
        return at >= i

    def asks_who(self) -> bool:
        """Return whether the question begins with a word for a person: "who has the most"."""
        who = next((i for i in range(len(self.tokens)) if self.is_(i, sense.Person)), None)
        return who is not None and self._begins(who)

    def _meanings(self, i: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return the same with the meanings of related records that are not named."""
        if i not in self._raw:
            known = self.token(i) is not NOWHERE and self.token(i).kind != "quoted"
            found = self.lexicon.meanings(self.tokens, i) if known else ((), i)
            names = self.lexicon.names.get(self.typed[i].text) if known and i else None
            if names and found[1] <= i + 1:
                found = ((*names, *found[0]), i + 1)
            self._raw[i] = found
        return self._raw[i]

    def _relations_unnamed(self) -> frozenset[str]:
        """Return the relations to many records that the question does not name. Their fields and
        values are never meant."""
        relations = self.lexicon.schema.relations.values()
        many = {relation.name for relation in relations if relation.many}
        meanings = (one for i in range(len(self.tokens)) for one in self._meanings(i)[0])
        named = {one.relation for one in meanings if isinstance(one, sense.RelationRef)}
        return frozenset(many - named)

    def token(self, i: int) -> Token:
        """Return the token at a position; `NOWHERE` outside the question."""
        return self.tokens[i] if 0 <= i < len(self.tokens) else NOWHERE

    def after(self, i: int) -> int:
        """Return the position after the phrase here; the same position if it means nothing."""
        return self.at(i)[1]

    def take(self, i: int, kind: type[M]) -> tuple[M, int] | None:
        """Return the first meaning of a kind, and the position after its phrase."""
        found = self.all(i, kind)
        return (found[0], self.after(i)) if found else None

    def all(self, i: int, kind: type[M]) -> list[M]:
        """Return the meanings of a kind. Fields and values of the current topic come first, then
        the model's own."""
        meanings, end = self.at(i)
        found = [meaning for meaning in meanings if isinstance(meaning, kind)]
        if len(found) < 2 or kind not in (sense.FieldRef, sense.ValueRef):
            return found
        ahead = {one.relation for one in self.at(end)[0] if isinstance(one, sense.RelationRef)}
        place = kind is sense.ValueRef and self._behind_place(i)

        def far(meaning: M) -> int:
            relation, of_place, own = _relation_of(meaning), False, False
            if place and isinstance(meaning, sense.ValueRef):
                # a lake "in Florida" is not the one that is called so
                of_place = self.lexicon.is_place(meaning.field)
                untitled = meaning.field.name != self.lexicon.schema.title
                own = untitled and not relation and not self.about.relation
            if relation in ahead:
                return 0
            if own or of_place:
                return 1 if own else 2
            return 3 if relation == self.about.relation else 4 if not relation else 5

        return sorted(found, key=far)

    def _behind_place(self, i: int) -> bool:
        """ "in Texas", "outside the city": return whether a word for a place is before a
        position."""
        before = i - 2 if self._may_be(i - 1, when.Definite) else i - 1
        words = self._meanings(before)[0]
        return any(isinstance(one, sense.Preposition) and one.kind == "place" for one in words)

    def is_(self, i: int, *kinds: type[sense.Sense]) -> bool:
        for meaning in self.at(i)[0]:  # noqa: SIM110
            if isinstance(meaning, kinds):
                return True
        return False

    def anywhere(self, *kinds: type[sense.Sense], since: int = 0) -> bool:
        """Return whether any position from `since` on has one of these meanings."""
        return any(self.is_(i, *kinds) for i in range(since, len(self.tokens)))

    def ended(self, i: int) -> bool:
        """Return whether the question, or a part of it that a mark ends, ends here."""
        return self.token(i).kind == "mark" and not self.at(i)[0]

    def unknown(self, i: int) -> bool:
        """Return whether a word or a number has no meaning of its own here."""
        return self.token(i).kind in ("word", "number") and not self.at(i)[0]

    def is_unknown_word(self, i: int) -> bool:
        """Return whether a word without a meaning is here."""
        return self.token(i).kind == "word" and not self.at(i)[0]

    def is_number(self, i: int) -> bool:
        """Return whether a number in digits is here."""
        return self.token(i).kind == "number"

    def is_mark(self, i: int, marks: str) -> bool:
        token = self.token(i)
        return token is not NOWHERE and token.kind == "mark" and token.norm in marks

    def steps(
        self, i: int, *kinds: type[sense.Sense], most: int = 3, unless: type[sense.Sense] = Never
    ) -> Iterator[int]:
        """Yield this position, and the one after each of up to `most` phrases of these kinds that
        do not have another kind."""
        yield i
        for _ in range(most):
            if not self.is_(i, *kinds) or self.is_(i, unless):
                return
            i = self.after(i)
            yield i

    def past(
        self, i: int, *kinds: type[sense.Sense], most: int = 3, unless: type[sense.Sense] = Never
    ) -> int:
        """Return the last of these steps."""
        return max(self.steps(i, *kinds, most=most, unless=unless))

    def past_one(self, i: int, *kinds: type[sense.Sense]) -> int:
        """Return the position after one phrase of these kinds, if there is one here."""
        return self.after(i) if self.is_(i, *kinds) else i

    def back(self, i: int) -> int:
        """Return where the phrase before a position begins, skipping filler words."""
        before = (at for at in reversed(self.starts) if at < i)
        return next((at for at in before if at == 0 or not self.is_(at, sense.Filler)), 0)

    def text(self, start: int, end: int) -> str:
        """Return the text as typed; the pieces of a compound are joined again."""
        text, before = "", None
        for token in self.typed[start:end]:
            joined = before is not None and before.group == token.group
            sign = "" if before is None else "-" if joined else " "
            text += ("" if joined and before and before.kind == "number" else sign) + token.text
            before = token
        return text

    def is_singular(self, end: int) -> bool:
        """Return whether the word before a position is in the singular."""
        norm = self.tokens[end - 1].norm
        return self.lexicon.vocabulary.stem(norm) == norm

    def is_word(self, i: int, words: Iterable[str]) -> bool:
        return self.token(i).norm in words

    def joint(self, i: int) -> int:
        """Return the position after a comma, an "and" or an "or" here; the same position without
        one."""
        at = i + 1 if self.is_mark(i, ",") else i
        return self.after(at) if self.is_(at, sense.And, sense.Or) else at

    def act(self, i: int) -> str | None:
        """Return the relation to many records that a verb implies: "ordered" implies a customer's
        orders."""
        root = self.lexicon.vocabulary.root(self.token(i).norm)
        return self.lexicon.acts.get(root) if self.is_unknown_word(i) else None


def _relation_of(meaning: sense.Sense) -> str:
    """Return the relation that leads to a field or value; "" for the model's own and for other
    meanings."""
    return meaning.field.name.rpartition(".")[0] if isinstance(meaning, sense.OfField) else ""
