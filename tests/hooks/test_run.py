"""What a hook receives, what it may return, and what becomes of both; in worker processes and in
this process."""

from __future__ import annotations

from contextlib import suppress

import pytest

from groundhook.core.errors import HookError, HookReturnInvalid, HookThrew
from groundhook.core.types.turn import Completion, Message, NextPayload
from tests.hooks.conftest import Hooks, Services


async def test_create_and_next_share_one_isolate(hooks: Hooks) -> None:
    source = """
        let seen = 0;
        function Create(ctx: any, messages: { content: string }[]) { seen = messages.length; return null; }
        function Next(ctx: any, payload: any) { return { data: { seen, text: payload.completion.content } }; }
    """
    async with hooks.engine.open(hooks.turn(source)) as session:
        assert (
            await session.create(
                [Message(role="user", content="a"), Message(role="user", content="b")], {}
            )
            is None
        )
        returned = await session.next(NextPayload(completion=Completion(content="done")), {})
    assert returned is not None
    assert returned.data == {"seen": 2, "text": "done"}


async def test_nothing_is_left_for_the_next_turn(hooks: Hooks) -> None:
    source = (
        "function Create() { globalThis.kept = (globalThis.kept || 0) + 1; return { metadata: {"
        " kept: globalThis.kept } }; }"
    )
    turn = hooks.turn(source)
    for _ in range(3):
        async with hooks.engine.open(turn) as session:
            returned = await session.create([], {})
        assert returned is not None
        assert returned.metadata == {"kept": 1}


async def test_a_package_without_the_function_returns_nothing(hooks: Hooks) -> None:
    assert await hooks.next("function Create() { return {}; }", NextPayload()) is None


@pytest.mark.parametrize(
    "source",
    [
        "export const answer = 42;",
        "export default async function (ctx) { return {}; }",
        "module.exports = { create() { return {}; } };",
        "module.exports = null;",
    ],
)
async def test_a_file_with_neither_create_nor_next_is_a_warning_of_the_turn(
    hooks: Hooks, source: str
) -> None:
    services = Services()
    assert await hooks.create(source, services) is None
    assert services.warnings == [
        (
            "hook_empty",
            "the hook defines neither Create nor Next (the host calls these names)",
        )
    ]
    assert services.places == ["assistants/x/index.ts"]


async def test_a_file_with_next_alone_is_no_warning(hooks: Hooks) -> None:
    services = Services()
    assert await hooks.create("exports.Next = () => null;", services) is None
    assert services.warnings == []


@pytest.mark.parametrize(
    "source",
    [
        "function Create() { return { locale: 'fr' }; }",
        "export function Create() { return { locale: 'fr' }; }",
        "export const Create = () => ({ locale: 'fr' });",
        "const Create = () => ({ locale: 'fr' });",
        "export default { Create: () => ({ locale: 'fr' }) };",
        "async function Create() { await null; return { locale: 'fr' }; }",
        "function Create() { return { then: (done) => done({ locale: 'fr' }) }; }",
        "exports.Create = () => ({ locale: 'fr' });",
        "module.exports = function Create() { return { locale: 'fr' }; };",
        "export default function Create() { return { locale: 'fr' }; }",
        "exports.default = function Create() { return { locale: 'fr' }; };",
        "function create() { return { locale: 'fr' }; }\nexport { create as Create };",
        "export default class Bot { static Create() { return { locale: 'fr' }; } }",
        "class Bot { Create() { return { locale: 'fr' }; } }\nexport default new Bot();",
        "export = { Create: () => ({ locale: 'fr' }) };",
    ],
)
async def test_create_is_found_however_it_is_written(hooks: Hooks, source: str) -> None:
    returned = await hooks.create(source)
    assert returned is not None
    assert returned.locale == "fr"


async def test_ctx_has_every_field_even_for_an_empty_turn(hooks: Hooks) -> None:
    fields = await hooks.value("JSON.parse(JSON.stringify(ctx))")
    assert fields["chat_id"] == "c1"
    assert fields["theme"] == ""
    assert fields["client"] == {"type": "", "user_agent": "", "ip": ""}
    assert fields["authorized"]["constraints"]["owner_only"] is False
    assert fields["metadata"] == {}


