"""Two-stage memory over a Qdrant server and Voyage's embeddings, both stand-ins on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from groundhook import Host, open_host
from groundhook.memory import Memory
from tests.conftest import MakeApp
from tests.loopback.embeddings import voyage_answer
from tests.loopback.qdrant import Qdrant, qdrant
from tests.loopback.server import Loopback, Reads, serving

FIELDS = dict.fromkeys(("tags", "supersedes", "links"), "keyword")
COLLECTION = {
    "name": "Backend",
    "tenant_field": "owner",
    "embedding": {"provider": "voyage", "model": "voyage-4-lite"},
    "fields": {**FIELDS, "preview": "text", "written": "datetime"},
}
KIT = {"type": "memory", "collections": {"backend": "backend"}, "write": True, "forget": True}
ME = {"user_id": "me"}
LONG = "\n\n  Pears ripen in the cellar.\n\n" + "A line about storing fruit.\r\n" * 400 + "\n \n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Qdrant]:
    with qdrant(tmp_path / "server") as server:
        yield server


@pytest.fixture
def voyage() -> Iterator[Loopback]:
    with serving() as server:
        server.on("/v1/embeddings", Reads(voyage_answer))
        yield server


@pytest.fixture
async def host(make_app: MakeApp, store: Qdrant, voyage: Loopback) -> AsyncIterator[Host]:
    agent = {
        "qdrant": {"url": store.url},
        "embedders": {"voyage": {"host": f"{voyage.url}/v1"}},
    }
    app = make_app(
        {
            "agent/agent.yml": json.dumps(agent),
            "kb/backend.kb.yao": json.dumps(COLLECTION),
            "toolkits/memory.toolkit.yao": json.dumps(KIT),
        }
    )
    async with open_host(app, environment={"VOYAGE_API_KEY": "k"}) as opened:
        yield opened


async def test_memories_are_searched_read_whole_and_forgotten_over_services(
    host: Host, voyage: Loopback
) -> None:
    kept: dict[str, int] = {}
    for title, content in (("Pears", LONG), ("Limits", "A key has 120 requests a minute.")):
        arguments = {"collection": "backend", "title": title, "content": content}
        outcome = await host.tool("memory.remember", arguments, identity=ME)
        assert outcome.error is None, outcome.error
        kept[title] = outcome.result["id"]
    memory = Memory(host, identity=ME)
    previews = await memory.search("requests of a key", "backend")
    assert [each["title"] for each in previews] == ["Limits", "Pears"]
    assert (await memory.fetch(kept["Pears"], "backend"))["content"] == LONG
    refs = [(kept["Pears"], "backend"), (1, "backend"), (kept["Limits"], "backend")]
    assert [each["title"] for each in await memory.batch_fetch(refs)] == ["Pears", "Limits"]
    assert {each.json["model"] for each in voyage.requests} == {"voyage-4-lite"}

    gone = {"doc_id": kept["Pears"], "collection": "backend"}
    outcome = await host.tool("memory.forget", gone, identity=ME)
    assert outcome.result["left"] == {"by_id": 0, "by_listing": 0, "by_search": 0}
    with pytest.raises(ValueError, match="has no document"):
        await memory.fetch(kept["Pears"], "backend")
    [left] = await host.remains("backend", [str(kept["Pears"])], tenant="/user/me")
    assert not any(count for place, count in left.items() if place != "document")


async def test_a_user_of_another_name_sees_nothing_of_it_on_a_server(host: Host) -> None:
    arguments = {"collection": "backend", "title": "Pears", "content": "They ripen late."}
    await host.tool("memory.remember", arguments, identity=ME)
    other = Memory(host, identity={"user_id": "you"})
    assert await other.search("pears ripen", "backend") == []


async def test_a_key_that_went_away_is_not_reported_as_an_empty_collection(host: Host) -> None:
    arguments = {"collection": "backend", "title": "Pears", "content": "They ripen late."}
    await host.tool("memory.remember", arguments, identity=ME)
    search = {"query": "pears ripen", "collection": "backend"}
    async with open_host(host.app.root, environment={}) as without:
        outcome = await without.tool("memory.search", search, identity=ME)
    assert "the embedding service 'voyage' has no key" in (outcome.error or "")
    assert outcome.code == "service"
