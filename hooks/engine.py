"""V8 isolates and the synchronous bridge between JavaScript and its host.

The only module that imports `py_mini_racer`; it uses private names of the pinned version. It knows
nothing of hooks: its callers decide what is evaluated and what a call means.

The bridge: the script evaluated first makes a `SharedArrayBuffer` (which no script can detach,
unlike an ArrayBuffer) and hands it over as its value; this module holds its memory, laid out as
`hooks.bridge` says, and gives the script a native function. The script writes a request into the
buffer and calls the function; the callback below, on V8's own thread, reads it, hands it to
`on_call`, waits for `reply` and returns when the answer is in the buffer. Longer texts cross in
pieces.

While JavaScript is blocked in the callback its values must not be read: reading waits for V8's
thread, which is itself waiting.
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

from py_mini_racer._dll import init_mini_racer, mr_callback_func
from py_mini_racer._objects import _MiniRacerTypes as Kind

from groundhook.hooks.bridge import FETCH, MORE, Bridge
from groundhook.hooks.foreign import ThreadState
from groundhook.host.core.errors import HookCrashed

_NATIVE, _EVALUATED = 1, 2  # callback ids, ours to choose

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
        """Raises HookCrashed when `bridge` does not evaluate to a buffer."""
        self._dll = load()
        self._on_call = on_call
        self._on_raw: Callable[[Any], None] = self._evaluated
        self._on_done: Callable[[Outcome], None] | None = None
        self._thread = ThreadState()
        self._lock = threading.Lock()
        self._ended = self._freed = False
        self._waiting = False  # V8's thread waits for an answer
        # a lock as a semaphore, for speed: `reply` or `stop` releases it once for each wait
        self._answered = threading.Lock()
        self._answered.acquire()
        self._task = 0
        self._clock: int | None = None
        self._wait_began = self._waited_seconds = 0.0
        self._callback: Any = mr_callback_func(self._from_v8)  # V8 keeps only a pointer to it
        with _open_lock:  # the first one sets up what all share, and V8 takes no lock for it
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
        """Return an isolate with nothing in it, not even the bridge: the least one costs."""
        return cls("", lambda _: None)

    @property
    def has_cpu_clock(self) -> bool:
        """Whether `cpu_seconds` is CPU time of V8's thread; otherwise it is wall-clock time, which
        also grows while no code runs."""
        return self._clock is not None

    def cpu_seconds(self) -> float:
        """Return the time that V8's thread has worked; it stops while the host works on a call.
        Where the system has no such clock, it is wall time without the time spent in calls."""
        with self._lock:
            if self._freed:
                return 0.0
            return (self._wait_began if self._waiting else self._now()) - self._waited_seconds

    def limit_heap(self, size: int) -> None:
        """End the evaluation once V8's heap holds more than `size` bytes."""
        with self._lock:
            if not self._freed:
                self._dll.mr_set_hard_memory_limit(self._context, size)

    def heap_is_full(self) -> bool:
        """Whether the heap limit was reached; also in a microtask, which has no outcome."""
        with self._lock:
            return not self._freed and bool(self._dll.mr_hard_memory_limit_reached(self._context))

    def evaluate(self, code: str, done: Callable[[Outcome], None]) -> None:
        """Start an evaluation and return at once; `done` is called on V8's thread, before the
        microtasks that the code left. One evaluation at a time; none after `stop`."""
        with self._lock:
            if not self._ended:
                self._on_done = done
                self._task = self._evaluate(code)

    def reply(self, text: str) -> None:
        """Answer the request that `on_call` received last."""
        with self._lock:
            if self._waiting:
                self._waiting = False
                self._waited_seconds += self._now() - self._wait_began
                self._bridge.answer(text.encode("utf-16-le", "surrogatepass"))
                self._answered.release()

    def stop(self) -> None:
        """End the evaluation, and a host call in flight with it. Code that runs as a microtask goes
        on until `close`."""
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
        """Stop and free. Waits until V8 has stopped, which takes long only inside a builtin that
        cannot be interrupted."""
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
            self._on_raw(raw_val_handle)

    def _evaluated(self, raw: Any) -> None:
        outcome = _outcome(raw)
        self._dll.mr_free_value(self._context, raw)
        done, self._on_done = self._on_done, None
        if done is not None:
            done(outcome)
        self._thread.drop()

    def _native(self) -> None:
        # Without `_on_done` the caller is a microtask that outlived its evaluation: `_evaluated`,
        # which releases the thread state, will not run afterwards, so it must not be kept.
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
        """Hand a request to the host and wait until it is answered or the run is ended."""
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
        found, ready = self._evaluate_first(bridge)
        # waits for the evaluation of the bridge as well
        native = self._dll.mr_make_js_callback(self._context, _NATIVE)
        ready.acquire()
        self._on_raw, raw = self._evaluated, found[0]
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

    def _evaluate_first(self, code: str) -> tuple[list[Any], threading.Lock]:
        """Start an evaluation; its raw value is in the list once the lock is free."""
        found: list[Any] = []
        ready = threading.Lock()
        ready.acquire()

        def first(raw: Any) -> None:
            if hasattr(time, "pthread_getcpuclockid"):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            found.append(raw)
            ready.release()

        self._on_raw = first
        self._evaluate(code)
        return found, ready

    def _evaluate(self, code: str) -> int:
        source = self._string(code)
        task: int = self._dll.mr_eval(self._context, source, _EVALUATED)
        self._dll.mr_free_value(self._context, source)
        return task

    def _string(self, text: str) -> Any:
        data = text.encode("utf-8", "replace")
        return self._dll.mr_alloc_string_val(self._context, data, len(data), Kind.str_utf8)


def isolate_count() -> int:
    """Return how many isolates of this process V8 still holds."""
    return int(load().mr_context_count())


@cache
def load() -> ctypes.CDLL:
    """Load V8 unless it is loaded, and return its library.

    Where the processor has memory protection keys (pku in /proc/cpuinfo), V8 takes one to guard
    its code, and threads that began before then may not read that code: an isolate that one of
    them uses or frees ends the process with signal 11. A host lives among threads that others
    began, so V8 is loaded while no key is free, and goes without, as on other processors.
    """
    libc = ctypes.CDLL(None)
    taken: list[int] = []
    if hasattr(libc, "pkey_alloc"):
        while (key := libc.pkey_alloc(0, 0)) >= 0:
            taken.append(key)
    try:
        return init_mini_racer(ignore_duplicate_init=True)
    finally:
        for key in taken:
            libc.pkey_free(key)


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
