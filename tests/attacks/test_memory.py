"""Hooks that fill memory, within V8's heap and beside it. One at a time; each stays far below what
the machine has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection

import anyio
import psutil
import pytest

from groundhook import Host, open_host
from groundhook.core.types.events import Event
from groundhook.hooks.child import KEPT, MEGABYTE, find_excess
from tests.attacks.conftest import Arena, until
from tests.conftest import MakeApp
from tests.parts.children import of_children

pytestmark = pytest.mark.usefixtures("processes_of_its_own")

FRESH = 80 * MEGABYTE  # of a worker that is ready, with room to spare

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
SPLIT = f"function Create() {{ {PROCESS['split']} }}"


@pytest.mark.parametrize("what", HEAP)
async def test_a_heap_that_grows_ends_at_its_limit(arena: Arena, what: str) -> None:
    fate = await arena.attack(f"function Create() {{ {HEAP[what]} }}")
    assert fate.code == "hook_limit"
    assert fate.message in (
        "Create used more than 48 MB of JavaScript heap",
        "Create computed for more than 200 ms",
    )


@pytest.mark.parametrize("what", [each for each in PROCESS if each != "split"])
async def test_memory_beside_the_heap_costs_the_process_and_nobody_else_a_turn(
    arena: Arena, what: str
) -> None:
    fate = await arena.attack(f"function Create() {{ {PROCESS[what]} }}")
    assert fate.code == "hook_limit"
    assert fate.message in (
        "Create made its process grow by more than 128 MB",
        "Create used more than 48 MB of JavaScript heap",
        "Create computed for more than 200 ms",
    )


async def test_a_limit_or_the_abort_of_v8_ends_a_script_whichever_comes_first(arena: Arena) -> None:
    fate = await arena.attack(SPLIT)
    assert fate.code in ("hook_limit", "hook_crashed")


async def test_a_script_that_makes_v8_abort_its_process_costs_its_own_turn(arena: Arena) -> None:
    fate = await arena.attack(SPLIT, assistant="wide")
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
    assert arena.web.requests == []


HOARDING = """
    function Create() {
      const all = [];
      for (let i = 0; i < 3000; i++) all.push(new Intl.DateTimeFormat("de", { dateStyle: "full" }));
      return { search: false };
    }
"""
WAITING = "function Create() { time.Sleep(400); return { search: false }; }"
FLOODING = """
    function Create() { return { search: false }; }
    function Next() { const more = () => { Promise.resolve().then(more); Promise.resolve().then(more); }; more(); }
"""


@pytest.fixture
def before() -> Collection[psutil.Process]:
    """The children of earlier tests: a compiler that they share grows with them."""
    return psutil.Process().children()


@pytest.fixture
async def one_worker(
    make_app: MakeApp, before: Collection[psutil.Process], processes_of_its_own: None
) -> AsyncIterator[Host]:
    """A host with one worker, and assistants that make it keep memory."""
    package = '{"connector": "extractive"}'
    hooks = {"hoarding": HOARDING, "waiting": WAITING, "flooding": FLOODING}
    app = make_app(
        {
            "agent/agent.yml": "hooks:\n  workers: 1\n",
            **{f"assistants/{id}/package.yao": package for id in hooks},
            "assistants/flooding/package.yao": (
                '{"connector": "extractive", "hooks": {"limits": {"cpu_ms": 600}}}'
            ),
            **{f"assistants/{id}/index.js": hook for id, hook in hooks.items()},
        }
    )
    async with open_host(app, environment={}) as host:
        yield host


async def turn(host: Host, assistant: str) -> list[Event]:
    async with host.stream(assistant, "hello") as events:
        return [event async for event in events]


@pytest.fixture
def largest_child(before: Collection[psutil.Process]) -> Callable[[], int]:
    """Bytes of the largest process that the host has started. A compiler may be among them, which
    is smaller than FRESH and KEPT together while it is new."""

    def measured() -> int:
        sizes = of_children(lambda child: child.memory_info().rss)
        return max((size for child, size in sizes.items() if child not in before), default=0)

    return measured


@pytest.mark.parametrize("assistant", ["hoarding", "flooding"])
async def test_a_worker_that_keeps_what_hooks_took_is_replaced(
    one_worker: Host, largest_child: Callable[[], int], assistant: str
) -> None:
    for _ in range(2):
        await turn(one_worker, assistant)
    with anyio.fail_after(60):
        await until(lambda: largest_child() < FRESH + KEPT)
    assert [event for event in await turn(one_worker, "waiting") if event.type == "error"] == []
    assert largest_child() > 0


async def test_a_worker_that_is_never_empty_is_replaced_as_well(
    one_worker: Host, largest_child: Callable[[], int]
) -> None:
    done = anyio.Event()

    async def keep_it_busy(offset: float) -> None:
        await anyio.sleep(offset)
        while not done.is_set():
            events = await turn(one_worker, "waiting")
            assert [event for event in events if event.type == "error"] == []

    async with anyio.create_task_group() as tasks:
        for offset in (0, 0.2):  # one of the two is always there
            tasks.start_soon(keep_it_busy, offset)
        for _ in range(2):
            await turn(one_worker, "hoarding")
        with anyio.fail_after(60):
            await until(lambda: 0 < largest_child() < FRESH + KEPT)
        done.set()


def test_runs_that_overlap_do_not_make_a_worker_grow_without_end() -> None:
    fresh, allowed = 60 * MEGABYTE, 128 * MEGABYTE
    began = fresh + KEPT + MEGABYTE  # each run takes a little more than the one before has left
    assert find_excess(began, fresh, [(began, allowed)]) is None
    assert find_excess(fresh + KEPT + allowed + 1, fresh, [(began, allowed)]) == "together"
    assert find_excess(fresh + allowed + 1, fresh, [(fresh, allowed)]) == "alone"
    assert find_excess(fresh + 2 * allowed, fresh, []) is None  # nothing is carried: it is replaced
