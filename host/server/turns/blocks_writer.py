"""Writes a turn for readers with `view=blocks`: its events as they are, and between them the
Markdown of the answer so far as blocks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from groundhook.core.errors import IngestError
from groundhook.core.json_lines import as_json
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.types.events import StreamEnd, Text
from groundhook.host.output.dialects.blocks import (
    LIGHT,
    Tail,
    _Block,
    parsed,
    parsed_json,
    plain_block,
    weight,
    written,
)
from groundhook.host.output.dialects.kept import Keeping, step
from groundhook.host.server.turns.running import Logged
from groundhook.host.server.turns.sse import NativeWriter

T = TypeVar("T")

log = logging.getLogger("groundhook")

SHORTEST_S = 0.04  # between two pieces
SHARE = 8  # parsing takes at most one part of so many of the time


class BlocksWriter:
    """Writes the events after `after`, and blocks from the beginning. A piece replaces all blocks
    from its `from` on; the last one comes before `stream_end`."""

    def __init__(self, native: NativeWriter, after: int, readers: ReaderPool) -> None:
        self._native, self._after, self._readers = native, after, readers
        self._state, self._tail = Keeping(), Tail()
        self._due = 0.0  # on the clock of performance
        self.behind = False

    async def write(self, events: Sequence[Logged]) -> bytes:
        parts: list[bytes] = []
        for logged in events:
            seen = self._native.audience.of(logged.event)
            if seen is not None:
                self._state = step(self._state, seen)
            if isinstance(seen, Text):
                self.behind = True
            elif isinstance(seen, StreamEnd):
                parts.append(await self.end())
            if logged.seq > self._after:
                parts.append(self._native((logged,)))
        if self.behind and time.perf_counter() >= self._due:
            parts.append(await self._blocks())
        return b"".join(parts)

    async def end(self) -> bytes:
        return await self._blocks() if self.behind else b""

    async def _blocks(self) -> bytes:
        began = time.perf_counter()
        first = self._tail.blocks
        blocks, complete, start = await _json_of(
            self._readers, *written(self._state.answer, self._tail)
        )
        self._tail = Tail(first + complete, self._tail.start + start)
        self.behind = False
        body = b'{"type":"blocks","from":%d,"blocks":%b}\n' % (first, blocks)
        now = time.perf_counter()
        self._due = now + max(SHORTEST_S, (now - began) * SHARE)
        return b"event: blocks\ndata: %b\n" % body if self._native.sse else body


async def parsed_of(
    readers: ReaderPool, text: str, marks: Sequence[tuple[int, str]], addresses: Sequence[str]
) -> tuple[list[_Block], int, int]:
    """As `parsed`, which parses a longer text in a process: a model may write what takes a second.
    A text with which no parser ends is shown as it is written."""
    found = await _parse(readers, parsed, text, marks, addresses)
    return found or ([plain_block(text)], 0, 0)


async def _json_of(
    readers: ReaderPool, text: str, marks: Sequence[tuple[int, str]], addresses: Sequence[str]
) -> tuple[bytes, int, int]:
    """As `parsed_of`, with the blocks as JSON: to take 50,000 of them from a process, and to write
    them here, would hold up other turns for a quarter of a second."""
    found = await _parse(readers, parsed_json, text, marks, addresses)
    return found or (as_json([plain_block(text)]).encode(), 0, 0)


async def _parse(
    readers: ReaderPool,
    parse: Callable[[str, Sequence[tuple[int, str]], Sequence[str]], T],
    text: str,
    marks: Sequence[tuple[int, str]],
    addresses: Sequence[str],
) -> T | None:
    if weight(text) <= LIGHT:
        return parse(text, marks, addresses)
    try:
        return await readers.call(parse, text, marks, addresses)
    except IngestError as exc:
        log.warning("an answer is shown as it is written: %s", exc)
        return None
