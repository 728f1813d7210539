"""What a server does from time to time."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream

from groundhook import open_host
from groundhook.core.types.chats import Chat, ChatOwner
from groundhook.host.chats.ports import ChatPage
from groundhook.host.server.upkeep import reload_saved
from tests.conftest import MakeApp
from tests.server.conftest import serving, write

APP = {"assistants/plain/package.yao": '{"name": "Plain"}'}
AGENT = '{"store": {"keep_days": 30}, "server": {"chats": {"enabled": false}, "drain_s": 0}}'


@contextmanager
def log_lines() -> Iterator[MemoryObjectReceiveStream[str]]:
    """Receive the lines that the server logs while the block runs."""
    send, lines = anyio.create_memory_object_stream[str](math.inf)
    handler = logging.Handler()
    handler.emit = lambda record: send.send_nowait(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("groundhook.server")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with send, lines:
            yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


async def test_files_that_cannot_be_watched_are_logged_once_and_watched_as_soon_as_they_can(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(APP)
    with anyio.fail_after(60), log_lines() as lines:
        async with open_host(app, environment={}) as host, anyio.create_task_group() as tasks:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, "watchfiles", None)  # as if it were not installed
                tasks.start_soon(lambda: reload_saved(host, app, pause_s=0))
                first = await lines.receive()
                for _ in range(50):  # for several more tries
                    await anyio.lowlevel.checkpoint()
            assert first.startswith("saved files cannot be read again: watching files needs")
            write(app, {"assistants/new/package.yao": '{"name": "New"}'})
            assert await lines.receive() == "reloaded: new"
            assert "new" in host.app.packages
            tasks.cancel_scope.cancel()


async def test_old_chats_are_removed_also_when_chats_are_switched_off(make_app: MakeApp) -> None:
    app = make_app(APP)
    async with open_host(app, environment={}) as host:
        old = Chat(id="old", assistant_id="plain", made_at=1, changed_at=1)
        await host.chats.chats.make(ChatOwner(), old)
        write(app, {"agent/agent.yml": AGENT})
        with serving(app), anyio.fail_after(60):
            while (await host.chats.chats.list(ChatOwner(), ChatPage())).chats:
                pass
