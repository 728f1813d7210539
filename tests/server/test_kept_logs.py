"""What a server process keeps of turns that are over."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from groundhook import open_host
from groundhook.core.server_settings import StreamSettings
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.events import Event
from groundhook.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.app.host import Host
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.native import Whole
from groundhook.host.server.turns.kept_turns import kept_turn
from groundhook.host.server.turns.running import AT_ONCE, PORTION, ServerTurn, TurnParameters
from groundhook.host.server.turns.sse import SSE, NativeWriter, StreamAnswer, folded
from groundhook.host.server.turns.turns import ServerTurns, open_server_turns
from tests.conftest import MakeApp

APP = {
    "connectors/fixed.conn.yao": '{"type": "scripted", "options": {"script": [{"text": "Yes."}]}}',
    "connectors/waits.conn.yao": json.dumps(
        {
            "type": "scripted",
            "options": {
                "script": [
                    {"tool_calls": [{"name": "none"}], "delay_ms": 50},
                    {"text": "Yes.", "delay_ms": 50},
                ]
            },
        }
    ),
    "assistants/slow/package.yao": '{"name": "Slow", "connector": "waits"}',
    "assistants/plain/package.yao": '{"name": "Plain", "connector": "fixed"}',
    "assistants/prints/package.yao": json.dumps(
        {"name": "Prints", "connector": "fixed", "hooks": {"limits": {"calls": 5000}}}
    ),
    "assistants/prints/index.js": (
        "function Create(ctx) { for (let n = 0; n < 3000; n++) ctx.Send(`${n}`.repeat(30)); }"
    ),
}
OWNER = ChatOwner(user="ada")


class Body:
    """What a request brought."""

    def __init__(self, text: str) -> None:
        self.text = text

    def enter(self, host: Host) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Begin the turn."""
        return host.stream("plain", self.text)


async def begun(turns: ServerTurns) -> tuple[ServerTurn, weakref.ref[Body]]:
    body = Body("Is it so?")
    ask = TurnParameters(owner="user", assistant_id="plain")
    return await turns.begin(ask, body.enter, ExitStack()), weakref.ref(body)


async def test_a_reader_that_came_back_and_left_is_waited_for_anew(make_app: MakeApp) -> None:
    async with (
        open_host(make_app(APP), environment={}) as host,
        open_server_turns(host, StreamSettings(linger_s=0.01), lambda _: None) as turns,
    ):
        ask = TurnParameters(owner="user", assistant_id="slow")
        running = await turns.begin(ask, lambda host: host.stream("slow", "?"), ExitStack())
        with running.reader(0, turns.on_last_reader_gone):
            pass
        # The first wait ends before the second reply of the model, which has a later timer.
        turns.settings = StreamSettings(linger_s=3600)
        with running.reader(0, turns.on_last_reader_gone):
            pass
        await running.wait_until_over()
        assert [each.event.type for each in running.log if each.event.type == "error"] == []


async def test_a_turn_that_is_about_to_begin_when_the_server_stops_is_stopped_as_well(
    make_app: MakeApp,
) -> None:
    stopped, begins = anyio.Event(), []

    @asynccontextmanager
    async def enter(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
        await stopped.wait()  # as for a store that is locked
        async with host.stream("slow", "Is it so?") as events:
            yield events

    async with (
        open_host(make_app(APP)) as host,
        open_server_turns(host, StreamSettings(), lambda _: None) as turns,
    ):

        async def begin() -> None:
            ask = TurnParameters(owner="user", assistant_id="slow", leaving="continue")
            begins.append(await turns.begin(ask, enter, ExitStack()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            await anyio.wait_all_tasks_blocked()
            await turns.drain(0)
            stopped.set()
        with anyio.fail_after(60):
            await begins[0].wait_until_over()
        ends = [logged.event for logged in begins[0].log[-2:]]
        assert [event.type for event in ends] == ["error", "stream_end"]
        assert begins[0].reason == "host_closed"
        with turns.answer_without_log() as scope:
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught


async def test_a_reader_that_takes_nothing_is_closed_and_counted(make_app: MakeApp) -> None:
    closed: list[str] = []

    async def never(*_: Any) -> Any:
        await anyio.sleep_forever()

    async with (
        open_host(make_app(APP), environment={}) as host,
        open_server_turns(host, StreamSettings(slow_s=0.02), lambda _: None) as turns,
    ):
        running, _ = await begun(turns)

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await never()

        answer = StreamAnswer(
            open=lambda: running.reader(0, turns.on_last_reader_gone),
            writer=NativeWriter(Audience(), sse=True),
            media_type=SSE,
            settings=turns.settings,
            headers={},
            on_slow_reader=lambda: closed.append(running.turn_id),
        )
        with anyio.fail_after(60):
            await answer({"type": "http"}, never, send)
        assert closed == [running.turn_id]
        assert not running.readers


async def test_a_turn_that_is_over_keeps_its_events_and_nothing_of_its_request(
    make_app: MakeApp,
) -> None:
    async with (
        open_host(make_app(APP), environment={}) as host,
        open_server_turns(host, StreamSettings(), lambda _: None) as turns,
    ):
        running, body = await begun(turns)
        await running.wait_until_over()
        gc.collect()
        assert turns.get(running.turn_id) is running
        assert [logged.seq for logged in running.log] == list(range(1, running.last + 1))
        assert running.log[-1].event.type == "stream_end"
        assert body() is None


@asynccontextmanager
async def counted() -> AsyncIterator[Callable[[], int]]:
    """How often another task ran."""
    times = 0

    async def others() -> None:
        nonlocal times
        while True:
            times += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        yield lambda: times
        tasks.cancel_scope.cancel()


async def test_others_go_on_while_a_long_log_is_read_and_becomes_one_answer(
    make_app: MakeApp,
) -> None:
    async with open_host(make_app(APP), environment={}) as host:
        asked = host.conversations.stream(
            OWNER,
            "prints",
            [Message(role="user", content="?")],
            identity=Identity(user_id="ada"),
            options=TurnOptions(),
        )
        async with asked as events:
            sent = [event async for event in events]
        async with counted() as times:
            stored = await kept_turn(host, OWNER, sent[0].turn_id)
            assert len(stored.log) == len(sent) > 3000
            assert (read := times()) >= len(sent) // AT_ONCE
            (piece,) = await folded(Whole(), Audience(), stored.log)
            assert times() - read >= len(sent) // AT_ONCE - 1
        assert piece.data.content == "Yes."
        parts: list[int] = []
        with stored.reader(0, lambda _: None) as reader:
            while (news := await reader.next()) is not None:
                parts.append(sum(len(each.json) for each in news))
        assert max(parts) <= PORTION
        assert sum(parts) == stored.log[-1].end > PORTION
