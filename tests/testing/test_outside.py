"""What else hooks reach for: MCP servers, records and hosts of the web are recorded, memory is each
test's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.loopback.server import Json, serving
from tests.testing.conftest import RunTests, rerun

SERVER = (Path(__file__).parents[1] / "mcp" / "server.py").as_posix()
QUIET = 'const quiet = { searches: { kb: [] }, model: ["x"] };\n'
CASSETTE = "assistants/a/tests/first.cassette.json"


async def test_mcp_calls_are_played_when_the_server_is_gone(run_tests: RunTests) -> None:
    declared = json.dumps({"transport": "stdio", "command": sys.executable, "args": [SERVER]})
    ran = await run_tests(
        QUIET
        + 'test("mcp", () => expect(turn("?", quiet).metadata.found).toMatchObject([{ results: [{'
        ' title: "pens" }] }, /fail/]));',
        record=True,
        package_yao='{"name": "A", "kb": {"collections": ["docs"]}, "mcp": {"servers": ["tests"]}}',
        mcps__tests_mcp_yao=declared,
        index_ts="""
            function Create(ctx) {
              const found = ctx.mcp.CallTool("tests", "search", { query: "pens" });
              const failed = ctx.mcp.CallTool("tests", "fail", { why: "no" });
              return { metadata: { found: [found.result, failed.error] } };
            }
            """,
    )
    assert ran.outcome == {"mcp": "passed"}, ran.why()
    (ran.app / "assistants/a/mcps/tests.mcp.yao").write_text(
        '{"transport": "stdio", "command": "gone"}', encoding="utf-8"
    )
    played = await rerun(ran.app)
    assert played.outcome == {"mcp": "passed"}, played.why()


@pytest.mark.parametrize(("tools", "listed"), [((), []), (("search",), ["search"])])
async def test_tools_of_a_server_need_no_recording_until_one_is_called(
    run_tests: RunTests, tools: tuple[str, ...], listed: list[str]
) -> None:
    server = {"transport": "stdio", "command": "gone", "tools": tools}
    hook = """
        function Create(ctx, messages) {
          const names = ctx.mcp.ListTools("tests").tools.map((tool) => tool.name);
          if (messages[0].content === "call") ctx.mcp.CallTool("tests", "search", {});
          return { metadata: { names } };
        }
        """
    ran = await run_tests(
        QUIET
        + f"""
        test("list", () => {{
          const answer = turn("?", quiet);
          expect(answer.metadata.names).toEqual({json.dumps(listed)});
          expect(answer.warnings).toEqual([]);
        }});
        test("call", () => turn("call", quiet));
        """,
        package_yao='{"name": "A", "mcp": {"servers": ["tests"]}}',
        mcps__tests_mcp_yao=json.dumps(server),
        index_ts=hook,
    )
    assert ran.outcome == {"list": "passed", "call": "failed"}
    assert "no recording of this MCP call" in ran.why("call")
    assert "its tools are" in "\n".join(ran.results[1].console)


async def test_a_server_that_does_a_step_must_be_recorded(run_tests: RunTests) -> None:
    ran = await run_tests(
        """
        test("step", () => {
          const before = [{ role: "user", content: "What is tea?" }, { role: "assistant", content: "A drink." }];
          turn([...before, { role: "user", content: "And where is it grown?" }], { searches: { kb: [] }, model: ["x"] });
        });
        """,
        package_yao='{"name": "A", "kb": ["docs"], "search": {"kb": true}, "uses": {"rewrite": "mcp:tests.rewrite"}}',
        mcps__tests_mcp_yao='{"transport": "stdio", "command": "gone"}',
    )
    assert ran.outcome == {"step": "failed"}
    assert "no recording of this MCP call" in ran.why()


RERANKER = """
    function Next(ctx, payload) {
      const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
      return { data: { order: request.items.map((item) => item.citation_id).reverse() } };
    }
    """
RERANKED = """
    test("order", () => {
      const answer = turn("?", { searches: { kb: ["one", "two"] }, model: ["So {ref:0}."] });
      expect(answer.warnings).toEqual([]);
      expect(answer).toHaveCited("two");
    });
    """


async def test_an_assistant_that_reranks_needs_no_recording(run_tests: RunTests) -> None:
    ran = await run_tests(
        RERANKED,
        package_yao='{"name": "A", "kb": ["docs"], "search": {"kb": true}, "uses": {"rerank": "a.judge"}}',
        judge__package_yao='{"name": "Judge"}',
        judge__index_ts=RERANKER,
    )
    assert ran.outcome == {"order": "passed"}, ran.why()
    recorded = await rerun(ran.app, record=True)
    assert recorded.outcome == {"order": "passed"}, recorded.why()
    assert not (ran.app / CASSETTE).exists()


async def test_a_step_takes_no_answer_from_the_script_of_the_turn(run_tests: RunTests) -> None:
    create = "function Create(ctx, messages) { return { messages }; }"
    for hook, warnings in ((f"{create}{RERANKER}", 0), (create, 1)):
        ran = await run_tests(
            """
            test("order", () => {
              const answer = turn("?", { searches: { kb: ["one", "two"] }, model: ["So {ref:0}."] });
              expect(answer.error).toBeNull();
              expect(answer.content).toMatch(/^So /);
            """
            f"  expect(answer.warnings).toHaveLength({warnings}); }});",
            package_yao='{"name": "A", "kb": ["docs"], "search": {"kb": true}, "uses": {"rerank": "a.judge"}}',
            judge__package_yao='{"name": "Judge", "connector": "parrot"}',
            judge__index_ts=hook,
        )
        assert ran.outcome == {"order": "passed"}, ran.why()


async def test_requests_to_the_web_are_played_and_hold_no_header_values(
    run_tests: RunTests,
) -> None:
    with serving() as server:
        server.on("/api", Json({"n": 5}))
        ran = await run_tests(
            QUIET + 'test("web", () => expect(turn("?", quiet).metadata.n).toBe(5));',
            record=True,
            package_yao=json.dumps(
                {"name": "A", "http": {"hosts": [server.url.removeprefix("http://")]}}
            ),
            index_ts=f"""
                const ask = () => http.Get({json.dumps(server.url + "/api")}, null, {{ Authorization: "Bearer s3cret" }});
                const Create = () => ({{ metadata: {{ n: ask().data.n }} }});
                """,
        )
        assert ran.outcome == {"web": "passed"}, ran.why()
    assert "s3cret" not in (ran.app / CASSETTE).read_text(encoding="utf-8")
    played = await rerun(ran.app)
    assert played.outcome == {"web": "passed"}, played.why()


async def test_records_are_played(run_tests: RunTests) -> None:
    model = """
        { "name": "Pen", "table": { "name": "pen" }, "columns": [{ "name": "id", "type": "ID" }] }
        """
    ran = await run_tests(
        QUIET + 'test("records", () => expect(turn("?", quiet).error.code).toBe("hook_threw"));',
        record=True,
        package_yao='{"name": "A", "db": {"models": ["pen"]}}',
        models__pen_mod_yao=model,
        index_ts='const Create = () => ({ metadata: { found: Process("models.pen.Get", {}) } });',
    )
    assert ran.outcome == {"records": "passed"}, ran.why()
    calls = json.loads((ran.app / CASSETTE).read_text(encoding="utf-8"))["calls"]
    assert [(call["call"], list(call["answers"][0])) for call in calls] == [
        ("record query", ["error"])
    ]
    assert (await rerun(ran.app)).outcome == {"records": "passed"}


async def test_memory_is_shared_by_the_turns_of_a_test_and_by_no_others(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        QUIET
        + """
        const byAnn = { ...quiet, identity: { user_id: "ann" } };
        const count = () => turn("?", byAnn).metadata.count;
        test("first", () => expect([count(), count()]).toEqual([1, 2]));
        test("second", () => expect(count()).toBe(1));
        """,
        index_ts=(
            'function Create(ctx) { return { metadata: { count: ctx.memory.user.Incr("n") } }; }'
        ),
    )
    assert ran.outcome == {"first": "passed", "second": "passed"}, ran.results
