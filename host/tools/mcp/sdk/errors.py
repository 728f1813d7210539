"""Translation of the SDK's errors to those of `core.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

from groundhook.core.errors import (
    HostError,
    ServerError,
    ServerMalformed,
    ServerRefused,
)
from groundhook.core.exception_groups import errors_in
from groundhook.core.types.base import dotted, validation_problems
from groundhook.host.tools.mcp.evidence import ConnectionEvidence
from groundhook.host.tools.mcp.http_client import (
    BROKE_OFF,
    LARGER,
    REFUSED,
    TOO_LARGE,
    TOO_MANY,
    UNREACHED,
)

CONNECTION_ERRORS = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
    httpx2.TransportError,
)
# RuntimeError: the SDK raises it for results that violate their schema. HTTPStatusError: for the
# stream of an sse server.
PROTOCOL_ERRORS = (MCPError, ValidationError, RuntimeError, ValueError, httpx2.HTTPStatusError)


async def server_error(
    exc: BaseException, evidence: ConnectionEvidence, request: str
) -> ServerError:
    """Return the ServerError for an error of the SDK. `request` is the request under way; "" while
    connecting."""
    if isinstance(exc, ServerError):
        return exc
    if isinstance(exc, MCPError):
        return await _from_protocol_error(exc, evidence, request)
    if isinstance(exc, CONNECTION_ERRORS):
        return await evidence.connection_lost(request, delivered=True, reason=str(exc))
    target = f" to {request}" if request else ""
    if isinstance(exc, httpx2.HTTPStatusError):
        answer = exc.response
        return ServerRefused(
            f"{evidence.name} at {evidence.spec.url} refused the connection:"
            f" {answer.status_code} {answer.reason_phrase}",
            hint=_refusal_hint({"status": answer.status_code}),
        )
    if isinstance(exc, ValidationError):
        path, message = validation_problems(exc)[0]
        return ServerMalformed(
            f"the answer of {evidence.name}{target} is not valid MCP: {dotted(path)}: {message}"
        )
    return ServerMalformed(
        f"the answer of {evidence.name}{target} violates the schema that it declares:"
        f" {_short(str(exc))}"
    )


async def _from_protocol_error(
    exc: MCPError, evidence: ConnectionEvidence, request: str
) -> ServerError:
    """Return the ServerError for a JSON-RPC error, from the server or from
    `host.tools.mcp.http_client`."""
    name, reason, data = (
        evidence.name,
        _short(exc.message),
        exc.data if isinstance(exc.data, Mapping) else {},
    )
    target = f" {request}" if request else ""
    if (limit := _limit_reached(exc.code, reason, evidence)) is not None:
        return ServerMalformed(f"the answer of {name} to{target} {limit}")
    if exc.code == UNREACHED:
        return await evidence.connection_lost(
            request, delivered=bool(data.get("delivered", True)), reason=reason
        )
    if _is_closed(exc) or BROKE_OFF in reason:
        unsent = isinstance(exc.__context__, (anyio.BrokenResourceError, anyio.ClosedResourceError))
        return await evidence.connection_lost(request, delivered=not unsent, reason=reason)
    if _is_timeout(exc):
        return evidence.no_answer(request or "the handshake")
    if exc.code == PARSE_ERROR:
        return ServerMalformed(f"the answer of {name} is not valid MCP: {reason}")
    if exc.code == REFUSED:
        return ServerRefused(
            f"{name} at {evidence.spec.url} refused{target or ' the connection'}: {reason}",
            hint=_refusal_hint(data),
        )
    return ServerRefused(f"{name} refused{target or ' the connection'}: {reason} ({exc.code})")


def _limit_reached(code: int, reason: str, evidence: ConnectionEvidence) -> str | None:
    """Return what an answer has too much of; None for another error."""
    if code == TOO_MANY:
        return f"has {reason}"
    if code == TOO_LARGE or LARGER in reason or "byte limit" in reason:
        return f"is larger than {evidence.spec.result_kb} KB (result_kb in its file)"
    return None


def _is_closed(exc: MCPError) -> bool:
    """Return whether the SDK reports the end of a connection. Servers use the same code for errors
    of their own, with other words."""
    return (exc.code, exc.message, exc.data) == (CONNECTION_CLOSED, "Connection closed", None)


def _is_timeout(exc: MCPError) -> bool:
    """Return whether a deadline of the SDK has passed, not one of the server's own errors."""
    return exc.code == REQUEST_TIMEOUT and isinstance(exc.__context__, TimeoutError)


def _refusal_hint(data: Mapping[str, Any]) -> str:
    if data.get("status") in (401, 403):
        return "check the credentials in 'headers' of its file"
    return "check 'url' in its file" if data.get("status") in (404, 405) else ""


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:299] + "…"


def known_errors(
    group: BaseExceptionGroup[Any], kinds: tuple[type[BaseException], ...]
) -> list[BaseException]:
    """Return the errors in a group, HostErrors first, if all of them are HostErrors or of these
    kinds; otherwise none."""
    found = list(errors_in(group))
    if not all(isinstance(each, (HostError, *kinds)) for each in found):
        return []
    return sorted(found, key=lambda each: not isinstance(each, HostError))
