"""The host calls of a run and their answers, kept so that the run can start again in another
process and be told the same."""

from __future__ import annotations

LONGEST = 16 * 1024 * 1024  # characters of answers kept for a restart


class Journal:
    """Not `complete` once a call had an effect or the answers have grown too long to keep."""

    def __init__(self) -> None:
        self.complete = True
        self._entries: list[tuple[str, str]] = []
        self._at = self._length = 0

    def rewind(self) -> None:
        self._at = 0

    def answer(self, request: str) -> str | None:
        """What was answered at this point before; None when there is nothing, or the run took
        another way."""
        if self._at < len(self._entries):
            known, answer = self._entries[self._at]
            if known == request:
                self._at += 1
                return answer
            del self._entries[self._at :]
        return None

    def add(self, request: str, answer: str, effect: bool) -> None:
        self._length += len(request) + len(answer)
        if effect or self._length > LONGEST:
            self.complete = False
        if self.complete:
            self._entries.append((request, answer))
            self._at = len(self._entries)
        else:
            self._entries.clear()
