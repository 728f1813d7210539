"""The events of a completion, as the `openai` SDK reads them, with what the SDK does not report:
whether the stream ended with `[DONE]`, the comments between its events, and an answer that is one
JSON object instead of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
from openai import AsyncStream

from groundhook.host.llm.server_events import LARGEST, EventDecoder, ServerEvent


class EventStream(AsyncStream[object]):
    """The chunks of an answer. `is_done`: its last event has arrived; `comments` counts those that
    keep the connection open while the model works."""

    is_done = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._decoder: Any = EventDecoder()

    @property
    def comments(self) -> int:
        return int(self._decoder.comments)

    async def _iter_events(self) -> AsyncIterator[Any]:
        if "json" in self.response.headers.get("content-type", ""):
            yield await self._read_object()
            self.is_done = True
            return
        async for event in super()._iter_events():
            self.is_done = event.data.startswith("[DONE]")
            yield event

    async def _read_object(self) -> ServerEvent:
        """Return the answer of an endpoint that does not stream, or its error, as an event."""
        body = bytearray()
        async for piece in self.response.aiter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise openai.APIError(
                    f"the answer is larger than {LARGEST} bytes", self.response.request, body=None
                )
        return ServerEvent(None, body.decode())
