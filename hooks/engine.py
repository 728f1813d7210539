"""V8 isolates and the synchronous bridge between JavaScript and its host.

The only module that imports `py_mini_racer`; it uses private names of the pinned version. It does
not know hooks: its callers decide which code is evaluated and what a call means.

The bridge: the first script creates a `SharedArrayBuffer` (which no script can detach, unlike an
ArrayBuffer) and returns it. This module keeps its memory, whose layout is in `hooks.bridge`, and
gives the script a native function. To call the host, JavaScript writes a request into the buffer
and calls that function. The callback below, on V8's own thread, reads the request, passes it to
`on_call`, waits for `reply`, and returns when the answer is in the buffer. Longer texts are
transferred in pieces.

While JavaScript is blocked in the callback, its values must not be read: reading waits for V8's
thread, which is waiting itself.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from py_mini_racer._dll import DEFAULT_V8_FLAGS, init_mini_racer, mr_callback_func
from py_mini_racer._objects import _MiniRacerTypes as Kind

from groundhook.hooks.bridge import FETCH, MORE, Bridge
from groundhook.hooks.foreign import ThreadState
from groundhook.host.core.errors import HookCrashed

_NATIVE, _EVALUATED = 1, 2  # callback ids, chosen here

OutcomeKind = Literal["value", "error", "syntax", "heap", "stopped"]


@dataclass(frozen=True)
class Outcome:
    """The result of an evaluation. For the kind "value", `text` is the returned string, or empty if
    the value is not a string; for every other kind it is V8's error message."""

    kind: OutcomeKind
    text: str = ""


_FAILURES: dict[int, OutcomeKind] = {
    Kind.execute_exception: "error",
    Kind.parse_exception: "syntax",
    Kind.oom_exception: "heap",
    Kind.timeout_exception: "stopped",
    Kind.terminated_exception: "stopped",
    Kind.value_exception: "error",
    Kind.key_exception: "error",
}


