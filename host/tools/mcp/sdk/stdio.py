"""The SDK's transport over the standard streams of a program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from groundhook.core.json_text import read_json
from groundhook.core.types.base import well_formed
from groundhook.host.tools.mcp.evidence import ConnectionEvidence
from groundhook.host.tools.mcp.http_client import LARGER, TOO_LARGE
from groundhook.host.tools.mcp.lines import EDGE, Oversize
from groundhook.host.tools.mcp.program import ServerProgram
from groundhook.host.tools.mcp.shapes import answered_id

Streams = tuple[Any, Any]

_UNREAD_TIMEOUT = 0.2  # seconds for the end of an output whose program has closed its input


class _NoClose:
    """A stream that the SDK enters and closes without effect: `open_program` stops the program."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class _Incoming(_NoClose):
    """The stream from which the SDK receives messages: the lines of a program."""

    def __init__(self, program: ServerProgram, evidence: ConnectionEvidence) -> None:
        self._program, self._evidence = program, evidence

    async def receive(self) -> SessionMessage | Exception:
        while not self._evidence.is_not_mcp and (line := await self._program.read()) is not None:
            message = self._message(line)
            if message is not None:
                self._evidence.connected = True
                return message
        raise anyio.EndOfStream

    async def note_unread(self) -> None:
        """Note the lines of a program that ended, or closed its input, before they were read."""
        with anyio.move_on_after(_UNREAD_TIMEOUT):
            while (line := await self._program.read()) is not None:
                self._message(line)

    def _message(self, line: bytes | Oversize) -> SessionMessage | None:
        if isinstance(line, Oversize):
            number = answered_id(line)
            if number is None:
                return None
            error = ErrorData(
                code=TOO_LARGE, message=f"the answer {LARGER}: {line.size // 1024} KB"
            )
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            return _mended(line) or self._refused(line)

    def _refused(self, line: bytes) -> SessionMessage | None:
        """Return an error in place of an answer that cannot be read, so that its request does not
        wait for its deadline; None for any other line."""
        if line.strip():
            self._evidence.note_invalid_line(line)
        number = answered_id(Oversize(line[:EDGE], line[-EDGE:], len(line)))
        if number is None:
            return None
        error = ErrorData(code=PARSE_ERROR, message="it is not JSON of the protocol")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def _mended(line: bytes) -> SessionMessage | None:
    """Return a message whose text is not UTF-8, or has halves of characters, with U+FFFD in their
    place."""
    try:
        value = well_formed(read_json(line.decode("utf-8", "replace"), nan=True))
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except (ValueError, RecursionError):
        return None


class _Outgoing(_NoClose):
    """The stream to which the SDK sends messages: lines to a program."""

    def __init__(self, program: ServerProgram) -> None:
        self._program = program

    async def send(self, item: SessionMessage, /) -> None:
        await self._program.write(
            item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        )


@asynccontextmanager
async def streams(program: ServerProgram, evidence: ConnectionEvidence) -> AsyncIterator[Streams]:
    """The pair of streams that the SDK's client expects of a transport."""
    incoming = _Incoming(program, evidence)
    try:
        yield incoming, _Outgoing(program)
    except Exception:
        # The client fails as soon as it cannot write, whether or not it has read the line that
        # says why.
        if not evidence.connected:
            await incoming.note_unread()
        raise
