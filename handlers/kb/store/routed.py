"""Two stores as one: each request goes to the store of its collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from groundhook.handlers.kb.store.port import VectorStore


class RoutedStore:
    """The app's own store, and another for the collections that `is_other` names, which is made
    with the first request to one of them."""

    def __init__(
        self, own: VectorStore, is_other: Callable[[str], bool], make: Callable[[], VectorStore]
    ) -> None:
        self._own = own
        self._is_other = is_other
        self._make = make
        self._other: VectorStore | None = None

    @property
    def other(self) -> VectorStore:
        if self._other is None:
            self._other = self._make()
        return self._other

    async def start(self) -> None:
        await self._own.start()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Every other method of the port has the collection as its first argument.
        def call(collection: str, *rest: Any, **options: Any) -> Any:
            store = self.other if self._is_other(collection) else self._own
            return getattr(store, name)(collection, *rest, **options)

        return call


def routed(
    own: VectorStore, is_other: Callable[[str], bool], make: Callable[[], VectorStore]
) -> VectorStore:
    """Return the two stores as one."""
    return cast(VectorStore, RoutedStore(own, is_other, make))
