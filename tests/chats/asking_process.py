"""A process that asks one question of a kept chat, and that a test kills anywhere in it:

    python -m tests.chats.asking_process APP NUMBER

It writes a line for each step: `opened`, `begun` when the turn was entered, `text` with the number
of words that its reader has, and `ended`. The model takes half a second.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from groundhook import OpenChat, open_host
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.host.testing.canned import CannedSource

ADA = {"tenant_id": "acme", "user_id": "ada"}
CHAT = "c_killed"
WORDS = 40
WORD_S = 0.012


def word(number: int, place: int) -> str:
    """Return a word of the answer to a question."""
    return f"{number}.{place} "


class Slow:
    """A model that writes the words of one answer, with a pause before each."""

    def __init__(self, number: int) -> None:
        self._number = number

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas()

    async def _deltas(self) -> AsyncIterator[Delta]:
        for place in range(WORDS):
            await anyio.sleep(WORD_S)
            yield TextDelta(word(self._number, place))
        yield Finished("stop")


async def ask(app: Path, number: int) -> None:
    """Run one turn of the chat: mostly the next question, else an edit or another answer."""
    empty: Any = {kind: CannedSource({}) for kind in ("kb", "web", "db")}
    async with (
        open_host(app, environment={}, sources=empty, connectors={"script": Slow(number)}) as host,
        host.chat("a", identity=ADA, chat_id=CHAT, create=True) as chat,
    ):
        turn = await _turn(chat, number)
        _report("opened")
        async with turn as events:
            _report("begun")
            words = 0
            async for event in events:
                if event.type == "text":
                    words += event.delta.count(" ")
                    _report(f"text {words}")
        _report("ended")


async def _turn(chat: OpenChat, number: int) -> AbstractAsyncContextManager[Any]:
    path = await chat.messages()
    if number % 5 == 3 and path:
        question = path[-1] if path[-1].role == "user" else path[-2]
        return chat.edit(question, f"Question {number}")
    if number % 5 == 4 and path:
        return chat.regenerate()
    return chat.send(f"Question {number}")


def _report(step: str) -> None:
    sys.stdout.write(f"{step}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(ask, Path(sys.argv[1]), int(sys.argv[2]))
