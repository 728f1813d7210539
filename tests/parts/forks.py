"""Processes of the product that fork from one which has imported what they import.

The imports take most of the time of a short process. `python -P THIS_FILE` is the server: it forks
for each request, on a socket that pytest and the commands that it forked share. `patch` has
asyncio ask it for the child processes of the product, and for Python scripts that an app names as
programs: the servers of MCP that tests wrote, whose SDK takes two seconds to import. Each process has the folder, the variables
and the files that it is given, and ends as one that was started; its parent is the server, so tests
that look for children of this process start theirs (`started_not_forked`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

MODULES = (
    "groundhook.core.readers.process",
    "groundhook.handlers.kb.embedded.worker",
    "groundhook.hooks.worker",
)
IMPORTED = (
    "groundhook.core.readers.pool",
    "groundhook.handlers.db.handler",
    "groundhook.handlers.kb.embedded.requests",
    "groundhook.hooks.compiler",
    "groundhook.hooks.runner",
    "groundhook.host.app.host",
    "groundhook.host.app.syncs",
    "groundhook.host.cli.main",
    "groundhook.host.server.asgi",
    "groundhook.host.server.mcp.server",
    "groundhook.host.server.process",
)
VARIABLES = os.environ  # noqa: TID251 - of the processes that tests start
# Variables that Python or the system read when a process starts.
_READ_AT_START = ("PYTHON", "LC_", "TZ", "LD_")
_LARGEST = 100_000  # bytes of a request
_MOST_FILES = 8  # of a request

_address = ""  # of the server, in a process that it forked
_off = False  # whether all processes are started meanwhile


def may_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process with these variables would be as one that was started."""
    return (
        not _off
        and _at_start(environment) in ({}, _at_start(VARIABLES))
        and environment.get("LANG", "UTF-8").endswith("UTF-8")
    )


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


@contextlib.contextmanager
def started_not_forked() -> Iterator[None]:
    """Processes are children of this one until the block is left."""
    global _off
    before, _off = _off, True
    try:
        yield
    finally:
        _off = before


def fork(
    program: str,
    arguments: Sequence[str],
    *,
    folder: str | Path,
    environment: Mapping[str, str],
    files: Mapping[int, int],
    session: bool = False,
) -> socket.socket:
    """Fork a process, whose files have the numbers `files` → those of this process. The socket
    tells its id, and then how it ended."""
    asked = {
        "program": program,
        "arguments": [*map(str, arguments)],
        "folder": str(folder),
        "environment": dict(environment),
        "files": [*files],
        "session": session,
    }
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(_address or _server())
        socket.send_fds(connection, [json.dumps(asked).encode()], [*files.values()])
    except BaseException:
        connection.close()
        raise
    return connection


# ---- asyncio


class Forked:
    """As much of asyncio's process as the product uses. It belongs to one event loop."""

    returncode: int | None = None

    def __init__(
        self, connection: int, pid: int, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self.pid = pid
        self._on_end = on_end
        self._connection = connection
        self._ended = asyncio.Event()
        weakref.finalize(self, os.close, connection)
        # The loop keeps this object until the process has ended, or the loop has.
        asyncio.get_running_loop().add_reader(connection, self._end)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._connection)
        self.returncode = int(os.read(self._connection, 100) or -signal.SIGKILL)
        self._ended.set()
        self._on_end()


_start = asyncio.create_subprocess_exec
_STREAMS = ("stdin", "stdout", "stderr")


async def _create(*command: str, **options: Any) -> Any:
    environment = options.get("env")
    if environment is None:
        environment = VARIABLES
    interpreter, module = command[:3], command[3:4]
    if (
        interpreter != (sys.executable, "-P", "-m")
        or module[0] not in MODULES
        or not may_fork(environment)
    ):
        return await _start(*command, **options)
    streams = {number: options.get(name) for number, name in enumerate(_STREAMS)}
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        connection = fork(
            module[0],
            command[4:],
            folder=Path.cwd(),
            environment=environment,
            files={
                **{at: _number(at, stream, nothing) for at, stream in streams.items()},
                **{number: number for number in options.get("pass_fds", ())},
            },
            session=options.get("start_new_session", False),
        )
    finally:
        os.close(nothing)
    with connection:
        pid = int(connection.recv(100))
        connection.setblocking(False)
        return Forked(connection.detach(), pid)


def _number(at: int, stream: Any, nothing: int) -> int:
    """The number of the file that a process has as its stream `at`."""
    if stream == asyncio.subprocess.DEVNULL:
        return nothing
    return at if stream is None else int(stream.fileno())


