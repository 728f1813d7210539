"""MCP servers for tests: our own over stdio and HTTP, and published ones from npm if Node and the
network are available."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import portalocker
import pytest

from groundhook.core.types.server_spec import ServerSpec
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.environment import process_environment
from groundhook.host.tools.mcp.servers import Servers, open_servers
from groundhook.host.tools.mcp.shapes import value_of
from tests.parts import forks

SERVER = str(Path(__file__).with_name("server.py"))
PUBLISHED = {"server-everything": "2026.8.31", "server-memory": "2026.8.31"}

Open = Callable[..., AbstractAsyncContextManager[Servers]]


def declared(**specs: Mapping[str, Any]) -> Catalogue[ServerSpec]:
    def load(id: str) -> Callable[[], ServerSpec]:
        return lambda: ServerSpec(id=id, **specs[id])

    return Catalogue("MCP server", {id: load(id) for id in specs})


def stdio(*arguments: str, **more: Any) -> dict[str, Any]:
    """Our own server as a program."""
    return {"command": sys.executable, "args": (SERVER, *arguments), **more}


def script(text: str, **more: Any) -> dict[str, Any]:
    """A program that is not an MCP server, or a faulty one."""
    return {"command": sys.executable, "args": ("-c", text), **more}


async def value(
    servers: Servers, server: str, tool: str, arguments: Mapping[str, Any] | None = None
) -> Any:
    """Call a tool and return its result as one value."""
    return value_of(server, tool, await servers.call_tool(server, tool, arguments))


def read(diary: Path) -> list[str]:
    """Return the calls that our own server recorded, in order."""
    return diary.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    """The file in which our own server records its calls."""
    path = tmp_path / "diary"
    path.touch()
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """`async with opened(name={…}) as servers`: servers of these specs, run in an empty folder."""

    @asynccontextmanager
    async def open_(**specs: Mapping[str, Any]) -> AsyncIterator[Servers]:
        environment = {
            "PATH": process_environment()["PATH"],
            "HOME": str(tmp_path),
            "SECRET": "not for servers",
        }
        async with open_servers(declared(**specs), environment, folder=tmp_path) as servers:
            yield servers

    return open_


@dataclass
class HttpServer:
    """Our own server over HTTP, which can be killed and restarted at the same address."""

    port: int
    diary: Path
    answers: str = "sse"
    script: str = SERVER
    pid: int = 0
    ended: socket.socket | None = None  # closed when the process has ended

    @property
    def spec(self) -> dict[str, Any]:
        transport, path = ("sse", "sse") if self.answers == "old" else ("http", "mcp")
        return {"transport": transport, "url": f"http://127.0.0.1:{self.port}/{path}"}

    def start(self) -> None:
        with Path(os.devnull).open("r+b") as nothing:
            self.ended = forks.fork(
                self.script,
                ["--http", str(self.port), "--answers", self.answers],
                folder=self.diary.parent,
                environment={"DIARY": str(self.diary)},
                files=dict.fromkeys(range(3), nothing.fileno()),
            )
        self.pid = int(self.ended.recv(100))
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("the server did not start")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        if self.ended is not None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            with self.ended:
                self.ended.recv(100)
            self.ended = None


@contextmanager
def serving(diary: Path, *, answers: str = "sse", script: str = SERVER) -> Iterator[HttpServer]:
    """A server at a free port, for the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = HttpServer(port, diary, answers, script)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(params=["sse", "json", "old"])
def http_server(request: pytest.FixtureRequest, diary: Path) -> Iterator[HttpServer]:
    with serving(diary, answers=request.param) as server:
        yield server


@pytest.fixture(scope="session")
def published() -> Path:
    """A folder with the published servers, installed once. Skips without npm or network."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = Path(tempfile.gettempdir()) / f"groundhook-mcp-servers-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with portalocker.Lock(folder / "lock", timeout=60):
        if not all(
            (folder / "node_modules/@modelcontextprotocol" / name / "dist/index.js").is_file()
            for name in PUBLISHED
        ):
            wanted = [
                f"@modelcontextprotocol/{name}@{version}" for name, version in PUBLISHED.items()
            ]
            command = [
                npm,
                "install",
                "--prefix",
                str(folder),
                "--no-audit",
                "--no-fund",
                "--prefer-offline",
                *wanted,
            ]
            try:
                subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
                pytest.skip(f"npm cannot install the servers: {str(exc.stderr or exc)[-300:]}")
    return folder / "node_modules/@modelcontextprotocol"
