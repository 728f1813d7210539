"""A memory that is removed is gone from every place that held it."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundhook import Host, open_host
from tests.cli.conftest import run_in
from tests.conftest import MakeApp

ME, YOU = {"user_id": "me"}, {"user_id": "you"}
OWN = "agents.memory.own"
FIELDS = {
    "preview": "text",
    "tags": "keyword",
    "written": "datetime",
    "supersedes": "keyword",
    "links": "keyword",
}
KIT = {"type": "memory", "collections": {"own": "own"}, "write": True, "forget": True}
APP = {
    "agent/agent.yml": "kb_storage:\n  idle_s: 3\n",
    "assistants/memory/package.yao": '{"name": "M", "tools": ["memory"]}',
    "assistants/memory/kb/own.kb.yao": json.dumps(
        {"name": "Own", "tenant_field": "owner", "fields": FIELDS}
    ),
    "assistants/memory/toolkits/memory.toolkit.yao": json.dumps(KIT),
}
SECRET = "zanzibar"


@pytest.fixture
def app(make_app: MakeApp) -> Path:
    return make_app(APP)


@pytest.fixture
async def host(app: Path) -> AsyncIterator[Host]:
    async with open_host(app) as opened:
        yield opened


async def call(host: Host, tool: str, arguments: dict[str, Any], identity: Any = ME) -> Any:
    outcome = await host.tool(tool, arguments, identity=identity, assistant="memory")
    assert outcome.error is None, outcome.error
    return outcome.result


async def remembered(host: Host, word: str) -> int:
    memory = {"collection": "own", "title": "Word", "content": f"The word is {word}.\n\nKeep it."}
    return int((await call(host, "remember", memory))["id"])


def cached_vectors(app: Path) -> set[bytes]:
    with sqlite3.connect(app / ".groundhook/embeddings.sqlite") as db:
        return {row[0] for row in db.execute("select key from vectors")}


async def test_a_forgotten_memory_is_gone_from_searches_lists_exports_texts_and_cached_vectors(
    host: Host, app: Path
) -> None:
    kept = await remembered(host, "quokka")
    before = cached_vectors(app)
    id = await remembered(host, SECRET)
    own = cached_vectors(app) - before
    assert len(own) == 1
    [there] = await host.remains(OWN, [str(id)], tenant="/user/me")
    assert all(there[place] == 1 for place in ("listed", "passages", "searched", "exported"))
    assert there["texts"] == 1

    answer = await call(host, "forget", {"doc_id": id, "collection": "own"})
    left = {"by_id": 0, "by_listing": 0, "by_search": 0}
    assert answer == {"id": id, "collection": "own", "left": left}

    assert not own & cached_vectors(app)
    [gone] = await host.remains(OWN, [str(id)], tenant="/user/me")
    assert {place: count for place, count in gone.items() if count} == {"document": str(id)}
    found = await call(host, "search", {"query": SECRET, "collection": "own"})
    assert [one["id"] for one in found] == [kept]
    exported = io.StringIO()
    await host.kb.export(OWN, exported)
    assert SECRET not in exported.getvalue()
    assert "quokka" in exported.getvalue()
    for file in (app / ".groundhook").glob("*.sqlite*"):
        assert SECRET.encode() not in file.read_bytes(), file


async def test_only_the_owner_can_have_a_memory_forgotten(host: Host) -> None:
    id = await remembered(host, SECRET)
    outcome = await host.tool(
        "forget", {"doc_id": id, "collection": "own"}, identity=YOU, assistant="memory"
    )
    assert outcome.code == "not_found"
    assert await call(host, "fetch", {"doc_id": id, "collection": "own"})


async def test_a_memory_that_was_forgotten_once_does_not_exist(host: Host) -> None:
    id = await remembered(host, SECRET)
    await call(host, "forget", {"doc_id": id, "collection": "own"})
    outcome = await host.tool(
        "forget", {"doc_id": id, "collection": "own"}, identity=ME, assistant="memory"
    )
    assert outcome.error == f"collection 'own' has no document {id}"


async def test_what_the_command_line_removes_it_shows_to_be_gone(app: Path) -> None:
    async with open_host(app) as host:
        kept, id = await remembered(host, "quokka"), await remembered(host, SECRET)
        await remembered(host, "marmalade")
    of = ("--tenant", "/user/me")
    there = run_in(app, "kb", "gone", "own", str(id), *of, "--json")
    assert there.code == 1
    assert json.loads(there.out)["searched"] == 1
    assert run_in(app, "kb", "remove", "own", str(id), *of).code == 0
    gone = run_in(app, "kb", "gone", "own", str(id), *of, "--json")
    assert (gone.code, json.loads(gone.out)["texts"]) == (0, 0)
    assert run_in(app, "kb", "gone", "own", str(kept), *of).code == 1
    mistyped = run_in(app, "kb", "gone", "own", str(kept), "--tenant", "/user/em")
    assert "warning: other tenants have these ids: '/user/me'\n" in mistyped.err
    assert "warning" not in gone.err


async def test_a_rebuilt_collection_has_no_byte_of_what_was_removed(app: Path) -> None:
    async with open_host(app) as host:
        await remembered(host, "quokka")
        id = await remembered(host, SECRET)
        await call(host, "forget", {"doc_id": id, "collection": "own"})
        await host.kb.rebuild("own")
        files = [path for path in (app / ".groundhook").rglob("*") if path.is_file()]
        assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
