"""Named plug-ins of one kind. Made in the composition root and passed down, so two hosts can live in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from host.errors import UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> None:
        if name in self._items:
            raise ValueError(f"{self._noun} {name!r} is already registered")
        self._items[name] = item

    def get(self, name: str) -> T:
        """Raises UnknownName, which names the nearest known one."""
        if name not in self._items:
            raise UnknownName(self._noun, name, self._items)
        return self._items[name]

    def names(self) -> list[str]:
        return sorted(self._items)

    def __iter__(self) -> Iterator[str]:
        """Names in the order in which they were added."""
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items
