"""The one module that knows the MCP SDK: a connection to a server, its requests, and what goes
wrong with them.

Importing it takes half a second, so it is imported when the first server is used. A `Session` is
entered and left by one task (`host.mcp.owner`); results are plain data with the names of the
protocol, errors those of `host.core.errors`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    Implementation,
    JSONRPCError,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from pydantic import BaseModel, ValidationError

from groundhook.host.core.errors import (
    HostError,
    ServerError,
    ServerMalformed,
    ServerNotConfigured,
    ServerRefused,
    leaves,
)
from groundhook.host.core.types.base import dotted, problems
from groundhook.host.core.types.specs import ServerSpec
from groundhook.host.mcp.evidence import Evidence
from groundhook.host.mcp.http import BROKE_OFF, LARGER, REFUSED, TOO_LARGE, UNREACHED, Guarded
from groundhook.host.mcp.lines import Oversize
from groundhook.host.mcp.program import Program, open_program
from groundhook.host.mcp.shapes import answered

T = TypeVar("T")
Streams = tuple[Any, Any]

MOST_PAGES = 100
INHERITED = (
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
)  # those that the SDK gives a server, too

# What the SDK logs is told by errors here; without a handler Python would print it on standard
# error.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
    httpx2.TransportError,
)
_SPOKEN = (
    MCPError,
    ValidationError,
    RuntimeError,
    ValueError,
)  # the SDK reports results that break their schema as RuntimeError


class Session:
    """A connection that stands. Every method raises ServerError; ServerUnreachable means that this
    connection is over."""

    def __init__(self, client: Client, evidence: Evidence) -> None:
        self._client, self._evidence = client, evidence
        self._tools: dict[str, dict[str, Any]] | None = None

    async def list_tools(self) -> list[dict[str, Any]]:
        tools = await self._pages(
            "tools/list", "tools", lambda cursor: self._client.list_tools(cursor=cursor)
        )
        self._tools = {tool["name"]: tool for tool in tools}
        return tools

    async def tool(self, name: str) -> dict[str, Any] | None:
        """The tool of that name, from the last list or else a new one."""
        if self._tools is None or name not in self._tools:
            await self.list_tools()
        return (self._tools or {}).get(name)

    def tool_names(self) -> list[str]:
        """Names in the last list."""
        return sorted(self._tools or ())

    def forget_tools(self) -> None:
        self._tools = None

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return _plain(
            await self._ask(f"tools/call {name!r}", self._client.call_tool(name, dict(arguments)))
        )

    async def list_resources(self) -> list[dict[str, Any]]:
        return await self._pages(
            "resources/list", "resources", lambda cursor: self._client.list_resources(cursor=cursor)
        )

    async def read_resource(self, uri: str) -> dict[str, Any]:
        return _plain(await self._ask(f"resources/read {uri!r}", self._client.read_resource(uri)))

    async def list_prompts(self) -> list[dict[str, Any]]:
        return await self._pages(
            "prompts/list", "prompts", lambda cursor: self._client.list_prompts(cursor=cursor)
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        return _plain(
            await self._ask(f"prompts/get {name!r}", self._client.get_prompt(name, dict(arguments)))
        )

    async def _pages(
        self, method: str, key: str, get: Callable[[str | None], Awaitable[BaseModel]]
    ) -> list[dict[str, Any]]:
        """All pages of a list; empty when the server has nothing of the kind."""
        entries: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            try:
                page = _plain(await self._ask(method, get(cursor)))
            except ServerRefused as exc:
                if isinstance(exc.__cause__, MCPError) and exc.__cause__.code == METHOD_NOT_FOUND:
                    return entries
                raise
            entries += page[key]
            cursor = page.get("nextCursor")
            if not cursor:
                return entries
        raise ServerMalformed(
            f"{self._evidence.name} answers {method} with more than {MOST_PAGES} pages"
        )

    async def _ask(self, asked: str, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except (*_GONE, *_SPOKEN) as exc:
            raise await _worded(exc, self._evidence, asked) from exc


@asynccontextmanager
async def open_session(
    evidence: Evidence, environment: Mapping[str, str], folder: Path, lost: Callable[[], None]
) -> AsyncIterator[Session]:
    """Start or connect to the server that `evidence` is about, and fill that. `environment` is what
    the variables of INHERITED are taken from; `lost` is called when a program's output ends. Raises
    ServerError, also when the connection ends in pieces."""
    async with _in_one_piece(evidence), AsyncExitStack() as stack:
        if evidence.spec.transport == "stdio":
            transport = await _program(stack, evidence, environment, folder, lost)
        else:
            transport = await _address(stack, evidence.spec)
        yield await _connected(stack, evidence, transport)


async def _program(
    stack: AsyncExitStack,
    evidence: Evidence,
    environment: Mapping[str, str],
    folder: Path,
    lost: Callable[[], None],
) -> AbstractAsyncContextManager[Streams]:
    spec = evidence.spec
    env = {name: environment[name] for name in INHERITED if name in environment} | spec.env
    largest = spec.result_kb * 1024
    try:
        opening = open_program(
            spec.command, spec.args, env=env, folder=folder, largest=largest, ended=lost
        )
        evidence.program = await stack.enter_async_context(opening)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ServerNotConfigured(
            f"{evidence.name} cannot be started: {spec.command!r}: {reason}",
            hint="'command' in its file names the program",
        ) from exc
    return _streams(evidence.program, evidence)


async def _address(stack: AsyncExitStack, spec: ServerSpec) -> AbstractAsyncContextManager[Streams]:
    largest = spec.result_kb * 1024
    client = Guarded(
        spec.headers, largest=largest, connect=spec.start_timeout, silence=2 * spec.timeout
    )
    await stack.enter_async_context(client)
    return streamable_http_client(spec.url, http_client=client, max_sse_event_size=largest)


async def _connected(
    stack: AsyncExitStack, evidence: Evidence, transport: AbstractAsyncContextManager[Streams]
) -> Session:
    sessions: list[Session] = []

    async def noticed(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            for session in sessions:
                session.forget_tools()

    who = Implementation(name="groundhook", version=metadata.version("groundhook"))
    client = Client(transport, cache=None, message_handler=noticed, client_info=who)
    try:
        await stack.enter_async_context(client)
    except (*_GONE, *_SPOKEN) as exc:
        raise await _worded(exc, evidence, "") from exc
    except ExceptionGroup as group:
        known = _known(group, (*_GONE, *_SPOKEN))
        if not known:
            raise
        raise await _worded(known[0], evidence, "") from group
    evidence.heard = True
    sessions.append(Session(client, evidence))
    return sessions[0]


@asynccontextmanager
async def _in_one_piece(evidence: Evidence) -> AsyncIterator[None]:
    """The SDK's task groups report what ended a connection as groups: one ServerError instead. Bugs
    pass."""
    try:
        yield
    except ExceptionGroup as group:
        known = _known(group, (*_GONE, MCPError, ValidationError))
        if not known:
            raise
        raise await _worded(known[0], evidence, "") from group


# ------------------------------------------------------------------------------- lines and messages


class _Incoming:
    """A program's lines as the SDK reads messages."""

    def __init__(self, program: Program, evidence: Evidence) -> None:
        self._program, self._evidence = program, evidence

    async def receive(self) -> SessionMessage | Exception:
        while not self._evidence.hopeless and (line := await self._program.read()) is not None:
            message = self._message(line)
            if message is not None:
                self._evidence.heard = True
                return message
        raise anyio.EndOfStream

    def _message(self, line: bytes | Oversize) -> SessionMessage | None:
        if isinstance(line, Oversize):
            number = answered(line)
            if number is None:
                return None
            error = ErrorData(
                code=TOO_LARGE, message=f"the answer {LARGER}: {line.size // 1024} KB"
            )
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            if line.strip():
                self._evidence.note_garbage(line)
            return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """The program is stopped by whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class _Outgoing:
    """The SDK's messages as lines for a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def send(self, item: SessionMessage, /) -> None:
        await self._program.write(
            item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        )

    async def aclose(self) -> None:
        """As above."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


@asynccontextmanager
async def _streams(program: Program, evidence: Evidence) -> AsyncIterator[Streams]:
    yield _Incoming(program, evidence), _Outgoing(program)


# ------------------------------------------------------------------------------- results and errors


def _plain(result: BaseModel) -> dict[str, Any]:
    plain: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


async def _worded(exc: BaseException, evidence: Evidence, asked: str) -> ServerError:
    """The error of ours for one of the SDK's. `asked` is the request that was under way; "" while
    connecting."""
    if isinstance(exc, ServerError):
        return exc
    if isinstance(exc, MCPError):
        return await _reported(exc, evidence, asked)
    if isinstance(exc, _GONE):
        return await evidence.ended(asked, delivered=True, reason=str(exc))
    about = f" to {asked}" if asked else ""
    if isinstance(exc, ValidationError):
        path, message = problems(exc)[0]
        return ServerMalformed(
            f"{evidence.name} gave an answer{about} that is not MCP: {dotted(path)}: {message}"
        )
    return ServerMalformed(
        f"{evidence.name} gave an answer{about} that breaks its own description: {_short(str(exc))}"
    )


async def _reported(exc: MCPError, evidence: Evidence, asked: str) -> ServerError:
    """An error that came as a message, from the server or from below the SDK."""
    name, said, data = (
        evidence.name,
        _short(exc.message),
        exc.data if isinstance(exc.data, Mapping) else {},
    )
    about = f" {asked}" if asked else ""
    limit = f"{evidence.spec.result_kb} KB (result_kb in its file)"
    if exc.code == TOO_LARGE or LARGER in said or "byte limit" in said:
        return ServerMalformed(f"the answer of {name} to{about} is larger than {limit}")
    if exc.code == UNREACHED:
        return await evidence.ended(asked, delivered=bool(data.get("delivered", True)), reason=said)
    if exc.code == CONNECTION_CLOSED or BROKE_OFF in said:
        unsent = isinstance(exc.__context__, (anyio.BrokenResourceError, anyio.ClosedResourceError))
        return await evidence.ended(asked, delivered=not unsent, reason=said)
    if exc.code == REQUEST_TIMEOUT:
        return evidence.no_answer(asked or "the handshake")
    if exc.code == PARSE_ERROR:
        return ServerMalformed(f"{name} gave an answer that is not MCP: {said}")
    if exc.code == REFUSED:
        return ServerRefused(
            f"{name} at {evidence.spec.url} refused{about or ' the connection'}: {said}",
            hint=_refused(data),
        )
    return ServerRefused(f"{name} refused{about or ' the connection'}: {said} ({exc.code})")


def _refused(data: Mapping[str, Any]) -> str:
    if data.get("status") in (401, 403):
        return "'headers' in its file carry the credentials"
    return "'url' in its file is the address" if data.get("status") in (404, 405) else ""


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:299] + "…"


def _known(
    group: BaseExceptionGroup[Any], kinds: tuple[type[BaseException], ...]
) -> list[BaseException]:
    """The single errors in a group when all of them are of these kinds, ours first; none
    otherwise."""
    found = list(leaves(group))
    if not all(isinstance(each, (HostError, *kinds)) for each in found):
        return []
    return sorted(found, key=lambda each: not isinstance(each, HostError))
