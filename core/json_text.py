"""Reads JSON of others: of clients, models, services, databases, hooks, documents. Pure.

Every text of others is read here, so that each is held to the same bounds: depth, digits of a
number, and no value that JSON does not have. Python's parser alone fails on them with errors of
several types, which a caller that expects one would take for a bug. A caller bounds the size, since
it knows what it reads from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

# levels of nested lists and objects that clients, models and templates all accept
DEEPEST = 100
# Values of a JSON text from a stranger: validating one may take 20 microseconds, and a megabyte has
# half a million. A request of 200 messages and 100 tools has less than a half.
MOST_VALUES = 20_000
# Lists and objects of any text: making one takes a microsecond, and nothing else runs meanwhile.
MOST_LISTS = 100_000
# Commas of any text, one before each further value: half a million values take a tenth of a second.
MOST_COMMAS = 500_000
# A string, or its beginning where nothing ends it.
_STRING = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?', re.DOTALL)


class NotJson(ValueError):
    """A text is not JSON, or not JSON that is read; the message says why, in a few words.

    `position` is how many characters were read before the fault, or 0 where it is not known."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class NestedTooDeeply(NotJson):
    """Lists and objects are nested more deeply than `deepest`."""

    def __init__(self, deepest: int) -> None:
        super().__init__(f"it is nested too deeply: at most {deepest} levels")


class TooManyValues(NotJson):
    """There are more than MOST_LISTS lists and objects, or more than MOST_COMMAS values."""


def read_json(
    text: str | bytes, *, deepest: int = DEEPEST, repeats: bool = True, nan: bool = False
) -> Any:
    """Return the value of a JSON text, or of one in UTF-8, with or without a byte order mark.

    Numbers have at most 4300 digits, and there are at most MOST_LISTS lists and objects and about
    MOST_COMMAS values. NaN and Infinity are refused; with `nan`, for services whose languages write
    them, they are None. Of a repeated key the last value counts, unless `repeats` is False. Raises
    NotJson, which NestedTooDeeply and TooManyValues are."""
    try:
        written = text.decode() if isinstance(text, bytes) else text
        brackets = count_brackets(written)
        decoder = _NAN_DECODER if nan else _DECODER if repeats else _STRICT_DECODER
        value = decoder.decode(written.removeprefix("\ufeff"))
    except TooManyValues:
        raise
    except RecursionError:
        raise NestedTooDeeply(deepest) from None
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    except json.JSONDecodeError as exc:
        line = "" if exc.lineno == 1 else f"line {exc.lineno}, "
        message = exc.msg.removesuffix(" at")  # of some messages, which expect the place
        raise NotJson(f"{message} at {line}column {exc.colno}", exc.pos) from None
    except ValueError as exc:
        raise NotJson(_reworded(exc)) from None
    # Few texts have so many brackets, and counting them is quicker than walking the value.
    if brackets > deepest and is_deeper(value, deepest):
        raise NestedTooDeeply(deepest)
    return value


def read_json_at(text: str, start: int, *, nan: bool = False) -> tuple[Any, int]:
    """Return the JSON value at a position of a text, and where it ends. `nan` is that of
    `read_json`. Raises NotJson, which NestedTooDeeply is one of."""
    try:
        value, end = (_NAN_DECODER if nan else _DECODER).raw_decode(text, start)
    except RecursionError:
        raise NestedTooDeeply(DEEPEST) from None
    except json.JSONDecodeError as exc:
        raise NotJson(exc.msg.removesuffix(" at"), exc.pos) from None
    except ValueError as exc:
        raise NotJson(_reworded(exc), start) from None
    if is_deeper(value):
        raise NestedTooDeeply(DEEPEST)
    return value, end


def is_deeper(value: Any, most: int = DEEPEST) -> bool:
    """Return whether objects and lists are nested more than `most` levels deep."""
    # Level by level: a recursion would fail on the very values that this is to find.
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        inner = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [entry for entries in inner for entry in entries if isinstance(entry, (dict, list))]
        if not level:
            return False
    return bool(level)


def has_more_values(value: Any, most: int = MOST_VALUES) -> bool:
    """Return whether objects and lists have more than `most` entries together."""
    level, entries = [value] if isinstance(value, (dict, list)) else [], 0
    while level and entries <= most:
        entries += sum(map(len, level))
        if entries <= most:
            inner = (entry.values() if isinstance(entry, dict) else entry for entry in level)
            level = [each for some in inner for each in some if isinstance(each, (dict, list))]
    return entries > most


def count_values(body: bytes | bytearray) -> int:
    """Return at least the number of values of a JSON text but one, without parsing it."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def count_brackets(text: str) -> int:
    """Return the number of opening brackets of a JSON text. Raises TooManyValues; what is in
    strings does not count."""
    brackets = text.count("[") + text.count("{")
    if brackets > MOST_LISTS or text.count(",") > MOST_COMMAS:
        bare, strings = _STRING.subn("", text, count=MOST_COMMAS)
        if bare.count("[") + bare.count("{") > MOST_LISTS:
            raise TooManyValues(f"it has more than {MOST_LISTS} lists and objects")
        if strings == MOST_COMMAS or bare.count(",") > MOST_COMMAS:
            raise TooManyValues(f"it has more than {MOST_COMMAS} values")
    return brackets


def _reworded(exc: ValueError) -> str:
    return "a number has too many digits" if "int_max_str_digits" in str(exc) else str(exc)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        again = Counter(key for key, _ in pairs).most_common(1)[0][0]
        shown = again if len(again) <= 200 else f"{again[:200]}…"
        raise ValueError(f"the key {shown!r} appears twice")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_NAN_DECODER = json.JSONDecoder(parse_constant=lambda _word: None)
_STRICT_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats
)
