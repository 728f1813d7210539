"""Writes a turn for readers with `view=blocks`: its events as they are, and between them the
Markdown of the answer so far as blocks."""

from __future__ import annotations

import time
from collections.abc import Sequence

from groundhook.core.json_lines import line_bytes
from groundhook.core.types.events import StreamEnd, Text
from groundhook.host.output.dialects.blocks import Tail, blocks_from
from groundhook.host.output.dialects.kept import Keeping, step
from groundhook.host.server.turns.running import Logged
from groundhook.host.server.turns.sse import NativeWriter

SHORTEST_S = 0.04  # between two pieces
SHARE = 8  # parsing takes at most one part of so many of the time


class BlocksWriter:
    """Writes the events after `after`, and blocks from the beginning. A piece replaces all blocks
    from its `from` on; the last one comes before `stream_end`."""

    def __init__(self, native: NativeWriter, after: int) -> None:
        self._native, self._after = native, after
        self._state, self._tail = Keeping(), Tail()
        self._due = 0.0  # on the clock of performance
        self.behind = False

    def __call__(self, events: Sequence[Logged]) -> bytes:
        parts: list[bytes] = []
        for logged in events:
            seen = self._native.audience.of(logged.event)
            if seen is not None:
                self._state = step(self._state, seen)
            if isinstance(seen, Text):
                self.behind = True
            elif isinstance(seen, StreamEnd):
                parts.append(self.end())
            if logged.seq > self._after:
                parts.append(self._native((logged,)))
        if self.behind and time.perf_counter() >= self._due:
            parts.append(self._blocks())
        return b"".join(parts)

    def end(self) -> bytes:
        return self._blocks() if self.behind else b""

    def _blocks(self) -> bytes:
        began = time.perf_counter()
        first = self._tail.blocks
        blocks, self._tail = blocks_from(self._state.answer, self._tail)
        self.behind = False
        body = line_bytes({"type": "blocks", "from": first, "blocks": blocks})
        now = time.perf_counter()
        self._due = now + max(SHORTEST_S, (now - began) * SHARE)
        return b"event: blocks\ndata: %b\n" % body if self._native.sse else body
