"""A hook worker: a process that holds isolates, so that V8 can abort without ending the host.

`python -m groundhook.hooks.worker FD`: FD is a socket to the host, whose frames are those of
`core.workers`. One thread reads the frames and checks the clocks; each isolate has its own
thread, which sends host calls and outcomes. The process ends when the socket closes.

    from the host   prelude [script, lazy_globals] · open [run, setup, heap_mb, cpu_ms, code] ·
                    invoke [run, code] · reply [run, text] · close run ·
                    compile [file, source, others] (answered)
    to the host     ready · call [run, request] · done [run, kind, text] · closed run
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from groundhook.core.errors import HookCrashed, HostError
from groundhook.core.workers import (
    ANSWER,
    HEADER,
    POST,
    REFUSAL,
    describe,
    pack,
    socket_of_child,
    unpack,
)
from groundhook.hooks import engine
from groundhook.hooks.compiler import ScriptCompiler
from groundhook.hooks.engine import IsolateOutcome
from groundhook.hooks.run import HookRun, Prelude


class Worker:
    """Reads the host's frames and executes them."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._prelude = Prelude("", "")
        self._runs: dict[int, HookRun] = {}
        self._compiler: ScriptCompiler | None = None
        self._keeper = Keeper()
        self._watch_at: float | None = None  # when the clocks are checked next

    def serve(self) -> None:
        """Serve until the host closes its end."""
        self._send(POST, 0, "ready", None)
        readable = select.poll()
        readable.register(self._channel, select.POLLIN)
        received = bytearray()
        while True:
            if readable.poll(self._poll_timeout()):
                data = self._channel.recv(1 << 18)
                if not data:
                    return
                received += data
                self._dispatch(received)
            if self._watch_at is not None and time.monotonic() >= self._watch_at:
                self._watch()

    def _dispatch(self, received: bytearray) -> None:
        """Handle the complete frames at the beginning of `received`, and remove them."""
        start = 0
        while len(received) - start >= HEADER.size:
            (length,) = HEADER.unpack_from(received, start)
            stop = start + HEADER.size + length
            if stop > len(received):
                break
            _, id, operation, body = unpack(bytes(received[start + HEADER.size : stop]))
            start = stop
            self._handle(id, operation, body)
        del received[:start]

    def _handle(self, id: int, operation: str, body: Any) -> None:
        match operation:
            case "reply":
                if body[0] in self._runs:
                    self._runs[body[0]].reply(body[1])
            case "invoke":
                self._invoke(*body)
            case "open":
                self._open(*body)
            case "close":
                self._close(body)
            case "compile":
                self._compile(id, *body)
            case "prelude":
                self._prelude = Prelude(*body)

    def _open(self, run: int, setup: str, heap_mb: int, cpu_ms: int, code: str) -> None:
        def report(kind: str, first: str, second: str) -> None:
            self._send(POST, 0, kind, [run, first] if kind == "call" else [run, first, second])
            self._keeper.make(self._prelude)  # while the host is busy with the report

        try:
            made = self._runs[run] = self._keeper.take() or HookRun(self._prelude)
        except HookCrashed as exc:
            report("done", "error", str(exc))
            return
        made.begin(setup, heap_mb, cpu_ms, report)
        self._invoke(run, code)

    def _invoke(self, run: int, code: str) -> None:
        if run in self._runs:
            self._runs[run].invoke(code)
            self._watch()

    def _close(self, run: int) -> None:
        found = self._runs.pop(run, None)

        def close() -> None:
            if found is not None:
                found.close()
            self._send(POST, 0, "closed", run)

        if found is not None and (found.busy or found.closing):
            # V8 may be slow to stop; other runs must not wait for it.
            threading.Thread(target=close, daemon=True).start()
        else:
            self._keeper.do(close)

    def _compile(self, id: int, file: str, source: str, others: Mapping[str, Any]) -> None:
        def done(outcome: IsolateOutcome) -> None:
            if outcome.kind == "value":
                self._send(ANSWER, id, "", outcome.text)
            else:
                error = HookCrashed(f"the TypeScript compiler failed on {file!r}: {outcome.text}")
                self._send(REFUSAL, id, "", describe(error))

        try:
            if self._compiler is None:
                self._compiler = ScriptCompiler()
            self._compiler.transpile(file, source, others, done)
        except HostError as exc:
            self._send(REFUSAL, id, "", describe(exc))

    def _watch(self) -> None:
        """Check the limits of every run."""
        waits = [wait for run in self._runs.values() if (wait := run.watch()) is not None]
        self._watch_at = time.monotonic() + min(waits) if waits else None

    def _poll_timeout(self) -> float | None:
        """Return the milliseconds to wait for a frame, None for any time."""
        return (
            None if self._watch_at is None else max(self._watch_at - time.monotonic(), 0) * 1000 + 1
        )

    def _send(self, kind: int, id: int, operation: str, body: Any) -> None:
        frame = pack(kind, id, operation, body)
        with self._sending:
            try:
                self._channel.sendall(frame)
            except OSError:
                os._exit(0)  # the host is gone; the thread that reads ends for the same reason


class Keeper:
    """A thread for work that no run should wait for: it makes one isolate in advance, with only the
    prelude, and frees those that have ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wanted: Prelude | None = None
        self._making = False
        self._made: HookRun | None = None
        self._jobs: deque[Callable[[], None]] = deque()
        threading.Thread(target=self._work, daemon=True).start()

    def make(self, prelude: Prelude) -> None:
        """Make an isolate on the thread, unless one is ready."""
        with self._changed:
            if self._made is None and not self._making:
                self._wanted = prelude
                self._changed.notify_all()

    def take(self) -> HookRun | None:
        """Return the isolate that is ready or being made; None when there is neither."""
        with self._changed:
            self._wanted = None
            self._changed.wait_for(lambda: not self._making)
            run, self._made = self._made, None
        return run

    def do(self, job: Callable[[], None]) -> None:
        """Run a job on the thread, after those before it."""
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None or self._jobs)
                prelude, self._wanted = self._wanted, None
                self._making = prelude is not None
                job = None if self._making else self._jobs.popleft()
            if job is not None:
                job()
            elif prelude is not None:
                self._make(prelude)

    def _make(self, prelude: Prelude) -> None:
        made = None
        with suppress(HookCrashed):  # the next `open` makes one itself and reports the error
            made = HookRun(prelude)
        with self._changed:
            self._made, self._making = made, False
            self._changed.notify_all()


def main() -> None:
    # Writing a dump of V8's address space would delay the report of a crash.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C reaches the whole process group; the host decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket_of_child(sys.argv[1])
    _silence_v8()
    engine.load()  # now, so that the first isolate does not wait for it
    Worker(connection).serve()
    os._exit(0)  # a script that V8 cannot interrupt must not keep the process


def _silence_v8() -> None:
    """Discard what V8 writes to file descriptor 2 when it aborts: the host reports a crash itself.
    Python's stderr keeps the real one, unless the host has closed it."""
    with suppress(OSError):
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != 2:
        os.dup2(nowhere, 2)
        os.close(nowhere)


if __name__ == "__main__":
    main()
