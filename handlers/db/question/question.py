"""A question as pieces with all the meanings that they have for every model: words of the language,
and numbers with units."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from groundhook.handlers.db.question.tokens import (
    CLOSING,
    MOST_TOKENS,
    Token,
    tokens_of,
)
from groundhook.handlers.db.question.vocabulary import Phrase, Vocabulary


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
