"""Registries of named parts of one kind. They are made in the composition root and passed down, so
that several hosts can run in one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, TypeVar

from groundhook.core.errors import UnknownName, UsageError

T = TypeVar("T")


def by_end(noun: str, name: str, known: Collection[str]) -> str:
    """Return the id that equals `name`, or the one that ends with it: `agents.hello.notes` for
    `notes`. Raises UnknownName, or UsageError if several end with it."""
    if name in known:
        return name
    ending = sorted(id for id in known if id.endswith(f".{name}"))
    if len(ending) > 1:
        raise UsageError(
            f"{len(ending)} {noun}s are called {name!r}", hint=f"use one of {', '.join(ending)}"
        )
    if not ending:
        raise UnknownName(noun, name, known)
    return ending[0]


class Registry(Generic[T]):
    """Items by name; with `only`, no other names are accepted."""

    def __init__(self, noun: str, only: Collection[str] = ()) -> None:
        self._noun, self._only = noun, only
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> None:
        """Register an item. Raises UnknownName for a name outside `only`, ValueError for a name
        that is in use."""
        if self._only and name not in self._only:
            raise UnknownName(self._noun, name, self._only)
        if name in self._items:
            raise ValueError(f"{self._noun} {name!r} is already registered")
        self._items[name] = item

    def get(self, name: str) -> T:
        """Return the item. Raises UnknownName with the nearest known name."""
        if name not in self._items:
            raise UnknownName(self._noun, name, self._items)
        return self._items[name]

    def names(self) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(self._items)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of registration."""
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items


class Deferred(Registry[T]):
    """Items by name, each made when it is first used and then kept."""

    def __init__(self, noun: str, makers: Mapping[str, Callable[[], T]]) -> None:
        super().__init__(noun)
        self._makers = dict(makers)

    def get(self, name: str) -> T:
        """Return the item, made on first use. Raises UnknownName with the nearest known name, and
        the errors of its maker."""
        if name not in self._items:
            if name not in self._makers:
                raise UnknownName(self._noun, name, self._makers)
            self._items[name] = self._makers[name]()
        return self._items[name]

    def names(self) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(self._makers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers
