"""A search source that answers from a table, for tests of assistants, demonstrations and offline
runs.

It records its requests. A query that is not in the table raises an error that names the nearest
one, so that a test never passes by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.core.errors import SourceError, suggestion
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.search import Item, SearchRequest

ANY = "*"


@dataclass
class CannedSource:
    """A source for tests. `pages` maps a query (`*`: any other query) to the items that are
    returned, or to the error that is raised.

    Before an answer it waits for `gate`, if given, so that a test can hold a search open, and for
    `delay` seconds. `requests` and `scopes` record the searches; `cancelled` counts those that were
    cancelled.
    """

    pages: Mapping[str, Sequence[Item] | SourceError]
    delay: float = 0.0
    gate: anyio.Event | None = None
    requests: list[SearchRequest] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    cancelled: int = 0

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return the items of the query. Raises SourceError for a query that is not in the table,
        and the error that is in it."""
        self.requests.append(request)
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
                f"the table has no answer for {request.query!r}",
                hint=suggestion(request.query, sorted(self.pages)),
            )
        if isinstance(page, SourceError):
            raise page
        return SourceResult(items=tuple(page)[: request.limit], total=len(page))


def canned_item(key: str, **fields: Any) -> Item:
    """Return an item whose key, title and content are `key` and whose score is 0.5; `fields`
    override these."""
    return Item(**{"type": "kb", "title": key, "content": key, "score": 0.5, "key": key, **fields})
