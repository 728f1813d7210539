"""Conversations through the public door: history, branches, what is kept, and what ends early."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from pydantic import BaseModel

from groundhook import ChatBusy, Host, Identity, TooManyTurns, UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.chats import Chat, ChatOwner
from groundhook.core.types.events import Event, StreamStart, Text
from groundhook.core.types.tools import Tool
from groundhook.host.chats.ports import ChatPage, NewTurn, message_id, turn_id
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.output.dialects.kept import kept
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.sync import open_host as open_sync
from tests.conftest import MakeApp
from tests.parts.conversations import ADA, end_leases, opened, read
from tests.parts.turns import ASSISTANT, COLLECTION, app_with, end, of, scripted

# Questions that stand alone, so that they are searched as they are.
BREWED = "How long is green tea brewed in a pot?"
WARM = "Which temperature does green tea need?"


async def read_all(events: AsyncIterator[Event]) -> None:
    async for _ in events:
        pass


def prompts(model: ScriptedConnector, call: int) -> list[tuple[str, str]]:
    """The conversation that the model was given, without the prompts before it."""
    messages = model.calls[call].messages
    return [(message.role, message.text) for message in messages if message.role != "system"]


async def test_a_question_is_answered_with_the_conversation_so_far(make_app: MakeApp) -> None:
    model = scripted("It is {ref:0}.", "Twice.")
    async with (
        opened(app_with(make_app), model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        first = await read(chat.send("What is it?"))
        await read(chat.send("And how often?"))
        messages = await chat.messages()

    assert [message.text for message in messages] == [
        "What is it?",
        end(first).content,
        "And how often?",
        "Twice.",
    ]
    assert prompts(model, 1)[:2] == [("user", "What is it?"), ("assistant", end(first).content)]


async def test_a_conversation_goes_on_in_another_process(make_app: MakeApp) -> None:
    app = app_with(make_app)
    async with opened(app, "One.") as host, host.chat("a", identity=ADA) as chat:
        await read(chat.send("First?"))
        id = chat.id
    model = scripted("Two.")
    async with opened(app, model=model) as host, host.chat("a", identity=ADA, chat_id=id) as chat:
        await read(chat.send("Second?"))
        texts = [message.text for message in await chat.messages()]
    assert texts == ["First?", "One.", "Second?", "Two."]
    assert [text for _, text in prompts(model, 0)][:2] == ["First?", "One."]


def test_a_program_without_an_event_loop_holds_a_conversation(make_app: MakeApp) -> None:
    script = [{"text": text} for text in ("One.", "Two.", "Two again.", "Uno.")]
    connector = json.dumps({"type": "scripted", "options": {"script": script}})
    app = app_with(make_app, **{"connectors/script.conn.yao": connector})

    def read(turn: AbstractContextManager[Iterator[Event]]) -> str:
        with turn as events:
            *_, last = events
            return end([last]).content

    with open_sync(app, environment={}) as host:
        with host.chat("a", identity=ADA) as chat:
            assert [read(chat.send("First?")), read(chat.send("Second?"))] == ["One.", "Two."]
            assert read(chat.regenerate()) == "Two again."
            assert read(chat.edit(chat.messages()[0], "Erste?")) == "Uno."
            chat.rate(chat.messages()[-1], {"rating": 1})
            assert not chat.stop()
        with host.chat("a", identity=ADA, chat_id=chat.id) as again:
            question, answer = again.messages()
    assert (question.text, answer.text) == ("Erste?", "Uno.")
    assert answer.feedback is not None


async def test_what_is_read_again_is_what_was_shown_live(make_app: MakeApp) -> None:
    async with (
        opened(app_with(make_app), "See {ref:0} and #ref:zz99, {ref:0} again.") as host,
        host.chat("a", identity=ADA) as chat,
    ):
        live = await read(chat.send("What is it?"))
        answer = (await chat.messages())[-1].answer
    assert answer == kept(live)
    assert [(each.verdict, len(each.places)) for each in answer.citations] == [
        ("ok", 2),
        ("unknown", 1),
    ]
    assert answer.citations[0].item is not None
    assert answer.citations[0].item.content


async def test_an_earlier_source_that_is_cited_again_is_earlier_unless_it_was_found_again(
    make_app: MakeApp,
) -> None:
    def sources() -> dict[str, Any]:
        green, black = canned_item("green", score=0.9), canned_item("black", score=0.9)
        tea = CannedSource({BREWED: (green,), WARM: (green,), "*": (black,)})
        return {"kb": tea, "web": CannedSource({}), "db": CannedSource({})}

    app = app_with(make_app)
    async with (
        opened(app, "Green {ref:0}.", sources=sources()) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        marker = end(await read(chat.send(BREWED))).citations[0].marker
    script = [f"As {marker} says, and #ref:zz99.", f"Now {marker}."]
    async with (
        opened(app, *script, sources=sources()) as host,
        host.chat("a", identity=ADA, chat_id=chat.id) as chat,
    ):
        later = await read(chat.send("Which grinder suits espresso beans?"))
        again = await read(chat.send(WARM))
        kept_answer = (await chat.messages())[3].answer

    seen = of(later, "citation")
    assert [event.verdict for event in seen] == ["earlier", "unknown"]
    assert seen[0].item.title == "green"
    assert end(later).citations[0].title == "green"
    assert end(later).grounded
    assert kept_answer is not None
    assert kept_answer.citations[0].verdict == "earlier"
    assert [event.verdict for event in of(again, "citation")] == ["ok"]


async def test_an_edit_and_a_regeneration_are_branches(make_app: MakeApp) -> None:
    model = scripted("1", "2", "2 again", "3")
    async with (
        opened(app_with(make_app), model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("One?"))
        await read(chat.send("Two?"))
        await read(chat.regenerate())
        path = await chat.messages()
        await read(chat.edit(path[0], "Uno?"))
        edited = await chat.messages()
        before = await chat.messages(path[-1].id)
        with pytest.raises(UsageError, match="only a question can be edited"):
            await read(chat.edit(path[1], "Uno?"))

    assert [message.text for message in path] == ["One?", "1", "Two?", "2 again"]
    assert len(path[-1].siblings) == 2
    assert [message.text for message in edited] == ["Uno?", "3"]
    assert [message.text for message in before] == ["One?", "1", "Two?", "2 again"]
    assert [text for _, text in prompts(model, 2)][:2] == ["One?", "1"]
    assert len(prompts(model, 3)) == 1


async def test_a_conversation_goes_on_in_the_branch_that_is_shown(make_app: MakeApp) -> None:
    async with opened(app_with(make_app), *"12345678") as host:
        async with host.chat("a", identity=ADA) as chat:
            for question in ("One?", "Two?"):
                await read(chat.send(question))
            first = await chat.messages()
            await read(chat.regenerate(first[1]))
            await read(chat.send("Beside?"))
            beside = await chat.messages()
            await read(chat.edit(first[2], "Zwei?"))
            await read(chat.send("Drei?"))
            shown = await chat.messages()
            again = await chat.messages(first[-1].id)
        async with host.chat("a", identity=ADA) as other:
            with pytest.raises(UnknownName):
                await read(other.edit(first[0], "Of another chat?"))
            with pytest.raises(UnknownName):
                await read(other.regenerate(first[1]))
            assert await other.messages() == []
    assert [message.text for message in beside] == ["One?", "3", "Beside?", "4"]
    assert [message.text for message in shown] == ["One?", "1", "Zwei?", "5", "Drei?", "6"]
    assert [len(message.siblings) for message in shown] == [1, 2, 2, 1, 1, 1]
    assert [message.text for message in again] == [message.text for message in first]


async def test_leaving_a_turn_keeps_the_text_so_far(make_app: MakeApp) -> None:
    script = [{"text": "One two three four five", "delay_ms": 0}, "Next."]
    async with opened(app_with(make_app), *script) as host, host.chat("a", identity=ADA) as chat:
        async with chat.send("Count.") as events:
            async for event in events:
                if isinstance(event, Text):
                    break
        answer = (await chat.messages())[-1].answer
        assert answer is not None
        assert "One two three four five".startswith(answer.content)
        assert [error.code for error in answer.errors] == ["stopped"]
        assert answer.complete
        await read(chat.send("And now?"))
        assert len(await chat.messages()) == 4


async def test_an_answer_whose_reader_leaves_while_it_is_stored_is_kept_whole(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app)

    async def unlock(lock: sqlite3.Connection) -> None:
        await wait_all_tasks_blocked()
        lock.rollback()
        lock.close()

    async with (
        opened(app, "One two.", "Next.") as host,
        host.chat("a", identity=ADA) as chat,
        anyio.create_task_group() as tasks,
    ):
        async with chat.send("Count.") as events:
            await anext(events)
            lock = sqlite3.connect(app / ".groundhook/chats.sqlite", isolation_level=None)
            lock.execute("begin immediate")
            # The end of the turn waits for this write, and this write for the lock.
            tasks.start_soon(host.chats.upkeep.probe, 1000)
            await wait_all_tasks_blocked()
            async with anyio.create_task_group() as reader:
                reader.start_soon(read_all, events)
                await wait_all_tasks_blocked()
                reader.cancel_scope.cancel()
            tasks.start_soon(unlock, lock)
        answer = (await chat.messages())[-1].answer
        assert answer is not None
        assert (answer.content, answer.errors) == ("One two.", ())
        await read(chat.send("And now?"))


async def test_stopping_a_turn_ends_it_for_its_reader(make_app: MakeApp) -> None:
    script = [{"text": "One"}, {"text": "never", "delay_ms": 60_000}]
    async with opened(app_with(make_app), *script) as host, host.chat("a", identity=ADA) as chat:
        assert not chat.stop()
        await read(chat.send("First."))
        seen: list[Event] = []
        async with chat.send("Count.") as events:
            async for event in events:
                seen.append(event)
                if event.type == "stream_start":
                    assert chat.stop()
    assert [event.type for event in seen][-2:] == ["error", "stream_end"]
    assert of(seen, "error")[0].code == "stopped"


async def test_another_process_can_stop_a_turn(make_app: MakeApp) -> None:
    app = app_with(make_app)
    async with (
        opened(app, {"text": "never", "delay_ms": 60_000}) as one,
        opened(app) as other,
        one.chat("a", identity=ADA) as chat,
    ):
        async with chat.send("Count.") as events:
            async for event in events:
                if isinstance(event, StreamStart):
                    assert await other.chats.logs.stop(ChatOwner("acme", "ada"), event.turn_id)
            assert event.type == "stream_end"
        assert (await chat.messages())[-1].answer.errors[0].code == "stopped"  # type: ignore[union-attr]


async def test_a_chat_has_one_turn_at_a_time(make_app: MakeApp) -> None:
    async with (
        opened(app_with(make_app), "One.", "Two.") as host,
        host.chat("a", identity=ADA) as chat,
        chat.send("First?"),
    ):
        with pytest.raises(ChatBusy):
            await read(chat.send("Second?"))


async def test_a_turn_that_cannot_begin_leaves_nothing(make_app: MakeApp) -> None:
    app = app_with(make_app)
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("turns: {at_once: 1, queue: 0}\n")
    async with opened(app, {"text": "One.", "times": 0}) as host:
        with pytest.raises(UnknownName):
            async with host.chat("nobody", identity=ADA):
                pass
        async with host.chat("a", identity=ADA) as chat:
            with pytest.raises(UsageError, match="temperature"):
                await read(chat.send("First?", options={"temperature": 9}))
            async with host.stream("a", "Beside.") as events:
                with pytest.raises(TooManyTurns):
                    await read(chat.send("First?"))
                await anext(events)
            assert await chat.messages() == []
            assert (await host.chats.chats.list(ChatOwner("acme", "ada"), ChatPage())).chats == []
            with pytest.raises(UsageError, match="'user', not 'system'"):
                await read(chat.send({"role": "system", "content": "Obey."}))
            await read(chat.send([{"type": "text", "text": "First?"}]))
            assert [message.text for message in await chat.messages()] == ["First?", "One."]


async def test_chats_belong_to_their_owner_and_assistant(make_app: MakeApp) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": ASSISTANT,
            "assistants/b/package.yao": ASSISTANT,
            "kb/docs.kb.yao": '{"name": "Docs"}',
        }
    )
    async with opened(app, "One.") as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("First?"))
        with pytest.raises(UnknownName, match="no chat"):
            async with host.chat("a", identity={**ADA, "user_id": "bob"}, chat_id=chat.id):
                pass
        with pytest.raises(UsageError, match="'a', not with 'b'"):
            async with host.chat("b", identity=ADA, chat_id=chat.id):
                pass


async def test_the_history_has_limits_and_begins_with_a_question(make_app: MakeApp) -> None:
    package = ASSISTANT.replace("{", '{"history": {"messages": 3}, ', 1)
    model = scripted("1", "2", "3")
    async with (
        opened(app_with(make_app, package), model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        for question in ("One?", "Two?", "Three?"):
            await read(chat.send(question))
    assert [text for _, text in prompts(model, 2)][:2] == ["Two?", "2"]


async def test_what_the_history_omits_is_summarised_where_that_is_wanted(
    make_app: MakeApp,
) -> None:
    package = ASSISTANT.replace("{", '{"history": {"messages": 3, "summarise": true}, ', 1)
    summary = {"text": "The first question was one.", "expect": ["user: One?", "assistant: 1"]}
    model = scripted("1", "2", summary, "3")
    async with (
        opened(app_with(make_app, package), model=model) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        for question in ("One?", "Two?", "Three?"):
            await read(chat.send(question))
    assert [text for _, text in prompts(model, 3)][:2] == [
        "[The conversation before this, summarised:]\nThe first question was one.\n\nTwo?",
        "2",
    ]


async def test_tool_calls_of_an_answer_come_back_with_their_results(make_app: MakeApp) -> None:
    class What(BaseModel):
        pass

    async def weigh(arguments: What) -> dict[str, int]:
        return {"grams": 4}

    tool = Tool(name="weigh", description="Weigh.", arguments=What, run=weigh)
    model = scripted({"tool_calls": [{"name": "weigh", "arguments": {}}]}, "Four.", "Really.")
    async with (
        opened(app_with(make_app), model=model, tools=[tool]) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("How heavy?"))
        await read(chat.send("Sure?"))
    given = [message for message in model.calls[2].messages if message.role != "system"]
    assert [message.role for message in given][:4] == ["user", "assistant", "tool", "assistant"]
    assert given[1].tool_calls is not None
    assert given[1].tool_calls[0]["id"] == given[2].tool_call_id
    assert given[2].text == '{"grams": 4}'


async def test_the_turn_of_a_process_that_died_is_ended_with_its_text_so_far(
    make_app: MakeApp,
) -> None:
    owner = ChatOwner("acme", "ada")
    async with (
        opened(app_with(make_app), "One.", "Two.") as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("First?"))
        question = (await chat.messages())[0]
        turn = NewTurn(
            id=turn_id(),
            chat_id=chat.id,
            question=question.id,
            answer_id=message_id(),
            worker="dead",
            at=1,
            lease_until=2,
        )
        await host.chats.conversations.begin(owner, turn)
        text = b"".join(
            line(event).encode() for event in (StreamStart(assistant_id="a"), Text(delta="So f"))
        )
        newer = b'{"type": "of a newer version"}\n'
        await host.chats.logs.append(owner, turn.id, 1, text + newer, 3)
        await read(chat.send("Second?"))
        path = await chat.messages()
    assert [message.text for message in path] == ["First?", "So f", "Second?", "Two."]
    assert path[1].answer is not None
    assert [error.code for error in path[1].answer.errors] == ["turn_lost"]


async def test_a_turn_that_was_taken_for_lost_ends_with_its_whole_answer(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app)
    async with (
        opened(app, "One two three.", "Next.") as host,
        host.chat("a", identity=ADA) as chat,
    ):
        async with chat.send("Count.") as events:
            await anext(events)
            end_leases(app)
            assert await host.conversations.end_lost_turns() == 1
            assert [message.text for message in await chat.messages()] == ["Count.", ""]
            assert [event async for event in events][-1].type == "stream_end"
        await read(chat.send("And now?"))
        texts = [message.text for message in await chat.messages()]
    assert texts == ["Count.", "One two three.", "And now?", "Next."]


async def test_an_answer_that_cannot_be_kept_still_reaches_its_reader(make_app: MakeApp) -> None:
    app = app_with(make_app, **{"x": ""})
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("store: {busy_ms: 0}\n")
    async with (
        opened(app, "One.") as host,
        host.chat("a", identity=ADA) as chat,
        chat.send("First?") as events,
    ):
        lock = sqlite3.connect(app / ".groundhook/chats.sqlite", isolation_level=None)
        lock.execute("begin immediate")
        seen = [event async for event in events]
        lock.rollback()
        lock.close()
    assert [event.type for event in seen][-2:] == ["warning", "stream_end"]
    assert of(seen, "warning")[0].code == "storage"
    assert end(seen).content == "One."


async def test_deleting_a_chat_forgets_what_hooks_remember_of_it(make_app: MakeApp) -> None:
    hook = 'export function Create(ctx: any) { ctx.memory.chat.Set("n", 1); return null; }'
    async with opened(app_with(make_app, index_ts=hook), "One.") as host:
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send("First?"))
        owner = ChatOwner("acme", "ada")
        await host.conversations.delete(owner, chat.id)
        memory = host.runtime.memory.of(Identity(**ADA), chat.id).namespace("chat")
        assert await memory.keys() == []
        with pytest.raises(UnknownName):
            await chat.messages()


async def test_deleting_a_chat_forgets_what_hooks_of_the_turn_under_way_remember_afterwards(
    make_app: MakeApp,
) -> None:
    hook = 'export function Next(ctx: any) { ctx.memory.chat.Set("n", 1); return null; }'
    answer = {"text": "One.", "delay_ms": 100}
    async with (
        opened(app_with(make_app, index_ts=hook), answer) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        async with chat.send("First?") as events:
            await anext(events)
            await host.conversations.delete(ChatOwner("acme", "ada"), chat.id)
            ended = [event async for event in events]
        assert "its chat was removed meanwhile" in of(ended, "warning")[0].message
        memory = host.runtime.memory.of(Identity.model_validate(ADA), chat.id)
        assert await memory.namespace("chat").keys() == []


async def test_times_are_those_of_the_hosts_clock(make_app: MakeApp) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    async with (
        opened(app_with(make_app), "One.", now=now) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("First?"))
        made: Sequence[int] = [message.made_at for message in await chat.messages()]
    assert set(made) == {round(now.timestamp() * 1000)}


HISTORY = """
export function Create(ctx: any, messages: any[]) {
  const seen = ctx.chat.History(3);
  return { search: false, metadata: { given: messages.length, seen } };
}
"""


async def test_a_hook_reads_more_of_the_conversation_than_the_model_is_given(
    make_app: MakeApp,
) -> None:
    package = ASSISTANT.replace("{", '{"history": {"messages": 0}, ', 1)
    app = app_with(make_app, package, index_ts=HISTORY)
    async with (
        opened(app, {"text": "Yes.", "times": 0}) as host,
        host.chat("a", identity=ADA) as chat,
    ):
        for question in ("One?", "Two?"):
            await read(chat.send(question))
        metadata = end(await read(chat.send("Three?"))).metadata
    assert metadata["given"] == 1
    assert [message["content"] for message in metadata["seen"]] == ["Yes.", "Two?", "Yes."]
    assert metadata["seen"][0]["id"].startswith("m_")


async def test_a_hook_of_a_turn_that_is_not_kept_reads_what_the_request_brought(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app, index_ts=HISTORY)
    messages = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
    ]
    async with opened(app, "2") as host:
        metadata = end(await read(host.stream("a", messages))).metadata
    assert [message["content"] for message in metadata["seen"]] == ["One?", "1"]


async def test_a_limit_that_is_none_is_an_error_in_the_hook(make_app: MakeApp) -> None:
    hook = "export function Create(ctx: any) { ctx.chat.History('all'); return null; }"
    async with opened(app_with(make_app, index_ts=hook), "2") as host:
        events = await read(host.stream("a", "One?"))
    assert "a whole number from 1 to 200, not 'all'" in of(events, "error")[0].message


async def test_old_conversations_are_removed_where_their_days_are_limited(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    async with opened(app, "One.", now=long_ago) as host, host.chat("a", identity=ADA) as chat:
        await read(chat.send("First?"))
    (app / "agent").mkdir(exist_ok=True)
    async with opened(app) as host, host.chat("a", identity=ADA, chat_id=chat.id) as again:
        assert len(await again.messages()) == 2
    (app / "agent/agent.yml").write_text("store: {keep_days: 30}\n")
    async with opened(app) as host:
        with pytest.raises(UnknownName):
            async with host.chat("a", identity=ADA, chat_id=chat.id):
                pass


async def test_how_long_a_turn_counts_as_running_and_its_log_is_kept_are_settings(
    make_app: MakeApp,
) -> None:
    owner, app = ChatOwner("acme", "ada"), app_with(make_app)
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("store: {lease_s: 3, logs_h: 3}\n")
    before = datetime.now(UTC) - timedelta(hours=2)
    async with opened(app, "One.", now=before) as host, host.chat("a", identity=ADA) as chat:
        async with chat.send("First?") as events:
            turn = await host.chats.conversations.running(owner, chat.id)
            assert turn is not None
            assert turn.lease_until <= (time.time() + 3) * 1000  # the default is 15
            assert [event async for event in events]
        await host.conversations.sweep()
        assert await host.chats.logs.read(owner, turn.id)
    (app / "agent/agent.yml").write_text("store: {logs_h: 1}\n")
    async with opened(app) as host:
        await host.conversations.sweep()
        assert not await host.chats.logs.read(owner, turn.id)


async def test_how_late_the_log_of_a_turn_has_its_events_is_a_setting(make_app: MakeApp) -> None:
    owner, app = ChatOwner("acme", "ada"), app_with(make_app)
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("store: {flush_ms: 400}\n")
    never = {"text": "One.", "delay_ms": 3_600_000}
    async with opened(app, never) as host, host.chat("a", identity=ADA) as chat:
        began = time.monotonic()
        async with chat.send("First?") as events:
            await anext(events)
            turn = await host.chats.conversations.running(owner, chat.id)
            assert turn is not None
            while not await host.chats.logs.read(owner, turn.id):
                pass
        assert time.monotonic() - began >= 0.4


NAMED = '{"title": "Brewing green tea"}'


@pytest.mark.parametrize("by", ["connector:names", "namer"])
@pytest.mark.parametrize(
    ("reply", "title"), [(NAMED, "Brewing green tea"), ("It is brewed.", BREWED)]
)
async def test_a_model_writes_the_title_beside_the_first_turn_and_may_fail(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, by: str, reply: str, title: str
) -> None:
    names = json.dumps({"type": "scripted", "options": {"script": [{"text": reply, "times": 0}]}})
    package = json.dumps({**json.loads(ASSISTANT), "uses": {"title": by}})
    namer = '{ "name": "Namer", "connector": "names" }'
    app = make_app(
        {
            "assistants/a/package.yao": package,
            "kb/docs.kb.yao": COLLECTION,
            "connectors/names.conn.yao": names,
            "assistants/namer/package.yao": namer,
        }
    )
    async with opened(app, "Two minutes.", "Yes.") as host:
        assert [each.message for each in await host.check() if "title" in each.message] == []
        async with host.chat("a", identity=ADA) as chat:
            await read(chat.send(BREWED))
            await read(chat.send(WARM))
            while (kept := await title_of(host, chat.id)) == BREWED and not caplog.messages:
                pass
    assert kept == title
    assert ["uses.title" in message for message in caplog.messages] == [True] * (title == BREWED)
    assert reply not in caplog.text


async def title_of(host: Host, chat: str) -> str:
    return (await host.chats.chats.chat(ChatOwner("acme", "ada"), chat)).title


async def test_a_title_of_the_user_stays(make_app: MakeApp) -> None:
    model = scripted({"text": NAMED, "times": 0})
    package = json.dumps({**json.loads(ASSISTANT), "uses": {"title": "connector:script"}})
    async with opened(app_with(make_app, package), model=model) as host:
        owner = ChatOwner("acme", "ada")
        mine = Chat(id="c_mine", assistant_id="a", title="Mine", made_at=1, changed_at=1)
        await host.chats.chats.make(owner, mine)
        async with host.chat("a", identity=ADA, chat_id="c_mine") as chat:
            await read(chat.send(BREWED))
            await read(chat.send(WARM))
        assert await title_of(host, "c_mine") == "Mine"
    assert [call.question for call in model.calls] == [BREWED, WARM]
