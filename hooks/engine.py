"""V8: the only module that touches `py_mini_racer`, whose private names of the pinned version it uses.

Owns isolates and the synchronous bridge between JavaScript and its host. It knows nothing of hooks: what is evaluated
and what a call means is its callers' business.

The bridge: the script evaluated first makes a `SharedArrayBuffer` (which no script can detach, unlike an ArrayBuffer) and
hands it over as its value; this module holds its memory and gives the script a native function. The script writes a
request into the buffer as UTF-16 and calls the function; the callback below, on V8's own thread, reads it, hands it to
`on_call`, waits for `reply`, writes the answer into the same buffer and returns. Longer texts cross in pieces.

    header, four 32-bit integers    0: what this is   1: UTF-16 units in this piece   2: units still to come
    text                            UTF-16, little endian, from byte 16

While JavaScript is blocked in the callback its values cannot be read: that would wait for V8's thread, which is waiting.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from py_mini_racer._dll import init_mini_racer, mr_callback_func
from py_mini_racer._objects import _MiniRacerTypes as Kind

from host.errors import HookCrashed

HEADER_BYTES = 16
MORE, CALL, FETCH = 1, 2, 3  # header 0 as JavaScript writes it
DONE, STOPPED = 0, 1  # header 0 as the host writes it

_NATIVE, _EVALUATED = 1, 2  # callback ids, ours to choose

OutcomeKind = Literal["value", "error", "syntax", "heap", "stopped"]


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: with a string (`value`; empty when it was something else), or with V8's message."""

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


class Waiting(Protocol):
    """How V8's thread waits for an answer; each `wake`, and each answer that comes this way, ends one `wait`."""

    def wait(self) -> bytes | None:
        """The answer, in UTF-16, little endian; None when woken."""
        ...

    def wake(self) -> None: ...


