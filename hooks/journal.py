"""The calls of Create and Next in order, kept with the question that one of them asks the user, so
that it goes on behind the question in another turn, and perhaps another process, and does nothing
twice. Of a question of Next the answer that Next was given is kept too, since no model writes the
same one again.
"""

from __future__ import annotations

import json
from typing import Any

from groundhook.core.errors import HookError, Place
from groundhook.core.hook_engine import HookTurn
from groundhook.core.types.events import HookJournal
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.wire import from_v8

ASK = "ctx.Ask"
NEXT = "Next"  # the entry between the calls of both hooks, whose answer is the argument of Next
LONGEST = 1024 * 1024  # characters of requests and answers: each is stored with the answer


class Journal:
    """The calls of an earlier turn, with the position that the hook has reached in them, and those
    that follow. `kept_payload` is the argument that Next had before it asked; None where it did not
    ask."""

    def __init__(self, turn: HookTurn) -> None:
        given = list(turn.journal)
        if given and turn.reply is not None:
            given[-1] = (given[-1][0], f"={json.dumps(turn.reply.text)}")
        self.has_question = bool(given)  # whether the user was asked in an earlier turn
        at = next((n for n, (request, _) in enumerate(given) if request == NEXT), len(given))
        self.kept_payload: dict[str, Any] | None = None
        if at < len(given):
            self.kept_payload = from_v8(given[at][1])
        self._created = given[:at]
        self._of_next = given[at + 1 :]
        self._payload: dict[str, Any] | None = None  # set while Next runs
        self._entries = self._created
        self._position = 0
        self._length = sum(map(_length, given))

    @property
    def _hook(self) -> str:
        return "Create" if self._payload is None else NEXT

    def begin_next(self, payload: dict[str, Any], place: Place) -> None:
        """Go on with the calls of Next. Raises HookError when Create has made fewer calls than
        before the question."""
        if self.kept_payload is not None and self._position < len(self._entries):
            raise self._error("ended", place)
        self._payload = payload
        self._entries = self._of_next
        self._position = 0

    def kept_answer(self, call: HostCall, request: str, place: Place) -> str | None:
        """Return the answer of the earlier turn to a call; None when it is to be made. Raises
        HookError when the hook has taken another path than before its question."""
        if call.again:
            return None
        if self._position == len(self._entries):
            if self.kept_payload is not None and self._payload is None:
                raise self._error(f"called {call.js}", place)
            return None
        known, answer = self._entries[self._position]
        if known != request:
            raise self._error(f"called {call.js}", place)
        self._position += 1
        return answer

    def _error(self, did: str, place: Place) -> HookError:
        instead = "ended"
        if self._position < len(self._entries):
            known, _ = self._entries[self._position]
            instead = f"called {known.partition(chr(10))[0]}"
        return HookError(
            f"{self._hook} {did} where it {instead} before the user was asked, or with other"
            " arguments; nothing was repeated",
            place=place,
            hint="before ctx.Ask, let no time, random number or new search result decide what is"
            " called",
        )

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
        if self._length <= LONGEST and sum(map(_length, self._given_to_next())) <= LONGEST:
            return ""
        so_far = "the calls before it" if self._payload is None else "the answer and these calls"
        return f"{ASK}: {so_far} are longer than {LONGEST // 1024} KB; ask first"

    def with_question(self, request: str) -> HookJournal:
        """Return the calls so far with the question as the last."""
        if self._payload is None:
            return (*self._created, (request, ""))
        return (*self._created, *self._given_to_next(), *self._of_next, (request, ""))

    def _given_to_next(self) -> HookJournal:
        return () if self._payload is None else ((NEXT, json.dumps(self._payload)),)

    @property
    def calls(self) -> HookJournal:
        """The calls of Create so far."""
        return tuple(self._created)


def _length(entry: tuple[str, str]) -> int:
    return sum(map(len, entry))
