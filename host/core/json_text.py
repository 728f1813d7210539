"""Finds JSON in texts of people, models and hooks, and checks how deeply it is nested. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# levels of nested lists and objects that clients, models and templates all accept
DEEPEST = 100
MOST_STARTS = 1000  # brackets of a text that are tried as the start of a value

_FENCE = re.compile(
    r"^ {0,3}(```+|~~~+)[ \t]*[\w-]*[ \t]*\n(.*?)^ {0,3}\1[ \t]*$", re.MULTILINE | re.DOTALL
)
_START = re.compile(r"[\[{]")


def extract_json(text: str) -> Any:
    """Return the first JSON object or list: the whole text (which may be any value), else in a
    fenced block, else anywhere. None without one. Can take a second on the largest texts."""
    whole = text.strip().removeprefix("\ufeff")
    for candidate in (whole, *(found[2].strip() for found in _FENCE.finditer(text))):
        try:
            return _DECODER.decode(candidate)
        except (ValueError, RecursionError):
            continue
    for start in _starts(text):
        try:
            return _DECODER.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
    return None


def is_deeper(value: Any, most: int = DEEPEST) -> bool:
    """Return whether objects and lists are nested more than `most` levels deep."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        inner = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [entry for entries in inner for entry in entries if isinstance(entry, (dict, list))]
        if not level:
            return False
    return bool(level)


def _starts(text: str) -> Iterator[int]:
    for count, found in enumerate(_START.finditer(text)):
        if count == MOST_STARTS:
            return
        yield found.start()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
