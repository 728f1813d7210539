"""The isolate and its bridge, and the private names of the pinned V8 package that they use."""

from __future__ import annotations

import ctypes
import queue
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from groundhook.core.errors import HookCrashed
from groundhook.hooks.engine import Isolate, IsolateOutcome, isolate_count

ROOT = Path(__file__).parents[2]
ECHO = """(() => {
  const memory = new SharedArrayBuffer(12 + 2 * 8);
  let native;
  Object.defineProperty(memory, "native", { set(made) { native = made; } });
  const head = new Int32Array(memory, 0, 3), units = new Uint16Array(memory, 12, 8);
  globalThis.ask = (text) => {
    for (let at = 0; at < text.length; at += 8) {
      const piece = text.slice(at, at + 8);
      for (let i = 0; i < piece.length; i++) units[i] = piece.charCodeAt(i);
      head[0] = at + 8 < text.length ? 1 : 2; head[1] = piece.length;
      native();
      if (head[0] !== 0) return "stopped";
    }
    let reply = "";
    for (;;) {
      reply += String.fromCharCode(...units.slice(0, head[1]));
      if (head[2] === 0) return reply;
      head[0] = 3; native();
    }
  };
  return memory;
})()"""

NAMES = {
    "py_mini_racer._dll": ["init_mini_racer", "mr_callback_func"],
    "py_mini_racer._objects": ["_MiniRacerTypes"],
}
FUNCTIONS = """
    mr_init_context mr_free_context mr_eval mr_cancel_task mr_alloc_string_val mr_free_value mr_make_js_callback
    mr_set_object_item mr_set_hard_memory_limit mr_hard_memory_limit_reached mr_context_count
"""
KINDS = """
    str_utf8 shared_array_buffer execute_exception parse_exception oom_exception timeout_exception terminated_exception
    value_exception key_exception
"""


def test_the_private_names_are_those_of_the_pinned_version() -> None:
    """When this fails after an upgrade: read the new version's source, adapt hooks/engine.py, then
    change the pin."""
    assert version("mini-racer") == "0.14.1"
    assert "mini-racer==0.14.1" in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    for module, names in NAMES.items():
        assert [name for name in names if not hasattr(import_module(module), name)] == []
    dll = import_module("py_mini_racer._dll").init_mini_racer(ignore_duplicate_init=True)
    assert [name for name in FUNCTIONS.split() if not hasattr(dll, name)] == []
    kinds = import_module("py_mini_racer._objects")._MiniRacerTypes
    assert [name for name in KINDS.split() if not hasattr(kinds, name)] == []


def evaluate(isolate: Isolate, code: str) -> IsolateOutcome:
    done: queue.SimpleQueue[IsolateOutcome] = queue.SimpleQueue()
    isolate.evaluate(code, done.put)
    return done.get(timeout=60)


def echoing() -> Isolate:
    isolate = Isolate(ECHO, lambda text: isolate.reply(text.upper()))
    return isolate


@pytest.mark.parametrize("text", ["a", "abcdefgh", "abcdefghi", "x" * 100, "ß\0é", "a😀b" * 9])
def test_texts_of_any_length_cross_the_bridge_in_pieces(text: str) -> None:
    isolate = echoing()
    try:
        code = "ask(" + "+".join(f"String.fromCodePoint({ord(char)})" for char in text) + ")"
        assert evaluate(isolate, code) == IsolateOutcome("value", text.upper())
    finally:
        isolate.close()


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("'a' + 1", "value", "a1"),
        ("42", "value", ""),
        ("undefined", "value", ""),
        ("throw new Error('no')", "error", "Error: no"),
        ("let = ;", "syntax", "SyntaxError"),
    ],
)
def test_outcomes(code: str, kind: str, text: str) -> None:
    isolate = echoing()
    try:
        outcome = evaluate(isolate, code)
        assert outcome.kind == kind
        assert text in outcome.text
    finally:
        isolate.close()


def test_a_full_heap_is_an_outcome() -> None:
    isolate = Isolate(ECHO, lambda _: None, heap_bytes=16 * 1024 * 1024)
    try:
        assert (
            evaluate(isolate, "const a = []; while (true) a.push(new Array(1000).fill(1))").kind
            == "heap"
        )
        assert isolate.heap_is_full()
    finally:
        isolate.close()


def test_stopping_ends_a_loop_and_a_call_in_flight() -> None:
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    for code in ("for (;;);", "ask('never answered')"):
        isolate = Isolate(ECHO, calls.put)
        done: queue.SimpleQueue[IsolateOutcome] = queue.SimpleQueue()
        isolate.evaluate(code, done.put)
        if "ask" in code:
            assert calls.get(timeout=60) == "never answered"
        isolate.stop()
        assert done.get(timeout=60).kind == "stopped"
        isolate.close()
        isolate.close()


