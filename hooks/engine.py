"""V8 isolates, and the bridge over which JavaScript calls the host synchronously.

An isolate is an independent instance of V8 with its own heap and thread. This is the only module
that imports `py_mini_racer`, V8's binding for Python, and it uses private names of the pinned
version. Its callers decide which code is evaluated and what a call of the host means.

The bridge is shared memory and a function. The first script of an isolate creates the memory, a
`SharedArrayBuffer`, because no script can detach it; `hooks.bridge` describes its layout. Then this
module gives the script a native function. A call of the host:

    1  JavaScript writes a request into the memory and calls the native function.
    2  On V8's thread, `_on_native_call` reads the request, passes it to `on_call`, and waits.
    3  The host calls `reply`, which writes the answer into the memory and ends the wait.
    4  The native function returns, and JavaScript reads the answer.

Texts that are longer than the memory cross it in pieces, with one native call for each. While
JavaScript waits in a native call, none of its values can be read: reading would wait for V8's
thread, which is waiting itself.

The thread state that Python has for V8's thread, kept from one callback to the next.

When a thread that Python did not start calls a Python function, Python creates a thread state for
it, and deletes that state when the function returns. Each new state allocates memory for a stack,
which is more than half of the cost of a host call on the side of JavaScript.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from queue import SimpleQueue
from typing import Any, Literal

from py_mini_racer._dll import DEFAULT_V8_FLAGS, init_mini_racer, mr_callback_func
from py_mini_racer._objects import _MiniRacerTypes as ValueType

from groundhook.core.errors import HookCrashed
from groundhook.hooks.bridge import NEXT_ANSWER_PIECE, REQUEST_PIECE, Bridge

_python = ctypes.pythonapi


class ThreadState:
    """The thread state of one thread. Both functions are called on that thread, from within
    callbacks; on another thread `release` does nothing. A state that is still kept when its thread
    ends leaks 17 KB."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Keep the state until `release`; does nothing if it is kept already."""
        if not self.kept:
            self.kept = True
            self._owner = threading.get_ident()
            self._before = _python.PyGILState_Ensure()

    def release(self) -> None:
        """Let Python delete the state when the callback returns."""
        if self.kept and threading.get_ident() == self._owner:
            self.kept = False
            _python.PyGILState_Release(self._before)


# V8 calls `_on_callback` with one of these numbers: JavaScript called the native function, or an
# evaluation has a result.
_NATIVE_CALL, _RESULT = 1, 2

OutcomeKind = Literal["value", "error", "syntax", "heap", "stopped"]


@dataclass(frozen=True)
class IsolateOutcome:
    """The result of an evaluation. For the kind "value", `text` is the string that the code
    evaluated to, or "" if it was not a string; for every other kind it is V8's error message."""

    kind: OutcomeKind
    text: str = ""


_FAILURES: dict[int, OutcomeKind] = {
    ValueType.execute_exception: "error",
    ValueType.parse_exception: "syntax",
    ValueType.oom_exception: "heap",
    ValueType.timeout_exception: "stopped",
    ValueType.terminated_exception: "stopped",
    ValueType.value_exception: "error",
    ValueType.key_exception: "error",
}


