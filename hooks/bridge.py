"""The memory that JavaScript and its host share, for requests and their answers.

    header: three 32-bit integers
        0  written by JavaScript: 1 a piece of a request, more follow; 2 its last piece;
                                  3 asks for the next piece of the answer
           written by the host:   0 done; 1 the run was ended
        1  number of UTF-16 code units in this piece
        2  number of units of the text that follow in later pieces
    text: UTF-16, little endian, from byte 12

Texts that are longer than the memory are transferred in pieces. `hooks.engine` decides when the
functions below are called, and on which thread; `prelude.js` is JavaScript's side.
"""

from __future__ import annotations

HEADER_BYTES = 12
REQUEST_PIECE, LAST_REQUEST_PIECE, NEXT_ANSWER_PIECE = 1, 2, 3
DONE, STOPPED = 0, 1

_KIND, _UNITS, _REMAINING = range(3)


class Bridge:
    """The host's side of the shared memory, which is writable and longer than the header. Calls
    must not overlap."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._head = memory[:HEADER_BYTES].cast("i")
        self._request = bytearray()
        self._answer, self._sent = b"", 0

    @property
    def kind(self) -> int:
        """Return the kind of the current call: one of the three constants."""
        return self._head[_KIND]

    def append_piece(self) -> None:
        """Append a piece to the request, of which more pieces follow."""
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        self._head[_KIND] = DONE

    def take_request(self) -> str:
        """Append the last piece to the request, and return the whole request."""
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        text = self._request.decode("utf-16-le", "replace")
        self._request.clear()
        return text

    def write_answer(self, data: bytes) -> None:
        """Write the first piece of an answer. `data` is UTF-16, little endian."""
        self._answer, self._sent = data, 0
        self.write_piece()

    def write_piece(self) -> None:
        """Write the next piece of the answer."""
        start, room = self._sent, len(self._memory) - HEADER_BYTES
        stop = self._sent = min(start + room, len(self._answer))
        self._memory[HEADER_BYTES : HEADER_BYTES + stop - start] = self._answer[start:stop]
        self._head[_UNITS] = (stop - start) // 2
        self._head[_REMAINING] = (len(self._answer) - stop) // 2
        self._head[_KIND] = DONE

    def write_stopped(self) -> None:
        """Report to JavaScript that the run was ended."""
        self._head[_KIND] = STOPPED