async def test_options_reach_the_hook(hooks: Hooks) -> None:
    returned = await hooks.create(
        "function Create(c, m, o) { return { metadata: o }; }",
        options={"search": False, "deep": [1, {"a": None}]},
    )
    assert returned is not None
    assert returned.metadata == {"search": False, "deep": [1, {"a": None}]}


async def test_numbers_that_json_lacks_arrive_as_null(hooks: Hooks) -> None:
    returned = await hooks.create(
        "function Create(c, m, o) { return { metadata: o }; }",
        options={"a": [float("nan"), float("inf"), 1.5]},
    )
    assert returned is not None
    assert returned.metadata == {"a": [None, None, 1.5]}


@pytest.mark.parametrize(
    ("returned", "path"),
    [
        (
            "{ messages: [{ role: 'user', content: 'a' }, { role: 'user' }, { role: 'boss' }] }",
            "messages[2].role",
        ),
        ("{ messages: 'hello' }", "messages"),
        ("{ temperature: 'hot' }", "temperature"),
        ("{ search: { search_types: ['web', 'cd'] } }", "search.search_types[1]"),
        ("{ citation: { format: 1 } }", "citation.format"),
        ("{ delegate: { messages: [] } }", "delegate.agent_id"),
        ("{ search: 'yes' }", "search"),
        ("{ search: 1 }", "search"),
        ("{ search: { need_search: 'no' } }", "search.need_search"),
        ("{ citation: { autoInjectPrompt: 'no' } }", "citation.autoInjectPrompt"),
        ("{ disable_global_prompts: 'no' }", "disable_global_prompts"),
        ("{ temperature: '0.5' }", "temperature"),
        ("{ max_tokens: '5' }", "max_tokens"),
        ("{ max_tokens: true }", "max_tokens"),
    ],
)
async def test_a_wrong_type_is_named_with_its_path_and_file(
    hooks: Hooks, returned: str, path: str
) -> None:
    with pytest.raises(HookReturnInvalid) as caught:
        await hooks.create(f"function Create() {{ return {returned}; }}")
    assert f"at {path}: " in caught.value.message
    assert str(caught.value).startswith("assistants/x/index.ts: what Create returned is wrong")


async def test_all_wrong_types_are_in_one_error(hooks: Hooks) -> None:
    returned = "{ search: 3, messages: 'x', uses: { web: 1 }, theme: 'dark' }"
    with pytest.raises(HookReturnInvalid) as caught:
        await hooks.create(f"function Create() {{ return {returned}; }}")
    assert caught.value.message == (
        "what Create returned is wrong at messages: should be a list;"
        " at search: should be true or false, or be an object; at uses.web: should be text"
    )


async def test_very_many_wrong_types_are_counted(hooks: Hooks) -> None:
    with pytest.raises(
        HookReturnInvalid, match=r"wrong at uses\.0: .*; at uses\.4: .*; and 95 more"
    ):
        await hooks.create("const Create = () => ({ uses: { ...Array(100).fill(1) } });")


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("5", "must return an object or nothing, not 5"),
        ("[1]", "must return an object or nothing, not [1]"),
        ("() => 1", "a function has no JSON form"),
        (
            "(() => { const a: any = {}; a.a = a; return a; })()",
            "cannot be made JSON: Converting circular structure",
        ),
        ("{ metadata: { big: 10n } }", "cannot be made JSON"),
        ("JSON.parse('['.repeat(3000) + ']'.repeat(3000))", "nested too deeply"),
    ],
)
async def test_a_return_that_is_not_an_object_is_refused(
    hooks: Hooks, returned: str, text: str
) -> None:
    with pytest.raises(HookReturnInvalid, match=r"Create") as caught:
        await hooks.create(f"function Create() {{ return {returned} as any; }}")
    assert text in caught.value.message


