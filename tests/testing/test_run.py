"""Files of tests through their own door: what a test sees of a turn, and the report of one that
fails."""

from __future__ import annotations

import pytest

from groundhook.core.errors import UnknownName, UsageError
from tests.testing.conftest import RunTests

HOOK = """\
    function Create(ctx, messages) {
      const found = ctx.search.KB("in the hook", { limit: 3 });
      return { metadata: { found: found.items.length, at: new Date().toISOString(), chance: [Math.random(), Math.random()] } };
    }
    function Next(ctx, payload) { return { data: { text: payload.completion.content } }; }
    """


async def test_a_turn_says_what_was_searched_cited_and_returned(run_tests: RunTests) -> None:
    ran = await run_tests(
        """
        test("all of it", () => {
          const answer = turn("What is it?", {
            searches: { kb: { "in the hook": [{ title: "T1" }, "T2"], "*": [] } },
            model: ["It is this {ref:0} and #ref:zz9z."],
          });
          expect(answer.error).toBeNull();
          expect(answer.searches.map((search) => search.query)).toEqual(["in the hook", "What is it?"]);
          expect(answer).toHaveSearched("kb", { query: "in the hook", limit: 3, collections: ["docs"], source: "hook" });
          expect(answer).not.toHaveSearched("web");
          expect(answer).toHaveCited("T1");
          expect(answer).not.toHaveCited("T2");
          expect(answer.citations.map((each) => each.verdict)).toEqual(["ok", "unknown"]);
          expect(answer.content).toMatch(/^It is this #ref:/);
          expect(answer).toHaveReturned({ text: answer.content });
          expect(answer.metadata.found).toBe(2);
          expect(answer.model_calls[0].messages.at(-1).content).toMatch(/END SOURCES[^]*What is it\\?$/);
          expect(answer.events[0]).toMatchObject({ type: "stream_start", assistant_id: "a" });
        });
        """,
        index_ts=HOOK,
    )
    assert ran.outcome == {"all of it": "passed"}, ran.why()


async def test_the_clock_and_chance_are_the_same_for_tests_and_hooks_on_every_run(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        """
        const quiet = { searches: { kb: [] }, model: ["x"] };
        test("clock", () => {
          expect(new Date().toISOString()).toBe("2026-01-01T12:00:00.000Z");
          expect(turn("?", quiet).metadata.at).toBe("2026-01-01T12:00:00.000Z");
          expect(turn("?", { ...quiet, now: "2026-05-05T00:00:00Z" }).metadata.at).toBe("2026-05-05T00:00:00.000Z");
          expect(new Date(0).getTime()).toBe(0);
          expect(new Date() instanceof Date).toBe(true);
        });
        test("chance", () => {
          const [first, second] = turn("?", quiet).metadata.chance;
          expect(first).not.toBe(second);
          expect(first).toBeLessThan(1);
          expect(turn("?", quiet).metadata.chance).toEqual([first, second]);
        });
        test("prompt", () => {
          const calls = () => turn("?", { searches: { kb: ["T"] }, model: ["x"] }).model_calls;
          expect(calls()).toEqual(calls());
        });
        """,
        index_ts=HOOK,
    )
    assert set(ran.outcome.values()) == {"passed"}, ran.results


async def test_a_failure_names_the_line_of_the_test_with_expected_and_actual(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        '\ntest("wrong", () => {\n  const answer = { a: 1 };\n  expect(answer).toEqual({ a: 2'
        " });\n});\n"
    )
    assert ran.why() == 'assistants/a/tests/first.test.ts:4:18\nexpected to equal\n{"a":2}\n{"a":1}'


async def test_a_failure_in_a_file_of_the_package_names_that_file_and_who_called_it(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        'import { half } from "../lib/half";\ntest("odd", () => {\n  half(3);\n});\n',
        lib__half_ts=(
            'export function half(n: number) {\n  if (n % 2) throw new RangeError("odd: " + n);\n '
            " return n / 2;\n}\n"
        ),
    )
    why = ran.why()
    assert why.startswith("assistants/a/lib/half.ts:2:20\nRangeError: odd: 3\n")
    assert why.endswith("\nassistants/a/tests/first.test.ts:3:7")


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        ('expect(turn("?", quiet)).toHaveSearched("web")', "to have searched web"),
        ('expect(turn("?", quiet)).toHaveSearched("kb", /other/)', "to have searched kb /other/"),
        ('expect(turn("?", quiet)).toHaveCited("T1")', 'to have cited "T1"'),
        ('expect(turn("?", quiet)).toHaveFailed()', "to have failed  no error"),
        ('expect(turn("?", quiet)).toHaveReturned({ a: 1 })', 'to have returned {"a":1} null'),
        ('expect(turn("?", quiet)).toHaveSent("hello")', 'to have sent "hello" []'),
        ('expect("abc").toContain("d")', 'to contain "d" "abc"'),
        ("expect([1, { a: 2 }]).not.toContain({ a: 2 })", 'not to contain {"a":2} [1,{"a":2}]'),
        ("expect(() => 1).toThrow()", "to throw  nothing was thrown"),
        ('expect(() => { throw new Error("x") }).toThrow("y")', 'to throw "y" Error: x'),
        ("expect([1]).toHaveLength(2)", "to have the length 2 1: [1]"),
        ("expect({ a: [1, { b: 2, c: 3 }] }).toMatchObject({ a: [1, { b: 3 }] })", "to have"),
        ("expect(NaN).toBe(0)", "to be 0 NaN"),
        ("expect(undefined).toBeDefined()", "to be defined  undefined"),
        ("expect(3).toBeGreaterThan(3)", "to be greater than 3 3"),
        (
            'expect({}).toHaveCited("x")',
            "TypeError: expect(…).toHaveCited needs what turn() returned",
        ),
    ],
)
async def test_a_failed_expectation_is_reported_in_words(
    run_tests: RunTests, expectation: str, expected: str
) -> None:
    ran = await run_tests(
        'const quiet = { searches: { kb: [] }, model: ["x"] };\ntest("wrong", () => {'
        f" {expectation}; }});"
    )
    assert expected in ran.why().replace("\n", " ")


