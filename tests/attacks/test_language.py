"""Hooks that turn the language against the host: replaced builtins, hostile values, and every way
out that JavaScript has."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import Arena

REPLACE = """
    const evil = () => { throw new Error("mine"); };
    const owners = [JSON, Reflect, Object, Array, Promise, Atomics, Array.prototype, String.prototype, Function.prototype,
      Promise.prototype, Object.getPrototypeOf(Uint8Array.prototype), RegExp.prototype, Map.prototype, Symbol, Math, Number];
    const getOwn = Object.getOwnPropertyNames, describe = Object.getOwnPropertyDescriptor, define = Object.defineProperty;
    const all = [];
    for (const owner of owners) for (const name of getOwn(owner)) {
      const found = describe(owner, name);
      if (found.configurable && typeof found.value === "function" && name !== "constructor") all.push([owner, name]);
    }
    for (let i = 0; i < all.length; i++) define(all[i][0], all[i][1], { __proto__: null, value: evil, configurable: true });
    String.fromCharCode = evil; String.fromCodePoint = evil;
    for (const name of ["0", "1", "value", "get", "set", "name", "message", "code", "limits", "native", "make", "module"]) {
      define(Object.prototype, name, { __proto__: null, get: evil, set: evil, configurable: true });
    }
    for (const name of ["JSON", "Reflect", "Promise", "Error", "TypeError", "String", "Object", "Uint16Array", "eval"]) {
      globalThis[name] = evil;
    }
