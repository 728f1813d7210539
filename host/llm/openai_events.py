"""The events of a completion, as the `openai` SDK reads them, with what the SDK does not report:
whether the stream ended with `[DONE]`, the comments between its events, and an answer that is one
JSON object instead of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
from openai import AsyncStream
from openai._streaming import ServerSentEvent

from groundhook.core.json_text import read_json

LARGEST = 16 * 1024 * 1024  # bytes of an answer that is not a stream


class EventStream(AsyncStream[object]):
    """The chunks of an answer. `is_done`: its last event has arrived; `comments` counts those that
    keep the connection open while the model works."""

    is_done = False
    comments = 0

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        if "json" in self.response.headers.get("content-type", ""):
            yield await self._read_object()
            self.is_done = True
            return
        self._decoder: Any = _Decoder(self, self._decoder)
        async for event in super()._iter_events():
            self.is_done = event.data.startswith("[DONE]")
            yield _Event(event=event.event, data=event.data, id=event.id, retry=event.retry)

    async def _read_object(self) -> ServerSentEvent:
        """Return the answer of an endpoint that does not stream, or its error, as an event."""
        body = bytearray()
        async for piece in self.response.aiter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise openai.APIError(
                    f"the answer is larger than {LARGEST} bytes", self.response.request, body=None
                )
        return _Event(data=body.decode())


class _Event(ServerSentEvent):
    """An event whose data the SDK reads as JSON."""

    def json(self) -> Any:
        """Return the value. Raises NotJson."""
        return read_json(self.data, nan=True)


class _Decoder:
    """The SDK's decoder of events, which skips comments, with a count of them."""

    def __init__(self, stream: EventStream, decoder: Any) -> None:
        self._stream, self._decoder = stream, decoder

    def aiter_bytes(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
        events: AsyncIterator[ServerSentEvent] = self._decoder.aiter_bytes(self._count(pieces))
        return events

    async def _count(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            self._stream.comments += piece.startswith(b":") or b"\n:" in piece
            yield piece