async def test_a_true_expectation_passes(run_tests: RunTests) -> None:
    ran = await run_tests("""
        test("values", () => {
          expect({ a: [1, undefined], b: undefined }).toEqual({ a: [1, undefined] });
          expect(new Date(5)).toEqual(new Date(5));
          expect(new Set([1])).not.toEqual(new Set([2]));
          expect([1, 2]).not.toEqual({ 0: 1, 1: 2 });
          expect({ a: "xyz", b: 1 }).toMatchObject({ a: /y/ });
          expect("text").toMatch(/ex/);
          expect(() => { throw new Error("no way") }).toThrow(/way/);
          expect(0).toBeFalsy();
          expect(1).toBeTruthy();
          expect(undefined).toBeUndefined();
          expect(2).toBeGreaterThanOrEqual(2);
          expect(2).toBeLessThanOrEqual(2);
        });
        test("a promise", async () => { expect(await Promise.resolve(1)).toBe(1); });
        describe("group", () => { test("inner", () => {}); });
        test.skip("later", () => { throw new Error("never run"); });
        """)
    assert ran.outcome == {
        "values": "passed",
        "a promise": "passed",
        "group › inner": "passed",
        "later": "skipped",
    }, ran.results


async def test_a_rejected_promise_fails_the_test_that_returned_it(run_tests: RunTests) -> None:
    ran = await run_tests('test("late", async () => {\n  await null;\n  expect(1).toBe(2);\n});')
    assert ran.why().startswith("assistants/a/tests/first.test.ts:3:13\nexpected to be")


async def test_nothing_that_a_test_leaves_behind_is_there_for_the_next(run_tests: RunTests) -> None:
    ran = await run_tests("""
        let seen = 0;
        test("first", () => { seen += 1; globalThis.left = 1; expect(seen).toBe(1); });
        test("second", () => { seen += 1; expect(seen).toBe(1); expect(globalThis.left).toBeUndefined(); });
        """)
    assert ran.outcome == {"first": "passed", "second": "passed"}


async def test_a_failed_turn_is_an_answer_with_an_error(run_tests: RunTests) -> None:
    ran = await run_tests("""
        test("the model", () => {
          const model = [{ text: "Half of it", error: { code: "stalled", after: 4 } }];
          const answer = turn("?", { searches: { kb: [] }, model });
          expect(answer).toHaveFailed({ code: "model_stalled" });
          expect(answer.content).toBe("Half");
        });
        test("the source", () => {
          const answer = turn("?", { searches: { kb: "out of order" }, model: ["x"] });
          expect(answer.error).toBeNull();
          expect(answer.searches[0].error).toBe("out of order");
        });
        """)
    assert set(ran.outcome.values()) == {"passed"}, ran.results


async def test_a_hook_that_throws_is_the_turns_error_with_its_own_line(run_tests: RunTests) -> None:
    ran = await run_tests(
        """
        test("thrown", () => {
          expect(turn("?")).toHaveFailed({ code: "hook_threw", file: "assistants/a/index.ts", line: 2 });
        });
        """,
        index_ts="function Create() {\n  throw new Error('no');\n}\n",
    )
    assert ran.outcome == {"thrown": "passed"}, ran.why()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('turn("?", { modle: [] })', "turn: unknown key 'modle' (did you mean 'model'?)"),
        ("turn(5)", "turn: the message must be text or a list"),
        ('turn("?", 5)', "turn: options must be an object"),
        (
            'turn("?", { searches: { kb: [5] } })',
            "turn: searches.kb: item 0 must be a title or an object",
        ),
        (
            'turn("?", { searches: { kb: [{ titel: "x" }] } })',
            "unknown key 'titel' (did you mean 'title'?)",
        ),
        (
            'turn("?", { searches: { kb: [{ score: 7 }] } })',
            "turn: searches.kb: item 0: score: should be less than or equal to 1",
        ),
        ('turn("?", { model: [{ txt: "x" }] })', "options.script[0]"),
        ('turn("?", { assistant: "b" })', "no assistant 'b'"),
        ('turn("?", { model: ["x"], searches: { kb: [] }, connector: "nobody" }); throw 1', "1"),
    ],
)
async def test_wrong_arguments_throw_at_their_line(
    run_tests: RunTests, call: str, text: str
) -> None:
    ran = await run_tests(f'test("wrong", () => {{\n  {call};\n}});')
    assert text in ran.why()


