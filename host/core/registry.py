"""Named plug-ins of one kind. Made in the composition root and passed down, so two hosts can live
in one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, TypeVar

from groundhook.host.core.errors import UnknownName, UsageError

T = TypeVar("T")


def by_end(noun: str, name: str, known: Collection[str]) -> str:
    """The id that is `name`, or the one that ends so: `agents.hello.notes` for `notes`. Raises
    UnknownName, UsageError."""
    if name in known:
        return name
    ending = sorted(id for id in known if id.endswith(f".{name}"))
    if len(ending) > 1:
        raise UsageError(
            f"{len(ending)} {noun}s are called {name!r}", hint=f"say which: {', '.join(ending)}"
        )
    if not ending:
        raise UnknownName(noun, name, known)
    return ending[0]


class Registry(Generic[T]):
    """Things by name; `only` says which names there may be, where not any."""

    def __init__(self, noun: str, only: Collection[str] = ()) -> None:
        self._noun, self._only = noun, only
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> None:
        """Raises UnknownName for a name that there may not be."""
        if self._only and name not in self._only:
            raise UnknownName(self._noun, name, self._only)
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


class Deferred(Registry[T]):
    """Things by name, each made when it is first needed and then kept."""

    def __init__(self, noun: str, makers: Mapping[str, Callable[[], T]]) -> None:
        super().__init__(noun)
        self._makers = dict(makers)

    def get(self, name: str) -> T:
        """Raises UnknownName, which names the nearest known one, and what making it raises."""
        if name not in self._items:
            if name not in self._makers:
                raise UnknownName(self._noun, name, self._makers)
            self._items[name] = self._makers[name]()
        return self._items[name]

    def names(self) -> list[str]:
        return sorted(self._makers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers
