"""What a server does from time to time."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from groundhook import open_host
from groundhook.host.server.upkeep import reload_saved
from tests.conftest import MakeApp
from tests.server.conftest import write

APP = {"assistants/plain/package.yao": '{"name": "Plain"}'}


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no file while the block runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_files_that_cannot_be_watched_are_logged_and_watched_as_soon_as_they_can(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(APP)
    with anyio.fail_after(20):
        async with open_host(app, environment={}) as host, anyio.create_task_group() as tasks:
            with no_more_files():
                tasks.start_soon(lambda: reload_saved(host, app, pause_s=0.01))
                while not caplog.messages:
                    await anyio.lowlevel.checkpoint()
            assert "saved files cannot be read again: " in caplog.messages[0]
            write(app, {"assistants/new/package.yao": '{"name": "New"}'})
            while "new" not in host.app.packages:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
