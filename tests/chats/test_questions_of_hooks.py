"""A hook asks the user a question: the turn ends, the answer is the next message of the chat, Create
goes on with it, and nothing that it did before is done again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import anyio
import pytest
from pydantic import BaseModel

from groundhook import AlreadyDecided, ChatBusy, UnknownName, UsageError
from groundhook.core.types.events import (
    ApprovalRequired,
    Event,
    Failed,
    HookMessage,
    ToolResult,
    Warned,
)
from groundhook.core.types.tools import Tool
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.kept import events_of, kept
from groundhook.host.server.api.chats import as_seen_by
from tests.conftest import MakeApp
from tests.parts.conversations import ADA, opened, read
from tests.parts.tool_turns import called
from tests.parts.turns import app_with, end, scripted

E = TypeVar("E")
BOB = {"tenant_id": "acme", "user_id": "bob"}
YEAR = """
function Create(ctx, messages) {
  const count = ctx.memory.user.Incr("asked");
  const orders = ctx.tools.Call("orders", { order: 3 }).result;
  ctx.Send("One moment.");
  const year = ctx.Ask(`Of which year? (${orders})`, ["2023", "2024"]);
  const last = messages[messages.length - 1].content;
  if (year === null) return { answer: "Then I cannot say." };
  ctx.memory.user.Set("year", year);
  return { answer: `${last}: ${year}, ${count} of ${ctx.memory.user.Get("asked")}` };
}
"""


class Order(BaseModel):
    order: int


def tools(ran: list[int], *, confirm: bool = False) -> list[Tool]:
    def run(arguments: Order) -> str:
        ran.append(arguments.order)
        return "two orders"

    about = {"description": "Orders", "arguments": Order, "run": run}
    return [Tool(name="orders", confirm=confirm, **about)]  # type: ignore[arg-type]


def of(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("given", "text"), [("2024", "How many?: 2024, 1 of 1"), (None, "Then I cannot say.")]
)
async def test_create_goes_on_with_the_answer_and_does_nothing_twice(
    make_app: MakeApp, given: str | None, text: str
) -> None:
    ran: list[int] = []
    async with (
        opened(app_with(make_app, index_ts=YEAR), tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        asked = await read(chat.send("How many?"))
        [waiting] = of(asked, ApprovalRequired)
        assert (waiting.question, waiting.choices) == (
            "Of which year? (two orders)",
            ("2023", "2024"),
        )
        assert end(asked).content == waiting.question  # clients that know no questions show it
        assert end(asked).finish_reason == "approval_required"
        stored = (await chat.messages())[-1].answer
        assert stored is not None
        assert stored == kept(asked) == kept(events_of(stored))

        answered = await read(chat.decide(given is not None, reason=given or ""))
        assert end(answered).content == text
        assert of(answered, HookMessage) == []
        texts = [message.text for message in await chat.messages()]
        assert texts == ["How many?", waiting.question, given or "no answer", text]
        again = await read(chat.send("And now?"))  # another question asks anew
        assert len(of(again, ApprovalRequired)) == 1
    assert ran == [3, 3]


async def test_the_model_reads_the_question_and_its_answer(make_app: MakeApp) -> None:
    hook = 'function Create(ctx) { ctx.Ask("Which tea?"); }'
    model = scripted("Assam it is.")
    async with (
        opened(app_with(make_app, index_ts=hook), model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("Brew tea"))
        answered = await read(chat.decide(True, reason="Assam"))
    assert end(answered).content == "Assam it is."
    said = [message.text for message in model.calls[0].messages if message.role != "system"]
    assert [text.rpartition("\n")[2] for text in said] == ["Brew tea", "Which tea?", "Assam"]
    assert model.calls[0].question == "Brew tea"


NEXT = """
let of = "";
function Create(ctx, messages) {
  of = ctx.tools.Call("orders", { order: 3 }).result + ": " + messages[messages.length - 1].content;
  return { metadata: { of } };
}
function Next(ctx, payload) {
  const seen = ctx.memory.user.Incr("seen");
  const save = ctx.Ask(`Save "${payload.completion.content}"?`);
  if (save === null) return { data: "not saved" };
  const name = ctx.Ask("Under which name?");
  ctx.Send(`Saved as ${name}: ${payload.completion.content}`);
  return { data: { of, seen, from: payload.messages[payload.messages.length - 1].content } };
}
"""


async def test_next_goes_on_with_the_answer_and_no_model_is_asked_again(make_app: MakeApp) -> None:
    ran: list[int] = []
    model = scripted("Two minutes.")
    app = app_with(make_app, index_ts=NEXT)
    async with (
        opened(app, model=model, tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        asked = await read(chat.send("How long?"))
        assert end(asked).content == 'Two minutes.\n\nSave "Two minutes."?'
        assert end(asked).finish_reason == "approval_required"
        assert [each.question for each in of(asked, ApprovalRequired)] == ['Save "Two minutes."?']
        stored = (await chat.messages())[-1].answer
        assert stored is not None
        assert stored == kept(asked) == kept(events_of(stored))
    async with (  # another process
        opened(app, model=model, tools=tools(ran)) as host,
        host.chat("a", identity=ADA, chat_id=chat.id) as again,
    ):
        second = await read(again.decide(True))
        assert end(second).content == "Under which name?"
        third = await read(again.decide(True, reason="tea"))
        [sent] = of(third, HookMessage)
        assert sent.message["props"]["content"] == "Saved as tea: Two minutes."
        data = {"of": "two orders: How long?", "seen": 1, "from": "How long?"}
        assert (end(third).data, end(third).content) == (data, "")
        assert [*of(third, Warned), *of(third, Failed)] == []
        await read(again.send("And white tea?"))
    assert (len(model.calls), ran) == (2, [3, 3])


async def test_next_is_told_of_an_answer_that_was_declined(make_app: MakeApp) -> None:
    async with (
        opened(app_with(make_app, index_ts=NEXT), model=scripted("Two."), tools=tools([])) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("How long?"))
        assert end(await read(chat.decide(False))).data == "not saved"


async def test_next_asks_after_a_call_that_the_user_approved_and_not_beside_one(
    make_app: MakeApp,
) -> None:
    hook = """
    function Create(ctx, messages) { ctx.memory.user.Push("had", [messages.length]); }
    function Next(ctx, payload) {
      try { return { data: ctx.Ask("Anything else?") }; }
      catch (error) { return { data: error.message }; }
    }"""
    ran: list[int] = []
    model = scripted(called(("orders", {"order": 3})), "Done.")
    async with (
        opened(app_with(make_app, index_ts=hook), model=model, tools=tools(ran, confirm=True)) as h,
        h.chat("a", identity=ADA) as chat,
    ):
        first = await read(chat.send("Cancel it"))
        assert "wait for the user's approval" in end(first).data
        second = await read(chat.decide(True))
        assert [each.question for each in of(second, ApprovalRequired)] == ["Anything else?"]
        third = await read(chat.decide(True, reason="no"))
        assert (end(third).data, ran, of(third, Failed)) == ("no", [3], [])


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("if (ctx.metadata.again) ctx.memory.user.Get('x')", "Create called ctx.memory"),
        ("if (!ctx.metadata.again) ctx.memory.user.Get('x')", "Create ended where it called"),
    ],
)
async def test_create_on_another_path_than_before_a_question_of_next_is_an_error(
    make_app: MakeApp, path: str, reason: str
) -> None:
    hook = f"function Create(ctx) {{ {path}; }} function Next(ctx) {{ ctx.Ask('?'); }}"
    package = {"name": "A", "connector": "script", "hooks": {"on_error": "fail"}}
    async with (
        opened(app_with(make_app, json.dumps(package), index_ts=hook), model=scripted("A")) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("?"))
        answered = await read(chat.decide(True, options={"metadata": {"again": True}}))
    assert reason in of(answered, Failed)[0].message


async def test_one_question_follows_another_and_a_tool_is_approved_behind_them(
    make_app: MakeApp,
) -> None:
    hook = """
    function Create(ctx) {
      const names = [ctx.Ask("First name?"), ctx.Ask("Last name?")];
      ctx.memory.user.Push("names", [names.join(" ")]);
      ctx.Send(ctx.memory.user.Get("names").join());
    }"""
    ran: list[int] = []
    model = scripted(called(("orders", {"order": 3})), "Done.")
    async with (
        opened(app_with(make_app, index_ts=hook), model=model, tools=tools(ran, confirm=True)) as h,
        h.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("Who am I?"))
        second = await read(chat.decide(True, reason="Ada"))
        assert [each.question for each in of(second, ApprovalRequired)] == ["Last name?"]
        third = await read(chat.decide(True, reason="Byron"))
        assert [each.message["props"]["content"] for each in of(third, HookMessage)] == [
            "Ada Byron"
        ]
        [call] = of(third, ApprovalRequired)
        assert (call.name, call.question, ran) == ("orders", "", [])
        fourth = await read(chat.decide(True))
        assert (end(fourth).content, ran) == ("Done.", [3])
        # Create was asked twice in all, and its list has one name.
        assert of(fourth, HookMessage) == []
        assert of(fourth, Warned) == []


async def test_an_answer_counts_once_and_only_one_of_the_choices(make_app: MakeApp) -> None:
    ran: list[int] = []
    async with opened(app_with(make_app, index_ts=YEAR), tools=tools(ran)) as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("How many?"))
            waiting = (await chat.messages())[-1]
            for wrong in ("2022", "yes", ""):
                with pytest.raises(UsageError, match="none of the choices"):
                    await read(chat.decide(True, reason=wrong))
        results: list[str] = []

        async def answer() -> None:
            async with host.chat("a", identity=ADA, chat_id=chat.id) as own:
                try:
                    await read(own.decide(True, message=waiting, reason=" 2023 "))
                    results.append("ran")
                except (AlreadyDecided, ChatBusy, UsageError) as exc:
                    results.append(exc.code)

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(answer)
        assert results.count("ran") == 1
    assert ran == [3]


async def test_another_person_cannot_answer(make_app: MakeApp) -> None:
    async with opened(app_with(make_app, index_ts=YEAR), tools=tools([])) as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("How many?"))
            waiting = (await chat.messages())[-1]
        with pytest.raises(UnknownName):
            async with host.chat("a", identity=BOB, chat_id=chat.id):
                pass
        async with host.chat("a", identity=BOB) as own:
            with pytest.raises(UnknownName):
                await read(own.decide(True, message=waiting, reason="2023"))


async def test_readers_do_not_see_what_create_did_before(make_app: MakeApp) -> None:
    async with (
        opened(app_with(make_app, index_ts=YEAR), tools=tools([])) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        asked = await read(chat.send("How many?"))
        stored = (await chat.messages())[-1]
        await read(chat.decide(True, reason="2023"))
        decision = (await chat.messages())[-2]
    assert "ctx.memory" in of(asked, ApprovalRequired)[0].model_dump_json()
    for author in (False, True):
        audience = Audience(author=author)
        shown = [audience.of(event) for event in asked]
        sent = [event.model_dump_json() for event in shown if isinstance(event, ApprovalRequired)]
        for text in (*sent, *(as_seen_by(each, audience).model_dump_json() for each in (stored,))):
            assert "Of which year?" in text
            assert "ctx.memory" not in text
    assert "ctx.memory" not in decision.model_dump_json()


async def test_another_path_than_before_the_question_is_an_error_and_repeats_nothing(
    make_app: MakeApp,
) -> None:
    hook = """
    function Create(ctx) {
      ctx.tools.Call("orders", { order: ctx.metadata.order });
      ctx.Ask("Sure?");
    }"""
    ran: list[int] = []
    package = {"name": "A", "connector": "script", "hooks": {"on_error": "fail"}}
    async with (
        opened(app_with(make_app, json.dumps(package), index_ts=hook), tools=tools(ran)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("?", options={"metadata": {"order": 1}}))
        answered = await read(chat.decide(True, options={"metadata": {"order": 2}}))
    [failed, *_] = of(answered, Failed)
    assert "called ctx.tools.Call where it called ctx.tools.Call before" in failed.message
    assert ran == [1]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('ctx.Ask("")', "the question must be text"),
        ('ctx.Ask("?", "yes")', "choices must be a list"),
        ('ctx.Ask("?", ["a", "a"])', "different texts"),
        ('ctx.Ask("x".repeat(5000))', "at most 4000"),
        (
            'for (let i = 0; i < 12; i++) ctx.memory.user.Set("k", "x".repeat(100000)); '
            'ctx.Ask("?")',
            "ask first",
        ),
    ],
)
async def test_wrong_questions_throw(make_app: MakeApp, script: str, reason: str) -> None:
    hook = f"""
    function Create(ctx) {{
      try {{ {script}; }} catch (error) {{ return {{ answer: error.message }}; }}
    }}"""
    async with (
        opened(app_with(make_app, index_ts=hook)) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        assert reason in end(await read(chat.send("?"))).content


async def test_where_nobody_can_be_asked_the_hook_is_told(make_app: MakeApp) -> None:
    hook = """
    function Create(ctx) {
      try { ctx.Ask("?"); } catch (error) { return { answer: error.message }; }
    }
    function Next(ctx) {
      try { ctx.Ask("?"); } catch (error) { return { data: error.message }; }
    }"""
    async with (
        opened(app_with(make_app, index_ts=hook)) as host,
        host.stream("a", "?") as events,
    ):
        seen: list[Any] = [event async for event in events]
    assert "only in a kept conversation" in end(seen).content
    assert "only in a kept conversation" in end(seen).data


async def test_a_question_is_answered_in_another_process(make_app: MakeApp) -> None:
    ran: list[int] = []
    app = app_with(make_app, index_ts=YEAR)
    async with opened(app, tools=tools(ran)) as host, host.chat("a", identity=ADA) as chat:
        await read(chat.send("How many?"))
    async with (
        opened(app, tools=tools(ran)) as host,
        host.chat("a", identity=ADA, chat_id=chat.id) as again,
    ):
        answered = await read(again.decide(True, reason="2023"))
    assert end(answered).content == "How many?: 2023, 1 of 1"
    assert (ran, of(answered, ToolResult)) == ([3], [])
