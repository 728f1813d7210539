"""Folds layers of plain data into one, and records which layer set each leaf. Pure: no mapping is
changed. A leaf is every value that is not a mapping; a later leaf wins, also `False`, `0`, `None`
and an empty list, and mappings are folded key by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Name = TypeVar("Name")
Origins = dict[tuple[str, ...], Name]


def fold(layers: Iterable[tuple[Name, Mapping[str, Any]]]) -> tuple[dict[str, Any], Origins[Name]]:
    """Return the data of layers, given as `(name, data)` from the lowest up, and for the path of
    each leaf the name of the layer that set it."""
    value: dict[str, Any] = {}
    origins: Origins[Name] = {}
    for name, layer in layers:
        _lay(name, layer, value, (), origins)
    return value, origins


def _lay(
    name: Name,
    layer: Mapping[str, Any],
    into: dict[str, Any],
    path: tuple[str, ...],
    origins: Origins[Name],
) -> None:
    for key, new in layer.items():
        where = (*path, key)
        old = into.get(key)
        if isinstance(new, Mapping):
            if not isinstance(old, dict):
                origins.pop(where, None)
                old = into[key] = {}
            _lay(name, new, old, where, origins)
        else:
            if isinstance(old, dict):
                _forget(where, origins)
            into[key] = new
            origins[where] = name


def _forget(path: tuple[str, ...], origins: Origins[Name]) -> None:
    for where in [where for where in origins if where[: len(path)] == path]:
        del origins[where]
