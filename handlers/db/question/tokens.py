"""Splits a question into words, numbers, dates, quoted texts and marks. Pure.

Words are folded (case, compatibility forms). A compound with hyphens becomes several tokens of one
`group`, so that "in-stock" reads as "in stock" and an unknown "usb-c" can be joined again."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

TokenKind = Literal["word", "number", "date", "quoted", "mark"]
LONGEST_QUESTION = 2000  # characters read; real questions are shorter
MOST_TOKENS = 150  # read of a question: what a token means may depend on all others
LONGEST_NUMBER = 15  # digits; longer ones are identifiers, and more than a float holds
MONTHS, LAST_OF_MONTH = 12, 31
CLOSING = frozenset("?!.")
CURRENCY = "$€£₪¥₹"
# Within a Hebrew word the quotation mark comes before the last letter of an abbreviation: the
# currency ש"ח.
_PART = r"(?:[א-ת]+[\"״][א-ת]+|\w+(?:['’.&]\w+)*)"


def _scanner(thousands: str, decimal: str) -> re.Pattern[str]:
    # of both signs the last parts the decimals
    mixed = r"\d{1,3}(?:\.\d{3}){1,12},\d{1,2}(?!\d)|\d{1,3}(?:,\d{3}){1,12}\.\d{1,2}(?!\d)"
    grouped = rf"\d{{1,3}}(?:[{thousands}]\d{{3}}){{1,12}}(?:[{decimal}]\d+)?"
    parted = rf"{mixed}|{grouped}|\d{{1,3}}(?:\.\d{{3}}){{0,12}}\.000"
    digits = rf"{parted}|\d+(?:[{decimal}]\d+|\.\d{{1,2}}(?!\d))?"
    return re.compile(
        rf"""
    (?P<quoted> (?<!\w)"[^"]+" | [“„][^”“„]+[”“] | «[^«»]+» | (?<!\w)'[^']+'(?!\w) )
  | (?P<date> \d{{4}}-\d{{2}}-\d{{2}} (?!\w) | \d{{4}}/\d{{2}}/\d{{2}} (?!\w)
      | \d{{1,2}}(?P<parting>[./-])\d{{1,2}}(?P=parting)\d{{4}} (?!\w) )
  | (?P<number> (?P<before>[{CURRENCY}]\s?)? (?P<digits>{digits})
      (?P<factor>[kKmM](?![\w]))? (?P<after>\s?[{CURRENCY}])? (?![\w]) )
  | (?P<word> {_PART}(?:-{_PART})* )
  | (?P<mark> <=|>=|<>|!=|==|[<>=≤≥:;,+&?!.–-] )
