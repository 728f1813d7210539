"""The sample assistants of the toolkits, synchronised once for all tests."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from groundhook import Host, open_host
from tests.cli.conftest import run_in

ROOT = Path(__file__).parents[2]

HASH = '"embedding": { "provider": "hash" }'  # vectors at once; words decide
OpenSample = Callable[[str], AbstractAsyncContextManager[Host]]


@pytest.fixture(scope="session")
def synchronised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return an app that has one of the repository's sample assistants, synchronised."""
    made: dict[str, Path] = {}

    def make(assistant: str) -> Path:
        if assistant not in made:
            app = tmp_path_factory.mktemp(assistant)
            shutil.copytree(ROOT / "assistants" / assistant, app / "assistants" / assistant)
            for file in (app / "assistants" / assistant / "kb").glob("*.kb.yao"):
                text = file.read_text(encoding="utf-8")
                file.write_text(text.replace("{", f"{{ {HASH},", 1), encoding="utf-8")
            (app / "agent").mkdir()
            (app / "agent" / "agent.yml").write_text("kb_storage:\n  idle_s: 3\n", encoding="utf-8")
            done = run_in(app, "tools", "sync", assistant)
            assert done.code == 0, done.err
            made[assistant] = app
        return made[assistant]

    return make


@pytest.fixture
def open_sample(synchronised: Callable[[str], Path]) -> OpenSample:
    @asynccontextmanager
    async def opened(assistant: str) -> AsyncIterator[Host]:
        async with open_host(synchronised(assistant)) as host:
            yield host

    return opened
