"""What a hook may ask of the host: arguments, answers, mistakes, and what is not offered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import HookThrew
from groundhook.core.types.search import Item, RerankOptions, SearchRequest, SearchResult
from groundhook.hooks.api.table import CALLS
from tests.hooks.conftest import Hooks, Services


async def test_a_search_returns_its_result_as_a_plain_value(hooks: Hooks) -> None:
    result = await hooks.value("ctx.search.Web('cats')")
    assert result["query"] == "cats"
    assert result["error"] is None
    assert result["items"][0]["title"] == "about cats"
    assert "key" not in result["items"][0]


@pytest.mark.parametrize(
    ("call", "request_"),
    [
        (
            "Web('q', { limit: 3, sites: ['a.org'], timeRange: 'week' })",
            SearchRequest(type="web", query="q", limit=3, sites=("a.org",), time_range="week"),
        ),
        ("Web('q', { time_range: 'day' })", SearchRequest(type="web", query="q", time_range="day")),
        (
            (
                "KB('q', { collections: ['docs'], threshold: 0, graph: false, rerank: { type:"
                " 'score', topK: 2 } })"
            ),
            SearchRequest(
                type="kb",
                query="q",
                collections=("docs",),
                threshold=0,
                graph=False,
                rerank=RerankOptions(type="score", top_k=2),
            ),
        ),
        (
            "KB('q', { rerank: { top_n: 4 } })",
            SearchRequest(type="kb", query="q", rerank=RerankOptions(top_k=4)),
        ),
        (
            (
                "DB('q', { models: ['m'], wheres: [{ column: 'a', value: 1 }], orders: [{ field:"
                " 'b' }], select: ['a'] })"
            ),
            SearchRequest.model_validate(
                {
                    "type": "db",
                    "query": "q",
                    "models": ["m"],
                    "wheres": [{"field": "a", "value": 1}],
                    "orders": [{"field": "b"}],
                    "select": ["a"],
                }
            ),
        ),
        ("DB('q', null)", SearchRequest(type="db", query="q")),
    ],
)
async def test_options_arrive_in_either_spelling(
    hooks: Hooks, call: str, request_: SearchRequest
) -> None:
    services = Services()
    await hooks.value(f"ctx.search.{call}", services)
    assert services.requests == [request_]
    assert services.warnings == []


async def test_an_unknown_option_is_reported_and_left_out(hooks: Hooks) -> None:
    services = Services()
    await hooks.value("ctx.search.KB('q', { colections: ['a'], rerank: { topk: 1 } })", services)
    assert services.requests == [SearchRequest(type="kb", query="q", rerank=RerankOptions())]
    assert [code for code, _ in services.warnings] == ["unknown_option", "unknown_option"]
    assert (
        services.warnings[0][1]
        == "ctx.search.KB: unknown key 'colections' (did you mean 'collections'?)"
    )
    assert "'rerank.topk'" in services.warnings[1][1]


@pytest.mark.parametrize(
    ("name", "mode", "count"),
    [("Parallel", "all", 2), ("All", "all", 2), ("Any", "any", 1), ("Race", "race", 1)],
)
async def test_several_searches_go_to_the_host_at_once(
    hooks: Hooks, name: str, mode: str, count: int
) -> None:
    services = Services()
    results = await hooks.value(
        f"ctx.search.{name}([{{ type: 'web', query: 'a', limit: 1 }}, {{ type: 'kb', query: 'b'"
        " }])",
        services,
    )
    assert [result["query"] for result in results] == ["a", "b"][:count]
    assert services.modes == [mode]
    assert services.requests == [
        SearchRequest(type="web", query="a", limit=1),
        SearchRequest(type="kb", query="b"),
    ]


async def test_no_searches_at_once_are_no_results(hooks: Hooks) -> None:
    assert await hooks.value("ctx.search.Parallel([])") == []


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        ("Web()", "ctx.search.Web: query must be text that is not empty, not nothing"),
        ("Web('')", "query must be text"),
        ("Web('  ')", "query must be text"),
        ("KB(42)", "query must be text that is not empty, not a number"),
        ("KB('q', 'docs')", "ctx.search.KB: options must be an object, not text"),
        ("KB('q', { threshold: 2 })", "ctx.search.KB: option threshold: "),
        ("KB('q', { rerank: { top_k: 'x' } })", "option rerank.top_k: "),
        ("Web('q', { time_range: 'hour' })", "option time_range: "),
        (
            "Parallel({ type: 'web' })",
            "ctx.search.Parallel: requests must be a list of {type, query, …}, not an object",
        ),
        ("Any(['web'])", "requests[0] must be an object with type and query, not text"),
        (
            "All([{ type: 'web', query: 'a' }, { type: 'wbe', query: 'a' }])",
            "requests[1].type must be a search type, not 'wbe' (did you mean 'web'?)",
        ),
        (
            "Race([{ query: 'a' }])",
            "requests[0].type must be a search type, not nothing (known: web, kb, db)",
        ),
        ("All([{ type: 'db' }])", "requests[0]: query must be text"),
        ("All([{ type: 'db', query: 'a', limit: 0 }])", "requests[0]: option limit: "),
    ],
)
async def test_wrong_arguments_throw_a_type_error_that_names_them(
    hooks: Hooks, call: str, expected_message: str
) -> None:
    services = Services()
    with pytest.raises(HookThrew) as caught:
        await hooks.value(f"ctx.search.{call}", services)
    assert "Create threw TypeError: " in str(caught.value)
    assert expected_message in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == 1
    assert services.requests == []


async def test_a_hook_can_catch_what_a_call_throws(hooks: Hooks) -> None:
    caught = await hooks.value(
        "(() => { try { ctx.search.Web(1); } catch (e) { return [e instanceof TypeError, e.code]; }"
        " })()"
    )
    assert caught == [True, "usage"]


async def test_a_failed_search_is_a_result(hooks: Hooks) -> None:
    async def failing(request: SearchRequest) -> SearchResult:
        return SearchResult(type=request.type, query=request.query, error="the provider is down")

    assert (await hooks.value("ctx.search.Web('q')", Services(answer=failing)))[
        "error"
    ] == "the provider is down"


async def test_printing_is_formatted_on_the_host(hooks: Hooks) -> None:
    services = Services()
    source = """
        function Create() {
          console.log("found %d of %s", 3, { a: 1 }, [1, 2], undefined, NaN);
          log.Info("%s: %v", "x", null);
          log.Warn("done");
          console.error(new Error("bad").message, 10n, Symbol("s"), () => 1);
          const circle: any = {}; circle.me = circle;
          log.Debug(circle);
          console.log();
        }
    """
    await hooks.create(source, services)
    assert services.lines == [
        ("info", 'found 3 of {"a":1} [1,2] undefined NaN'),
        ("info", "x: null"),
        ("warn", "done"),
        ("error", "bad 10 Symbol(s) [Function ]"),
        ("debug", "[object]"),
        ("info", ""),
    ]


async def test_a_huge_log_line_is_cut_and_the_hook_goes_on(hooks: Hooks) -> None:
    services = Services()
    assert await hooks.value("(console.log('x'.repeat(5e6)), 'on')", services) == "on"
    assert len(services.lines[0][1]) < 5000


async def test_sleep_waits_and_refuses_nonsense(hooks: Hooks) -> None:
    assert await hooks.value("(time.Sleep(1), 'slept')") == "slept"
    for expected_message, quoted in (
        ("'long'", "'long'"),
        ("600000", "600000"),
        ("-0.5", "-0.5"),
        ("true", "a boolean"),
        ("", "nothing"),
    ):
        with pytest.raises(
            HookThrew, match=rf"time.Sleep: milliseconds must be a number of 0-60000, not {quoted} "
        ):
            await hooks.value(f"time.Sleep({expected_message})")


@pytest.mark.parametrize(
    ("expression", "expected_message"),
    [
        (
            "ctx.agent.Cal('a', [])",
            "ctx.agent.Cal is not offered by this host: there are Call, All, Any, Race",
        ),
        (
            "ctx.sedn('x')",
            "ctx.sedn is not a function; ctx.sedn is not offered by this host: there",
        ),
        (
            "ctx.space.Get('x')",
            "reading 'Get'); ctx.space is not offered by this host: use ctx.memory",
        ),
        ("ctx.serch.KB('q')", "chat (did you mean 'search'?)"),
        ("ctx.search.web('q')", "Document (did you mean 'Web'?)"),
        (
            "ctx.search.Wbe('q')",
            "ctx.search.Wbe is not offered by this host: there are Web, KB, DB",
        ),
        (
            "ctx.search.Web('q').then((r) => r)",
            "then is not a function; calls of the host return their value, not a promise",
        ),
        ("fetch('https://example.org')", "fetch is not offered by this host: use http.Get"),
        ("process.env", "process.env is not offered"),
        ("log.Fatal('x')", "log.Fatal is not offered by this host: there are Trace"),
        ("undefinedName()", "undefinedName is not defined"),
    ],
)
async def test_a_missing_function_throws_an_error_that_names_it(
    hooks: Hooks, expression: str, expected_message: str
) -> None:
    with pytest.raises(HookThrew) as caught:
        await hooks.value(expression)
    assert expected_message in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.file == "assistants/x/index.ts"


async def test_a_part_of_ctx_that_is_absent_is_undefined_with_one_warning_for_each_name(
    hooks: Hooks,
) -> None:
    services = Services()
    looked = "[ctx.sandbox, ctx.sandbox, ctx.trace.Start, ctx.serch].map((x) => typeof x)"
    assert await hooks.value(looked, services) == ["undefined"] * 4
    assert services.warnings == [
        (
            "hook_absent",
            "ctx.sandbox is not offered by this host: hooks have no file system and start no"
            " programs; use an MCP server; it is undefined",
        ),
        (
            "hook_absent",
            "ctx.trace.Start is not offered by this host: use ctx.trace.Add; it is undefined",
        ),
        ("hook_absent", services.warnings[2][1]),
    ]
    assert services.warnings[2][1] == (
        "ctx.serch is not offered by this host (did you mean 'search'?); it is undefined"
    )
    assert services.places[0].startswith("assistants/x/index.ts:1:")


@pytest.mark.parametrize(
    ("called", "expected_message"),
    [
        ("ctx.vfs()", "ctx.vfs is not offered by this host: hooks have no file system"),
        ("ctx.space.Get('x')", "ctx.space is not offered by this host: use ctx.memory"),
        ("(ctx.robot, null.x)", "Cannot read properties of null (reading 'x')"),
    ],
)
async def test_a_caught_error_says_itself_what_to_use_instead(
    hooks: Hooks, called: str, expected_message: str
) -> None:
    for clause in (
        "catch (error) { return error.message; }",
        "catch ({ message }) { return message; }",
    ):
        message = await hooks.value(f"(() => {{ try {{ {called}; }} {clause} }})()")
        assert message.partition("; ")[2 if "; " in message else 0].startswith(expected_message)
    again = f"(() => {{ try {{ {called}; }} catch (error) {{ throw error; }} }})()"
    with pytest.raises(HookThrew) as thrown:
        await hooks.value(again)
    assert thrown.value.message.count(expected_message) == 1


@pytest.mark.parametrize(
    "caught",
    [
        "run().catch((error) => error.message)",
        "run().catch(async ({ message }) => message)",
        "run().catch(told)",
        "run().then(() => '', function (error) { return error.message; })",
    ],
)
async def test_an_error_that_a_promises_callback_catches_says_what_to_use_instead(
    hooks: Hooks, caught: str
) -> None:
    source = f"""\
        const run = async () => (ctx.space, undefined).Get("x");
        const told = (error) => error.message;
        let ctx;
        async function Create(given) {{
          ctx = given;
          return {{ metadata: {{ message: await {caught} }} }};
        }}
    """
    returned = await hooks.create(source)
    assert returned is not None
    assert "ctx.space is not offered by this host: use ctx.memory" in str(returned.metadata)


async def test_an_error_names_the_absent_part_that_was_read_last(hooks: Hooks) -> None:
    read = "(() => { try { ctx.%s.Get('x') } catch (error) { return error.message } })()"
    first, second, third = await hooks.value(
        f"[{', '.join(read % part for part in ('space', 'session', 'space'))}]"
    )
    assert "ctx.space is not offered" in first
    assert "ctx.session is not offered" in second
    assert "ctx.space is not offered" in third


async def test_text_encodings_agree_with_pythons(hooks: Hooks) -> None:
    text = "aé€😀\u0000z"
    assert await hooks.value(f"Array.from(new TextEncoder().encode({json.dumps(text)}))") == list(
        text.encode()
    )
    assert (
        await hooks.value(f"new TextDecoder().decode(new Uint8Array({list(text.encode())}))")
        == text
    )
    assert await hooks.value("btoa('hi\\u00ff!')") == "aGn/IQ=="
    assert await hooks.value("[atob('aGn/IQ=='), atob('aGk'), atob(' aG k= ')]") == [
        "hi\u00ff!",
        "hi",
        "hi",
    ]
    with pytest.raises(HookThrew, match="not base64"):
        await hooks.value("atob('a')")


async def test_broken_utf8_decodes_as_python_decodes_it(hooks: Hooks) -> None:
    samples = [
        b"\xff",
        b"\xc3",
        b"a\xe2\x82b",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x28\xa1",
    ]
    decoded = await hooks.value(
        f"{[list(sample) for sample in samples]}.map((b) => new TextDecoder().decode(new"
        " Uint8Array(b)))"
    )
    assert decoded == [sample.decode("utf-8", "replace") for sample in samples]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON_VALUES)
async def test_any_json_survives_the_way_in_and_out(hooks: Hooks, value: Any) -> None:
    returned = await hooks.create(
        "function Create(c, m, o) { return { metadata: o }; }", options={"v": value}
    )
    assert returned is not None
    assert returned.metadata == {"v": value}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1).filter(str.strip))
async def test_any_text_survives_a_host_call_and_its_answer(hooks: Hooks, text: str) -> None:
    services = Services()
    returned = await hooks.create(
        "function Create(c, m, o) { return { metadata: { v: c.search.Web(o.v).query } }; }",
        services,
        options={"v": text},
    )
    assert services.requests[0].query == text
    assert returned is not None
    assert returned.metadata == {"v": text}


async def test_half_a_surrogate_pair_becomes_the_replacement_character(hooks: Hooks) -> None:
    services = Services()
    assert await hooks.value(
        "[ctx.search.Web('a\\ud800b').query, '\\udc00', '\\ud83d\\ude00']", services
    ) == [
        "a\ufffdb",
        "\ufffd",
        "😀",
    ]
    assert services.requests[0].query == "a\ufffdb"


async def test_arguments_and_answers_longer_than_the_buffer_cross_in_pieces(hooks: Hooks) -> None:
    async def long(request: SearchRequest) -> SearchResult:
        content = request.query[::-1]
        return SearchResult(type="kb", query="", items=(Item(type="kb", content=content, key="k"),))

    text = "".join(chr(0x20 + n % 0x500) for n in range(200_000)) + "😀" * 50_000
    source = (
        "function Create(c, m, o) { return { metadata: { v: c.search.KB(o.v).items[0].content }"
        " }; }"
    )
    returned = await hooks.create(
        source, Services(answer=long), options={"v": text}, argument_kb=4096
    )
    assert returned is not None
    assert returned.metadata == {"v": text[::-1]}


async def test_a_hook_that_replaces_builtins_neither_breaks_nor_forges_a_call(hooks: Hooks) -> None:
    services = Services()
    source = """
        function Create(ctx: any) {
          const evil: any = () => { throw new Error("mine"); };
          const names: any = { JSON: ["parse", "stringify"], Reflect: ["apply", "construct", "setPrototypeOf"] };
          for (const owner of Object.keys(names)) for (const name of names[owner]) (globalThis as any)[owner][name] = evil;
          String.fromCharCode = evil; String.prototype.charCodeAt = evil; String.prototype.slice = evil;
          Function.prototype.call = evil; Function.prototype.apply = evil; Function.prototype.bind = evil;
          Promise.prototype.then = evil; Promise.resolve = evil;
          Object.defineProperty(Array.prototype, "0", { set: evil, get: evil, configurable: true });
          (Object.prototype as any).get = evil; (Object.prototype as any).set = evil; (Object.prototype as any).value = 7;
          Object.setPrototypeOf(Uint16Array.prototype, { get length() { throw new Error("mine"); } });
          Array.prototype[Symbol.iterator] = evil; Array.prototype.join = evil; Array.prototype.push = evil;
          Object.keys = evil; Object.freeze = evil; Object.prototype.hasOwnProperty = evil;
          (globalThis as any).eval = evil; (globalThis as any).Error = evil; (globalThis as any).TypeError = evil;
          try { (globalThis as any).__groundhook = { invoke: evil }; } catch {}
          log.Info("still %s", "here");
          let thrown = "";
          try { ctx.search.Web(5); } catch (error: any) { thrown = error.message; }
          return { metadata: { title: ctx.search.Web("q").items.length, thrown } };
        }
        async function Next() { return { data: "also" }; }
    """
    async with hooks.engine.open(hooks.turn(source, services)) as session:
        returned = await session.create([], {})
    assert returned is not None
    assert returned.metadata is not None
    assert returned.metadata["title"] == 1
    assert "query must be text" in returned.metadata["thrown"]
    assert [request.query for request in services.requests] == ["q"]
    assert services.lines == [("info", "still here")]


async def test_a_to_json_of_the_hook_changes_its_own_arguments_only(hooks: Hooks) -> None:
    services = Services()
    source = """
        function Create(ctx: any) {
          (Array.prototype as any).toJSON = () => ["forged"];
          ctx.search.Web("honest");
          log.Warn("x");
        }
    """
    await hooks.create(source, services)
    assert [request.type for request in services.requests] == ["web"]
    assert [level for level, _ in services.lines] == ["warn"]


def test_every_call_of_the_table_is_described_and_named_once() -> None:
    assert len({call.js for call in CALLS}) == len(CALLS)
    assert all(call.doc.endswith(".") for call in CALLS)