async def test_an_unknown_key_of_the_return_is_a_warning_with_the_nearest_name(
    hooks: Hooks,
) -> None:
    services = Services()
    returned = await hooks.create(
        "function Create() { return { temprature: 1, locale: 'fr' }; }", services
    )
    assert returned is not None
    assert returned.locale == "fr"
    assert services.warnings == [
        (
            "unknown_option",
            "what Create returned has an unknown key 'temprature' (did you mean 'temperature'?)",
        )
    ]


async def test_a_throw_names_the_line_of_the_second_file_and_who_called_it(hooks: Hooks) -> None:
    files = {
        "index.ts": (
            """\
            import { check } from "./lib/check";

            interface Wide { a: number; b: string }

            function Create(ctx: any) {
              check({ a: 1 } as any);
            }
            """
        ),
        "lib/check.ts": (
            """\
            type Strict = { a: number };
            enum Level { Low, High }

            export function check(value: Strict): void {
              if (value.a === Level.High) {
                throw new RangeError("too high");
              }
            }
            """
        ),
    }
    with pytest.raises(HookThrew) as caught:
        await hooks.create(files)
    assert (
        str(caught.value)
        == "assistants/x/lib/check.ts:6:11: Create threw RangeError: too high (called from"
        " assistants/x/index.ts:6:8 in Create)"
    )


async def test_a_caller_is_named_once_however_often_it_called_itself(hooks: Hooks) -> None:
    with pytest.raises(HookThrew, match="Maximum call stack") as caught:
        await hooks.create("function down() { down(); }\nfunction Create() { down(); }")
    assert caught.value.hint == "called from assistants/x/index.ts:1:19 in down"


async def test_a_function_that_another_file_does_not_have_is_called_by_its_name(
    hooks: Hooks,
) -> None:
    files = {
        "index.ts": 'import { tea } from "./b";\nfunction Create() { tea(); }',
        "b.ts": "export const x = 1;",
    }
    with pytest.raises(HookThrew, match="Create threw TypeError: tea is not a function"):
        await hooks.create(files)


async def test_a_rejected_promise_names_its_line(hooks: Hooks) -> None:
    with pytest.raises(HookThrew) as caught:
        await hooks.create(
            "\n\nasync function Create(): Promise<void> {\n  await null;\n  throw new"
            " Exception('no', 404);\n}"
        )
    assert str(caught.value) == "assistants/x/index.ts:5:9: Create threw no (code 404)"


@pytest.mark.parametrize("thrown", ["'plain'", "{ message: 'plain' }", "{ why: 'plain' }"])
async def test_a_throw_of_anything_says_what_was_thrown(hooks: Hooks, thrown: str) -> None:
    with pytest.raises(HookThrew, match=r"assistants/x/index.ts.*Create threw .*plain"):
        await hooks.create(f"function Create() {{ throw {thrown}; }}")


@pytest.mark.parametrize("thrown", ["null", "undefined"])
@pytest.mark.parametrize("kind", ["function", "async function"])
async def test_a_throw_of_nothing_says_so(hooks: Hooks, kind: str, thrown: str) -> None:
    with pytest.raises(HookThrew) as caught:
        await hooks.create(f"{kind} Create() {{ throw {thrown}; }}")
    assert (
        caught.value.message
        == f'Create threw {thrown}, which is not an error (throw new Error("…") has a message and a place)'
    )


@pytest.mark.parametrize(
    ("thrown", "message"),
    [
        ("new Error('outer', { cause: new TypeError('inner') })", "outer (cause: inner)"),
        ("new Error('outer', { cause: 5 })", "outer (cause: 5)"),
        (
            "new AggregateError([new Error('a'), 'b', new Error('c'), 'd'], 'all')",
            "AggregateError: all (a; b; c)",
        ),
        ("{ message: 'm', get cause() { throw 1; } }", "m"),
    ],
)
async def test_what_caused_an_error_is_in_its_message(
    hooks: Hooks, thrown: str, message: str
) -> None:
    with pytest.raises(HookThrew) as caught:
        await hooks.create(f"function Create() {{ throw {thrown}; }}")
    assert caught.value.message == f"Create threw {message}"


