"""What a worker process holds, should a script ever break out of V8 into it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import psutil
import pytest

from groundhook import open_host
from groundhook.hooks.child import MODULE
from tests.attacks.conftest import Arena
from tests.conftest import MakeApp
from tests.parts.children import running

pytestmark = pytest.mark.usefixtures("processes_of_its_own")


async def test_a_worker_process_is_not_given_the_secrets_of_the_environment(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "a secret of the host")
    package = '{"connector": "extractive"}'
    app = make_app(
        {
            "assistants/a/package.yao": package,
            "assistants/a/index.js": "function Create() { return { search: false }; }",
        }
    )
    before = psutil.Process().children()
    async with open_host(app, environment={}) as host:
        async with host.stream("a", "hello") as events:
            assert [event async for event in events][-1].type == "stream_end"
        workers = [child for child in psutil.Process().children() if child not in before]
        assert workers
        for worker in workers:
            assert worker.environ()["PATH"] == os.environ["PATH"]  # noqa: TID251 - a test may look
            assert "a secret of the host" not in str(worker.environ())


async def test_a_worker_process_holds_no_file_of_the_host_and_writes_no_dump(arena: Arena) -> None:
    await arena.neighbour()
    workers = running(MODULE)  # tests that ran before in this process may have other children
    assert workers
    for worker in workers:
        assert worker.open_files() == []
        assert len(worker.net_connections("all")) == 1  # the socket to the host
        assert resource.prlimit(worker.pid, resource.RLIMIT_CORE) == (0, 0)


ON_UVLOOP = """
import socket, sys
import anyio, psutil
from groundhook import open_host

async def main():
    async with open_host(sys.argv[1]) as host:
        async with host.stream("a", "hello") as events:
            assert [event async for event in events][-1].type == "stream_end"
        print({len(child.net_connections("all")) for child in psutil.Process().children()})

listening = socket.create_server(("127.0.0.1", 0))
listening.set_inheritable(True)  # as uvicorn does
anyio.run(main, backend_options={"use_uvloop": True})
"""


def test_a_worker_process_does_not_inherit_what_a_server_on_uvloop_listens_on(
    make_app: MakeApp,
) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "extractive"}',
            "assistants/a/index.js": "function Create() { return { search: false }; }",
        }
    )
    done = subprocess.run(
        [sys.executable, "-c", ON_UVLOOP, app], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{1}\n"