def test_closing_ends_a_call_in_flight_and_microtasks_without_end() -> None:
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    before = isolate_count()
    for code in (
        "ask('never answered')",
        "const again = () => Promise.resolve().then(again); again(); ask('x')",
    ):
        isolate = Isolate(ECHO, calls.put)
        isolate.evaluate(code, lambda _: None)
        calls.get(timeout=60)
        isolate.close()
    assert isolate_count() == before


def test_the_cpu_clock_stops_during_a_call() -> None:
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[IsolateOutcome] = queue.SimpleQueue()
    isolate = Isolate(ECHO, calls.put)
    try:
        isolate.evaluate("ask('x')", done.put)
        calls.get(timeout=60)
        first = isolate.cpu_seconds()
        with pytest.raises(queue.Empty):
            done.get(timeout=0.1)
        assert isolate.cpu_seconds() - first < 0.02
        isolate.reply("")
        done.get(timeout=60)
        while isolate.cpu_seconds() - first < 0.02:  # on a busy machine that takes longer
            isolate.evaluate(
                "(() => { const end = Date.now() + 50; while (Date.now() < end); })()", done.put
            )
            done.get(timeout=60)
    finally:
        isolate.close()


ENDINGS = {
    "in the end": ("ask('x')", ""),
    "in a call": ("ask('x'); ask('never answered')", "never answered"),
    "in a loop": ("ask('x'); ask('now'); for (;;);", "now"),
    "in microtasks without end": (
        "const again = () => Promise.resolve().then(again); again(); ask('x'); ask('now')",
        "now",
    ),
    "in a call of a microtask": (
        "Promise.resolve().then(() => { ask('x'); ask('never answered'); }); ask('x')",
        "never answered",
    ),
}


def thread_states() -> int:
    """How many threads this interpreter keeps a state for."""
    python = ctypes.pythonapi
    for function in (
        python.PyInterpreterState_Main,
        python.PyInterpreterState_ThreadHead,
        python.PyThreadState_Next,
    ):
        function.restype = ctypes.c_void_p
    state, count = (
        python.PyInterpreterState_ThreadHead(ctypes.c_void_p(python.PyInterpreterState_Main())),
        0,
    )
    while state:
        state, count = python.PyThreadState_Next(ctypes.c_void_p(state)), count + 1
    return count


@pytest.mark.parametrize("ending", ENDINGS)
def test_python_keeps_nothing_of_a_thread_of_v8s_that_has_ended(ending: str) -> None:
    code, last = ENDINGS[ending]
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[IsolateOutcome] = queue.SimpleQueue()

    def on_call(text: str) -> None:
        calls.put(text)
        if text != "never answered":
            isolate.reply("")

    before = thread_states()
    isolate = Isolate(ECHO, on_call)
    isolate.evaluate(code, done.put)
    if last:
        while calls.get(timeout=60) != last:
            pass
    else:
        done.get(timeout=60)
    isolate.close()
    assert thread_states() <= before


def test_a_bridge_script_that_creates_no_shared_memory_is_refused_and_leaves_nothing() -> None:
    before = isolate_count()
    for bridge in ("1", "throw new Error('broken')", "}"):
        with pytest.raises(HookCrashed, match="the JavaScript engine did not start"):
            Isolate(bridge, lambda _: None)
    assert isolate_count() == before


def test_every_isolate_is_closed_at_exit_and_the_interpreter_ends() -> None:
    code = "from groundhook.hooks.engine import Isolate as I; a = I.without_bridge(); b = I.without_bridge(); "
    code += "b.evaluate('for(;;);', print); print('end')"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "end")


FIRST_AT_ONCE = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from groundhook.hooks import engine

sys.setswitchinterval(1e-5)
together = threading.Barrier(8)

def make(_):
    together.wait()
    engine.load()
    return engine.Isolate.without_bridge()

pool = ThreadPoolExecutor(8)
made = list(pool.map(make, range(8)))
print(engine.isolate_count())
list(pool.map(engine.Isolate.close, made[1:] + made[:1]))
print(engine.isolate_count())
"""


def _run(program: str) -> tuple[int, list[str], str]:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout.split(), ended.stderr


def test_threads_may_make_the_first_isolates_at_once_and_free_those_of_others() -> None:
    assert _run(FIRST_AT_ONCE) == (0, ["8", "0"], "")


ALL_CLOSED = """
from groundhook.hooks.engine import Isolate, close_all, isolate_count
kept = [Isolate.without_bridge() for _ in range(3)]
print(isolate_count())
close_all()
print(isolate_count())
"""


def test_closing_all_closes_all() -> None:
    """In a process of its own: the tests of this one share a compiler, which is an isolate."""
    assert _run(ALL_CLOSED) == (0, ["3", "0"], "")
