"""Two-stage memory from Python: previews first, whole memories by id. The same tools as those of
the `memory` toolkit, with the same results.

    from groundhook import open_host
    from groundhook.memory import Memory

    async with open_host("path/to/app") as host:
        memory = Memory(host, identity={"tenant_id": "acme", "team_id": "red"})
        previews = await memory.search("rate limits", "backend", limit=3)
        whole = await memory.fetch(previews[0]["id"], "backend")
        several = await memory.batch_fetch([(1, "backend"), (31, "ops")])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from groundhook.core.errors import HostError, NotFound, NotPermitted, UsageError

if TYPE_CHECKING:
    from groundhook.core.types.turn import Identity
    from groundhook.host.app.host import Host

__all__ = ["Memory", "MemoryNotFound", "Preview", "ShelvedMemory", "WholeMemory"]


class Preview(TypedDict):
    """A memory as `search` returns it. `score` is 0-1."""

    id: int
    title: str
    preview: str
    score: float


class WholeMemory(TypedDict):
    """A memory as `fetch` returns it; `content` is exactly the text that was stored. `tags` is
    empty where the collection does not declare the field."""

    id: int
    title: str
    preview: str
    content: str
    tags: list[str]


class ShelvedMemory(WholeMemory):
    """A memory as `batch_fetch` returns it, with its collection."""

    collection: str


class MemoryNotFound(NotFound, ValueError):
    """The collection has no memory of that id that the identity may see, or does not exist."""


class Memory:
    """The memories of an identity. `toolkit` is the full name of a toolkit of the type `memory`, or
    the end of it; with `assistant` that of a toolkit in this assistant's list.

    Every method raises NotPermitted if the identity lacks the owner of the memories, UsageError for
    wrong arguments, and any other HostError if the search or the store fails."""

    def __init__(
        self,
        host: Host,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        toolkit: str = "memory",
        assistant: str | None = None,
    ) -> None:
        self._host = host
        self._identity = identity
        self._toolkit = toolkit
        self._assistant = assistant

    async def search(self, query: str, collection: str, limit: int = 20) -> list[Preview]:
        """Return at most `limit` (1-1,000) previews, best first, without contents; `[]` for an
        unknown collection."""
        arguments = {"query": query, "collection": collection, "limit": limit}
        return cast("list[Preview]", await self._call("search", arguments))

    async def fetch(self, doc_id: int, collection: str) -> WholeMemory:
        """Return a whole memory. Raises MemoryNotFound, which is a ValueError."""
        arguments = {"doc_id": doc_id, "collection": collection}
        return cast("WholeMemory", await self._call("fetch", arguments))

    async def batch_fetch(self, doc_refs: Sequence[tuple[int, str]]) -> list[ShelvedMemory]:
        """Return the whole memories of at most 1,000 references (id, collection), in their order
        and with one request for each collection. Those that do not exist are omitted."""
        arguments = {"doc_refs": [list(ref) for ref in doc_refs]}
        return cast("list[ShelvedMemory]", await self._call("batch_fetch", arguments))

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        outcome = await self._host.tool(
            f"{self._toolkit}.{tool}",
            arguments,
            identity=self._identity,
            assistant=self._assistant,
        )
        if outcome.error is None:
            return outcome.result
        kinds = {
            "not_found": MemoryNotFound,
            "not_permitted": NotPermitted,
            "wrong_arguments": UsageError,
            "unknown_tool": UsageError,
        }
        raise kinds.get(outcome.code, HostError)(outcome.error)
