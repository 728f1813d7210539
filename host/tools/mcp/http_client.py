"""The HTTP client below the MCP SDK. It limits the size of answers and returns transport failures
as answers.

The SDK ends a whole connection, with every call on it, when one request cannot be sent. This client
answers such a request with a JSON-RPC error of its own instead, so that only that call fails. Its
error codes are outside the range that JSON-RPC reserves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from groundhook.core.json_text import NotJson, read_json

UNREACHED = -31001  # data: {"delivered": whether the request may have arrived}
REFUSED = -31002  # data: {"status": …}
TOO_LARGE = -31003
TOO_MANY = -31004

MOST_LISTED = 2000  # entries of a list in a result
MOST_RESULT_VALUES = 100_000  # of all lists and objects in a result
LARGER = "is larger than allowed"
BROKE_OFF = "broke off"

_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
)
_MAX_REASON_BYTES = 16 * 1024  # of an error answer, which are searched for its reason


class McpHttpClient(httpx2.AsyncClient):
    """An HTTP client with a limit of `max_bytes` for one answer, and timeouts in seconds: `connect`
    for connecting, `silence` between two bytes (None: any)."""

    def __init__(
        self, headers: Mapping[str, str], *, max_bytes: int, connect: float, silence: float | None
    ) -> None:
        # Without compression, so that the limit on the bytes received limits the answer.
        super().__init__(
            headers={"accept-encoding": "identity", **headers},
            timeout=httpx2.Timeout(silence, connect=connect, pool=connect),
        )
        self._max_bytes = max_bytes

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as exc:
            return _answer(request, UNREACHED, _reason(exc), delivered=not isinstance(exc, _UNSENT))
        if response.status_code >= 400:
            return await _error_answer(request, response)
        if "json" in response.headers.get("content-type", ""):
            response.stream = _BoundedStream(response.stream, self._max_bytes)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that raises httpx2.StreamError when it is too large or breaks off; the SDK turns that
    into a failed call."""

    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._stream:
                size += len(piece)
                if size > self._max_bytes:
                    raise httpx2.StreamError(f"the answer {LARGER}")
                yield piece
        except httpx2.TransportError as exc:
            raise httpx2.StreamError(f"the answer {BROKE_OFF}: {_reason(exc)}") from exc

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _error_answer(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return a JSON-RPC error for an answer with an error status: the server's own, or one of this
    module."""
    status = response.status_code
    answer = _parse_object(await _read_start(response))
    error = answer.get("error")
    message = str(error.get("message", "")) if isinstance(error, Mapping) else ""
    if "mcp-session-id" in request.headers and (
        status == 404 or (status == 400 and "session" in message.lower())
    ):
        return _answer(request, UNREACHED, "the session has expired", delivered=False)
    if isinstance(error, Mapping) and _is_complete(error):
        return httpx2.Response(
            status, json={"jsonrpc": "2.0", "id": None, "error": dict(error)}, request=request
        )
    return _answer(request, REFUSED, f"{status} {response.reason_phrase}".strip(), status=status)


def _is_complete(error: Mapping[str, Any]) -> bool:
    """Return whether it has what JSON-RPC requires; the SDK reads no other."""
    return isinstance(error.get("code"), int) and isinstance(error.get("message"), str)


async def _read_start(response: httpx2.Response) -> bytes:
    body = b""
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _MAX_REASON_BYTES:
                break
    except httpx2.HTTPError:
        return b""
    finally:
        await response.aclose()
    return body


def _parse_object(body: bytes) -> Mapping[str, Any]:
    try:
        value = read_json(body)
    except NotJson:
        return {}
    return value if isinstance(value, Mapping) else {}


def _answer(request: httpx2.Request, code: int, message: str, **data: Any) -> httpx2.Response:
    error = {"code": code, "message": message, "data": data}
    return httpx2.Response(
        503, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request
    )


def _reason(exc: BaseException) -> str:
    """Return the message of the innermost cause that has one, else the error's class."""
    reason, current = exc.__class__.__name__, exc.__cause__ or exc.__context__
    reason = str(exc) or reason
    while current is not None:
        reason = str(current) or reason
        current = current.__cause__ or current.__context__
    return " ".join(reason.split())[:200]
