"""The command `groundhook` in processes that fork from one which has imported it (`forks`).

Each has the folder, the environment and the streams that it is given, and ends as the command does.
Where that is not the same, as with variables that Python reads when it starts, the command is
started as a shell starts it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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
