"""`ctx.memory` through the public door: what is kept, for whom, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import Host, open_host
from groundhook.core.types.events import Event
from groundhook.core.types.turn import Identity
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.turns import end, of, scripted

PACKAGE = '{"name": "A", "connector": "script"}'
ANN = Identity(user_id="ann", team_id="red", tenant_id="t")


class Clock:
    """The time of day, moved by tests."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class App:
    """An open app whose assistants' hooks are rewritten between turns."""

    def __init__(self, host: Host, folder: Path, clock: Clock) -> None:
        self.host, self.folder, self.clock = host, folder, clock

    async def events(
        self, hook: str, identity: Identity | None = ANN, chat: str = "c1", assistant: str = "a"
    ) -> list[Event]:
        (self.folder / f"assistants/{assistant}/index.ts").write_text(hook, encoding="utf-8")
        with anyio.fail_after(60):
            async with self.host.stream(
                assistant, "q", identity=identity, options={"chat_id": chat}
            ) as events:
                return [event async for event in events]

    async def value(
        self, expression: str, identity: Identity | None = ANN, chat: str = "c1"
    ) -> Any:
        """What an expression is worth in Create."""
        hook = f"function Create(ctx: any) {{ return {{ metadata: {{ value: {expression} }} }}; }}"
        return end(await self.events(hook, identity, chat)).metadata["value"]

    async def failure(
        self, expression: str, identity: Identity | None = ANN, chat: str = "c1"
    ) -> str:
        failed = of(
            await self.events(f"function Create(ctx: any) {{ {expression}; }}", identity, chat),
            "error",
        )
        return f"{failed[0].message} {failed[0].hint}"


@pytest.fixture
async def app(make_app: MakeApp) -> AsyncIterator[App]:
    files = {
        f"assistants/{id}/{name}": text
        for id in "ab"
        for name, text in (("package.yao", PACKAGE), ("index.ts", ""))
    }
    folder = make_app({**files, "agent/agent.yml": "hooks:\n  workers: 1\n"})
    clock = Clock()
    models = {"script": scripted(*["Fine."] * 40)}
    async with open_host(
        folder, environment={}, now=clock, connectors=models, sources={"kb": CannedSource({})}
    ) as host:
        yield App(host, folder, clock)


@pytest.mark.parametrize("space", ["user", "team", "chat", "context"])
async def test_every_call_does_what_its_name_says(app: App, space: str) -> None:
    hook = f"""(() => {{
        const m = ctx.memory.{space};
        const answers: any[] = [m.Get("k"), m.Has("k"), m.Len()];
        answers.push(m.Set("k", {{ deep: [1, "é", null] }}) === undefined, m.Get("k"), m.Has("k"));
        answers.push(m.Incr("n"), m.Incr("n", 2.5), m.Decr("n"), m.Decr("n", 2), m.Keys(), m.Len());
        answers.push(m.GetDel("k"), m.GetDel("k"), m.Del("n"), m.Del("n"), m.Set("x", 1), m.Delete("x"));
        answers.push(m.Set("y", null), m.Get("y"));
        answers.push(m.Has("y"), m.Clear(), m.Keys());
        return answers.map((value) => value === undefined ? "nothing" : value);
    }})()"""
    deep = {"deep": [1, "é", None]}
    assert await app.value(hook) == [
        *(None, False, 0),
        *(True, deep, True),
        *(1, 3.5, 2.5, 0.5, ["k", "n"], 2),
        *(deep, None, True, False, "nothing", True, "nothing", None),
        *(True, 1, []),
    ]


@pytest.mark.parametrize("space", ["user", "context"])
async def test_lists_grow_shrink_and_are_read_in_parts(app: App, space: str) -> None:
    hook = f"""(() => {{
        const m = ctx.memory.{space};
        return [
          m.ArrayAll("l"), m.Push("l", [1, 2, 3]), m.Push("l", "four"), m.AddToSet("l", [1, true, {{ a: 1 }}]),
          m.AddToSet("l", [{{ a: 1 }}]), m.ArrayLen("l"), m.ArrayGet("l", 0), m.ArrayGet("l", -1), m.ArrayGet("l", 9),
          m.ArraySet("l", 0, "one") === undefined, m.ArraySlice("l", 0, 2), m.ArraySlice("l", -2), m.ArraySlice("l", -9, -5), m.ArrayPage("l", 2, 4),
          m.Pop("l"), m.Pull("l", 2), m.PullAll("l"), m.Pop("l"), m.ArrayLen("l"),
        ];
    }})()"""
    assert await app.value(hook) == [
        *([], 3, 4, 6, 6, 6, 1, {"a": 1}, None),
        *(True, ["one", 2], [True, {"a": 1}], ["one"], [True, {"a": 1}]),
        *({"a": 1}, ["four", True], ["one", 2, 3], None, 0),
    ]
    assert "the value of 'n' is not a list" in await app.failure(
        f"(ctx.memory.{space}.Set('n', 1), ctx.memory.{space}.Push('n', 1))"
    )
    assert "no element 5" in await app.failure(f"ctx.memory.{space}.ArraySet('e', 5, 1)")


async def test_a_key_that_ends_with_a_star_removes_all_keys_with_its_beginning(app: App) -> None:
    hook = """(() => {
        const m = ctx.memory.user;
        ["cache:1", "cache:2", "other"].forEach((key) => m.Set(key, 1));
        return [m.Del("cache:*"), m.Del("cache:*"), m.Keys()];
    })()"""
    assert await app.value(hook) == [True, False, ["other"]]


