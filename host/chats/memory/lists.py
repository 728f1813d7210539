"""Lists among the values of a memory: pure functions from a list to the list after an operation and
the operation's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groundhook.core.errors import UsageError

Changed = tuple[list[Any] | None, Any]  # the new list (None: unchanged), and the result
Operation = Callable[..., Changed]


def as_list(key: str, value: Any) -> list[Any]:
    """Return a stored value as a list; a key without a value is an empty one. Raises UsageError for
    any other value."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"the value of {key!r} is not a list", hint="set it to a list first")
    return value


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _push(found: list[Any], values: Any) -> Changed:
    made = [*found, *_values(values)]
    return made, len(made)


def _add_to_set(found: list[Any], values: Any) -> Changed:
    made = list(found)
    for value in _values(values):
        if not any(_is_same(value, other) for other in made):
            made.append(value)
    return made, len(made)


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other  # in Python, `True == 1`


def _pop(found: list[Any]) -> Changed:
    return (found[:-1], found[-1]) if found else (None, None)


def _pull(found: list[Any], count: Any) -> Changed:
    number = min(_index(count, "the count"), len(found))
    kept = len(found) - number
    return found[:kept], found[kept:]


def _pull_all(found: list[Any]) -> Changed:
    return [], found


def _get(found: list[Any], index: Any) -> Changed:
    at = _index(index, "the index", least=-len(found))
    return None, found[at] if at < len(found) else None


def _set(found: list[Any], index: Any, value: Any) -> Changed:
    at = _index(index, "the index", least=-len(found))
    if at >= len(found):
        raise UsageError(f"the list has {len(found)} elements, and no element {at}")
    made = list(found)
    made[at] = value
    return made, None


def _slice(found: list[Any], start: Any, end: Any = None) -> Changed:
    last = len(found) if end is None else _index(end, "the end", least=None)
    return None, found[_index(start, "the start", least=None) : last]


def _page(found: list[Any], page: Any, size: Any) -> Changed:
    count = _index(size, "the size", least=1)
    start = (_index(page, "the page", least=1) - 1) * count
    return None, found[start : start + count]


def _index(value: Any, what: str, least: int | None = 0) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    small = isinstance(value, int) and least is not None and value < least
    if not isinstance(value, int) or isinstance(value, bool) or small:
        bound = "" if least is None else f" of at least {least}"
        raise UsageError(f"{what} must be a whole number{bound}, not {value!r}"[:200])
    return value


OPERATIONS: Mapping[str, Operation] = {
    "push": _push,
    "pop": _pop,
    "pull": _pull,
    "pull_all": _pull_all,
    "add_to_set": _add_to_set,
    "array_length": lambda found: (None, len(found)),
    "array_get": _get,
    "array_set": _set,
    "array_slice": _slice,
    "array_page": _page,
    "array_all": lambda found: (None, found),
}
