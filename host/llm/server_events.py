"""Reads server-sent events: bytes of a response to events, in time that grows with them alone.

The SDKs keep an event of any size, and one of them joins its lines in the square of their number.
Both connectors give their streams this reader instead. The format:
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel

from groundhook.core.json_text import read_json

LARGEST = 16 * 1024 * 1024  # bytes of an event
_AT_ONCE = 64 * 1024  # bytes that are read before others have their turn; a packed piece is larger
_MARK = b"\xef\xbb\xbf"  # of the byte order


@dataclass(frozen=True)
class ServerEvent:
    """An event, with the attributes that the SDKs read."""

    event: str | None
    data: str
    id: str | None = None
    retry: int | None = None

    def json(self) -> Any:
        """Return the value of the data. Raises NotJson."""
        return read_json(self.data, nan=True)


@dataclass
class EventDecoder:
    """The decoder of one response, in the place of an SDK's. `comments` counts those so far, which
    keep the connection open while the model works; an event has at most `largest` bytes."""

    comments: int = 0
    largest: int = LARGEST
    _event: str | None = None
    _data: list[str] = field(default_factory=list)
    _size: int = 0  # bytes of the event that is read

    async def aiter_bytes(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
        """Yield the events. Raises ValueError for one that is too large, and for one that is not
        UTF-8."""
        rest: list[bytes] = []  # of a line whose end has not arrived
        mark = _MARK
        async for piece in pieces:
            for at in range(0, len(piece), _AT_ONCE):
                if at:
                    await anyio.lowlevel.checkpoint()
                lines, begun = _cut(piece[at : at + _AT_ONCE].removeprefix(mark))
                mark = b""
                if lines:
                    for line in b"".join([*rest, lines]).splitlines():
                        if event := self._read(line):
                            yield event
                    rest = []
                rest.append(begun)
                self._refuse_more(self._size + sum(map(len, rest)))
        for line in b"".join(rest).splitlines():
            if event := self._read(line):
                yield event

    def _read(self, line: bytes) -> ServerEvent | None:
        """Return the event that a line ends."""
        if not line:
            event, data = self._event, self._data
            self._event, self._data, self._size = None, [], 0
            return ServerEvent(event, "\n".join(data)) if event or data else None
        if line.startswith(b":"):
            self.comments += 1
            return None
        name, _, value = line.partition(b":")
        if name in (b"data", b"event"):
            self._size += len(line)
            self._refuse_more(self._size)
            text = value.removeprefix(b" ").decode()
            if name == b"event":
                self._event = text or None
            else:
                self._data.append(text)
        return None

    def _refuse_more(self, size: int) -> None:
        if size > self.largest:
            raise ValueError(f"an event is larger than {self.largest} bytes")


def _cut(piece: bytes) -> tuple[bytes, bytes]:
    """Return whole lines, and the beginning of the next. A carriage return at the end may be the
    first half of the end of a line."""
    end = max(piece.rfind(b"\n"), piece.rfind(b"\r", 0, max(0, len(piece) - 1))) + 1
    return piece[:end], piece[end:]