class _Script(asyncio.SubprocessTransport):
    """A script with its three pipes, as asyncio has a program."""

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._pipes: dict[int, asyncio.WriteTransport | asyncio.ReadTransport] = {}

    async def start(self, script: str, arguments: Sequence[str], **options: Any) -> None:
        loop = asyncio.get_running_loop()
        pipes = [os.pipe() for _ in _STREAMS]
        theirs = {number: pipe[number > 0] for number, pipe in enumerate(pipes)}
        ours = {number: pipe[number == 0] for number, pipe in enumerate(pipes)}
        try:
            connection = fork(script, arguments, files=theirs, **options)
        finally:
            for file in theirs.values():
                os.close(file)
        with connection:
            pid = int(connection.recv(100))
            connection.setblocking(False)
            self._process = Forked(connection.detach(), pid, self._protocol.process_exited)
        self._protocol.connection_made(self)
        for number, file in ours.items():
            connect: Any = loop.connect_read_pipe if number else loop.connect_write_pipe
            pipe = _Pipe(number, self._protocol)
            opened = os.fdopen(file, "rb" if number else "wb", 0)
            self._pipes[number], _ = await connect(lambda pipe=pipe: pipe, opened)

    def get_pid(self) -> int:
        return self._process.pid

    def get_returncode(self) -> int | None:
        return self._process.returncode

    def get_pipe_transport(self, fd: int) -> Any:
        return self._pipes.get(fd)

    def close(self) -> None:
        for pipe in self._pipes.values():
            pipe.close()


class _Pipe(asyncio.Protocol):
    def __init__(self, number: int, protocol: asyncio.SubprocessProtocol) -> None:
        self._number = number
        self._protocol = protocol
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        self._protocol.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.pipe_connection_lost(self._number, exc)


_execute = asyncio.BaseEventLoop.subprocess_exec


async def _run(
    loop: asyncio.BaseEventLoop, protocol: Callable[[], Any], *command: Any, **options: Any
) -> Any:
    if (
        command[0] != sys.executable
        or not str(command[1]).endswith(".py")
        or options.keys() != {"env", "cwd", "start_new_session"}
        or not may_fork(options["env"])
    ):
        return await _execute(loop, protocol, *command, **options)
    script = _Script(protocol())
    await script.start(
        str(command[1]),
        command[2:],
        folder=Path.cwd() / options["cwd"],
        environment=options["env"],
        session=options["start_new_session"],
    )
    return script, script._protocol


def patch() -> None:
    """Have asyncio fork the child processes of the product, and scripts."""
    asyncio.create_subprocess_exec = _create  # type: ignore[assignment]
    asyncio.BaseEventLoop.subprocess_exec = _run  # type: ignore[method-assign,assignment]


# ---- the server


@cache
def _server() -> str:
    """The address of this process's server, which ends with it."""
    folder = tempfile.mkdtemp(prefix="gh-forks-")
    address = f"{folder}/door"
    read, write = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(address)
        door.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(door.fileno()), str(read), address],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **_at_start(VARIABLES)},
            pass_fds=[door.fileno(), read],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    os.close(read)

    def end() -> None:
        os.close(write)
        server.wait()
        Path(address).unlink()
        Path(folder).rmdir()

    atexit.register(end)
    return address


def serve(door: socket.socket, alive: int) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request until `alive` is closed; return in the processes that were forked."""
    ended, ends = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(ends, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    waiting = select.poll()
    for number in (door.fileno(), alive, ended):
        waiting.register(number, select.POLLIN)
    children: dict[int, socket.socket] = {}
    while True:
        for ready, _ in waiting.poll():
            if ready == alive:
                os._exit(0)
            elif ready == ended:
                os.read(ended, 1000)
                _report(children)
            else:
                asking = door.accept()[0]
                message, files, *_ = socket.recv_fds(asking, _LARGEST, _MOST_FILES)
                if message and (child := os.fork()):
                    children[child] = asking
                    asking.send(b"%d" % child)
                elif message:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for each in (door, asking, *children.values()):
                        each.close()
                    for number in (alive, ended, ends):
                        os.close(number)
                    return json.loads(message), files
                for number in files:
                    os.close(number)


def _report(children: dict[int, socket.socket]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with children.pop(child) as asked, contextlib.suppress(OSError):  # who asked may be gone
            asked.send(b"%d" % os.waitstatus_to_exitcode(status))


def begin(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    """Make this process the one that was asked for."""
    if asked["session"]:
        os.setsid()
    above = max(asked["files"], default=2) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, above) for number in files]
    for number in files:
        os.close(number)
    for number, wanted in zip(moved, asked["files"], strict=True):
        os.dup2(number, wanted)
        os.close(number)
    # Those of the server were made for the files that it had.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(asked["folder"])
    VARIABLES.clear()
    VARIABLES.update(asked["environment"])
    sys.argv = [asked["program"], *asked["arguments"]]


if __name__ == "__main__":
    from importlib import import_module

    for _module in IMPORTED:
        import_module(_module)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.freeze()
    _asked, _files = serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    _address = sys.argv[3]
    begin(_asked, _files)
    if _asked["program"] in MODULES:
        sys.modules.pop(_asked["program"], None)  # it would be another one than `__main__`
        runpy.run_module(_asked["program"], run_name="__main__", alter_sys=True)
    elif _asked["program"].endswith(".py"):
        sys.path.insert(0, str(Path(_asked["program"]).resolve().parent))
        runpy.run_path(_asked["program"], run_name="__main__")
    else:
        from groundhook.host.cli.main import main

        patch()
        main()
