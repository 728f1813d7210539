"""The sample assistants of the toolkits, synchronised once for all tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from groundhook import Host, open_host
from groundhook.handlers.kb.embedded.client import KBClient
from tests.cli.conftest import run_in
from tests.loopback.qdrant import qdrant
from tests.loops import run as run_apart

ROOT = Path(__file__).parents[2]

HASH = '"embedding": { "provider": "hash" }'  # vectors at once; words decide
STORES = ("embedded", "server")
EMBEDDED = "kb_storage:\n  idle_s: 3\n"  # agent/agent.yml of an app whose store is its own
OpenSample = Callable[[str], AbstractAsyncContextManager[Host]]


@pytest.fixture(scope="session")
def synchronised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return an app that has one of the repository's sample assistants, synchronised."""
    made: dict[str, Path] = {}

    def make(assistant: str) -> Path:
        if assistant not in made:
            made[assistant] = synchronise(assistant, tmp_path_factory.mktemp(assistant), EMBEDDED)
        return made[assistant]

    return make


def synchronise(assistant: str, app: Path, agent: str) -> Path:
    """Make an app with one of the sample assistants and this agent/agent.yml, and sync it."""
    shutil.copytree(ROOT / "assistants" / assistant, app / "assistants" / assistant)
    for file in (app / "assistants" / assistant / "kb").glob("*.kb.yao"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("{", f"{{ {HASH},", 1), encoding="utf-8")
    (app / "agent").mkdir()
    (app / "agent" / "agent.yml").write_text(agent, encoding="utf-8")
    done = run_in(app, "tools", "sync", assistant)
    assert done.code == 0, done.err
    # All is on the disk then: some tests copy the app.
    run_apart(KBClient(app / ".groundhook", idle_s=3).stop_worker)
    return app


@contextmanager
def stored(kind: str, folder: Path) -> Iterator[str]:
    """The agent/agent.yml of an app whose collections are in the `embedded` engine, or on a Qdrant
    `server`, of which a stand-in answers on this machine."""
    if kind == "embedded":
        yield EMBEDDED
        return
    with qdrant(folder) as server:
        yield json.dumps({"qdrant": {"url": server.url}})


@pytest.fixture
def open_sample(synchronised: Callable[[str], Path]) -> OpenSample:
    @asynccontextmanager
    async def opened(assistant: str) -> AsyncIterator[Host]:
        async with open_host(synchronised(assistant)) as host:
            yield host

    return opened
