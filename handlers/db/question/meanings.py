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

    def at(self, i: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return all meanings of the longest phrase at a position, and the position after it.
        Meanings of related records whose model the question does not name are omitted."""
        found = self._memo.get(i)
        if found is None:
            meanings, end = self._meanings(i)
            meant = tuple(
                meaning
                for meaning in meanings
                if _relation_of(meaning) not in self._unnamed
                and (
                    not isinstance(meaning, (sense.LeadIn, sense.LinkingVerb, sense.Request))
                    or self._idle(meaning, i, end)
                )
            )
            found = self._memo[i] = (meant, end if meant else i)
        return found

    def _idle(self, word: sense.Filler, i: int, end: int) -> bool:
        """Return whether a word that may be content carries no condition at its place."""
        if isinstance(word, sense.Request):
            return self._begins(i)
        described = (sense.FieldRef, sense.ValueRef)
        if isinstance(word, sense.LinkingVerb):
            return self._leads_to(end, *described, sense.Superlative, sense.Compare)
        if isinstance(word, sense.NumberVerb) and self._leads_to(end, sense.Superlative):
            return True  # "earns the most"
        if self._may_be(i, *described):
            return False
        if self._may_be(i - 1, sense.Relative, sense.Not) and self._may_be(end, *described):
            return True  # "who work remotely"
        # The meanings of neighbours are looked up without their places, which would not end.
        governing = (sense.Preposition, when.DateRelation, sense.Compare)
        if (
            end >= len(self.tokens)
            or self.tokens[end].kind == "mark"
            or self._may_be(end, sense.And, sense.Or)
        ):
            return not self._may_be(i - 1, *governing)
        return self.tokens[end].kind == "number" or self._may_be(
            end,
            *governing,
            sense.Between,
            when.Period,
            sense.Per,
            sense.Not,
            sense.ValueLink,
            sense.Filler,
        )

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
        found = self._raw.get(i)
        if found is None:
            known = 0 <= i < len(self.tokens) and self.tokens[i].kind != "quoted"
            found = self.lexicon.meanings(self.tokens, i) if known else ((), i)
            if (
                known
                and i
                and (names := self.lexicon.names.get(self.typed[i].text))
                and found[1] <= i + 1
            ):
                found = ((*names, *found[0]), i + 1)
            self._raw[i] = found
        return found

    def _relations_unnamed(self) -> frozenset[str]:
        """Return the relations to many records that the question does not name. Their fields and
        values are never meant."""
        many = {
            relation.name for relation in self.lexicon.schema.relations.values() if relation.many
        }
        found = [self._meanings(i)[0] for i in range(len(self.tokens))] if many else []
        named = {
            meaning.relation
            for meanings in found
            for meaning in meanings
            if isinstance(meaning, sense.RelationRef)
        }
        return frozenset(many - named)

    def after(self, i: int) -> int:
        """Return the position after the phrase here; the same position if it means nothing."""
        return self.at(i)[1]

    def take(self, i: int, kind: type[M]) -> tuple[M, int] | None:
        """Return the first meaning of a kind, and the position after its phrase."""
        meanings, end = self.at(i)
        if kind in (sense.FieldRef, sense.ValueRef):
            found = self.all(i, kind)
            return (found[0], end) if found else None
        for meaning in meanings:
            if isinstance(meaning, kind):
                return meaning, end
        return None

    def all(self, i: int, kind: type[M]) -> list[M]:
        """Return the meanings of a kind. Fields and values of the current topic come first, then
        the model's own."""
        meanings, end = self.at(i)
        found = [meaning for meaning in meanings if isinstance(meaning, kind)]
        if len(found) < 2 or kind not in (sense.FieldRef, sense.ValueRef):
            return found
        ahead = {
            meaning.relation
            for meaning in self.at(end)[0]
            if isinstance(meaning, sense.RelationRef)
        }
        place = kind is sense.ValueRef and self._behind_place(i)

        def far(meaning: M) -> int:
            relation = _relation_of(meaning)
            if relation in ahead:
                return 0
            if (
                place
                and isinstance(meaning, sense.ValueRef)
                and self.lexicon.is_place(meaning.field)
            ):
                return 1  # a lake "in Florida" is not the one that is called so
            return 2 if relation == self.about.relation else 3 if not relation else 4

        return sorted(found, key=far)

    def _behind_place(self, i: int) -> bool:
        """ "in Texas", "outside the city": return whether a word for a place is before a
        position."""
        before = i - 1 if i and not self._may_be(i - 1, when.Definite) else i - 2
        return any(
            isinstance(word, sense.Preposition) and word.kind == "place"
            for word in (self._meanings(before)[0] if before >= 0 else ())
        )

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
        return i >= len(self.tokens) or (self.tokens[i].kind == "mark" and not self.at(i)[0])

    def unknown(self, i: int) -> bool:
        """Return whether a word, number or date has no meaning of its own here."""
        known = not 0 <= i < len(self.tokens) or self.at(i)[0]
        return not known and self.tokens[i].kind in ("word", "number")

    def is_unknown_word(self, i: int) -> bool:
        """Return whether a word without a meaning is here."""
        return self.unknown(i) and self.tokens[i].kind == "word"

    def is_mark(self, i: int, marks: str) -> bool:
        return (
            i < len(self.tokens) and self.tokens[i].kind == "mark" and self.tokens[i].norm in marks
        )

    def past(self, i: int, *kinds: type[sense.Sense], most: int = 3) -> int:
        """The position after up to `most` phrases of these kinds."""
        for _ in range(most):
            if not self.is_(i, *kinds):
                break
            i = self.after(i)
        return i

    def steps(self, i: int, *kinds: type[sense.Sense], most: int = 3) -> Iterator[int]:
        """Yield this position, and the one after each of up to `most` phrases of these kinds."""
        yield i
        for _ in range(most):
            if not self.is_(i, *kinds):
                return
            i = self.after(i)
            yield i

    def past_one(self, i: int, *kinds: type[sense.Sense]) -> int:
        """The position after one phrase of these kinds, if there is one here."""
        return self.after(i) if self.is_(i, *kinds) else i

    def back(self, i: int) -> int:
        """Return where the phrase before a position begins, skipping filler words."""
        before = (at for at in reversed(self.starts) if at < i)
        return next((at for at in before if at == 0 or not self.is_(at, sense.Filler)), 0)

    def text(self, start: int, end: int) -> str:
        """Return the text as typed; the pieces of a compound are joined again."""
        parts: list[str] = []
        for i in range(start, end):
            joined = i > start and self.typed[i].group == self.typed[i - 1].group
            between = (
                ""
                if joined and self.typed[i - 1].kind == "number"
                else "-"
                if joined
                else " "
                if i > start
                else ""
            )
            parts.append(between + self.typed[i].text)
        return "".join(parts)

    def is_singular(self, end: int) -> bool:
        """Return whether the word before a position is in the singular."""
        norm = self.tokens[end - 1].norm
        return self.lexicon.vocabulary.stem(norm) == norm

    def is_word(self, i: int, words: Iterable[str]) -> bool:
        return i < len(self.tokens) and self.tokens[i].norm in words

    def joint(self, i: int) -> int:
        """Return the position after a comma, an "and" or an "or" here; the same position without
        one."""
        at = i + 1 if self.is_mark(i, ",") else i
        return self.after(at) if self.is_(at, sense.And, sense.Or) else at

    def act(self, i: int) -> str | None:
        """Return the relation to many records that a verb implies: "ordered" implies a customer's
        orders."""
        word = self.tokens[i].norm if i < len(self.tokens) and self.tokens[i].kind == "word" else ""
        return (
            self.lexicon.acts.get(self.lexicon.vocabulary.root(word))
            if word and not self.at(i)[0]
            else None
        )


def _relation_of(meaning: sense.Sense) -> str:
    """Return the relation that leads to a field or value; "" for the model's own and for other
    meanings."""
    return (
        meaning.field.name.rpartition(".")[0]
        if isinstance(meaning, (sense.FieldRef, sense.ValueRef))
        else ""
    )
