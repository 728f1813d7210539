"""Cutting a stream of bytes into lines, of which none may be larger than was agreed.

Of a line that is larger only the two ends are kept, so that no peer can make the host hold what it
will refuse anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

EDGE = 200  # bytes kept from either end of a line that is too large


@dataclass(frozen=True)
class Oversize:
    """A line that was too large: its first and last bytes, and how many there were."""

    head: bytes
    tail: bytes
    size: int


Line = bytes | Oversize


class Splitter:
    """Takes bytes as they come and gives whole lines, without their ends. `largest` is in bytes."""

    def __init__(self, largest: int) -> None:
        self._largest = max(largest, 2 * EDGE)
        self._kept = bytearray()
        self._head = b""
        self._size = 0

    def feed(self, data: bytes) -> list[Line]:
        """The lines that end in `data`, which may begin in the middle of one and end in the middle
        of another."""
        *ends, rest = data.split(b"\n")
        lines = []
        for piece in ends:
            self._add(piece)
            lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        fitted = self._size <= self._largest
        self._size += len(piece)
        self._kept += piece
        if self._size > self._largest:
            if fitted:
                self._head = bytes(self._kept[:EDGE])
            del self._kept[:-EDGE]

    def _take(self) -> Line:
        kept, size, head = bytes(self._kept), self._size, self._head
        self._kept.clear()
        self._size, self._head = 0, b""
        return Oversize(head, kept, size) if size > self._largest else kept
