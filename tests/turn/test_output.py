"""What hooks send to the client while they run: through the public door."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.hook_messages import fold
from groundhook.core.types.events import Event
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.hook_turns import hooked
from tests.parts.turns import app_with, end, of, scripted, web

PLAIN = '{"name": "A", "connector": "script"}'


async def sending(make_app: MakeApp, body: str, **more: Any) -> list[Event]:
    return await hooked(make_app, f"function Create(ctx) {{ {body} }}", PLAIN, **more)


def actions(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (event.action, event.message_id, event.message, event.path)
        for event in of(events, "message")
    ]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "props": {"content": content}}


async def test_messages_arrive_in_order_with_ids_counted_in_the_turn(make_app: MakeApp) -> None:
    events = await sending(
        make_app,
        """
        const first = ctx.Send("Looking");
        const second = ctx.SendStream({ type: "text", props: { content: "" } });
        ctx.Append(second, "a"); ctx.Append(second, "b", "props.content");
        const ended = ctx.End(second, "!");
        return { metadata: { ids: [ctx.Replace(first, "Found"), second, ended] } };
        """,
    )
    assert end(events).metadata == {"ids": ["M1", "M2", "M2"]}
    assert actions(events) == [
        ("send", "M1", text("Looking"), ""),
        ("send", "M2", text(""), ""),
        ("append", "M2", "a", "props.content"),
        ("append", "M2", "b", "props.content"),
        ("append", "M2", "!", "props.content"),
        ("end", "M2", None, ""),
        ("replace", "M1", text("Found"), ""),
    ]
    assert [standing.message for standing in fold(events)] == [text("Found"), text("ab!")]


async def test_a_type_that_is_nearly_text_is_sent_with_a_warning(make_app: MakeApp) -> None:
    events = await sending(
        make_app,
        """
        ctx.Send({ type: "Text", props: { content: "A" } });
        for (let i = 0; i < 2; i++) ctx.Send({ type: "markdwon", props: { content: "B" } });
        for (const type of ["text", "context", "next", "test", "extra", "rich_text", "mark"])
          ctx.Send({ type, props: { content: "C" } });
        """,
    )
    assert [kind for kind, *_ in actions(events)] == ["send"] * 10
    warned = [(each.code, each.message) for each in events if each.type == "warning"]
    assert [code for code, _ in warned] == ["unknown_option"] * 2
    assert "'Text' may not be shown; did you mean 'text'?" in warned[0][1]
    assert "did you mean 'markdown'?" in warned[1][1]


async def test_a_message_reaches_the_client_while_the_hook_still_runs(make_app: MakeApp) -> None:
    gate = anyio.Event()
    hook = "function Create(ctx) { ctx.Send('Looking'); ctx.search.Web('x'); ctx.Send('Done'); }"
    held = CannedSource({"*": ()}, gate=gate)
    app = app_with(make_app, PLAIN, index_ts=hook)
    seen: list[str] = []
    with anyio.fail_after(60):
        async with (
            open_host(
                app, environment={}, sources={"web": held}, connectors={"script": scripted("Fine.")}
            ) as host,
            host.stream("a", "question") as events,
        ):
            async for event in events:
                if event.type == "message":
                    seen.append(event.message["props"]["content"])
                    assert gate.is_set() == (seen == ["Looking", "Done"])
                if seen == ["Looking"] and held.requests:
                    gate.set()
    assert seen == ["Looking", "Done"]


async def test_merge_and_set_take_raw_data_and_message_objects(make_app: MakeApp) -> None:
    events = await sending(
        make_app,
        """
        const id = ctx.Send({ type: "progress", props: { done: 1, inner: { a: 1 } } });
        ctx.Merge(id, { done: 2 });
        ctx.Merge(id, { b: 2 }, "props.inner");
        ctx.Merge(id, { type: "progress", props: { inner: { c: 3 } } });
        ctx.Set(id, "ready", "props.status");
        ctx.Set(id, { type: "progress", props: { rows: [{ n: 1 }] } }, "props.rows");
        ctx.Set(id, { n: 5 }, "props.rows[0]");
        ctx.Append(id, { n: 6 }, "props.rows");
        ctx.Append(id, { type: "progress", props: { status: "!" } }, "props.status");
        """,
    )
    (standing,) = fold(events)
    assert standing.message == {
        "type": "progress",
        "props": {
            "done": 2,
            "inner": {"a": 1, "b": 2, "c": 3},
            "status": "ready!",
            "rows": [{"n": 5}, {"n": 6}],
        },
    }


async def test_blocks_and_threads_hold_messages_together_and_end_with_their_streams(
    make_app: MakeApp,
) -> None:
    events = await sending(
        make_app,
        """
        const block = ctx.BlockID(), thread = ctx.ThreadID(), id = ctx.MessageID();
        ctx.Send({ type: "text", props: { content: "a" }, message_id: id, thread_id: thread }, block);
        ctx.SendStream("b", block);
        ctx.Send({ type: "text", props: { content: "c" }, block_id: "own" });
        ctx.EndBlock(block);
        return { metadata: { ids: [block, thread, id, ctx.BlockID(), ctx.ThreadID(), ctx.MessageID()] } };
        """,
    )
    assert end(events).metadata == {"ids": ["B1", "T1", "M1", "B2", "T2", "M4"]}
    assert [(e.action, e.message_id, e.block_id, e.thread_id) for e in of(events, "message")] == [
        ("send", "M1", "B1", "T1"),
        ("send", "M2", "B1", ""),
        ("send", "M3", "own", ""),
        ("end", "M2", "B1", ""),
        ("end", "", "B1", ""),
    ]
    assert "message_id" not in of(events, "message")[0].message


@pytest.mark.parametrize("rest", ["", "throw new Error('x');", "for (;;) ;"])
async def test_a_stream_without_an_end_is_closed_when_its_hook_ends_however_it_ends(
    make_app: MakeApp, rest: str
) -> None:
    package = (
        '{"name": "A", "connector": "script", "hooks": {"on_error": "continue", "limits":'
        ' {"cpu_ms": 100}}}'
    )
    hook = (
        f"function Create(ctx) {{ ctx.SendStream('a'); {rest} }} function Next(ctx) {{"
        " ctx.SendStream('b'); }"
    )
    events = await hooked(make_app, hook, package)
    order = [
        (e.action, e.message_id) if e.type == "message" else e.type
        for e in events
        if e.type in ("message", "text")
    ]
    assert order == [("send", "M1"), ("end", "M1"), "text", ("send", "M2"), ("end", "M2")]


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        ("Send()", "ctx.Send: a message must be text or an object, not nothing"),
        ("Send({ props: {} })", "ctx.Send: a message must have a type"),
        (
            "Send({ type: 'text', props: 'x' })",
            "the props of a message must be an object, not text",
        ),
        ("Send('x', 4)", "the id of a block must be text, not a number"),
        (
            "Send({ type: 'x', message_id: 'M1' })",
            "a message 'M1' was sent before (Replace changes it",
        ),
        ("Append('M9', 'x')", "no message 'M9' (known ids: M1, M2)"),
        ("Append(ctx.MessageID(), 'x')", "nothing was sent under the id 'M3' yet"),
        ("Append('M1')", "ctx.Append: there is nothing to append"),
        ("Append('M1', 'x', 'a..b')", "the path must be keys with dots between"),
        ("Replace('M1', 4)", "ctx.Replace: a message must be text or an object"),
        ("Merge('M1', 'x')", "what is merged must be an object, not text"),
        (
            "Set('M1', 1)",
            (
                "ctx.Set: the path must be keys with dots between, such as 'props.content', not"
                " nothing"
            ),
        ),
        ("End('M7')", "no message 'M7' (known ids: M1, M2)"),
        ("EndBlock('B3')", "no block 'B3' (known ids: B1)"),
        (
            "Send({ type: 'x', props: JSON.parse('{\"a\":'.repeat(80) + '1' + '}'.repeat(80)) })",
            "nested more than 64 deep",
        ),
    ],
)
async def test_a_wrong_call_throws_and_says_what_there_is(
    make_app: MakeApp, call: str, expected_message: str
) -> None:
    events = await sending(
        make_app,
        f"""
        ctx.Send("one", ctx.BlockID()); ctx.Send("two");
        try {{ ctx.{call}; }} catch (error) {{ return {{ metadata: {{ caught: [error.constructor.name, error.message] }} }}; }}
        """,
    )
    caught = end(events).metadata["caught"]
    assert caught[0] == "TypeError"
    assert expected_message in caught[1]
    assert len(of(events, "message")) == 2


async def test_a_hook_that_sent_something_is_not_run_again_when_its_process_dies(
    make_app: MakeApp,
) -> None:
    hook = "function Create(ctx) { ctx.Send('once'); 'ab'.repeat(2 ** 27).split(''); }"
    events = await hooked(make_app, hook, PLAIN)
    assert [event.code for event in of(events, "error")] == ["hook_crashed"]
    assert len(of(events, "message")) == 1


async def test_many_messages_to_a_slow_reader_do_not_pile_up(make_app: MakeApp) -> None:
    hook = (
        "function Create(ctx) { const id = ctx.SendStream(''); for (let i = 0; i < 500; i++)"
        " ctx.Append(id, 'x'.repeat(100)); }"
    )
    events = await hooked(make_app, hook, PLAIN, sources={"web": web()})
    assert len(fold(events)[0].message["props"]["content"]) == 50_000