""",
        re.VERBOSE,
    )


_SCANNERS = {".": _scanner(",", "."), ",": _scanner(".", ",")}  # by the sign before decimals
_ROUND = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})*\.000")
_POINT = re.compile(r"\d+\.\d{1,2}")
_SPLIT = re.compile(r"^(\d+(?:\.\d+)?)([^\W\d_]+)$")


@dataclass(frozen=True)
class Token:
    """One piece of a question, from the character `start` on. `norm` is looked up, `text` is as
    typed, without `quotes` characters around it; pieces of one word have the same `group`."""

    kind: TokenKind
    text: str
    norm: str
    group: int
    start: int
    number: float = 0.0
    money: bool = False
    day: date | None = None
    quotes: int = 0

    @property
    def end(self) -> int:
        """The character behind the piece."""
        return self.start + len(self.text) + self.quotes


def tokens_of(question: str, decimal: str = ".") -> list[Token]:
    """Return the tokens of a question, in order; of a longer question more than MOST_TOKENS, so
    that it shows as longer without those marks at its end that close a question. `decimal` is the
    decimal sign; the other of `.` and `,` separates thousands."""
    tokens: list[Token] = []
    for match in _SCANNERS[decimal].finditer(question[:LONGEST_QUESTION]):
        tokens += _tokens(match, decimal)
        if len(tokens) > MOST_TOKENS and tokens[-1].norm not in CLOSING:
            break
    return tokens


@lru_cache(maxsize=4096)
def phrase_of(text: str) -> tuple[str, ...]:
    """Return the words of a phrase in the form that a question's tokens have."""
    return tuple(token.norm for token in tokens_of(text))


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Return the text without case, accents, vowel points and compatibility forms: `Sao Paulo`
    finds `São Paulo`."""
    plain = text.replace("’", "'").replace("״", '"').casefold()
    if plain.isascii():
        return plain
    return "".join(
        sign for sign in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(sign)
    )


def _tokens(match: re.Match[str], decimal: str) -> list[Token]:
    kind, text, at = match.lastgroup, match.group(), match.start()
    if match["quoted"]:
        bare = text[1:-1].strip()
        return [Token("quoted", bare, folded(bare), at, at, quotes=len(text) - len(bare))]
    if match["date"]:
        try:
            return [Token("date", text, text, at, at, day=_day(text))]
        except ValueError:
            return [Token("word", text, text, at, at)]
    if match["number"]:
        number = _number(match, decimal)
        if number.kind == "number" and (match["factor"] or "") in "mM" and not number.money:
            return _metres(number)
        return [number]
    if match["word"]:
        return _words(text, at)
    assert kind == "mark"
    return [Token("mark", text, text, at, at)]


def _day(text: str) -> date:
    """Parse a date. Raises ValueError for an invalid or ambiguous one: 03/04/2026 is in March or in
    April."""
    first, second, third = (int(number) for number in re.split("[./-]", text))
    if first > LAST_OF_MONTH:
        return date(first, second, third)
    if "." in text or first > MONTHS or first == second:
        return date(third, second, first)
    if second <= MONTHS:
        raise ValueError(f"{text!r} may be two days")
    return date(third, first, second)


def _number(match: re.Match[str], decimal: str) -> Token:
    text, digits = match.group(), match["digits"]
    if "." in digits and "," in digits:
        decimal = max(".,", key=digits.rindex)
    if decimal == "." and _ROUND.fullmatch(digits):  # "100.000" is never meant to the thousandth
        digits = digits.replace(".", "")
    elif not _POINT.fullmatch(digits):  # "4.5" has a point in every language
        digits = digits.replace("." if decimal == "," else ",", "").replace(decimal, ".")
    if len(digits) > LONGEST_NUMBER:
        return Token("word", text, folded(text), match.start(), match.start())
    value = float(digits) * {"": 1, "k": 1_000, "m": 1_000_000}[(match["factor"] or "").lower()]
    money = bool(match["before"] or match["after"])
    at, norm = match.start(), folded(text).replace(" ", "")
    return Token("number", text, norm, at, at, number=value, money=money)


def _metres(number: Token) -> list[Token]:
    """Return the number and the unit of "1.85m", which are millions of money alone."""
    if not number.text[-1:].isalpha():
        return [number]
    digits, letter = number.text[:-1], number.text[-1]
    value = number.number / 1_000_000
    unit = Token("word", letter, letter.lower(), number.group, number.start + len(digits))
    return [Token("number", digits, digits, number.group, number.start, number=value), unit]


def _words(text: str, at: int) -> list[Token]:
    found, start = [], at
    for part in text.split("-"):
        norm = folded(part)
        for ending in ("'s", "s'"):
            if norm.endswith(ending) and len(norm) > 3:
                norm = norm[: -len(ending)] + ("s" if ending == "s'" else "")
        joined = _SPLIT.match(norm)
        if joined and part == text and len(joined[1]) <= LONGEST_NUMBER:  # "100usd", "5th"
            digits, rest = joined[1], joined[2]
            found.append(Token("number", digits, digits, at, start, number=float(digits)))
            found.append(Token("word", rest, rest, at, start + len(digits)))
        elif norm.isdecimal() and len(norm) <= LONGEST_NUMBER:
            found.append(Token("number", part, norm, at, start, number=float(norm)))
        else:
            found.append(Token("word", part, norm, at, start))
        start += len(part) + 1
    return found
