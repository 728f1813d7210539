"""The command `groundhook` in processes that fork from one which has imported it (`forks`).

Each has the folder, the environment and the streams that it is given, and ends as the command does.
Where that is not the same, as with variables that Python reads when it starts, the command is
started as a shell starts it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.parts import forks

COMMAND = Path(sys.executable).with_name("groundhook")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
_HANG_S = 60


def run_command(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: bytes
) -> tuple[int, bytes, bytes]:
    """Run the command in a folder and return its exit code, its output and its errors."""
    command = [str(COMMAND), *map(str, arguments)]
    own = {**ENVIRONMENT, **environment}
    if not forks.may_fork(own):
        done = subprocess.run(
            command,
            cwd=folder,
            env=own,
            input=stdin,
            capture_output=True,
            timeout=_HANG_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        files = {number: file.fileno() for number, file in enumerate((given, out, err))}
        with forks.fork(
            str(COMMAND), arguments, folder=folder, environment=own, files=files
        ) as process:
            code = _ended(process)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _ended(process: socket.socket) -> int:
    process.settimeout(_HANG_S)
    id = int(process.recv(100))
    try:
        return int(process.recv(100))
    except TimeoutError:
        os.kill(id, 9)
        raise


class StartedCommand:
    """As much of `subprocess.Popen` as tests use: the command while it runs, with pipes for what it
    writes. The process that it forked from is its parent."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]):
        self.returncode: int | None = None
        pipes = [os.pipe() for _ in range(2)]
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            self._process = forks.fork(
                str(COMMAND),
                arguments,
                folder=folder,
                environment=environment,
                files={0: nothing.fileno(), 1: pipes[0][1], 2: pipes[1][1]},
            )
        for _, written in pipes:
            os.close(written)
        self.stdout, self.stderr = (os.fdopen(read, encoding="utf-8") for read, _ in pipes)
        self.pid = int(self._process.recv(100))

    def poll(self) -> int | None:
        with suppress(BlockingIOError):
            self._end(self._process.recv(100, socket.MSG_DONTWAIT))
        return self.returncode

    def wait(self, timeout: float = _HANG_S) -> int:
        """Raises TimeoutError."""
        self._process.settimeout(timeout)
        if self.returncode is None:
            self._end(self._process.recv(100))
        assert self.returncode is not None
        return self.returncode

    def _end(self, status: bytes) -> None:
        if self.returncode is None:
            self.returncode = int(status or -signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()
        self._process.close()


def start_command(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], fork: bool = True
) -> StartedCommand | subprocess.Popen[str]:
    """Start the command in a folder; without `fork` as a shell starts it."""
    own = {**ENVIRONMENT, **environment}
    if fork and forks.may_fork(own):
        return StartedCommand([*map(str, arguments)], folder, own)
    return subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        cwd=folder,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
