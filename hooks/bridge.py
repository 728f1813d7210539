"""The memory that JavaScript and its host share, seen from the host: requests one way, answers the
other.

    header, eight 32-bit integers
        0  what this is: from JavaScript 1 a piece of a request, more follow; 2 its last piece; 3
        the answer's next piece, please
                         from the host 0 done; 1 the run was ended
        1  UTF-16 units in this piece 2  units still to come 3  number of the last request, written
        by JavaScript when its last piece is there 4  number of the last answer, written by the host
        when its first piece is there, or the run was ended 5  1 while the host looks for requests:
        JavaScript need not call it at once 6  1 when JavaScript has looked for the answer in vain 7
        1 when JavaScript will call the host, or its end be told: no request will be found by
        looking
    text    UTF-16, little endian, from byte 32

Owns what is written where, and how V8's thread waits; when, and on which thread, is the engine's
business.
"""

from __future__ import annotations

import threading
from typing import Protocol

HEADER_BYTES = 32
MORE, CALL, FETCH = 1, 2, 3
DONE, STOPPED = 0, 1

_WHAT, _UNITS, _LEFT, _ASKED, _ANSWERED, _LOOKING, _LOOKED, _CALLING = range(8)


class Waiting(Protocol):
    """How V8's thread waits for an answer; each `wake`, and each answer that comes this way, ends
    one `wait`."""

    def wait(self) -> bytes | None:
        """The answer, in UTF-16, little endian; None when woken."""
        ...

    def wake(self) -> None: ...


class Locked:
    """Waiting for a thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        self._lock.acquire()

    def wake(self) -> None:
        self._lock.release()


class Bridge:
    """`memory` is writable and has room for the header and some text. Calls must not overlap."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._head = memory[:HEADER_BYTES].cast("i")
        self._request = bytearray()
        self._answer, self._sent = b"", 0
        self.taken = 0  # number of the request that was taken last

    @property
    def what(self) -> int:
        return self._head[_WHAT]

    @property
    def asks(self) -> bool:
        """Whether there is a request that was not taken."""
        return self._head[_ASKED] != self.taken

    @property
    def looked(self) -> bool:
        """Whether JavaScript has looked for the answer, and will not do so again."""
        return bool(self._head[_LOOKED])

    @property
    def calling(self) -> bool:
        """Whether JavaScript leaves no request to be found."""
        return bool(self._head[_CALLING])

    def keep_piece(self) -> None:
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        self._head[_WHAT] = DONE

    def take(self) -> str:
        """The request, with the pieces kept before."""
        self.taken = self._head[_ASKED]
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * self._head[_UNITS]]
        text = self._request.decode("utf-16-le", "replace")
        self._request.clear()
        return text

    def answer(self, data: bytes) -> None:
        """Write the first piece of it; `announce` is still to come."""
        self._answer, self._sent = data, 0
        self._head[_CALLING] = 0
        self.write_piece()

    def write_piece(self) -> None:
        start, room = self._sent, len(self._memory) - HEADER_BYTES
        stop = self._sent = min(start + room, len(self._answer))
        self._memory[HEADER_BYTES : HEADER_BYTES + stop - start] = self._answer[start:stop]
        self._head[_UNITS], self._head[_LEFT] = (stop - start) // 2, (len(self._answer) - stop) // 2
        self._head[_WHAT] = DONE

    def announce(self) -> None:
        """Tell JavaScript that the request that was taken last is answered."""
        self._head[_ANSWERED] = self.taken

    def look(self, looking: bool) -> None:
        """Tell JavaScript whether the host looks for requests."""
        self._head[_LOOKING] = looking

    def stop(self) -> None:
        """Tell JavaScript that the run was ended."""
        self._head[_WHAT] = STOPPED
        self._head[_ANSWERED] = self._head[_ASKED]
