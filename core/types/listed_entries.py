"""Entries of an assistant's lists of servers and toolkits. Pure.

An entry is "id", {id: [tools]}, {id: {keys}} for several, or {<noun's key>: id, keys}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any


def named_entries(
    entry: str | Mapping[str, Any], noun: str, id_key: str, known: Collection[str], shown: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each name in an entry with its keys, all of them `known`. `shown` lists the known keys
    in messages. Raises ValueError."""
    if not entry:
        raise ValueError(f"names no {noun}")
    named: Mapping[Any, Any]
    if isinstance(entry, str):
        named = {entry: {}}
    elif id_key in entry:
        if not isinstance(entry[id_key], str):
            raise ValueError(f"{id_key!r} must be text")
        named = {entry[id_key]: {key: value for key, value in entry.items() if key != id_key}}
    else:
        named = {
            name: {"tools": keys} if isinstance(keys, (list, tuple)) else keys
            for name, keys in entry.items()
        }
    for name, keys in named.items():
        if not name.strip():
            raise ValueError(f"names no {noun}")
        if not isinstance(keys, Mapping):
            raise ValueError(f"{name!r} must be followed by a list of tools")
        unknown = sorted(set(keys) - set(known))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a key of a {noun} (known: {shown})")
        yield name, keys


def names_in(name: str, key: str, keys: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the list of names under a key of the entry `name`. Raises ValueError."""
    values = keys.get(key) or ()
    if (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not all(isinstance(value, str) for value in values)
    ):
        raise ValueError(f"'{key}' of {name!r} must be a list of names")
    return tuple(values)
