"""The memory that JavaScript and its host share, for requests and their answers.

    header, three 32-bit integers
        0  from JavaScript: 1 a piece of a request, more follow; 2 its last piece;
                            3 send the next piece of the answer
           from the host:   0 done; 1 the run was ended
        1  UTF-16 units in this piece
        2  units still to come
    text    UTF-16, little endian, from byte 12

Defines the layout and the pieces of longer texts. The engine decides when it is called, and on
which thread. `prelude.js` is the other side.
"""

from __future__ import annotations

HEADER_BYTES = 12
MORE, CALL, FETCH = 1, 2, 3
DONE, STOPPED = 0, 1

_WHAT, _UNITS, _LEFT = range(3)


class Bridge:
    """The host's side of the buffer. `memory` is writable and has room for the header and some
    text. Calls must not overlap."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._head = memory[:HEADER_BYTES].cast("i")
        self._request = bytearray()
        self._answer, self._sent = b"", 0

    @property
    def what(self) -> int:
        """The kind of the current call: MORE, CALL or FETCH."""
        return self._head[_WHAT]

    def keep_piece(self) -> None:
        """Keep a piece of a request; more follow."""
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        self._head[_WHAT] = DONE

    def take(self) -> str:
        """Return the request: the pieces kept before and the last one."""
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        text = self._request.decode("utf-16-le", "replace")
        self._request.clear()
        return text

    def answer(self, data: bytes) -> None:
        """Write the first piece of an answer, UTF-16 in little endian."""
        self._answer, self._sent = data, 0
        self.write_piece()

    def write_piece(self) -> None:
        """Write the next piece of the answer."""
        start, room = self._sent, len(self._memory) - HEADER_BYTES
        stop = self._sent = min(start + room, len(self._answer))
        self._memory[HEADER_BYTES : HEADER_BYTES + stop - start] = self._answer[start:stop]
        self._head[_UNITS], self._head[_LEFT] = (stop - start) // 2, (len(self._answer) - stop) // 2
        self._head[_WHAT] = DONE

    def stop(self) -> None:
        """Report to JavaScript that the run was ended."""
        self._head[_WHAT] = STOPPED
