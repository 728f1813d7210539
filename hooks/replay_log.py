"""The host calls of a run and their answers, kept so that the run can be repeated in another
process without calling the host again.

The reason: one line of JavaScript can end a worker process, and the other runs in it then start
again without calling a model or a search source twice.
"""

from __future__ import annotations

LONGEST = 16 * 1024 * 1024  # characters of requests and answers kept for one run


class ReplayLog:
    """Requests and answers in order, with the position that a repeated run has reached.

    `complete` becomes false once a call had an effect outside or the entries grew too long to
    keep: the run cannot be repeated then.
    """

    def __init__(self) -> None:
        self.complete = True
        self._entries: list[tuple[str, str]] = []
        self._position = self._length = 0

    def rewind(self) -> None:
        """Start a repeated run."""
        self._position = 0

    def replay(self, request: str) -> str | None:
        """Return the kept answer to the next request; None when there is none. A request that
        differs from the kept one drops the rest: the run took another path."""
        if self._position < len(self._entries):
            known, answer = self._entries[self._position]
            if known == request:
                self._position += 1
                return answer
            del self._entries[self._position :]
        return None

    def add(self, request: str, answer: str, *, effect: bool) -> None:
        """Keep an answer, unless the call had an `effect` outside."""
        self._length += len(request) + len(answer)
        if effect or self._length > LONGEST:
            self.complete = False
        if self.complete:
            self._entries.append((request, answer))
            self._position = len(self._entries)
        else:
            self._entries.clear()