"""


async def test_replaced_builtins_break_the_hook_that_replaced_them_and_no_call(
    arena: Arena,
) -> None:
    source = f"""
        function Create(ctx) {{
          {REPLACE}
          log.Info("still %s", "here");
          let thrown = "";
          try {{ ctx.search.Web(5); }} catch (error) {{ thrown = error.message; }}
          const found = ctx.search.Web("replaced");
          return {{ metadata: {{ found: found.items[0].title, thrown }} }};
        }}
        function Next(ctx, payload) {{ return {{ data: payload.completion.content + ctx.search.Web("replaced too").total }}; }}
    """
    fate = await arena.attack(source)
    assert fate.metadata["found"] == "w"
    assert "query must be text" in fate.metadata["thrown"]
    assert fate.end.data == "Yes.1"
    assert fate.logged() == ["still here"]
    assert [request.query for request in arena.web.requests] == ["replaced", "replaced too"]


@pytest.mark.parametrize(
    "forged",
    [
        "Object.prototype.toJSON = () => [1];",
        "Object.prototype.toJSON = () => undefined;",
        (
            "Object.prototype.toJSON = () => ({ name: 'HostError', message: 'forged', stack: 5,"
            " code: {} });"
        ),
        "Object.prototype.toJSON = function () { throw this; };",
        "Object.defineProperty(Object.prototype, 'stack', { get: () => 'at hook:999:1:1' });",
    ],
    ids=["list", "undefined", "object", "throws", "stack"],
)
@pytest.mark.parametrize(
    "way", ["throw new Error('honest');", "return { metadata: 1n };", "return Symbol('s');"]
)
async def test_the_words_of_the_prelude_cannot_be_forged(
    arena: Arena, forged: str, way: str
) -> None:
    fate = await arena.attack(f"function Create() {{ {forged} {way} }}")
    assert fate.code in ("hook_threw", "hook_return", "")
    if "throw" in way:
        assert fate.message.startswith("Create threw honest")


@pytest.mark.parametrize(
    "thrown",
    [
        (
            "{ toString() { throw this; }, get message() { throw this; }, get stack() { throw this;"
            " }, get name() { throw this; } }"
        ),
        "{ message: { toString() { throw 1; } }, stack: Symbol('s'), name: 10n, code: () => {} }",
        "Object.create(null)",
        "new Proxy({}, { get() { throw 1; }, has() { throw 1; }, getPrototypeOf() { throw 1; } })",
        "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; })()",
        (
            "Object.assign(new Error('m'), { stack: 'at hook:0:99999999:99999999\\nat"
            " hook:77:1:1\\n at x (hook:0:-1:1)' })"
        ),
        (
            "Object.assign(new Error('m'), { name: '\\ud800\\x00\\x1b[31m', code: '\\udfff',"
            " message: '\\ud800' })"
        ),
        "new Error('x'.repeat(3e6))",
        "Object.assign(new Error('m'), { stack: 'at hook:0:1:1\\n'.repeat(2e5) })",
        "(Error.stackTraceLimit = Infinity, new RangeError(''))",
        "''",
        "undefined",
        "Symbol('s')",
        "10n ** 1000n",
        "function hostile() {}",
    ],
)
async def test_what_is_thrown_may_be_as_hostile_as_it_likes(arena: Arena, thrown: str) -> None:
    fate = await arena.attack(f"function Create() {{ throw {thrown}; }}")
    assert fate.code == "hook_threw"
    assert fate.message.startswith("Create threw")
    assert len(fate.message) < 40_000
    assert fate.errors[0].file == "assistants/hostile/index.ts"
    rejected = await arena.attack(f"async function Create() {{ throw {thrown}; }}")
    assert rejected.code == "hook_threw"


async def test_nothing_of_one_run_is_there_in_the_next(arena: Arena) -> None:
    source = """
        globalThis.leaked = "secret of one user";
        Object.prototype.leaked = "secret of one user";
        Array.prototype.map = () => ["stolen"];
        Symbol.for("leaked");
        let kept = 0;
        function Create(ctx) {
          const before = kept++;
          return { metadata: { before, seen: typeof globalThis.seen, symbol: String(Object.getOwnPropertySymbols(globalThis)) } };
        }
        function Next() { globalThis.seen = "yes"; return { data: kept }; }
    """
    for _ in range(3):
        fate = await arena.attack(source)
        assert fate.metadata["before"] == 0
        assert fate.metadata["seen"] == "undefined"
        assert fate.end.data == 1


ESCAPES = {
    "constructor": "this?.constructor.constructor('return typeof process.env')()",
    "function": "new Function('return typeof globalThis.native + typeof globalThis.ask')()",
    "async-function": "typeof (async () => {}).constructor('return import(\"fs\")')",
    "eval": "(0, eval)('typeof Deno + typeof Bun + typeof module + typeof __dirname')",
    "import": (
        "(() => { let got = 'pending'; (0, eval)('import(\"fs\")').then(() => { got = 'fs'; });"
        " return got; })()"
    ),
    "require": "(() => { try { return typeof require('fs'); } catch (e) { return e.message; } })()",
    "generator": (
        "Object.getPrototypeOf(function* () {}).constructor('yield typeof native')().next().value"
    ),
    "caller": (
        "(() => { function f() { return String(f.caller) + String(f.arguments); } return typeof"
        " f(); })()"
    ),
    "web-assembly": (
        "typeof new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1,"
        " 0, 0, 0))).exports"
    ),
    "realm": "typeof ShadowRealm + typeof Worker + typeof XMLHttpRequest + typeof WebSocket",
    "wait": "typeof Atomics.wait + typeof Atomics.waitAsync",
}


@pytest.mark.parametrize("way", ESCAPES)
async def test_no_way_of_the_language_leads_out_of_the_isolate(arena: Arena, way: str) -> None:
    fate = await arena.attack(
        f"function Create(ctx) {{ return {{ metadata: {{ found: String({ESCAPES[way]}) }} }}; }}"
    )
    if fate.code:
        assert fate.code in ("hook_threw", "hook_syntax")
        assert (
            "not offered" in fate.message
            or "not defined" in fate.message
            or "cannot import" in fate.message
        )
    else:
        found = fate.metadata["found"].replace("undefined", "")
        assert found in ("", "object", "pending", "function", "string") or "cannot import" in found


async def test_no_hook_gets_hold_of_the_bridge(arena: Arena) -> None:
    source = """
        function Create(ctx) {
          const caught = [];
          const shared = (value) => {
            try { return (value.buffer ?? value) instanceof SharedArrayBuffer; } catch { return false; }
          };
          const note = (name, ...values) => { for (const value of values) if (shared(value)) caught.push(name); };
          const spied = [SharedArrayBuffer.prototype, Int32Array, Uint16Array, Object.getPrototypeOf(Int32Array), Reflect,
            Object.getPrototypeOf(Int32Array.prototype), Function.prototype, Object, JSON, String, Atomics, Promise.prototype];
          const { getOwnPropertyDescriptor, defineProperty, getOwnPropertyNames } = Object, { apply, ownKeys } = Reflect;
          for (const owner of spied) for (const name of ownKeys(owner)) {
            const { value: real, configurable } = getOwnPropertyDescriptor(owner, name);
            if (!configurable || typeof real !== "function" || name === "constructor") continue;
            defineProperty(owner, name, { __proto__: null, configurable: true, writable: true, value: function (...args) {
              note(String(name), this, ...args);
              return apply(real, this, args);
            } });
          }
          for (const name of ["native", "head", "units", "memory"]) {
            defineProperty(Object.prototype, name, { __proto__: null, configurable: true,
              get() { note(name, this); return undefined; },
              set(value) { note(name, this, value); if (name === "native") caught.push(name); } });
          }
          const frames = [];
          Error.prepareStackTrace = (error, sites) => sites;
          const options = { toJSON() {
            for (const site of new Error("x").stack) {
              frames.push([site.getFunctionName(), typeof site.getFunction(), typeof site.getThis()]);
            }
            return {};
          } };
          const found = ctx.search.Web("bridge", options).total;
          const globals = getOwnPropertyNames(globalThis).filter((name) => {
            try { return shared(globalThis[name]); } catch { return false; }
          });
          const strict = frames.filter(([name, ...kinds]) => name !== "toJSON" && String(kinds) !== "undefined,undefined");
          const inner = getOwnPropertyNames(__groundhook);
          return { metadata: { caught, found, globals, inner, strict, frames: frames.length } };
        }
    """
    fate = await arena.attack(source)
    metadata = fate.metadata
    assert metadata["frames"] > 3
    assert (metadata["found"], metadata["caught"], metadata["globals"], metadata["strict"]) == (
        1,
        [],
        [],
        [],
    )
    offered = ["begin", "catching", "caught", "compile", "invoke", "later", "watched"]
    assert sorted(metadata["inner"]) == offered


async def test_entering_the_prelude_again_reaches_nothing_but_the_hook_itself(arena: Arena) -> None:
    source = """
        let depth = 0;
        function Create(ctx) {
          if (depth++ > 0) return { metadata: { inner: true } };
          const outcomes = [];
          const attempts = [
            () => __groundhook.invoke("Create", "[[], {}]"),
            () => __groundhook.invoke("!limit\\ncpu_ms", "[]"),
            () => __groundhook.invoke("toString", "[]"),
            () => __groundhook.compile('[{"code": "({", "requires": {}}]'),
            () => __groundhook.begin('{"context": {}, "limits": {"argument_kb": 1e9, "result_kb": 1e9}, "fixed": {}}'),
            () => { (0, eval)("var __groundhook = { invoke: () => '=1' }"); return typeof __groundhook.begin; },
            () => { (0, eval)("function __groundhook() {}"); return typeof __groundhook.begin; },
            () => Object.defineProperty(globalThis, "__groundhook", { value: 1 }),
            () => delete globalThis.__groundhook,
            () => { globalThis.__groundhook = 1; return typeof __groundhook; },
          ];
          for (const attempt of attempts) try { outcomes.push(String(attempt())); } catch (error) { outcomes.push(error.name); }
          let limited = "";
          try { ctx.search.Web("x".repeat(70000)); } catch (error) { limited = error.message; }
          return { metadata: { outcomes, limited } };
        }
    """
    fate = await arena.attack(source)
    assert fate.message == "Create passed more than 64 KB to a host call"


@pytest.mark.parametrize(
    "name",
    [
        "!limit",
        "!platform",
        "!wait",
        "ctx.search.Web\\n[]",
        "__proto__",
        "constructor",
        "toString",
        "",
    ],
)
async def test_a_call_with_a_crafted_name_does_not_reach_the_host(arena: Arena, name: str) -> None:
    source = f"""
        function Create(ctx) {{
          for (const group of [ctx, ctx.search, console, log, time]) try {{ group["{name}"]("forged"); }} catch {{}}
          return {{ metadata: {{ ok: 1 }} }};
        }}
    """
    fate = await arena.attack(source)
    assert fate.metadata == {"ok": 1}
    assert arena.web.requests == []