async def test_a_getter_that_throws_in_a_return_value_is_located(hooks: Hooks) -> None:
    source = "function Create() {\n  return { get messages() { throw new Error('no'); } };\n}"
    with pytest.raises(HookReturnInvalid, match="cannot be made JSON: no") as caught:
        await hooks.create(source)
    assert str(caught.value.place) == "assistants/x/index.ts:2:35"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("export const Create = 5;", "1:14: Create is a number, not a function"),
        (
            "\n let x = 1;\n const Create = { messages: [] };",
            "3:7: Create is an object, not a function",
        ),
        ("export function* Create() { yield 1; }", "1:18: Create is a generator, not a function"),
        (
            "export const Create = async function* () {};",
            "1:14: Create is a generator, not a function",
        ),
        ("export const Create = [() => 1];", "1:14: Create is a list, not a function"),
        ("export class Create {}", "1:14: Create is a class, not a function"),
        ("enum Next { A }", "1:6: Next is an enum, not a function"),
        (
            "export default class Bot { Create(ctx) {} }",
            "1:28: Create is a method, not a function",
        ),
        (
            "function hook() { return 'x'; }\nexport const Create = hook();",
            ": Create is a string, not a function",
        ),
        ("export default { Create: 5 };", ": Create is a number, not a function"),
    ],
)
async def test_a_hooks_name_that_is_no_function_is_an_error(
    hooks: Hooks, source: str, text: str
) -> None:
    with pytest.raises(HookError, match="not a function") as caught:
        await hooks.create(source)
    assert f"assistants/x/index.ts:{text}".replace("ts::", "ts:") in str(caught.value)


@pytest.mark.parametrize("written", ["function", "async function"])
async def test_of_a_returned_ctx_what_create_set_there_counts(hooks: Hooks, written: str) -> None:
    services = Services()
    source = "Create(ctx) { ctx.metadata.mood = 'calm'; ctx.locale = 'de'; return ctx; }"
    returned = await hooks.create(f"{written} {source}", services)
    assert returned is not None
    assert returned.model_dump(exclude_none=True) == {"metadata": {"mood": "calm"}, "locale": "de"}
    assert services.warnings == []


async def test_values_of_that_name_in_another_file_are_nobodys_hooks(hooks: Hooks) -> None:
    files = {
        "index.ts": (
            "import { Next } from './b';\nexport function Create() { return { metadata: { next:"
            " Next } }; }"
        )
    }
    returned = await hooks.create({**files, "b.ts": "export const Next = 5;"})
    assert returned is not None
    assert returned.metadata == {"next": 5}


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (
            "{ metadata: { score: 0 / 0 } }",
            "what Create returned has NaN at metadata.score, which arrives as null",
        ),
        (
            "{ messages: [], metadata: { a: [1, { b: -1 / 0 }] } }",
            "has -Infinity at metadata.a[1].b, which arrives as null",
        ),
        (
            "{ temperature: NaN, max_tokens: Infinity }",
            "has NaN at temperature, which arrives as null (and 1 more like it)",
        ),
        (
            "{ metadata: { 'a b': { at: new Date('x') } } }",
            "an object whose JSON is null (an invalid date?) at metadata.a b.at",
        ),
    ],
)
async def test_a_returned_number_that_json_lacks_is_reported_with_its_path(
    hooks: Hooks, returned: str, text: str
) -> None:
    services = Services()
    await hooks.create(f"function Create() {{ return {returned}; }}", services)
    ((code, message),) = services.warnings
    assert code == "hook_not_finite"
    assert text in message


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (
            "{ metadata: { seen: new Map([['a', 1]]) } }",
            "what Create returned has a value of type Map at metadata.seen, which arrives as {}"
            " (Object.fromEntries(map) makes an object of it)",
        ),
        (
            "{ metadata: { of: [{ words: new Set(['a']) }, new Set()] } }",
            "what Create returned has a value of type Set at metadata.of[0].words, which arrives as"
            " {} (and 1 more like it) ([...set] makes a list of it)",
        ),
        (
            "{ metadata: { later: (async () => 1)() } }",
            "what Create returned has a value of type Promise at metadata.later, which arrives as"
            " {} (await it)",
        ),
        (
            "{ metadata: { why: new TypeError('no') } }",
            "what Create returned has a value of type Error at metadata.why, which arrives as {}"
            " (String(error) is its text)",
        ),
        (
            "new Map([['metadata', {}]])",
            "Create returned a value of type Map, which arrives as {} (Object.fromEntries(map)"
            " makes an object of it)",
        ),
    ],
)
async def test_a_returned_value_that_json_empties_is_reported_with_its_path(
    hooks: Hooks, returned: str, text: str
) -> None:
    services = Services()
    await hooks.create(f"function Create() {{ return {returned}; }}", services)
    assert services.warnings == [("hook_not_json", text)]