class _Locked:
    """Waiting for a thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        self._lock.acquire()

    def wake(self) -> None:
        self._lock.release()


class Isolate:
    """One V8 isolate. Close it: one that is left to the garbage collector hangs the interpreter when it ends.

    `bridge` is the script that makes the buffer; its value must be a SharedArrayBuffer whose property `native` accepts
    the function. `on_call` is called on V8's thread with each request and must neither wait nor raise; `reply` may be called
    from any thread, from within `on_call` too. `heap_bytes` of 0 leaves V8's own limit.
    """

    def __init__(self, bridge: str, on_call: Callable[[str], None], *, heap_bytes: int = 0) -> None:
        """Raises HookCrashed when `bridge` does not evaluate to a buffer."""
        self._dll = init_mini_racer(ignore_duplicate_init=True)
        self._on_call = on_call
        self._on_raw: Callable[[Any], None] = self._evaluated
        self._on_done: Callable[[Outcome], None] | None = None
        self._request = bytearray()
        self._answer, self._sent = b"", 0
        self._waiter: Waiting = _Locked()
        self._gate = threading.Lock()
        self._waiting = self._ended = self._freed = False
        self._task = 0
        self._clock: int | None = None
        self._call_began = self._not_working = self._waited = 0.0
        self._callback: Any = mr_callback_func(self._from_v8)  # V8 keeps only a pointer to it
        self._context = self._dll.mr_init_context(self._callback)
        with _open_lock:
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
        """An isolate with nothing in it, not even the bridge: what one costs at least."""
        return cls("", lambda _: None)

    @property
    def has_cpu_clock(self) -> bool:
        """Whether `cpu_seconds` is V8's own time; else it also grows while nothing is evaluated."""
        return self._clock is not None

    def cpu_seconds(self) -> float:
        """Time V8's thread has worked; it stands still while the host works on a call. Where the system has no such clock,
        wall time without the time spent in calls."""
        with self._gate:
            if self._freed:
                return 0.0
            if self._clock is not None:
                return time.clock_gettime(self._clock) - self._waited
            return (self._call_began if self._waiting else time.monotonic()) - self._not_working

    def limit_heap(self, size: int) -> None:
        """End what is being evaluated once V8's heap holds more than `size` bytes."""
        with self._gate:
            if not self._freed:
                self._dll.mr_set_hard_memory_limit(self._context, size)

    def heap_is_full(self) -> bool:
        """Whether the heap limit was reached; also when it happened in a microtask, which has no outcome of its own."""
        with self._gate:
            return not self._freed and bool(self._dll.mr_hard_memory_limit_reached(self._context))

    def wait_on(self, waiter: Waiting) -> None:
        """Wait for answers there, from the next evaluation on."""
        self._waiter = waiter

    def evaluate(self, code: str, done: Callable[[Outcome], None]) -> None:
        """Evaluate and return at once; `done` is called on V8's thread, before the microtasks that the code left behind.
        One evaluation at a time; none after `stop`."""
        with self._gate:
            if not self._ended:
                self._on_done = done
                self._task = self._evaluate(code)

    def reply(self, text: str) -> None:
        """Answer the request that `on_call` was given last."""
        with self._gate:
            if self._waiting and not self._ended:
                self._waiting = False
                self._answer, self._sent = text.encode("utf-16-le", "surrogatepass"), 0
                self._waiter.wake()

    def stop(self) -> None:
        """End what is being evaluated, and a host call in flight with it. Code that runs as a microtask goes on until
        `close`."""
        with self._gate:
            if self._ended:
                return
            self._ended = True
            self._dll.mr_cancel_task(self._context, self._task)
            if self._waiting:
                self._waiting = False
                self._waiter.wake()

    def close(self) -> None:
        """Stop and free. Waits until V8 has stopped, which takes long only inside a builtin that cannot be interrupted."""
        self.stop()
        with self._gate:
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

    def _native(self) -> None:
        head = self._head
        what, units = head[0], head[1]
        head[0] = STOPPED
        if self._ended:
            return
        if what == FETCH:
            self._write_piece()
            return
        self._request += self._memory[HEADER_BYTES : HEADER_BYTES + 2 * units]
        if what == MORE:
            head[0] = DONE
            return
        text = self._request.decode("utf-16-le", "replace")
        self._request.clear()
        self._call_began = time.monotonic()
        with self._gate:
            if self._ended:
                return
            self._waiting = True
        self._on_call(text)
        looking = time.thread_time()  # whoever waits may stay awake for a while
        answer = self._waiter.wait()
        self._waited += time.thread_time() - looking
        self._not_working += time.monotonic() - self._call_began
        if answer is not None:
            with self._gate:
                self._waiting = False
            self._answer, self._sent = answer, 0
        if not self._ended:
            self._write_piece()

    def _write_piece(self) -> None:
        start, room = self._sent, len(self._memory) - HEADER_BYTES
        stop = self._sent = min(start + room, len(self._answer))
        self._memory[HEADER_BYTES : HEADER_BYTES + stop - start] = self._answer[start:stop]
        self._head[1], self._head[2] = (stop - start) // 2, (len(self._answer) - stop) // 2
        self._head[0] = DONE

    # ---- setting up

    def _connect(self, bridge: str) -> None:
        found, ready = self._evaluate_first(bridge)
        native = self._dll.mr_make_js_callback(self._context, _NATIVE)  # waits for the bridge to be evaluated, too
        ready.acquire()
        self._on_raw, raw = self._evaluated, found[0]
        if raw.contents.type != Kind.shared_array_buffer:
            raise HookCrashed(f"the JavaScript engine did not start: {_outcome(raw).text or 'the bridge made no buffer'}")
        self._memory, self._head = _memory_of(raw)  # `raw` is not freed: it keeps the memory alive
        name = self._string("native")
        for handle in (self._dll.mr_set_object_item(self._context, raw, name, native), name, native):
            self._dll.mr_free_value(self._context, handle)

    def _evaluate_first(self, code: str) -> tuple[list[Any], threading.Lock]:
        """Starts the evaluation; its raw value is in the list once the lock is free."""
        found: list[Any] = []
        ready = threading.Lock()
        ready.acquire()

        def first(raw: Any) -> None:
            if hasattr(time, "pthread_getcpuclockid"):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            found.append(raw)
            ready.release()

        self._on_raw, self._not_working = first, time.monotonic()
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
    """Isolates of this process that V8 still holds."""
    return int(init_mini_racer(ignore_duplicate_init=True).mr_context_count())


def load() -> None:
    """Load V8 now, so that the first isolate need not wait for it."""
    init_mini_racer(ignore_duplicate_init=True)


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


def _memory_of(raw: Any) -> tuple[memoryview, memoryview]:
    """The bytes of a SharedArrayBuffer, and its header as integers."""
    value = raw.contents
    whole = memoryview((ctypes.c_ubyte * value.len).from_address(value.value.value_ptr)).cast("B")
    return whole, whole[:HEADER_BYTES].cast("i")


_open: set[Isolate] = set()
_open_lock = threading.Lock()
atexit.register(close_all)
