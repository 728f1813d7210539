"""A source that answers from a table: for tests of assistants, demonstrations, and runs without a
network.

It remembers what it was asked, and a question that is not in the table is an error that shows those
that are, so a test never passes by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.host.core.errors import SourceError, suggestion
from groundhook.host.core.ports import Found, Scope
from groundhook.host.core.types.search import Item, SearchRequest

ANY = "*"


@dataclass
class CannedSource:
    """`pages` leads from a query (`*`: any other) to what is found, or to the error that is raised.

    `delay` seconds pass before an answer. `gate`, where given, is waited for before an answer: with
    it a test holds a search open.
    """

    pages: Mapping[str, Sequence[Item] | SourceError]
    delay: float = 0.0
    gate: anyio.Event | None = None
    asked: list[SearchRequest] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    cancelled: int = 0

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        self.asked.append(request)
        self.scopes.append(scope)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await anyio.sleep(self.delay)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        page = self.pages.get(request.query, self.pages.get(ANY))
        if page is None:
            raise SourceError(
                f"no canned answer for {request.query!r}",
                hint=suggestion(request.query, sorted(self.pages)),
            )
        if isinstance(page, SourceError):
            raise page
        return Found(items=tuple(page)[: request.limit], total=len(page))


def canned_item(key: str, **fields: Any) -> Item:
    """An item for a canned page: `key` is also its title and content unless said, its score 0.5."""
    return Item(**{"type": "kb", "title": key, "content": key, "score": 0.5, "key": key, **fields})