async def test_empty_objects_of_the_hook_itself_are_no_warning(hooks: Hooks) -> None:
    services = Services()
    source = """\
        class Empty {}
        function Create(ctx) {
          ctx.search.KB("{}", {});
          return { metadata: { a: {}, b: new Empty(), c: Object.create(null), d: "{}", e: [{}] } };
        }
    """
    await hooks.create(source, services)
    assert services.warnings == []


async def test_a_map_that_a_call_is_given_is_reported_with_its_line(hooks: Hooks) -> None:
    services = Services()
    source = """\
        function Create(ctx) {
          ctx.search.KB("q", new Map([["limit", 1]]));
        }
    """
    await hooks.create(source, services)
    assert services.warnings == [
        (
            "hook_not_json",
            "ctx.search.KB was given a value of type Map at argument 2, which arrives as {}"
            " (Object.fromEntries(map) makes an object of it)",
        )
    ]
    assert services.places == ["assistants/x/index.ts:2:14"]


async def test_an_argument_that_json_lacks_is_reported_with_its_line(
    hooks: Hooks,
) -> None:
    services = Services()
    source = """\
        function Create(ctx: any) {
          ctx.search.KB("q", { threshold: NaN });
          ctx.search.All([{ type: "kb", query: "q", limit: 1 / 0 }]);
        }
    """
    with suppress(HookError):  # `limit: null` is refused or not by who is called
        await hooks.create(source, services)
    assert services.warnings[:2] == [
        (
            "hook_not_finite",
            "ctx.search.KB was given NaN at argument 2.threshold, which arrives as null",
        ),
        (
            "hook_not_finite",
            "ctx.search.All was given Infinity at argument 1[0].limit, which arrives as null",
        ),
    ]
    assert services.places == ["assistants/x/index.ts:2:14", "assistants/x/index.ts:3:14"]


async def test_null_that_a_hook_says_itself_is_no_number_that_json_lacks(hooks: Hooks) -> None:
    services = Services()
    await hooks.create(
        "function Create(ctx) { ctx.search.KB('null', null); return { metadata: { a: null, b:"
        " 'null' } }; }",
        services,
    )
    assert services.warnings == []


async def test_a_throw_while_the_module_loads_names_its_line(hooks: Hooks) -> None:
    with pytest.raises(HookThrew, match=r"^assistants/x/index.ts:2:9: Create threw TypeError"):
        await hooks.create("const nothing: any = null;\nnothing.at;\nfunction Create() {}")


async def test_a_hook_can_be_called_again_after_it_threw(hooks: Hooks) -> None:
    source = (
        "function Create() { throw new Error('first'); }\nfunction Next() { return { data: 'well'"
        " }; }"
    )
    async with hooks.engine.open(hooks.turn(source)) as session:
        with pytest.raises(HookThrew):
            await session.create([], {})
        returned = await session.next(NextPayload(error="none"), {})
    assert returned is not None
    assert returned.data == "well"


async def test_places_in_a_logged_stack_are_those_of_the_source(hooks: Hooks) -> None:
    services = Services()
    await hooks.create(
        "interface A {}\nfunction Create() {\n  console.log(new Error('here'));\n}", services
    )
    ((level, line),) = services.lines
    assert level == "info"
    assert "at Create (assistants/x/index.ts:3:15)" in line
    assert "<anonymous>" not in line
    assert "hook:" not in line
