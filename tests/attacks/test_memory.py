"""Hooks that fill memory, within V8's heap and beside it. One at a time; each stays far below what
the machine has."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import Arena

WASM = (
    "const m = new WebAssembly.Memory({ initial: 256 }); new Uint8Array(m.buffer).fill(1);"
    " all.push(m);"
)

HEAP = {
    "strings": (
        "const all = []; for (let i = 0; ; i++)"
        " all.push(String(i).repeat(1000).split('').join('-'));"
    ),
    "arrays": "const all = []; while (true) all.push(new Array(1e5).fill(1.5));",
    "objects": "let all = {}; while (true) all = { all, more: [1, 2, 3] };",
    "maps": "const all = new Map(); for (let i = 0; ; i++) all.set(i, { i });",
    "closures": "const all = []; while (true) { const kept = [1, 2, 3]; all.push(() => kept); }",
    "errors": "const all = []; while (true) all.push(new Error('x'.repeat(100)));",
}
PROCESS = {
    "typed-arrays": "const all = []; while (true) all.push(new Uint8Array(1 << 24).fill(1));",
    "one-typed-array": "new Uint8Array(1 << 29).fill(1);",
    "shared-buffers": (
        "const all = []; while (true) all.push(new Uint8Array(new SharedArrayBuffer(1 <<"
        " 24)).fill(1));"
    ),
    "web-assembly": f"const all = []; while (true) {{ {WASM} }}",
    "one-repeat": "return { metadata: { at: 'x'.repeat(2 ** 29 - 24).indexOf('y') } };",
    "one-repeat-returned": "return { metadata: { text: 'x'.repeat(2 ** 29 - 24) } };",
    "split": "return { metadata: { length: 'ab'.repeat(2 ** 27).split('').length } };",
}


@pytest.mark.parametrize("what", HEAP)
async def test_a_heap_that_grows_ends_at_its_limit(arena: Arena, what: str) -> None:
    fate = await arena.attack(f"function Create() {{ {HEAP[what]} }}")
    assert fate.code == "hook_limit"
    assert fate.message in (
        "Create used more than 48 MB of JavaScript heap",
        "Create computed for more than 200 ms",
    )


@pytest.mark.parametrize("what", PROCESS)
async def test_memory_beside_the_heap_costs_the_process_and_nobody_else_a_turn(
    arena: Arena, what: str
) -> None:
    fate = await arena.attack(f"function Create() {{ {PROCESS[what]} }}")
    assert fate.code == "hook_limit"
    assert fate.message in (
        "Create made its process grow by more than 128 MB",
        "Create used more than 48 MB of JavaScript heap",
        "Create computed for more than 200 ms",
        "Create took more than 1500 ms in all",  # tried again alone, on a busy machine
    )


async def test_a_script_that_makes_v8_abort_its_process_costs_its_own_turn(arena: Arena) -> None:
    fate = await arena.attack(f"function Create() {{ {PROCESS['split']} }}", assistant="wide")
    assert fate.code == "hook_crashed"
    assert "Create ended the process it ran in (signal " in fate.message


@pytest.mark.parametrize("what", ["typed-arrays", "split"])
async def test_memory_filled_by_what_a_hook_left_behind_is_found_and_laid_at_its_door(
    arena: Arena, what: str
) -> None:
    source = f"""
        function Create() {{ [Promise.resolve().then(() => {{ {PROCESS[what]} }})]; return {{ locale: "fr" }}; }}
        function Next() {{ return {{ data: 1 }}; }}
    """
    fate = await arena.attack(source, assistant="wide" if what == "split" else "hostile")
    assert fate.code in ("hook_limit", "hook_crashed")
    assert "Next" in fate.message or "Create" in fate.message


async def test_an_argument_of_a_hundred_megabytes_does_not_reach_the_host(arena: Arena) -> None:
    fate = await arena.attack("function Create(ctx) { ctx.search.Web('x'.repeat(1e8)); }")
    assert fate.code == "hook_limit"
    fate = await arena.attack(
        "function Create(ctx) { ctx.search.Web('x'.repeat(1e8)); }", assistant="wide"
    )
    assert fate.message == "Create passed more than 64 KB to a host call"
    assert arena.web.asked == []
