"""The calls of Create in order, kept with the question that it asks the user, so that it goes on
behind the question in another turn, and perhaps another process, and does nothing twice.
"""

from __future__ import annotations

import json

from groundhook.core.errors import HookError, Place
from groundhook.core.hook_engine import HookTurn
from groundhook.core.types.events import HookJournal
from groundhook.hooks.api.row import HostCall

ASK = "ctx.Ask"
LONGEST = 1024 * 1024  # characters of requests and answers: each is stored with the answer


class Journal:
    """The calls of an earlier turn, with the position that Create has reached in them, and those
    that follow."""

    def __init__(self, turn: HookTurn) -> None:
        given = list(turn.journal)
        if given and turn.reply is not None:
            given[-1] = (given[-1][0], f"={json.dumps(turn.reply.text)}")
        self.has_question = bool(given)  # whether the user was asked in an earlier turn
        self._entries = given
        self._position = 0
        self._length = sum(map(_length, given))

    def kept_answer(self, call: HostCall, request: str, place: Place) -> str | None:
        """Return the answer of the earlier turn to a call; None when it is to be made. Raises
        HookError when Create has taken another path than before its question."""
        if call.again or self._position == len(self._entries):
            return None
        known, answer = self._entries[self._position]
        if known != request:
            raise HookError(
                f"Create called {call.js} where it called {known.partition(chr(10))[0]} before it"
                " asked the user, or with other arguments; nothing was repeated",
                place=place,
                hint="before ctx.Ask, let no time, random number or new search result decide what"
                " is called",
            )
        self._position += 1
        return answer

    def add(self, call: HostCall, request: str, answer: str) -> None:
        """Keep a call that was made."""
        if call.again:
            return
        self._length += _length((request, answer))
        if self._length > LONGEST:
            self._entries.clear()  # nobody can be asked any more
        else:
            self._entries.append((request, answer))
        self._position = len(self._entries)

    def why_no_question(self) -> str:
        """Return why the user cannot be asked here; "" if the calls so far can be kept."""
        if self._length <= LONGEST:
            return ""
        return f"{ASK}: the calls before it are longer than {LONGEST // 1024} KB; ask first"

    def with_question(self, request: str) -> HookJournal:
        """Return the calls so far with the question as the last."""
        return (*self._entries, (request, ""))

    @property
    def calls(self) -> HookJournal:
        """The calls so far."""
        return tuple(self._entries)


def _length(entry: tuple[str, str]) -> int:
    return sum(map(len, entry))
