"""Splitting of a byte stream into lines with a size limit.

Only the two ends of a line beyond the limit are kept, so that a peer cannot fill the host's
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

EDGE = 200  # bytes kept from either end of a line that is too large


@dataclass(frozen=True)
class Oversize:
    """A line beyond the limit: its first and last EDGE bytes, and its size in bytes."""

    head: bytes
    tail: bytes
    size: int


LineOrOversize = bytes | Oversize


class LineSplitter:
    """Collects bytes and returns whole lines, without line ends. Lines beyond `max_bytes` become
    `Oversize`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max(max_bytes, 2 * EDGE)
        self._kept = bytearray()
        self._head = b""
        self._size = 0

    def feed(self, data: bytes) -> list[LineOrOversize]:
        """Return the lines that end in `data`, which may start and end in the middle of a line."""
        *ends, rest = data.split(b"\n")
        lines = []
        for piece in ends:
            self._add(piece)
            lines.append(self._take_line())
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        fitted = self._size <= self._max_bytes
        self._size += len(piece)
        self._kept += piece
        if self._size > self._max_bytes:
            if fitted:
                self._head = bytes(self._kept[:EDGE])
            del self._kept[:-EDGE]

    def _take_line(self) -> LineOrOversize:
        kept, size, head = bytes(self._kept), self._size, self._head
        self._kept.clear()
        self._size, self._head = 0, b""
        return Oversize(head, kept, size) if size > self._max_bytes else kept
