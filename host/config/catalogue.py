"""Declarations by id, each read when it is first used, so that one broken file affects only what
needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from groundhook.core.errors import Place, UnknownName

T = TypeVar("T")


class Catalogue(Mapping[str, T]):
    """A read-only mapping of id → value. Listing ids reads nothing; taking a value may raise
    ConfigError. `built_in` values apply where no declaration has their id; they can be taken and
    are not listed. `files` are the paths of the declarations in messages."""

    def __init__(
        self,
        noun: str,
        loaders: Mapping[str, Callable[[], T]],
        built_in: Mapping[str, T] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        self._noun = noun
        self._loaders = dict(loaders)
        self.files = dict(files or {})
        self._values: dict[str, T] = {
            id: value for id, value in (built_in or {}).items() if id not in self._loaders
        }
        self.built_in = frozenset(self._values)

    @property
    def noun(self) -> str:
        return self._noun

    def __getitem__(self, id: str) -> T:
        if id not in self._values:
            self._values[id] = self._loaders[id]()
        return self._values[id]

    def is_read(self, id: str) -> bool:
        """Return whether taking the value reads no file, or there is none."""
        return id in self._values or id not in self._loaders

    def named(self, id: str, *, place: Place | None = None, hint: str = "") -> T:
        """Return the value with that id. Raises UnknownName with the nearest known id; `place` is
        where `id` is written."""
        if id not in self:
            raise UnknownName(self._noun, id, self._loaders, place=place, hint=hint)
        return self[id]

    def __contains__(self, id: object) -> bool:
        return id in self._loaders or id in self.built_in

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._loaders))

    def __len__(self) -> int:
        return len(self._loaders)
