"""What the knowledge base promises of graphs, it promises over both engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from groundhook.core.app_settings import (
    KBStorageSettings,
    QdrantSettings,
)
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb
from tests.kb.conftest import Opens, providers, spec
from tests.loopback.qdrant import qdrant


@pytest.fixture(params=["embedded", "server"])
def opens(request: pytest.FixtureRequest, state: Path, tmp_path: Path) -> Iterator[Opens]:
    """open_kb on the test's state folder, or beside it on a loopback server: `opens(spec("docs"),
    …)`."""

    def opened(*specs: CollectionSpec) -> AbstractAsyncContextManager[KnowledgeBase]:
        declared = {one.id: one for one in specs or (spec("docs"),)}
        return open_kb(
            state, declared, providers(), KBStorageSettings(idle_s=20, reserve_mb=1), there
        )

    there = QdrantSettings()
    if request.param == "embedded":
        yield opened
        return
    with qdrant(tmp_path / "qdrant") as server:
        there = QdrantSettings(url=server.url)
        yield opened
