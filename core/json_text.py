"""Checks how deeply JSON is nested. Pure."""

from __future__ import annotations

from typing import Any

# levels of nested lists and objects that clients, models and templates all accept
DEEPEST = 100


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
