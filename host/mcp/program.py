"""A program that is spoken to in lines over its standard streams, with what it last said on
standard error.

Knows nothing of MCP. The program gets a process group of its own: a terminal's Ctrl-C does not
reach it, and when it is left everything that it started ends with it.
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

from groundhook.host.mcp.lines import Line, Oversize, Splitter

PATIENCE = (
    2.0  # seconds a program has for ending by itself, the second half of them after it was told to
)
SAID = 4096  # bytes of standard error that are kept
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Program(asyncio.SubprocessProtocol):
    """A running program. `ended` is called once, when its standard output is over."""

    def __init__(self, largest: int, ended: Callable[[], None]) -> None:
        self.hopeless = False  # it hangs: stop without patience
        self._splitter = Splitter(largest)
        self._most = 4 * largest
        self._ended = ended
        self._lines: deque[Line] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._over = False
        self._listening = True
        self._stopped = False
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._said = bytearray()
        self._transport: Any = None

    async def read(self) -> Line | None:
        """The next line; None when there are no more."""
        while not self._lines:
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= _weight(line)
        if self._waiting_bytes < self._most:
            self._listen(True)
        return line

    async def write(self, line: bytes) -> None:
        """Send one line, which has no end of line in it. Raises anyio.BrokenResourceError when the
        program does not read any more, and then it has not got the line."""
        stdin = self._transport.get_pipe_transport(0)
        if self._over or stdin is None or stdin.is_closing():
            raise anyio.BrokenResourceError
        stdin.write(line + b"\n")
        if stdin.is_closing():  # the write itself found that nobody reads
            raise anyio.BrokenResourceError
        await self._writable.wait()

    def said(self) -> str:
        """The last lines on standard error, shortened; "" when there were none."""
        lines = [
            line.strip()
            for line in _CONTROL.sub("", self._said.decode("utf-8", "replace")).splitlines()
        ]
        return " | ".join([line for line in lines if line][-5:])[-500:]

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative: by which signal; None while it runs, and when it had to be
        stopped."""
        code: int | None = self._transport.get_returncode()
        return None if self._stopped else code

    async def settle(self) -> None:
        """Give a program that is going the moment that it needs to be gone, so that its exit code
        is known."""
        await self._exits(0.2)

    async def stop(self) -> None:
        """End it, and all that it started: by closing its standard input, then by asking, then by
        force."""
        self._stopped = not self._exited.is_set()
        self._lines.clear()
        self._over = True
        self._listen(True)
        if (stdin := self._transport.get_pipe_transport(0)) is not None:
            stdin.close()
        if not self.hopeless and not await self._exits(PATIENCE / 2):
            self._signal(signal.SIGTERM)
            await self._exits(PATIENCE / 2)
        self._signal(signal.SIGKILL)  # also for what it leaves behind when it ends by itself
        await self._exits(PATIENCE)
        self._transport.close()

    async def _exits(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _listen(self, on: bool) -> None:
        stdout = self._transport.get_pipe_transport(1)
        if stdout is not None and not stdout.is_closing() and self._listening != on:
            self._listening = (
                on  # kept here: Python 3.11 before 3.11.4 has no `is_reading` for pipes
            )
            (stdout.resume_reading if on else stdout.pause_reading)()

    # ---- asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._said += data
            del self._said[:-SAID]
        elif not self._over:
            lines = self._splitter.feed(data)
            self._lines += lines
            self._waiting_bytes += sum(map(_weight, lines))
            if self._waiting_bytes > self._most:
                self._listen(False)  # until the host has caught up
            self._arrived.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._writable.set()
        elif fd == 1:
            self._over = True
            self._arrived.set()
            self._ended()

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
    largest: int,
    ended: Callable[[], None],
) -> AsyncIterator[Program]:
    """Start a program with exactly the environment `env`. Lines that are larger than `largest`
    bytes arrive as `Oversize`. Raises OSError when it cannot be started. Leaving takes `PATIENCE`
    seconds at most, also when cancelled."""
    loop = asyncio.get_running_loop()
    with anyio.CancelScope(shield=True):
        _, program = await loop.subprocess_exec(
            lambda: Program(largest, ended),
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


def _weight(line: Line) -> int:
    return len(line.tail) if isinstance(line, Oversize) else len(line)