class Isolate:
    """One V8 isolate. Close it: an isolate that is left to the garbage collector hangs the
    interpreter at its end.

    `bridge` is JavaScript that creates the shared buffer and evaluates to it (a SharedArrayBuffer);
    its property `native` is then set to the function by which JavaScript calls the host. `on_call`
    is called on V8's thread with each request and must neither wait nor raise; `reply` may be
    called from any thread, from within `on_call` too. `heap_bytes` of 0 leaves V8's own limit.
    """

    def __init__(self, bridge: str, on_call: Callable[[str], None], *, heap_bytes: int = 0) -> None:
        """Create the isolate. Raises HookCrashed if `bridge` does not evaluate to a buffer."""
        self._dll = load()
        self._on_call = on_call
        # called with each result of V8; the first is that of the bridge, see `_connect`
        self._on_result: Callable[[Any], None] = self._on_evaluated
        self._on_done: Callable[[Outcome], None] | None = None
        self._thread = ThreadState()
        self._lock = threading.Lock()
        self._ended = self._freed = False
        self._waiting = False  # V8's thread waits for an answer
        # A lock used as a semaphore, which is faster: `reply` or `stop` releases it once for each
        # wait.
        self._answered = threading.Lock()
        self._answered.acquire()
        self._task = 0
        self._clock: int | None = None
        self._wait_began = self._waited_seconds = 0.0
        self._callback: Any = mr_callback_func(self._from_v8)  # V8 keeps only a pointer to it
        # Making the first isolate sets up what all share, and V8 takes no lock for that.
        with _open_lock:
            self._context = self._dll.mr_init_context(self._callback)
            _open.add(self)
        if heap_bytes:
            self.limit_heap(heap_bytes)
        try:
            if bridge:
                self._connect(bridge)
        except HookCrashed:
            self.close()
            raise

    @classmethod
    def bare(cls) -> Isolate:
        """Return an empty isolate without the bridge, for measuring the least cost of an
        isolate."""
        return cls("", lambda _: None)

    @property
    def has_cpu_clock(self) -> bool:
        """Whether `cpu_seconds` is CPU time of V8's thread; otherwise it is wall-clock time, which
        also grows while no code runs."""
        return self._clock is not None

    def cpu_seconds(self) -> float:
        """Return the CPU time of V8's thread, without the time of host calls. On a system without
        such a clock it is wall-clock time without the time of host calls."""
        with self._lock:
            if self._freed:
                return 0.0
            # the clock stands still during a host call
            return (self._wait_began if self._waiting else self._now()) - self._waited_seconds

    def limit_heap(self, size: int) -> None:
        """Set the limit of V8's heap in bytes: an evaluation that exceeds it ends."""
        with self._lock:
            if not self._freed:
                self._dll.mr_set_hard_memory_limit(self._context, size)

    def heap_is_full(self) -> bool:
        """Return whether the heap limit was reached, also by a microtask, for which `done` is not
        called."""
        with self._lock:
            return not self._freed and bool(self._dll.mr_hard_memory_limit_reached(self._context))

    def evaluate(self, code: str, done: Callable[[Outcome], None]) -> None:
        """Start an evaluation and return at once; `done` is called on V8's thread, before the
        microtasks of the code run. Only one evaluation may run at a time; after `stop` nothing is
        evaluated."""
        with self._lock:
            if not self._ended:
                self._on_done = done
                self._task = self._start(code)

    def reply(self, text: str) -> None:
        """Answer the last request that `on_call` received."""
        with self._lock:
            if self._waiting:
                self._waiting = False
                self._waited_seconds += self._now() - self._wait_began
                self._bridge.answer(text.encode("utf-16-le", "surrogatepass"))
                self._answered.release()

    def stop(self) -> None:
        """End the evaluation and its host call. A microtask continues until `close`."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._dll.mr_cancel_task(self._context, self._task)
            if self._waiting:
                self._waiting = False
                self._bridge.stop()
                self._answered.release()

    def close(self) -> None:
        """Stop the evaluation and free the isolate. Waits until V8 has stopped, which takes long
        only inside a builtin that cannot be interrupted."""
        self.stop()
        with self._lock:
            if self._freed:
                return
            self._freed = True
        self._dll.mr_free_context(self._context)
        self._callback = None
        with _open_lock:
            _open.discard(self)

    # ---- on V8's thread

    def _from_v8(self, callback_id: int, raw_val_handle: Any) -> None:
        if callback_id == _NATIVE:
            self._dll.mr_free_value(self._context, raw_val_handle)
            self._native()
        else:
            self._on_result(raw_val_handle)

    def _on_evaluated(self, raw: Any) -> None:
        outcome = _outcome(raw)
        self._dll.mr_free_value(self._context, raw)
        done, self._on_done = self._on_done, None
        if done is not None:
            done(outcome)
        self._thread.drop()

    def _native(self) -> None:
        # Without `_on_done` the caller is a microtask that outlived its evaluation, and
        # `_on_evaluated`, which drops the thread state, will not run again: the state is not kept.
        if self._on_done is not None:
            self._thread.keep()
        if self._ended:
            self._bridge.stop()
        elif self._bridge.what == FETCH:
            self._bridge.write_piece()
        elif self._bridge.what == MORE:
            self._bridge.keep_piece()
        else:
            self._call(self._bridge.take())

    def _call(self, request: str) -> None:
        """Pass a request to the host and wait until it is answered or the run is stopped."""
        with self._lock:
            if self._ended:
                self._bridge.stop()
                return
            self._wait_began = self._now()
            self._waiting = True
        self._on_call(request)
        self._answered.acquire()

    def _now(self) -> float:
        return time.monotonic() if self._clock is None else time.clock_gettime(self._clock)

    # ---- setting up

    def _connect(self, bridge: str) -> None:
        found, ready = self._start_bridge(bridge)
        native = self._dll.mr_make_js_callback(self._context, _NATIVE)
        ready.acquire()
        self._on_result, raw = self._on_evaluated, found[0]
        if raw.contents.type != Kind.shared_array_buffer:
            raise HookCrashed(
                "the JavaScript engine did not start:"
                f" {_outcome(raw).text or 'the bridge made no buffer'}"
            )
        self._bridge = Bridge(_memory_of(raw))  # `raw` is not freed: it keeps the memory alive
        name = self._string("native")
        for handle in (
            self._dll.mr_set_object_item(self._context, raw, name, native),
            name,
            native,
        ):
            self._dll.mr_free_value(self._context, handle)

    def _start_bridge(self, code: str) -> tuple[list[Any], threading.Lock]:
        """Start an evaluation. Its raw value is in the list when the lock is released."""
        found: list[Any] = []
        ready = threading.Lock()
        ready.acquire()

        def first(raw: Any) -> None:
            if hasattr(time, "pthread_getcpuclockid"):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            found.append(raw)
            ready.release()

        self._on_result = first
        self._start(code)
        return found, ready

    def _start(self, code: str) -> int:
        source = self._string(code)
        task: int = self._dll.mr_eval(self._context, source, _EVALUATED)
        self._dll.mr_free_value(self._context, source)
        return task

    def _string(self, text: str) -> Any:
        data = text.encode("utf-8", "replace")
        return self._dll.mr_alloc_string_val(self._context, data, len(data), Kind.str_utf8)


def isolate_count() -> int:
    """Return the number of isolates that V8 holds in this process."""
    return int(load().mr_context_count())


@cache
def load() -> ctypes.CDLL:
    """Load V8 unless it is loaded, and return its library.

    Where the processor has memory protection keys (pku in /proc/cpuinfo), V8 protects its code with
    one, and threads that began before V8 was loaded have no access to it: when one of them makes or
    frees an isolate, the process ends with signal 11. A host lives among threads that others began,
    so V8 runs without them, as it does on other processors.
    """
    flags = (*DEFAULT_V8_FLAGS, "--no-memory-protection-keys")
    return init_mini_racer(flags=flags, ignore_duplicate_init=True)


def close_all() -> None:
    """Close every isolate that is open; called when the interpreter ends."""
    with _open_lock:
        left = list(_open)
    for isolate in left:
        isolate.close()


def _outcome(raw: Any) -> Outcome:
    value = raw.contents
    if value.type == Kind.str_utf8 or value.type in _FAILURES:
        text = value.value.bytes_val[0 : value.len].decode("utf-8", "replace")
        return Outcome(_FAILURES.get(value.type, "value"), text)
    return Outcome("value")


def _memory_of(raw: Any) -> memoryview:
    """Return the bytes of a SharedArrayBuffer."""
    value = raw.contents
    return memoryview((ctypes.c_ubyte * value.len).from_address(value.value.value_ptr)).cast("B")


_open: set[Isolate] = set()
_open_lock = threading.Lock()
atexit.register(close_all)