async def test_memory_outlives_the_turn_except_that_of_the_turn(app: App) -> None:
    await app.value(
        "['user', 'team', 'chat', 'context'].map((name) => ctx.memory[name].Set('k', name))"
    )
    assert await app.value(
        "['user', 'team', 'chat', 'context'].map((name) => ctx.memory[name].Get('k'))"
    ) == [
        "user",
        "team",
        "chat",
        None,
    ]


async def test_create_and_next_share_the_memory_of_the_turn(app: App) -> None:
    hook = """
        function Create(ctx: any) { ctx.memory.context.Set("k", 1); ctx.memory.context.Incr("k"); }
        function Next(ctx: any) { return { data: ctx.memory.context.Get("k") }; }
    """
    assert end(await app.events(hook)).data == 2


async def test_an_assistant_that_is_handed_the_turn_has_a_memory_of_its_own_for_it(
    app: App,
) -> None:
    (app.folder / "assistants/b/index.ts").write_text(
        "const Create = ({ memory: m }: any) => ({ metadata: { seen: m.context.Get('k'), kept:"
        " m.user.Get('k') } });",
        encoding="utf-8",
    )
    hook = """function Create(ctx: any) {
        ctx.memory.context.Set("k", 1); ctx.memory.user.Set("k", 1); return { delegate: { agent_id: "b" } };
    }"""
    assert end(await app.events(hook)).metadata == {"seen": None, "kept": 1}


OTHERS: Sequence[tuple[Identity, str, list[str]]] = [
    (ANN, "c1", ["user", "team", "chat"]),
    (ANN, "c2", ["user", "team"]),
    (Identity(user_id="bob", team_id="red", tenant_id="t"), "c1", ["team"]),
    (Identity(user_id="ann", team_id="blue", tenant_id="t"), "c1", ["user", "chat"]),
    (Identity(user_id="ann", team_id="red", tenant_id="u"), "c1", []),
]


@pytest.mark.parametrize(("identity", "chat", "seen"), OTHERS)
async def test_memory_belongs_to_an_identity_and_is_not_seen_by_another(
    app: App, identity: Identity, chat: str, seen: list[str]
) -> None:
    await app.value("['user', 'team', 'chat'].map((name) => ctx.memory[name].Set('secret', 1))")
    assert (
        await app.value(
            "['user', 'team', 'chat'].filter((name) => ctx.memory[name].Has('secret'))",
            identity,
            chat,
        )
        == seen
    )


@pytest.mark.parametrize(
    ("space", "identity", "chat", "noun"),
    [
        ("user", Identity(team_id="red"), "c1", "user id"),
        ("team", Identity(user_id="ann"), "c1", "team id"),
        ("chat", ANN, "", "chat id"),
        ("user", None, "c1", "user id"),
    ],
)
async def test_memory_of_nobody_is_refused_and_not_shared(
    app: App, space: str, identity: Identity | None, chat: str, noun: str
) -> None:
    message = await app.failure(f"ctx.memory.{space}.Set('k', 1)", identity, chat)
    assert "not permitted" in message
    assert f"needs a {noun}" in message
    assert "'context' memory" in message
    code = (
        f"(() => {{ try {{ ctx.memory.{space}.Get('k'); }} catch (error: any) {{ return error.code;"
        " } })()"
    )
    assert await app.value(code, identity, chat) == "not_permitted"


async def test_the_memory_of_the_turn_needs_no_identity(app: App) -> None:
    assert (
        await app.value(
            "(ctx.memory.context.Set('k', 1), ctx.memory.context.Get('k'))", Identity(), ""
        )
        == 1
    )


async def test_a_time_to_live_is_in_milliseconds(app: App) -> None:
    set = (
        "ctx.memory.user.Set('short', 1, 1500), ctx.memory.user.Set('long', 1),"
        " ctx.memory.user.Set('null', 1, null)"
    )
    await app.value(f"({set}, 1)")
    app.clock.now += timedelta(milliseconds=1499)
    assert await app.value("ctx.memory.user.Keys()") == ["long", "null", "short"]
    app.clock.now += timedelta(milliseconds=1)
    assert await app.value("ctx.memory.user.Keys()") == ["long", "null"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("user.Get()", "ctx.memory.user.Get: the key is missing"),
        (
            "user.Get('')",
            "ctx.memory.user.Get: a key of the memory must be text of at least one character",
        ),
        ("user.Get(5)", "must be text"),
        ("user.Set('k')", "ctx.memory.user.Set: the value is missing"),
        ("user.Set('k', 1, -5)", "ctx.memory.user.Set: "),
        ("user.Set('k', 1, 'soon')", "ctx.memory.user.Set: "),
        ("user.Set('k', 'x'.repeat(300000))", "the value for 'k'"),
        ("context.Incr('k', 'x')", "ctx.memory.context.Incr: "),
        ("user.Set('t', 'text'); ctx.memory.user.Incr('t')", "ctx.memory.user.Incr: "),
        (
            "user.Gett('k')",
            "ctx.memory.user.Gett is not offered by this host: there are Get, Set, Del",
        ),
        (
            "session.Get('k')",
            "ctx.memory.session is not offered by this host: there are user, team, chat, context",
        ),
    ],
)
async def test_wrong_calls_throw_and_say_what_is_wrong(app: App, call: str, message: str) -> None:
    assert message in await app.failure(f"ctx.memory.{call}")


async def test_counters_of_many_turns_at_once_lose_nothing(app: App) -> None:
    (app.folder / "assistants/a/index.ts").write_text(
        "function Create(ctx: any) { for (let i = 0; i < 5; i++) ctx.memory.user.Incr('n'); }",
        encoding="utf-8",
    )

    async def turn() -> None:
        async with app.host.stream("a", "q", identity=ANN) as events:
            assert not of([event async for event in events], "error")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(turn)
    assert await app.value("ctx.memory.user.Get('n')") == 50