async def test_an_endless_test_meets_its_limit_and_the_next_one_runs(run_tests: RunTests) -> None:
    ran = await run_tests(
        'test("endless", () => { for (;;); });\ntest("next", () => {});',
        package_yao='{"name": "A", "hooks": {"limits": {"cpu_ms": 200}}}',
    )
    assert ran.outcome == {"endless": "failed", "next": "passed"}
    assert "computed for more than 200 ms" in ran.why()


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ('test("x", () => {', "assistants/a/tests/first.test.ts:1:18"),
        ("nothing.there();", "ReferenceError: nothing is not defined"),
        ('import "../nowhere";', "finds no file"),
        ("ctx.search", "ctx is not defined"),
        ("const x = 1;", "there is no test in this file"),
        ('test("only a name");', "test needs a name and a function"),
    ],
)
async def test_a_file_that_cannot_be_run_is_one_failure_with_its_place(
    run_tests: RunTests, file: str, why: str
) -> None:
    ran = await run_tests(file)
    assert [result.status for result in ran.results] == ["failed"]
    assert why in ran.why()
    assert "assistants/a/tests/first.test.ts" in ran.why()


async def test_a_package_that_is_broken_fails_its_tests_with_the_place(run_tests: RunTests) -> None:
    ran = await run_tests('test("x", () => {});', package_yao='{"name": "A", "search": {"kb": 7}}')
    assert "assistants/a/package.yao:1" in ran.why()


async def test_assistants_without_tests_and_unknown_ones_are_reported(run_tests: RunTests) -> None:
    with pytest.raises(UnknownName, match="no assistant 'aa'"):
        await run_tests('test("x", () => {});', assistants=("aa",))
    with pytest.raises(UsageError, match="no tests in assistants/b/tests"):
        await run_tests(
            'test("x", () => {});', assistants=("b",), **{"../b/package.yao": '{"name": "B"}'}
        )


async def test_console_lines_are_kept_with_their_test(run_tests: RunTests) -> None:
    ran = await run_tests(
        'test("x", () => { console.log("n is %d", 5); console.warn("careful"); });'
    )
    assert ran.results[0].console == ("n is 5", "warn: careful")


async def test_hooks_know_nothing_of_what_tests_have(run_tests: RunTests) -> None:
    ran = await run_tests(
        """
        test("x", () => {
          const { kinds } = turn("?", { searches: { kb: [] }, model: ["x"] }).metadata;
          expect(kinds).toEqual(["undefined", "undefined"]);
        });
        """,
        index_ts=(
            "function Create() { return { metadata: { kinds: [typeof turn, typeof expect] } }; }"
        ),
    )
    assert ran.outcome == {"x": "passed"}, ran.why()


async def test_a_failed_or_warned_turn_is_shown_beside_the_failed_expectations(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        """
        test("on", () => { expect(turn("What?", { model: ["x"] }).content).toBe("x"); });
        """,
        index_ts=(
            "function Create(ctx, messages) {\n  ctx.search.KB('q', { limt: 3 });\n "
            " messages.none.at(0);\n}"
        ),
    )
    warned, failed = ran.results[0].console[-2:]
    assert warned.startswith(
        "the turn warned: assistants/a/index.ts: ctx.search.KB: unknown key 'limt'"
    )
    assert failed.startswith("the turn failed: assistants/a/index.ts:3:17: Create threw TypeError")


async def test_an_error_that_nothing_in_a_test_waits_for_fails_it_at_its_line(
    run_tests: RunTests,
) -> None:
    ran = await run_tests(
        """
        async function late() {
          throw new Error("unheard");
        }
        test("floating", () => { late(); });
        test("a timer", async () => {
          setTimeout(() => { throw new Error("boom"); }, 1);
          await new Promise((resolve) => setTimeout(resolve, 3));
        });
        test("awaited", async () => { await late().catch(() => null); });
        test("not finite", () => { turn("?", { searches: { kb: [] }, model: ["x"], metadata: { a: NaN } }); });
        """,
        index_ts=HOOK,
    )
    assert ran.outcome == {
        "floating": "failed",
        "a timer": "failed",
        "awaited": "passed",
        "not finite": "passed",
    }
    floating, timer, _, not_finite = ran.results
    assert floating.fault is not None
    assert "does not await threw unheard" in floating.fault.message
    assert str(floating.place).endswith("tests/first.test.ts:3:9")
    assert timer.fault is not None
    assert "threw boom" in timer.fault.message
    assert any(
        "turn was given NaN at argument 2.metadata.a, which arrives as null" in line
        for line in not_finite.console
    )
