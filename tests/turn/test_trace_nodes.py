"""What hooks note in the trace of their turn: through the public door."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.types.events import Event, TraceNode
from tests.conftest import MakeApp
from tests.parts.hook_turns import hooked
from tests.parts.turns import end, of

PLAIN = '{"name": "A", "connector": "script", "hooks": {"on_error": "continue"}}'


async def tracing(make_app: MakeApp, body: str, next_body: str = "") -> list[Event]:
    hook = f"let kept; function Create(ctx) {{ {body} }}\nfunction Next(ctx) {{ {next_body} }}"
    return await hooked(make_app, hook, PLAIN)


def nodes(events: list[Event], type: str = "") -> list[TraceNode]:
    last = {event.node.id: event.node for event in of(events, "trace")}
    return [node for node in last.values() if not type or node.type == type]


def by_label(events: list[Event], label: str) -> TraceNode:
    (node,) = [node for node in nodes(events) if node.label == label]
    return node


async def test_nodes_stand_under_the_hook_and_under_each_other(make_app: MakeApp) -> None:
    events = await tracing(
        make_app,
        """
        const step = ctx.trace.Add({ q: 1 }, { label: "step", type: "lookup", icon: "x" });
        const inner = step.Add("inner");
        inner.Info("found %d of %s", 3, { a: 1 });
        inner.Complete([1]);
        step.SetMetadata({ a: 1 }); step.SetMetadata("b", 2); step.SetOutput({ n: 3 });
        step.Complete();
        """,
    )
    hook = next(node for node in nodes(events, "hook") if node.label == "Create")
    step, inner = by_label(events, "step"), by_label(events, "inner")
    assert (step.parent, step.type, step.status) == (hook.id, "lookup", "completed")
    assert step.data == {"icon": "x", "input": {"q": 1}, "a": 1, "b": 2, "output": {"n": 3}}
    assert (inner.parent, inner.type, inner.data) == (
        step.id,
        "custom",
        {"input": "inner", "output": [1]},
    )
    line = by_label(events, 'found 3 of {"a":1}')
    assert (line.parent, line.type, line.data) == (inner.id, "log", {"level": "info"})


async def test_the_hooks_own_node_takes_lines_output_and_a_failure(make_app: MakeApp) -> None:
    events = await tracing(
        make_app,
        """
        ctx.trace.Info("a"); ctx.trace.Debug("b"); ctx.trace.Warn("c"); ctx.trace.Error(new Error("d").message);
        ctx.trace.SetOutput("out"); ctx.trace.SetMetadata("k", 1); ctx.trace.Complete();
        """,
        "ctx.trace.Fail(new Error('not good')); return { data: 1 };",
    )
    create, next_ = nodes(events, "hook")
    assert (create.status, create.data) == ("completed", {"output": "out", "k": 1})
    assert (next_.status, next_.data) == ("failed", {"error": "not good"})
    assert [
        (node.parent == create.id, node.label, node.data["level"]) for node in nodes(events, "log")
    ] == [
        (True, "a", "info"),
        (True, "b", "debug"),
        (True, "c", "warn"),
        (True, "d", "error"),
    ]
    assert end(events).data == 1


@pytest.mark.parametrize(
    ("rest", "status"), [("", "completed"), ("throw new Error('x');", "failed")]
)
async def test_nodes_that_were_left_open_end_with_the_hook(
    make_app: MakeApp, rest: str, status: str
) -> None:
    events = await tracing(make_app, f"ctx.trace.Add('outer').Add('inner'); {rest}")
    assert [by_label(events, label).status for label in ("outer", "inner")] == [status] * 2
    order = [
        event.node.label or event.node.type
        for event in of(events, "trace")
        if event.node.status != "running"
    ]
    assert order[:3] == ["inner", "outer", "Create"]


async def test_next_may_add_to_what_create_began(make_app: MakeApp) -> None:
    events = await tracing(
        make_app,
        "kept = ctx.trace.Add('first'); kept.Fail('bad');",
        "kept.Complete('mended'); kept.Info('x');",
    )
    assert (by_label(events, "first").status, by_label(events, "first").data) == (
        "completed",
        {"input": "first", "output": "mended"},
    )
    assert by_label(events, "x").parent == by_label(events, "first").id


async def test_calls_of_nodes_chain_and_several_nodes_begin_at_once(make_app: MakeApp) -> None:
    events = await tracing(
        make_app,
        """
        const step = ctx.trace.Add({ q: 1 }, { label: "step" }).Info("a").SetMetadata("k", 2).SetOutput("o");
        const before = step.IsComplete();
        step.Complete().Debug("late");
        const many = step.Parallel([{ input: 1, option: { label: "one" } }, { input: 2, option: { label: "two" } }]);
        many[1].Fail("bad");
        ctx.trace.Info("x").Warn("y").Release();
        ctx.Release();
        const states = [before, step.IsComplete(), ctx.trace.IsComplete(), many[0].MarkComplete().IsComplete()];
        return { metadata: { states, id: ctx.trace.id } };
        """,
    )
    assert end(events).metadata == {"states": [False, True, False, True], "id": events[0].turn_id}
    step = by_label(events, "step")
    assert (step.status, step.data["output"], step.data["k"]) == ("completed", "o", 2)
    assert (by_label(events, "one").status, by_label(events, "two").status) == (
        "completed",
        "failed",
    )
    assert by_label(events, "two").parent == step.id


async def test_a_hook_that_has_ended_its_own_node_sees_that_it_ended(make_app: MakeApp) -> None:
    states = "[ctx.trace.IsComplete(), ctx.trace.MarkComplete().IsComplete()]"
    events = await tracing(
        make_app, f"return {{ metadata: {{ create: {states} }} }};", f"return {{ data: {states} }};"
    )
    assert end(events).metadata == {"create": [False, True]}
    assert end(events).data == [False, True]
    assert [node.status for node in nodes(events, "hook")] == ["completed", "completed"]


async def test_every_node_that_a_hook_made_belongs_to_one_that_exists_and_ended(
    make_app: MakeApp,
) -> None:
    events = await tracing(
        make_app, "for (let i = 0; i < 50; i++) ctx.trace.Add(i).Add(i).Info(i);"
    )
    known = {node.id: node for node in nodes(events)}
    assert len(known) > 150
    assert all(node.parent in known for node in known.values() if node.parent)
    assert all(node.status == "completed" for node in known.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "Add('x', 'y')",
            "ctx.trace.Add: options must be an object such as {type, label}, not text",
        ),
        ("Add('x', { label: 4 })", "ctx.trace.Add: the label must be text, not a number"),
        (
            "SetMetadata(4)",
            "ctx.trace.SetMetadata: give an object, or a key and a value, not a number",
        ),
    ],
)
async def test_a_wrong_call_throws_and_names_what_is_wrong(
    make_app: MakeApp, call: str, message: str
) -> None:
    body = (
        f"try {{ ctx.trace.{call}; }} catch (error) {{ return {{ metadata: {{ caught: error.message"
        " } }; }"
    )
    assert message in end(await tracing(make_app, body)).metadata["caught"]


async def test_what_a_node_is_given_may_be_anything(make_app: MakeApp) -> None:
    values: list[Any] = [
        "'x'",
        "1",
        "null",
        "undefined",
        "[1]",
        "() => 1",
        "Symbol('s')",
        "10n",
        "new Error('e')",
        "NaN",
    ]
    calls = "".join(
        f"node.Info({value}); node.Warn('%s', {value}); node.Fail({value});" for value in values
    )
    events = await tracing(make_app, f"const node = ctx.trace.Add(); {calls}")
    assert not of(events, "warning")
    assert len(nodes(events, "log")) == 2 * len(values)


async def test_a_space_keeps_values_for_the_turn_and_shows_them_in_its_metadata(
    make_app: MakeApp,
) -> None:
    events = await tracing(
        make_app,
        """
        const space = ctx.trace.CreateSpace({ label: "found", description: "d" });
        kept = space.id;
        space.Set("a", 1).Set("__proto__", { n: 2 }).Set("gone", 3).Delete("gone");
        return { metadata: { first: [space.Get("a"), space.Has("gone"), space.Keys(), ctx.trace.GetSpace("x")] } };
        """,
        """
        const space = ctx.trace.GetSpace(kept);
        const values = [space.Get("a"), space.Get("none"), space.Info("again").Complete().IsComplete()];
        return { metadata: { second: values } };
        """,
    )
    assert end(events).metadata == {
        "first": [1, False, ["a", "__proto__"], None],
        "second": [1, None, True],
    }
    space = by_label(events, "found")
    assert (space.type, space.data["description"]) == ("space", "d")
    assert space.data["values"] == {"a": 1, "__proto__": {"n": 2}}
