"""Documents that belong to users and teams, over MCP and HTTP: their owner finds them, reads them
and follows links to them; for others they do not exist. Two toolkits have a shelf of one name, and
a memory with the same id in it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import TextResourceContents

from groundhook import Host, open_host
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity.keys import make_key
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from tests.loops import run as run_apart
from tests.parts.mcp_results import structured, text_of
from tests.server.conftest import serving, settings

ME = Identity(tenant_id="acme", team_id="red", user_id="me")
COLLEAGUE = Identity(tenant_id="acme", team_id="red", user_id="you")
STRANGER = Identity(tenant_id="globex", team_id="red", user_id="me")
KEY, OTHER_KEY = make_key(), make_key()
FIELDS = {"preview": "text", "written": "datetime", "supersedes": "keyword", "links": "keyword"}
COLLECTION = {
    "name": "Notes",
    "embedding": {"provider": "hash"},
    "tenant_field": "owner",
    "fields": FIELDS,
}
HOOK = """\
export function Create(ctx, messages) {
  const query = messages[messages.length - 1].content;
  for (const tool of ["mine.search", "ours.search"]) {
    const found = ctx.tools.Call(tool, { query, collection: "notes" }, { pool: true });
    if (found.error) throw new Error(found.error);
  }
  return null;
}
"""
MINE, OURS = "kb:agents.diary.mine/1", "kb:agents.diary.ours/1"


def line(**more: str) -> str:
    return json.dumps({"id": 1, "collection": "notes", "tenant": "acme", **more})


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = [
        {"name": "me", "key": KEY, "user": "me", "team": "red", "tenant": "acme"},
        {"name": "stranger", "key": OTHER_KEY, "user": "me", "team": "red", "tenant": "globex"},
    ]
    folder = "assistants/diary"
    files: dict[str, Any] = {
        "agent/agent.yml": settings(auth={"keys": keys}),
        f"{folder}/package.yao": {
            "name": "Diary",
            "connector": "extractive",
            "tools": ["mine", "ours"],
        },
        f"{folder}/index.ts": HOOK,
        f"{folder}/kb/mine.kb.yao": COLLECTION,
        f"{folder}/kb/ours.kb.yao": COLLECTION,
    }
    for name, owner in (("mine", "user"), ("ours", "team")):
        files[f"{folder}/toolkits/{name}.toolkit.yao"] = {
            "type": "memory",
            "collections": {"notes": name},
            "owner": owner,
            "source": {"file": f"{name}.jsonl"},
        }
    files[f"{folder}/mine.jsonl"] = line(user="me", title="Pears", content="Pears ripen late.")
    files[f"{folder}/ours.jsonl"] = line(team="red", title="Quinces", content="Quinces ripen last.")
    made = tmp_path_factory.mktemp("diary") / "app"
    for name, content in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (made / name).write_text(text, encoding="utf-8")

    async def sync() -> None:
        async with open_host(made) as host:
            for toolkit in ("mine", "ours"):
                assert (await host.syncs.run(toolkit)).added == 1

    run_apart(sync)
    return made


@pytest.fixture
async def host(app: Path) -> AsyncIterator[Host]:
    async with open_host(app) as opened:
        yield opened


@asynccontextmanager
async def client(host: Host, identity: Identity) -> AsyncIterator[Client]:
    tools = McpTools(
        host=host, sources=McpSources(host=host, secret=Secret(host.app.state)), connector=True
    )
    caller = McpCaller(identity=identity)
    async with Client(mcp_server(tools, lambda _: caller)) as connected:
        yield connected


async def test_an_answer_cites_each_memory_as_itself_and_its_links_can_be_read(host: Host) -> None:
    async with client(host, ME) as connected:
        asked = {"assistant": "diary", "question": "What ripens, pears or quinces?"}
        answer = await structured(connected, "ask", asked)
        cited = {one["title"]: one for one in answer["citations"]}
        assert {title: one["verdict"] for title, one in cited.items()} == {
            "Pears": "ok",
            "Quinces": "ok",
        }
        assert cited["Pears"]["marker"] != cited["Quinces"]["marker"]
        for title, text in (("Pears", "Pears ripen late."), ("Quinces", "Quinces ripen last.")):
            one = cited[title]
            link = f"groundhook://kb/{one['collection']}/{one['document_id']}"
            [read] = (await connected.read_resource(link)).contents
            assert isinstance(read, TextResourceContents)
            assert text in read.text


async def test_memories_are_found_read_and_listed_by_their_owners_alone(host: Host) -> None:
    async def seen(identity: Identity) -> tuple[set[str], set[str]]:
        async with client(host, identity) as connected:
            found = await structured(connected, "search", {"query": "Pears ripen. Quinces ripen."})
            page = await connected.list_resources()
            listed = {one.name for one in page.resources}
            while page.next_cursor:
                page = await connected.list_resources(cursor=page.next_cursor)
                listed |= {one.name for one in page.resources}
            return {one["id"] for one in found["results"]}, listed

    assert await seen(ME) == ({MINE, OURS}, {"Pears", "Quinces"})
    assert await seen(COLLEAGUE) == ({OURS}, {"Quinces"})
    assert await seen(STRANGER) == (set(), set())
    assert await seen(Identity()) == (set(), set())

    async with client(host, ME) as connected:
        whole = await structured(connected, "fetch", {"id": MINE})
        assert (whole["title"], whole["text"]) == ("Pears", "Pears ripen late.")
    async with client(host, COLLEAGUE) as connected:
        theirs = await connected.call_tool("fetch", {"id": MINE})
        never = await connected.call_tool("fetch", {"id": MINE.replace("/1", "/2")})
        assert theirs.is_error
        assert text_of(theirs).replace("/1", "/2") == text_of(never)
        with pytest.raises(MCPError):
            await connected.read_resource("groundhook://kb/agents.diary.mine/1")


def test_a_link_of_an_answer_over_http_leads_its_owner_to_the_memory(app: Path) -> None:
    ask = {"assistant": "diary", "text": "What ripens, pears or quinces?"}
    accept = {"accept": "application/json"}
    with serving(app) as served:
        with served.client(KEY) as one:
            answer = one.post("/api/turns", json=ask, headers=accept).json()
            urls = {each["title"]: each["url"] for each in answer["citations"]}
            assert set(urls) == {"Pears", "Quinces"}
            read = one.get(urls["Pears"], headers=accept).json()
            assert [each["content"] for each in read["passages"]] == ["Pears ripen late."]
            assert one.get(urls["Quinces"], headers=accept).status_code == 200
        with served.client(OTHER_KEY) as other:
            never = urls["Pears"].replace("mine/1", "mine/2")
            for address in (*urls.values(), never):
                assert other.get(address, headers=accept).status_code == 404
