"""The HTTP client under the MCP SDK: what goes wrong on the way comes back as an answer, and no
answer is too large.

The SDK ends a whole connection, with every call on it, when one request cannot be sent. Here such a
request is answered with a JSON-RPC error of ours instead, so that a call fails alone and says why.
Its codes lie outside the range that JSON-RPC reserves.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

UNREACHED = -31001  # data: {"delivered": whether the request may have arrived}
REFUSED = -31002  # data: {"status": …}
TOO_LARGE = -31003

LARGER = "is larger than allowed"
BROKE_OFF = "broke off"

_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
)
_EXPLAINED = 16 * 1024  # bytes of a refusal that are read for its reason


class Guarded(httpx2.AsyncClient):
    """`largest` in bytes is for one answer; `connect` and `silence` in seconds are for connecting
    and between two bytes."""

    def __init__(
        self, headers: Mapping[str, str], *, largest: int, connect: float, silence: float
    ) -> None:
        # Without compression: a small answer must not unfold into a large one.
        super().__init__(
            headers={"accept-encoding": "identity", **headers},
            timeout=httpx2.Timeout(silence, connect=connect, pool=connect),
        )
        self._largest = largest

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as exc:
            return _answer(request, UNREACHED, _reason(exc), delivered=not isinstance(exc, _UNSENT))
        if response.status_code >= 400:
            return await _refusal(request, response)
        if "json" in response.headers.get("content-type", ""):
            response.stream = _Bounded(response.stream, self._largest)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with httpx2.StreamError, which the SDK turns into a failed call, when it is
    too large or broken off."""

    def __init__(self, stream: Any, largest: int) -> None:
        self._stream, self._largest = stream, largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._stream:
                size += len(piece)
                if size > self._largest:
                    raise httpx2.StreamError(f"the answer {LARGER}")
                yield piece
        except httpx2.TransportError as exc:
            raise httpx2.StreamError(f"the answer {BROKE_OFF}: {_reason(exc)}") from exc

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _refusal(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """An answer with an error status: its own JSON-RPC error, or one of ours."""
    status = response.status_code
    said = _parsed(await _beginning(response))
    error = said.get("error")
    message = str(error.get("message", "")) if isinstance(error, Mapping) else ""
    if "mcp-session-id" in request.headers and (
        status == 404 or (status == 400 and "session" in message.lower())
    ):
        return _answer(request, UNREACHED, "it does not know the session any more", delivered=False)
    if isinstance(error, Mapping) and isinstance(error.get("code"), int):
        return httpx2.Response(
            status, json={"jsonrpc": "2.0", "id": None, "error": dict(error)}, request=request
        )
    return _answer(request, REFUSED, f"{status} {response.reason_phrase}".strip(), status=status)


async def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _EXPLAINED:
                break
    except httpx2.HTTPError:
        return b""
    finally:
        await response.aclose()
    return body


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _answer(request: httpx2.Request, code: int, message: str, **data: Any) -> httpx2.Response:
    error = {"code": code, "message": message, "data": data}
    return httpx2.Response(
        503, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request
    )


def _reason(exc: BaseException) -> str:
    """The innermost cause that says something."""
    said, current = exc.__class__.__name__, exc.__cause__ or exc.__context__
    said = str(exc) or said
    while current is not None:
        said = str(current) or said
        current = current.__cause__ or current.__context__
    return " ".join(said.split())[:200]
