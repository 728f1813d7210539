"""Hooks that turn on the host through its own calls: many, large, misshapen, or left in the
middle."""

from __future__ import annotations

import anyio
import pytest

from groundhook.core.types.turn import Identity
from tests.attacks.conftest import Arena, until


async def test_a_million_host_calls_end_at_the_number_that_is_allowed(arena: Arena) -> None:
    fate = await arena.attack(
        "function Create(ctx) { for (let i = 0; i < 1e6; i++) try { ctx.search.Web('q'); } catch"
        " {} }"
    )
    assert (fate.code, fate.message) == ("hook_limit", "Create made more than 200 host calls")
    assert len(arena.web.requests) == 200


async def test_log_lines_wait_for_the_client_to_read_them(arena: Arena) -> None:
    before = await arena.before()
    arena.write(
        "function Create() { for (let i = 0; ; i++) console.log(i,"
        " ...Array(14).fill('x'.repeat(4000))); }"
    )
    async with arena.host.stream("hostile", "hello") as events:
        async for _ in events:
            break
        for _ in range(20):  # the client has stopped reading, the hook has not stopped printing
            await arena.neighbour()
        assert len(events._events) < 100  # type: ignore[attr-defined]
    await arena.peace(before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "ctx.search.Parallel(Array(1500).fill({ type: 'web', query: 'q' }))",
            "at most 50 requests at once, not 1500",
        ),
        (
            "ctx.search.Web('q', { sites: Array(20000).fill(5) })",
            "option sites: should have at most 1000 entries, not 20000",
        ),
        ("ctx.search.Web('q', { sites: Array(900).fill(5) })", "option sites[0]: should be text"),
        (
            "ctx.search.Web({ toString: () => 'q' })",
            "query must be text that is not empty, not an object",
        ),
        (
            "(Array.prototype.toJSON = () => ({}), ctx.search.Web('q'))",
            "the arguments are not a list",
        ),
        (
            "(Array.prototype.toJSON = () => 7, ctx.search.Web('q'))",
            "the arguments are not a list",
        ),
        (
            (
                "(() => { let d = []; for (let i = 0; i < 500; i++) d = [d]; return"
                " ctx.search.Web(d); })()"
            ),
            "nested too deeply",
        ),
        (
            (
                "(() => { let d = []; for (let i = 0; i < 5000; i++) d = [d]; return"
                " ctx.search.Web(d); })()"
            ),
            "nested too deeply",
        ),
    ],
    ids=[
        "parallel",
        "many-wrong",
        "wrong",
        "object",
        "to-json-object",
        "to-json-number",
        "deep",
        "deeper",
    ],
)
async def test_arguments_that_are_many_or_misshapen_are_refused_in_words_at_once(
    arena: Arena, call: str, message: str
) -> None:
    fate = await arena.attack(
        f"function Create(ctx) {{ try {{ {call}; }} catch (e) {{ return {{ metadata: {{ e:"
        " e.message } }; } }"
    )
    assert message in fate.metadata["e"]
    assert arena.web.requests == []


async def test_thousands_of_unknown_options_are_a_few_warnings(arena: Arena) -> None:
    source = """
        function Create(ctx) {
          const options = {};
          for (let i = 0; i < 2000; i++) options["limi" + i] = i;
          options["x".repeat(10000)] = 1;
          return { metadata: { n: ctx.search.Web("q", options).items.length } };
        }
    """
    fate = await arena.attack(source)
    assert fate.metadata == {"n": 1}
    warnings = [event.message for event in fate.events if event.type == "warning"]
    assert len(warnings) == 21
    assert "and 1981 more" in warnings[-1]
    assert max(map(len, warnings)) < 300


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            "{ metadata: { text: 'x'.repeat(300000) } }",
            "received or returned more than 256 KB",
        ),
        (
            "{ messages: Array(100000).fill(5) }",
            "messages: should have at most 1000 entries, not 100000",
        ),
        ("{ messages: Array(999).fill(5) }", "messages[0]"),
        (
            "{ messages: Array(300).fill({ role: 'user', content: Array(300).fill(1) }) }",
            "messages[0].content",
        ),
        (
            "{ uses: Object.fromEntries(Array.from({ length: 9000 }, (_, i) => ['u' + i, 1])) }",
            "uses: should have at most 1000",
        ),
        ("{ metadata: [...Array(400)].reduce((inner) => ({ inner }), {}) }", "nested too deeply"),
        ("{ metadata: [...Array(9000)].reduce((inner) => [inner], []) }", "nested too deeply"),
        ("{ metadata: { toJSON() { throw new Error(''); } } }", "cannot be made JSON"),
        ("{ metadata: 10n ** 500n }", "cannot be made JSON"),
        (
            "(() => { const a = {}; a.a = a; return a; })()",
            "cannot be made JSON: Converting circular structure",
        ),
    ],
    ids=[
        "large",
        "many-wrong",
        "wrong",
        "nested-wrong",
        "uses",
        "deep",
        "deeper",
        "throws",
        "bigint",
        "circle",
    ],
)
async def test_a_return_that_is_oversize_or_misshapen_is_refused_in_words_at_once(
    arena: Arena, returned: str, message: str
) -> None:
    fate = await arena.attack(f"function Create() {{ return {returned}; }}")
    assert fate.code in ("hook_limit", "hook_return")
    assert message in fate.message
    assert len(fate.message) < 1000