class Isolate:
    """One V8 isolate. It must be closed: the interpreter cannot exit after the garbage collector
    has deleted an open isolate.

    `bridge_script` is JavaScript that creates the shared memory and evaluates to it, a
    SharedArrayBuffer; its property `native` is then set to the native function. `on_call` is called
    on V8's thread with each request and must neither wait nor raise. `reply` may be called from any
    thread, also from within `on_call`. `heap_bytes` limits V8's heap; 0 keeps V8's own limit.
    """

    def __init__(
        self, bridge_script: str, on_call: Callable[[str], None], *, heap_bytes: int = 0
    ) -> None:
        """Create the isolate. Raises HookCrashed if `bridge_script` does not evaluate to a
        SharedArrayBuffer."""
        self._dll = load()
        self._on_call = on_call
        # Called with the result of each evaluation; `_connect` sets another one for the first.
        self._on_result: Callable[[Any], None] = self._end_evaluation
        self._on_done: Callable[[IsolateOutcome], None] | None = None  # set while code is evaluated
        # Python makes a thread state for each callback on V8's thread and deletes it at its end,
        # which is more than half of the cost of a host call. This keeps it during an evaluation.
        self._thread_state = ThreadState()
        self._lock = threading.Lock()
        self._stopped = self._freed = False  # `stop` or `close` was called
        self._bridge: Bridge  # set by `_connect`; an isolate without a bridge has none
        self._waiting = False  # V8's thread waits for an answer
        # A lock that serves as a semaphore, because it is faster: V8's thread acquires it to wait
        # for an answer, and `reply` or `stop` releases it once for each wait.
        self._answered = threading.Lock()
        self._answered.acquire()
        self._evaluation = 0  # V8's number of the current evaluation
        self._clock: int | None = None  # the CPU clock of V8's thread
        self._wait_began = self._waited_seconds = 0.0
        # V8 keeps only a pointer to the callback, so this reference keeps it alive.
        self._callback: Any = mr_callback_func(self._on_callback)
        # The first isolate initialises V8's global state, which V8 does not protect with a lock.
        with _open_lock:
            self._context = self._dll.mr_init_context(self._callback)
            _open.add(self)
        if heap_bytes:
            self.limit_heap(heap_bytes)
        try:
            if bridge_script:
                self._connect(bridge_script)
        except HookCrashed:
            self.close()
            raise

    @classmethod
    def without_bridge(cls) -> Isolate:
        """Return an isolate without a bridge, to measure what an isolate costs at least."""
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
            # The time of a host call that is under way does not count.
            now = self._wait_began if self._waiting else self._read_clock()
            return now - self._waited_seconds

    def limit_heap(self, size: int) -> None:
        """Limit V8's heap to `size` bytes. An evaluation that exceeds the limit ends."""
        with self._lock:
            if not self._freed:
                self._dll.mr_set_hard_memory_limit(self._context, size)

    def heap_is_full(self) -> bool:
        """Return whether code has reached the heap limit. A microtask that reaches it is reported
        here only, because `done` was called before it ran."""
        with self._lock:
            return not self._freed and bool(self._dll.mr_hard_memory_limit_reached(self._context))

    def evaluate(self, code: str, done: Callable[[IsolateOutcome], None]) -> None:
        """Start to evaluate `code`, and return at once. `done` is called on V8's thread with the
        outcome, before the microtasks of the code run. Only one evaluation may run at a time. After
        `stop` the function does nothing."""
        with self._lock:
            if not self._stopped:
                self._on_done = done
                self._evaluation = self._start(code)

    def reply(self, text: str) -> None:
        """Answer the last request that `on_call` received."""
        with self._lock:
            if self._waiting:
                self._waiting = False
                self._waited_seconds += self._read_clock() - self._wait_began
                self._bridge.write_answer(text.encode("utf-16-le", "surrogatepass"))
                self._answered.release()

    def stop(self) -> None:
        """End the evaluation and the host call that it waits for. A microtask that is running
        continues until `close`."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._dll.mr_cancel_task(self._context, self._evaluation)
            if self._waiting:
                self._waiting = False
                self._bridge.write_stopped()
                self._answered.release()

    def close(self) -> None:
        """Stop the evaluation and free the isolate. Waits until V8 has stopped, which takes long
        only if V8 is in a built-in function that it cannot interrupt."""
        self.stop()
        with self._lock:
            if self._freed:
                return
            self._freed = True
        self._dll.mr_free_context(self._context)
        self._callback = None
        with _open_lock:
            _open.discard(self)

    # ---- the functions that run on V8's thread

    def _on_callback(self, callback_id: int, raw_val_handle: Any) -> None:
        """Handle what V8 reports: a call of the native function, or the result of an evaluation.
        The handle points to the function's arguments, or to the result."""
        if callback_id == _NATIVE_CALL:
            self._dll.mr_free_value(self._context, raw_val_handle)
            self._on_native_call()
        else:
            self._on_result(raw_val_handle)

    def _end_evaluation(self, value: Any) -> None:
        outcome = _read_outcome(value)
        self._dll.mr_free_value(self._context, value)
        done, self._on_done = self._on_done, None
        if done is not None:
            done(outcome)
        self._thread_state.release()

    def _on_native_call(self) -> None:
        # Without `_on_done` the caller is a microtask that runs after its evaluation has ended. The
        # thread state is not kept then, because `_end_evaluation` will not run to release it.
        if self._on_done is not None:
            self._thread_state.keep()
        if self._stopped:
            self._bridge.write_stopped()
        elif self._bridge.kind == NEXT_ANSWER_PIECE:
            self._bridge.write_piece()
        elif self._bridge.kind == REQUEST_PIECE:
            self._bridge.append_piece()
        else:
            self._call_host(self._bridge.take_request())

    def _call_host(self, request: str) -> None:
        """Pass a request to the host, and wait until `reply` or `stop` is called."""
        with self._lock:
            if self._stopped:
                self._bridge.write_stopped()
                return
            self._wait_began = self._read_clock()
            self._waiting = True
        self._on_call(request)
        self._answered.acquire()

    def _read_clock(self) -> float:
        return time.monotonic() if self._clock is None else time.clock_gettime(self._clock)

    # ---- the functions that start evaluations

    def _connect(self, bridge_script: str) -> None:
        """Evaluate the script, open the memory that it creates, and give it the native function."""
        results: SimpleQueue[Any] = SimpleQueue()

        def keep_clock_and_result(value: Any) -> None:
            if hasattr(time, "pthread_getcpuclockid"):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
            results.put(value)

        self._on_result = keep_clock_and_result
        self._start(bridge_script)
        native = self._dll.mr_make_js_callback(self._context, _NATIVE_CALL)
        buffer = results.get()
        self._on_result = self._end_evaluation
        if buffer.contents.type != ValueType.shared_array_buffer:
            reason = _read_outcome(buffer).text or "its first script created no shared memory"
            raise HookCrashed(f"the JavaScript engine did not start: {reason}")
        # `buffer` is not freed, because it keeps the memory alive.
        self._bridge = Bridge(_memory_of(buffer))
        name = self._allocate_string("native")
        result = self._dll.mr_set_object_item(self._context, buffer, name, native)
        for value in (result, name, native):
            self._dll.mr_free_value(self._context, value)

    def _start(self, code: str) -> int:
        """Start to evaluate `code`, and return V8's number of the evaluation."""
        source = self._allocate_string(code)
        evaluation: int = self._dll.mr_eval(self._context, source, _RESULT)
        self._dll.mr_free_value(self._context, source)
        return evaluation

    def _allocate_string(self, text: str) -> Any:
        data = text.encode("utf-8", "replace")
        return self._dll.mr_alloc_string_val(self._context, data, len(data), ValueType.str_utf8)


