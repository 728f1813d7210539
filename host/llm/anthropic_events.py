"""The events of an answer, as the `anthropic` SDK reads them, within bounds: the SDK parses JSON of
any depth, and makes objects of all values in it, a tenth of a millisecond each."""

from __future__ import annotations

from typing import Any

from anthropic import AsyncStream

from groundhook.host.llm.server_events import EventDecoder


class PlainStream(AsyncStream[object]):
    """The events of an answer as plain values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._decoder: Any = EventDecoder()
