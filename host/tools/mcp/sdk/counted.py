"""The messages of a server without results that take long: the SDK checks each entry of a list by
itself, which takes 40 microseconds, and a megabyte has tens of thousands; each further value is
copied a few times until a model or a hook has it. And without blocks of types that the SDK does not
know: it would refuse all others beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

from groundhook.core.json_text import has_more_values
from groundhook.host.tools.mcp.http_client import MOST_LISTED, MOST_RESULT_VALUES, TOO_MANY
from groundhook.host.tools.mcp.sdk.stdio import Streams
from groundhook.host.tools.mcp.shapes import known_block


@asynccontextmanager
async def counted(transport: AbstractAsyncContextManager[Streams]) -> AsyncIterator[Streams]:
    """The streams of a transport. An answer with more is an error of its request."""
    async with transport as (incoming, outgoing):
        yield _Counted(incoming), outgoing


class _Counted:
    """The stream from which the SDK receives messages."""

    def __init__(self, incoming: Any) -> None:
        self._incoming = incoming

    def __getattr__(self, name: str) -> Any:
        return getattr(self._incoming, name)

    async def __aenter__(self) -> Self:
        await self._incoming.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._incoming.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _counted(await anext(self._incoming))

    async def receive(self) -> Any:
        return _counted(await self._incoming.receive())


def _counted(item: Any) -> Any:
    answer = item.message if isinstance(item, SessionMessage) else None
    if not isinstance(answer, JSONRPCResponse):
        return item
    lists = [entry for entry in answer.result.values() if isinstance(entry, list)]
    most = max(map(len, lists), default=0)
    if most > MOST_LISTED:
        what = f"a list of {most} entries: at most {MOST_LISTED} are read"
    elif has_more_values(answer.result, MOST_RESULT_VALUES):
        what = f"more than {MOST_RESULT_VALUES} values"
    else:
        if isinstance(blocks := answer.result.get("content"), list):
            answer.result["content"] = list(map(known_block, blocks))
        return item
    error = ErrorData(code=TOO_MANY, message=what)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=answer.id, error=error))
