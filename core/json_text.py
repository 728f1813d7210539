"""Checks how deeply JSON is nested, and how many values it has. Pure."""

from __future__ import annotations

from typing import Any

# levels of nested lists and objects that clients, models and templates all accept
DEEPEST = 100
# Values of a JSON text from a stranger: validating one may take 20 microseconds, and a megabyte has
# half a million. A request of 200 messages and 100 tools has less than a half.
MOST_VALUES = 20_000


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
