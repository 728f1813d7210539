"""SQLite and PostgreSQL give the same answers to the same random histories of two owners, and
nothing that one owner does changes what the other reads."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.app_settings import StoreSettings
from groundhook.core.errors import HostError
from groundhook.core.types.chats import Chat, ChatMessage, ChatOwner
from groundhook.host.chats.ports import ChatChange, ChatPage, ChatStore, EndedTurn, NewTurn
from tests.chats.conftest import Place
from tests.loopback.databases import own_schema

OWNERS = (ChatOwner("acme", "ada"), ChatOwner("acme", "bob"))
KINDS = ("make", "ask", "again", "end", "undo", "lost", "leaf", "title", "delete", "log", "stop")
STEPS = st.tuples(st.sampled_from(KINDS), st.integers(0, 1), st.integers(0, 2), st.integers(0, 5))


class History:
    """One store under a history; ids are counted, so that they are the same in every store."""

    def __init__(self, store: ChatStore) -> None:
        self.store = store
        self.messages: list[str] = ["m0"]
        self.turns: list[tuple[str, str, str, str]] = []  # id, chat, question, answer
        self.answers: list[Any] = []

    async def do(self, step: tuple[str, int, int, int], now: int) -> None:
        try:
            answer = await self._do(*step, now)
        except HostError as exc:
            answer = exc.code
        self.answers.append(answer)

    async def _do(self, kind: str, who: int, chat_number: int, pick: int, now: int) -> Any:
        owner, chat = OWNERS[who], f"c{chat_number}"
        message = self.messages[pick % len(self.messages)]
        store = self.store
        match kind:
            case "make":
                return await store.chats.make(owner, Chat(id=chat, assistant_id="a", made_at=now))
            case "ask" | "again":
                return await self._begin(owner, chat, message, now, again=kind == "again")
            case "leaf":
                return await store.chats.change(
                    owner, ChatChange(chat_id=chat, at=now, leaf=message)
                )
            case "title":
                return await store.chats.change(
                    owner, ChatChange(chat_id=chat, at=now, title=f"\x00 {pick}")
                )
            case "delete":
                return await store.chats.delete(owner, chat)
            case "lost":
                return await store.upkeep.lost(now - 3, now + 5)
        if not self.turns:
            return None
        id, of, question, answer = self.turns[pick % len(self.turns)]
        if kind == "undo":
            return await store.conversations.undo(owner, id)
        if kind == "log":
            return await store.logs.append(owner, id, now, b"{}\n{}\n", now + 5)
        if kind == "stop":
            return await store.logs.stop(owner, id)
        kept = ChatMessage(
            id=answer, chat_id=of, parent=question, role="assistant", content=f"at {now}"
        )
        return await store.conversations.end(
            owner, EndedTurn(id=id, answer=kept, state="done", at=now)
        )

    async def _begin(
        self, owner: ChatOwner, chat: str, message: str, now: int, *, again: bool
    ) -> Any:
        question, answer, turn = f"m{now}q", f"m{now}a", f"t{now}"
        sent = ChatMessage(
            id=question,
            chat_id=chat,
            parent="" if message == "m0" else message,
            role="user",
            content=f"Question {now}?",
        )
        begun = await self.store.conversations.begin(
            owner,
            NewTurn(
                id=turn,
                chat_id=chat,
                question=message if again else sent,
                answer_id=answer,
                worker="w",
                at=now,
                lease_until=now + 2,
            ),
        )
        self.messages += [begun.question_id, answer]
        self.turns.append((turn, chat, begun.question_id, answer))
        return begun

    async def seen_by(self, owner: ChatOwner) -> list[Any]:
        """Everything that an owner can read."""
        listed = await self.store.chats.list(owner, ChatPage(archived=None))
        seen: list[Any] = [listed]
        for chat in listed.chats:
            seen.append(await self.store.conversations.path(owner, chat.id))
            seen.append(await self.store.conversations.running(owner, chat.id))
        seen += [list(await self.store.logs.read(owner, turn[0])) for turn in self.turns]
        return seen


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=30))
async def test_both_stores_give_the_same_answers_and_owners_are_apart(
    postgresql: str, steps: Sequence[tuple[str, int, int, int]]
) -> None:
    with ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "chats.sqlite"
        url = stack.enter_context(own_schema(postgresql))
        places = (Place(StoreSettings(), file), Place(StoreSettings(url=url), file))
        histories = [History(stack.enter_context(place.store())) for place in places]
        for now, step in enumerate(steps, 10):
            other = OWNERS[1 - step[1]]
            before = await histories[0].seen_by(other)
            for history in histories:
                await history.do(step, now)
            if step[0] != "lost":  # the operator's, over all owners
                assert (await histories[0].seen_by(other))[: len(before)] == before
        assert histories[0].answers == histories[1].answers
        for owner in OWNERS:
            assert await histories[0].seen_by(owner) == await histories[1].seen_by(owner)
