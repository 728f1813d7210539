"""The same call has the same result at every door, and a model that cites what it got is believed
through a whole turn: the four toolkits over one app."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from groundhook import open_host
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from tests import loops
from tests.cli.conftest import run_in
from tests.parts.turns import end, of, scripted
from tests.server.conftest import Served, serving, write

KEY = "gh_doors_0123456789abcdefghijklmnopqrstuvwxyz"
HEADERS = {"authorization": f"Bearer {KEY}"}
HASH = {"provider": "hash"}
ME = {"user_id": "m", "team_id": "red", "tenant_id": "p"}


def _sample_collection(name: str) -> str:
    """A collection of the sample `catalogue`, with vectors that are made at once."""
    file = Path(__file__).parents[2] / f"assistants/catalogue/kb/{name}.kb.yao"
    return file.read_text(encoding="utf-8").replace('"builtin"', '"hash"')


FILES = {
    "agent/agent.yml": json.dumps(
        {
            "kb_storage": {"idle_s": 3},
            "server": {
                "auth": {
                    "keys": [
                        {"name": "m", "key": KEY, "user": "m", "team": "red", "tenant": "p"},
                    ]
                },
                "drain_s": 0,
            },
        }
    ),
    "assistants/a/package.yao": (
        '{"connector": "model", "tools": ["documents", "memory", "catalogue", "learning"]}'
    ),
    "assistants/a/toolkits/documents.toolkit.yao": json.dumps(
        {"type": "documents", "source": {"file": "summaries.jsonl"}, "keep": 1}
    ),
    "assistants/a/summaries.jsonl": (
        '{"id": 7, "title": "Offer for the lift", "content": "The drive of the lift."}\n'
        '{"id": 8, "title": "Snow rota", "content": "Who clears the snow."}\n'
    ),
    "assistants/a/toolkits/memory.toolkit.yao": json.dumps(
        {
            "type": "memory",
            "collections": {"notes": "notes"},
            "owner": "team",
            "source": {"file": "memories.jsonl"},
        }
    ),
    "assistants/a/memories.jsonl": json.dumps(
        {
            "id": 1,
            "collection": "notes",
            "team": "red",
            "tenant": "p",
            "title": "Pool size",
            "content": "A process opens 20 connections.\n\n  See the alert. ",
        }
    ),
    "assistants/a/kb/notes.kb.yao": json.dumps(
        {
            "tenant_field": "owner",
            "embedding": HASH,
            "fields": {
                "preview": "text",
                "tags": "keyword",
                "written": "datetime",
                "supersedes": "keyword",
                "links": "keyword",
            },
        }
    ),
    "assistants/a/toolkits/catalogue.toolkit.yao": json.dumps(
        {"type": "catalogue", "source": {"file": "packages.json"}}
    ),
    "assistants/a/packages.json": json.dumps(
        [
            {
                "id": "d1",
                "name": "air-quality",
                "title": "Air quality",
                "notes": "Hourly values of ozone.",
                "url": "https://data.example/air",
                "organization": {"name": "city", "title": "City"},
                "tags": [{"name": "air"}],
                "resources": [
                    {
                        "id": "r1",
                        "name": "Ozone values",
                        "format": "CSV",
                        "url": "https://data.example/air.csv",
                    }
                ],
            }
        ]
    ),
    "assistants/a/toolkits/learning.toolkit.yao": json.dumps(
        {"type": "learning", "collections": ["library"], "source": {"file": "sections.jsonl"}}
    ),
    "assistants/a/sections.jsonl": json.dumps(
        {
            "id": "bio-2",
            "title": "Photosynthesis",
            "bookTitle": "Biology",
            "text": "Light and leaves.",
        }
    ),
    "assistants/a/kb/library.kb.yao": json.dumps(
        {"embedding": HASH, "fields": {"bookTitle": "keyword", "summary": "text"}}
    ),
    "assistants/a/kb/datasets.kb.yao": _sample_collection("datasets"),
    "assistants/a/kb/resources.kb.yao": _sample_collection("resources"),
    # Makes the calls that the metadata of the request names.
    "assistants/a/index.ts": """\
        function Create(ctx: any) {
          const calls = ctx.metadata.calls ?? [];
          return { metadata: { outcomes: calls.map(([name, given]) => ctx.tools.Call(name, given)) } };
        }
    """,
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_documents", {"query": "the lift"}),
    ("search", {"query": "connections", "collection": "notes"}),
    ("fetch", {"doc_id": 1, "collection": "notes"}),
    ("batch_fetch", {"doc_refs": [[1, "notes"], [2, "notes"]]}),
    ("searchDatasets", {"query": "air quality", "refine": True}),
    ("catalogue__searchResources", {"query": "ozone values", "format": "csv"}),
    (
        "learning__searchResources",
        {
            "userIntent": "photosynthesis",
            "courseContext": {"courseId": "c", "title": "Biology", "outcomes": []},
        },
    ),
]
TITLES = (
    "Offer for the lift",
    "Pool size",
    "Air quality",
    "Air quality: Ozone values",
    "Photosynthesis (Biology)",
)
WRONG: tuple[str, dict[str, Any]] = ("fetch", {"doc_id": 404, "collection": "notes"})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    app = write(tmp_path_factory.mktemp("doors") / "app", FILES)
    done = run_in(app, "tools", "sync")
    assert done.code == 0, done.err
    with serving(app) as server:
        yield server


Calls = Sequence[tuple[str, Mapping[str, Any]]]
Ended = tuple[Any, str | None]  # result, error


async def through_python(served: Served, calls: Calls) -> list[Ended]:
    async with open_host(served.app) as host:
        done = [
            await host.tool(name, arguments, identity=ME, assistant="a")
            for name, arguments in calls
        ]
    return [(outcome.result, outcome.error) for outcome in done]


async def through_the_command(served: Served, calls: Calls) -> list[Ended]:
    given = ("--user", "m", "--team", "red", "--tenant", "p", "--assistant", "a", "--json")
    found = []
    for name, arguments in calls:
        run = await anyio.to_thread.run_sync(
            run_in, served.app, "tools", "call", name, json.dumps(arguments), *given
        )
        [line] = run.lines
        assert run.code == (1 if line["error"] else 0)
        found.append((line["result"], line["error"]))
    return found


async def through_a_hook(served: Served, calls: Calls) -> list[Ended]:
    async with (
        open_host(served.app, connectors={"model": scripted("Fine.")}) as host,
        host.stream("a", "?", identity=ME, options={"metadata": {"calls": calls}}) as events,
    ):
        seen = [event async for event in events]
        outcomes = end(seen).metadata["outcomes"]
    return [(outcome["result"], outcome["error"]) for outcome in outcomes]


async def through_a_model(served: Served, calls: Calls) -> list[Ended]:
    wanted = {"tool_calls": [{"name": name, "arguments": given} for name, given in calls]}
    async with (
        open_host(served.app, connectors={"model": scripted(wanted, "Fine.")}) as host,
        host.stream("a", "?", identity=ME) as events,
    ):
        outcomes = of([event async for event in events], "tool_result")
    by_id = {outcome.call_id: outcome for outcome in outcomes}
    return [
        (outcome.result, outcome.error)
        for outcome in (by_id[f"call_1_{place}"] for place in range(len(calls)))
    ]


async def through_http(served: Served, calls: Calls) -> list[Ended]:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        answers = [
            (await http.post(f"{served.url}/api/tools/{name}?assistant=a", json=given)).json()
            for name, given in calls
        ]
    return [(answer["result"], answer["error"]) for answer in answers]


async def through_mcp(served: Served, calls: Calls) -> list[Ended]:
    caller = McpCaller(identity=Identity(**ME), assistant="a")
    async with open_host(served.app) as host:
        sources = McpSources(host=host, secret=Secret(host.app.state))
        server = mcp_server(McpTools(host=host, sources=sources), lambda _: caller)
        async with Client(server) as client:
            return [_ended(await client.call_tool(name, dict(given))) for name, given in calls]


async def through_mcp_over_http(served: Served, calls: Calls) -> list[Ended]:
    url = f"{served.url}/mcp?assistant=a"
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        found = []
        for name, given in calls:
            # `search` and `fetch` are the pair of connectors there.
            here = f"memory__{name}" if name in ("search", "fetch") else name
            assert here in listed
            found.append(_ended(await client.call_tool(here, dict(given))))
        return found


def _ended(answer: CallToolResult) -> Ended:
    first = answer.content[0]
    assert isinstance(first, TextContent)
    value = answer.structured_content or {}
    return value.get("result", value or None), first.text if answer.is_error else None


Door = Callable[[Served, Calls], Awaitable[list[Ended]]]
DOORS: list[Door] = [
    through_the_command,
    through_a_hook,
    through_a_model,
    through_http,
    through_mcp,
    through_mcp_over_http,
]


@pytest.fixture(scope="module")
def expected(served: Served) -> Mapping[str, Ended]:
    """What Python gets, by the tool; "" is the call that fails."""
    found = loops.run(through_python, served, [*CALLS, WRONG])
    return dict(zip([*(name for name, _ in CALLS), ""], found, strict=True))


def test_python_gets_the_answers_of_the_tools_as_they_are(expected: Mapping[str, Ended]) -> None:
    [document] = expected["search_documents"][0]["documents"]
    assert document["id"] == 7
    [preview] = expected["search"][0]
    assert set(preview) == {"id", "title", "preview", "score"}
    content = "A process opens 20 connections.\n\n  See the alert. "
    memory = {**preview, "content": content, "tags": []}
    del memory["score"]
    assert expected["fetch"] == (memory, None)
    assert expected["batch_fetch"] == ([{**memory, "collection": "notes"}], None)
    [dataset] = expected["searchDatasets"][0]["datasets"]
    [resource] = expected["catalogue__searchResources"][0]["resources"]
    [section] = expected["learning__searchResources"][0]["resources"]
    assert (dataset["id"], resource["id"], section["id"]) == ("d1", "r1", "bio-2")
    assert expected[""] == (None, "collection 'notes' has no document 404")


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_the_same_call_has_the_same_result_at_every_door(
    served: Served, expected: Mapping[str, Ended], door: Door
) -> None:
    calls = CALLS[2:3] if door is through_the_command else CALLS  # each call is a process there
    with anyio.fail_after(60):
        *found, wrong = await door(served, [*calls, WRONG])
    assert found == [expected[name] for name, _ in calls]
    assert wrong == expected[""]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_what_a_result_has_to_cite_is_cited_as_ok_by_a_model(
    served: Served, name: str, arguments: Mapping[str, Any]
) -> None:
    calls = {"tool_calls": [{"name": name, "arguments": arguments}]}
    async with (
        open_host(served.app, connectors={"model": scripted(calls, "So {ref:0}.")}) as host,
        host.stream("a", "?", identity=ME) as events,
    ):
        done = end([event async for event in events])
    [cited] = done.citations
    assert (cited.verdict, done.grounded) == ("ok", True)
    assert cited.title in TITLES
