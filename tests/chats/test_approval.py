"""Tools that the user has to approve: the turn ends, the decision is the next message, and no call
runs twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from pydantic import BaseModel

from groundhook import AlreadyDecided, ChatBusy, Host, UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.events import ApprovalRequired, Event, ToolResult, Warned
from groundhook.core.types.tools import Tool
from groundhook.host.output.dialects.kept import events_of, kept
from tests.chats.deciding_process import CHAT, RAN
from tests.conftest import MakeApp
from tests.parts.conversations import ADA, end_leases, opened, read
from tests.parts.tool_turns import called
from tests.parts.turns import app_with, end, scripted

CANCEL = called(("cancel", {"order": 3}))
E = TypeVar("E")
BOB = {"tenant_id": "acme", "user_id": "bob"}


class Order(BaseModel):
    order: int


def tools(ran: list[int], **more: Any) -> list[Tool]:
    def cancel(arguments: Order) -> str:
        ran.append(arguments.order)
        return f"cancelled {arguments.order}"

    def look(arguments: Order) -> str:
        return f"order {arguments.order} is paid"

    return [
        Tool(
            name="cancel",
            description="Cancel an order",
            arguments=Order,
            run=cancel,
            **{"confirm": True, "reads_only": False, **more},
        ),
        Tool(name="look", description="Look at an order", arguments=Order, run=look),
    ]


def of(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def pending(events: Sequence[Event]) -> list[ApprovalRequired]:
    return of(events, ApprovalRequired)


async def test_a_call_waits_and_runs_once_when_it_is_approved(make_app: MakeApp) -> None:
    ran: list[int] = []
    model = scripted(CANCEL, "It is cancelled.")
    async with (
        opened(app_with(make_app), model=model, tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        asked = await read(chat.send("Cancel order 3"))
        [waiting] = pending(asked)
        assert (waiting.name, waiting.arguments) == ("cancel", {"order": 3})
        assert (end(asked).finish_reason, ran) == ("approval_required", [])
        stored = (await chat.messages())[-1].answer
        assert stored is not None
        assert stored == kept(asked) == kept(events_of(stored))

        answered = await read(chat.decide(True))
        assert ran == [3]
        assert end(answered).content == "It is cancelled."
        [result] = of(answered, ToolResult)
        assert (result.call_id, result.result) == (waiting.call_id, "cancelled 3")
        texts = [message.text for message in await chat.messages()]
        assert texts == ["Cancel order 3", "", "Approved: cancel", "It is cancelled."]
    # The model reads its call and the result behind the user's words.
    roles = [message.role for message in model.calls[1].messages if message.role != "system"]
    assert roles[-3:] == ["user", "assistant", "tool"]
    assert model.calls[1].question == "Cancel order 3"


async def test_a_refused_call_does_not_run_and_the_model_is_told_why(make_app: MakeApp) -> None:
    ran: list[int] = []
    model = scripted(CANCEL, "As you wish.")
    async with (
        opened(app_with(make_app), model=model, tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("Cancel order 3"))
        answered = await read(chat.decide(False, reason="not that one"))
    assert ran == []
    [result] = of(answered, ToolResult)
    assert result.error == "the user refused this call: not that one"
    assert "not that one" in model.calls[1].messages[-1].text


async def test_calls_are_decided_one_by_one_and_others_of_the_round_run_at_once(
    make_app: MakeApp,
) -> None:
    ran: list[int] = []
    round = called(("cancel", {"order": 1}), ("look", {"order": 2}), ("cancel", {"order": 3}))
    async with (
        opened(app_with(make_app), round, "Done.", tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        asked = await read(chat.send("?"))
        assert [each.result for each in of(asked, ToolResult)] == ["order 2 is paid"]
        first, second = (each.call_id for each in pending(asked))
        with pytest.raises(UsageError, match="needs a decision too"):
            await read(chat.decide({first: True}))
        with pytest.raises(UsageError, match="no call 'x' waits"):
            await read(chat.decide({first: True, second: False, "x": True}))
        answered = await read(chat.decide({first: True, second: False}))
        assert ran == [1]
        failed = {each.call_id: each.error is not None for each in of(answered, ToolResult)}
        assert failed == {first: False, second: True}


async def test_a_second_decision_and_one_about_a_chat_that_went_on_run_nothing(
    make_app: MakeApp,
) -> None:
    ran: list[int] = []
    app = app_with(make_app)
    async with (
        opened(app, CANCEL, "One.", CANCEL, "Two.", "Three.", tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        with pytest.raises(UsageError):
            await read(chat.decide(True))  # no answer at all
        await read(chat.send("Cancel order 3"))
        first = (await chat.messages())[-1]
        await read(chat.decide(True))
        for again in (chat.decide(True, message=first), chat.decide(False, message=first)):
            with pytest.raises(AlreadyDecided):
                await read(again)
        with pytest.raises(AlreadyDecided):
            await read(chat.decide(True))
        decision = (await chat.messages())[-2]
        with pytest.raises(UsageError, match="made once"):
            await read(chat.regenerate())
        with pytest.raises(UsageError, match="made once"):
            await read(chat.edit(decision, "Approved: everything"))
        assert ran == [3]

        await read(chat.send("And order 3 again"))
        second = (await chat.messages())[-1]
        await read(chat.send("Never mind"))  # the conversation goes on
        with pytest.raises(AlreadyDecided):
            await read(chat.decide(True, message=second))
        assert ran == [3]


async def test_two_decisions_at_the_same_time_run_the_call_once(make_app: MakeApp) -> None:
    ran: list[int] = []
    async with opened(app_with(make_app), CANCEL, "Done.", "Done.", tools=tools(ran)) as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("Cancel order 3"))
        results: list[str] = []

        async def decide() -> None:
            async with host.chat("a", identity=ADA, chat_id=chat.id) as own:
                try:
                    await read(own.decide(True))
                    results.append("ran")
                except (AlreadyDecided, ChatBusy, UsageError) as exc:
                    results.append(exc.code)

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(decide)
        assert results.count("ran") == 1
        assert ran == [3]


async def test_another_person_cannot_decide(make_app: MakeApp) -> None:
    ran: list[int] = []
    async with opened(app_with(make_app), CANCEL, tools=tools(ran)) as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("Cancel order 3"))
            waiting = (await chat.messages())[-1]
        with pytest.raises(UnknownName):
            async with host.chat("a", identity=BOB, chat_id=chat.id):
                pass
        async with host.chat("a", identity=BOB) as own:
            with pytest.raises(UnknownName):
                await read(own.decide(True, message=waiting))
    assert ran == []


async def test_a_decision_about_a_chat_with_a_running_turn_waits_for_nobody(
    make_app: MakeApp,
) -> None:
    ran: list[int] = []
    slow = {"text": "Never", "delay_ms": 3600000}
    async with (
        opened(app_with(make_app), CANCEL, slow, tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("Cancel order 3"))
        waiting = (await chat.messages())[-1]
        async with chat.send("Wait"):
            with pytest.raises(ChatBusy):
                await read(chat.decide(True, message=waiting))
    assert ran == []


async def test_without_a_kept_chat_the_call_fails_and_the_model_says_so(
    make_app: MakeApp,
) -> None:
    ran: list[int] = []
    model = scripted(CANCEL, "I cannot.")
    async with (
        opened(app_with(make_app), model=model, tools=tools(ran)) as host,
        host.stream("a", "Cancel order 3") as events,
    ):
        seen = [event async for event in events]
    assert pending(seen) == []
    assert "needs the user's approval" in str(of(seen, ToolResult)[0].error)
    assert ran == []


async def test_a_call_that_would_fail_is_not_asked_about(make_app: MakeApp) -> None:
    wrong = called(("cancel", {"order": "three"}))
    async with (
        opened(app_with(make_app), wrong, "Sorry.", tools=tools([])) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        seen = await read(chat.send("Cancel order three"))
    assert pending(seen) == []
    assert of(seen, ToolResult)[0].error is not None


@pytest.mark.parametrize("confirm", [["cancel"], ["*"]])
async def test_an_assistants_files_name_the_tools(make_app: MakeApp, confirm: list[str]) -> None:
    ran: list[int] = []
    package = {"name": "A", "connector": "script", "options": {"confirm": confirm}}
    app = app_with(make_app, json.dumps(package))
    round = called(("cancel", {"order": 1}), ("look", {"order": 2}))
    async with (
        opened(app, round, tools=tools(ran, confirm=False)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        seen = await read(chat.send("?"))
    assert [each.name for each in pending(seen)] == ["cancel"]
    assert ran == []


async def test_create_names_the_tools_and_a_misspelt_one_is_reported(make_app: MakeApp) -> None:
    ran: list[int] = []
    hook = 'function Create() { return { confirm: ["cancel", "cancle"] }; }'
    app = app_with(make_app, index_ts=hook)
    async with (
        opened(app, CANCEL, tools=tools(ran, confirm=False)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        seen = await read(chat.send("?"))
    assert [each.name for each in pending(seen)] == ["cancel"]
    [warned] = [each for each in of(seen, Warned) if each.code == "unknown_tool"]
    assert "cancle" in warned.message
    assert "cancel" in warned.hint


async def test_a_function_of_a_package_says_that_it_is_to_be_confirmed(
    make_app: MakeApp,
) -> None:
    script = """
    export const schemas = { cancel: {
      description: "Cancel an order", confirm: true,
      type: "object", properties: { order: { type: "integer" } }, required: ["order"] } };
    export function cancel({ order }: { order: number }) { return "cancelled " + order; }
    """
    app = app_with(make_app, src__tools_ts=script)
    model = scripted(CANCEL, "Done.")
    async with (
        opened(app, model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        seen = await read(chat.send("?"))
        assert [each.name for each in pending(seen)] == ["cancel"]
        assert "confirm" not in line(model.calls[0].tools[0])
        answered = await read(chat.decide(True))
    assert of(answered, ToolResult)[0].result == "cancelled 3"


async def test_a_chat_is_decided_in_another_process(make_app: MakeApp) -> None:
    ran: list[int] = []
    app = app_with(make_app)
    async with (
        opened(app, CANCEL, tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("Cancel order 3"))
    async with (
        opened(app, "Done.", tools=tools(ran)) as host,
        host.chat("a", identity=ADA, chat_id=chat.id) as again,
    ):
        assert end(await read(again.decide(True))).content == "Done."
    assert ran == [3]


async def test_a_process_that_is_killed_while_the_call_runs_does_not_let_it_run_again(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app)
    async with (
        opened(app, CANCEL, tools=tools([])) as host,
        host.chat("a", identity=ADA, chat_id=CHAT, create=True) as chat,
    ):
        await read(chat.send("Cancel order 3"))
        waiting = (await chat.messages())[-1]
    await anyio.to_thread.run_sync(_decide_and_kill, app)
    end_leases(app)
    async with opened(app, "Again.", tools=tools([])) as host:
        await _refuses(host, waiting.id)
    assert (app / RAN).read_text() == "3\n"


def _decide_and_kill(app: Path) -> None:
    command = [sys.executable, "-m", "tests.chats.deciding_process", str(app)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.kill()


async def _refuses(host: Host, id: str) -> None:
    async with host.chat("a", identity=ADA, chat_id=CHAT) as chat:
        with pytest.raises(AlreadyDecided):
            await read(chat.decide(True, message=id))
        last = (await chat.messages())[-1]
        assert last.answer is not None
        assert last.answer.errors[0].code == "turn_lost"
        with pytest.raises(UsageError):
            await read(chat.regenerate())
