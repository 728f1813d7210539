"""The command `groundhook` in processes that fork from one which has imported it.

The imports take most of the time of a short command. Each process has the folder, the environment
and the streams that it is given, and ends as the command does. Where that is not the same, as with
variables that Python reads when it starts, the command is started as a shell starts it.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

COMMAND = Path(sys.executable).with_name("groundhook")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_")
_LARGEST = 65_536  # bytes of a message, and of what a pipe holds without a reader
_HANG_S = 60

# Of each request one process waits for the command, tells its id and how it ended, and ends.
_FORKING = f"""
import gc, json, os, signal, socket, sys
import groundhook.host.app.host
from groundhook.host.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.freeze()
door = socket.socket(fileno=int(sys.argv[1]))
while True:
    message, handed, *_ = socket.recv_fds(door, {_LARGEST}, 4)
    if not message:
        os._exit(0)
    if os.fork() == 0:
        break
    for each in handed:
        os.close(each)
door.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
asked, reply = json.loads(message), socket.socket(fileno=handed.pop())
if command := os.fork():
    reply.send(b"%d" % command)
    reply.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]))
    os._exit(0)
reply.close()
for number, each in enumerate(handed):
    os.dup2(each, number)
    os.close(each)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
sys.argv = asked["command"]
main()
"""


def run_command(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: bytes
) -> tuple[int, bytes, bytes]:
    """Run the command in a folder and return its exit code, its output and its errors."""
    command = [str(COMMAND), *map(str, arguments)]
    own = {**ENVIRONMENT, **environment}
    request = json.dumps({"folder": str(folder), "environment": own, "command": command}).encode()
    starts = any(name.startswith(_AT_START) for name in environment)
    if starts or len(request) > _LARGEST or len(stdin) > _LARGEST:
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
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _forked(request, stdin, out, err)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _forked(request: bytes, stdin: bytes, out: IO[bytes], err: IO[bytes]) -> int:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        read, write = os.pipe()
        os.write(write, stdin)
        os.close(write)
        streams = [read, out.fileno(), err.fileno(), theirs.fileno()]
        socket.send_fds(_door(), [request], streams)
        os.close(read)
        theirs.close()
        ours.settimeout(_HANG_S)
        process = int(ours.recv(100))
        try:
            return int(ours.recv(100))
        except TimeoutError:
            os.kill(process, 9)
            raise


@cache
def _door() -> socket.socket:
    """The way to the process that forks, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    forking = subprocess.Popen(
        [sys.executable, "-P", "-c", _FORKING, str(theirs.fileno())],
        env=ENVIRONMENT,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()

    def close() -> None:
        ours.close()
        forking.wait()

    atexit.register(close)
    return ours
