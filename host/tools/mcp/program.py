"""A program that exchanges lines over its standard streams; the end of its standard error is kept
for messages.

Independent of MCP. The program has a process group of its own: a terminal's Ctrl-C does not reach
it, and stopping it stops everything that it started.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from groundhook.host.tools.mcp.lines import LineOrOversize, LineSplitter, Oversize

# Seconds to exit: half after its standard input closes, half after SIGTERM; then SIGKILL.
STOP_TIMEOUT = 2.0
STDERR_BYTES = 4096  # of standard error that are kept
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class ServerProgram(asyncio.SubprocessProtocol):
    """A running program. `on_end_of_output` is called once, when its standard output ends."""

    def __init__(self, max_bytes: int, on_end_of_output: Callable[[], None]) -> None:
        self.unresponsive = False  # it hangs: `stop` does not wait
        self._splitter = LineSplitter(max_bytes)
        self._max_waiting_bytes = 4 * max_bytes
        self._on_end_of_output = on_end_of_output
        self._lines: deque[LineOrOversize] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._over = False
        self._reading = True
        self._stopped = False
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._said = bytearray()
        self._transport: Any = None

    async def read(self) -> LineOrOversize | None:
        """Return the next line; None at the end of the output."""
        while not self._lines:
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= _kept_bytes(line)
        if self._waiting_bytes < self._max_waiting_bytes:
            self._set_reading(True)
        return line

    async def write(self, line: bytes) -> None:
        """Send one line, given without its line end. Raises anyio.BrokenResourceError if the
        program has closed its standard input; it has not received the line then."""
        stdin = self._transport.get_pipe_transport(0)
        if self._over or stdin is None or stdin.is_closing():
            raise anyio.BrokenResourceError
        stdin.write(line + b"\n")
        if stdin.is_closing():  # the write itself failed
            raise anyio.BrokenResourceError
        await self._writable.wait()

    def last_output(self) -> str:
        """Return the last lines of standard error, shortened; "" if there are none."""
        lines = [
            line.strip()
            for line in _CONTROL.sub("", self._said.decode("utf-8", "replace")).splitlines()
        ]
        return " | ".join([line for line in lines if line][-5:])[-500:]

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the program runs and after `stop` ended
        it."""
        code: int | None = self._transport.get_returncode()
        return None if self._stopped else code

    async def settle(self) -> None:
        """Wait briefly for a program that is exiting, so that its exit code is known."""
        await self._exits(0.2)

    async def stop(self) -> None:
        """End the program and everything that it started: close its standard input, then SIGTERM,
        then SIGKILL."""
        self._stopped = not self._exited.is_set()
        self._lines.clear()
        self._over = True
        self._set_reading(True)
        if (stdin := self._transport.get_pipe_transport(0)) is not None:
            stdin.close()
        if not self.unresponsive and not await self._exits(STOP_TIMEOUT / 2):
            self._signal(signal.SIGTERM)
            await self._exits(STOP_TIMEOUT / 2)
        self._signal(signal.SIGKILL)  # also for child processes that outlive it
        await self._exits(STOP_TIMEOUT)
        self._transport.close()

    async def _exits(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _set_reading(self, on: bool) -> None:
        stdout = self._transport.get_pipe_transport(1)
        if stdout is not None and not stdout.is_closing() and self._reading != on:
            self._reading = on  # Python before 3.11.4 has no `is_reading` for pipes
            (stdout.resume_reading if on else stdout.pause_reading)()

    # ---- asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._said += data
            del self._said[:-STDERR_BYTES]
        elif not self._over:
            lines = self._splitter.feed(data)
            self._lines += lines
            self._waiting_bytes += sum(map(_kept_bytes, lines))
            if self._waiting_bytes > self._max_waiting_bytes:
                self._set_reading(False)  # resumed by `read`
            self._arrived.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._writable.set()
        elif fd == 1:
            self._over = True
            self._arrived.set()
            self._on_end_of_output()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def process_exited(self) -> None:
        self._exited.set()


@asynccontextmanager
async def open_program(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    max_bytes: int,
    on_end_of_output: Callable[[], None],
) -> AsyncIterator[ServerProgram]:
    """Start a program in `folder` with exactly the environment `env`. Lines beyond `max_bytes`
    arrive as `Oversize`. Raises OSError if it cannot be started. Leaving takes at most about
    `STOP_TIMEOUT` seconds, also when cancelled."""
    loop = asyncio.get_running_loop()
    with anyio.CancelScope(shield=True):
        _, program = await loop.subprocess_exec(
            lambda: ServerProgram(max_bytes, on_end_of_output),
            command,
            *args,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield program
    finally:
        with anyio.CancelScope(shield=True):
            await program.stop()


def _kept_bytes(line: LineOrOversize) -> int:
    return len(line.tail) if isinstance(line, Oversize) else len(line)