def isolate_count() -> int:
    """Return the number of isolates that V8 holds in this process."""
    return int(load().mr_context_count())


@cache
def load() -> ctypes.CDLL:
    """Load V8 unless it is loaded, and return its library.

    V8 runs without memory protection keys, as it does on processors that lack them (no pku in
    /proc/cpuinfo). With them, V8 protects its code with a key that threads which started before V8
    was loaded do not have: when such a thread creates or frees an isolate, the process ends with
    signal 11. A host cannot know which threads the program around it has started.
    """
    flags = (*DEFAULT_V8_FLAGS, "--no-memory-protection-keys")
    return init_mini_racer(flags=flags, ignore_duplicate_init=True)


def close_all() -> None:
    """Close every isolate that is open; called when the interpreter ends."""
    with _open_lock:
        still_open = list(_open)
    for isolate in still_open:
        isolate.close()


def _read_outcome(value: Any) -> IsolateOutcome:
    result = value.contents
    if result.type == ValueType.str_utf8 or result.type in _FAILURES:
        text = result.value.bytes_val[0 : result.len].decode("utf-8", "replace")
        return IsolateOutcome(_FAILURES.get(result.type, "value"), text)
    return IsolateOutcome("value")


def _memory_of(buffer: Any) -> memoryview:
    """Return the bytes of a SharedArrayBuffer."""
    array = buffer.contents
    return memoryview((ctypes.c_ubyte * array.len).from_address(array.value.value_ptr)).cast("B")


_open: set[Isolate] = set()
_open_lock = threading.Lock()
atexit.register(close_all)
