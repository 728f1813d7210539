"""The sample catalogue, synced once, and small catalogues of a portal on 127.0.0.1."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from groundhook import Host, open_host
from tests.conftest import MakeApp

REPOSITORY = Path(__file__).parents[3]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class MakeCatalogue(Protocol):
    """Makes an app with a catalogue of a source."""

    def __call__(
        self, source: Mapping[str, Any] | Sequence[Mapping[str, Any]], /, *, tenant_field: str = ""
    ) -> Path: ...


@pytest.fixture(scope="module")
def sample_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = tmp_path_factory.mktemp("sample")
    shutil.copytree(REPOSITORY / "agent", app / "agent")
    shutil.copytree(REPOSITORY / "assistants/catalogue", app / "assistants/catalogue")
    return app


@pytest.fixture(scope="module")
async def sample(sample_app: Path) -> AsyncIterator[Host]:
    async with open_host(sample_app, environment={}, now=NOW) as host:
        await host.syncs.run("catalogue")
        yield host


@pytest.fixture
def make_catalogue(make_app: MakeApp) -> MakeCatalogue:
    """Words are hashed to vectors, which is quick."""

    def make(
        source: Mapping[str, Any] | Sequence[Mapping[str, Any]], /, *, tenant_field: str = ""
    ) -> Path:
        files = {}
        for name in ("datasets", "resources"):
            path = REPOSITORY / f"assistants/catalogue/kb/{name}.kb.yao"
            text = path.read_text(encoding="utf-8").replace('"builtin"', '"hash"')
            text = text.replace('"threshold": 0.2', '"threshold": 0.01')
            if tenant_field:
                text = text.replace(
                    '"fields": {', f'"tenant_field": "{tenant_field}", "fields": {{'
                )
            files[f"kb/{name}.kb.yao"] = text
        kit = {"type": "catalogue", "source": source, "sync": {"page": 7}}
        return make_app(
            {
                "agent/agent.yml": "connector: extractive\n",
                "assistants/hello/package.yao": '{"tools": ["catalogue"]}',
                "toolkits/catalogue.toolkit.yao": json.dumps(kit),
                **files,
            }
        )

    return make


async def found(host: Host, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool, which must not fail."""
    outcome = await host.tool(f"catalogue.{tool}", arguments)
    assert outcome.error is None
    assert isinstance(outcome.result, dict)
    return outcome.result


def names(result: Mapping[str, Any]) -> Sequence[str]:
    """The datasets of a result, by the last part of their address; the titles of resources."""
    if "datasets" in result:
        return [each["url"].rpartition("/")[2] for each in result["datasets"]]
    return [each["name"] for each in result["resources"]]