async def test_thousands_of_unknown_keys_in_a_return_are_a_few_warnings(arena: Arena) -> None:
    source = (
        "function Create() { return Object.fromEntries(Array.from({ length: 15000 }, (_, i) =>"
        " ['messag' + i, 1])); }"
    )
    fate = await arena.attack(source)
    assert fate.code == ""
    assert len([event for event in fate.events if event.type == "warning"]) < 50


async def test_a_number_that_javascript_does_not_have_cannot_be_handed_over(arena: Arena) -> None:
    fate = await arena.attack("""
        function Create() {
          const raw = JSON.rawJSON ?? (() => 1);
          return { metadata: { long: raw("1".repeat(5000)), infinite: raw("1e999"), nan: NaN, zero: -0 } };
        }
    """)
    assert fate.metadata == {"long": 1, "infinite": 1, "nan": None, "zero": 0}


async def test_an_oversize_answer_of_a_source_ends_its_run(
    arena: Arena,
) -> None:
    fate = await arena.attack(
        "function Create(ctx) { try { ctx.search.Web('huge'); } catch { return {}; } }"
    )
    assert fate.message == "Create received or returned more than 256 KB"


async def test_a_client_that_leaves_in_the_middle_of_a_host_call_leaves_nothing_behind(
    arena: Arena,
) -> None:
    before = await arena.before()
    arena.write(
        "function Create(ctx) { try { ctx.search.Web('held'); } catch {} for (;;) try {"
        " ctx.search.Web('held'); } catch {} }"
    )
    arena.web.gate, cancelled = anyio.Event(), arena.web.cancelled
    for _ in range(3):
        arena.web.requests.clear()
        async with arena.host.stream("hostile", "hello") as events:
            async for event in events:
                if event.type == "search_start":
                    break
            await until(lambda: arena.web.requests[-1:] != [])
    arena.web.gate = None
    assert arena.web.cancelled == cancelled + 3
    await arena.peace(before)


async def test_no_hook_can_speak_for_another_identity(arena: Arena) -> None:
    source = """
        function Create(ctx) {
          const tries = [
            () => { ctx.authorized.user_id = "root"; ctx.authorized.tenant_id = "other"; },
            () => { ctx.authorized = { user_id: "root", tenant_id: "other" }; },
            () => { Object.prototype.user_id = "root"; },
            () => { __groundhook.begin('{"context": {"authorized": {"user_id": "root"}}, "limits": {}}'); },
          ];
          for (const one of tries) try { one(); } catch {}
          ctx.search.KB("mine", { tenant_id: "other", user_id: "root", authorized: { tenant_id: "other" } });
          return { metadata: { user_id: "root" }, identity: { user_id: "root" }, authorized: { tenant_id: "other" } };
        }
    """
    identity = Identity(user_id="ann", tenant_id="acme")
    fate = await arena.attack(source, identity=identity)
    assert fate.code == ""
    requested = [
        scope.identity
        for request, scope in zip(arena.kb.requests, arena.kb.scopes, strict=True)
        if request.query == "mine"
    ]
    assert requested == [identity]
