"""A tenant at the MCP server that has ids of another tenant's documents, records and pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from groundhook import open_host
from groundhook.host.server.identity.keys import make_key
from tests.loopback.server import Html, Json, Loopback
from tests.loopback.server import serving as loopback
from tests.loops import run
from tests.server.conftest import Served, serving, settings, write

KEYS = {"red": make_key(), "blue": make_key()}
PERMITTED = {"__yao_tenant_id": "red", "__yao_share": "tenant"}
PAGE = "<html><body><article><p>Oolong is half oxidised, and is steeped at ninety degrees.</p></article></body></html>"


@pytest.fixture(scope="module")
def web() -> Iterator[Loopback]:
    with loopback() as server:
        page = {"url": f"{server.url}/oolong", "title": "Oolong", "content": "About oolong."}
        server.on("/search", Json({"query": "x", "results": [page]}))
        server.on("/oolong", Html(PAGE))
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, web: Loopback) -> Iterator[Served]:
    """Of the tenant `red` are a document, a record and a page that a search offered to it."""
    app = tmp_path_factory.mktemp("tenants") / "app"
    keys = [
        {"name": tenant, "key": key, "user": "u", "tenant": tenant} for tenant, key in KEYS.items()
    ]
    files: dict[str, Any] = {
        "agent/agent.yml": settings(auth={"keys": keys}),
        "models/order.mod.yao": {
            "name": "Order",
            "table": {"name": "orders"},
            "columns": [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}],
            "option": {"permission": True},
            "values": [{"id": 1, "name": "oolong", **PERMITTED}],
        },
        "kb/notes.kb.yao": {
            "name": "Notes",
            "tenant_field": "who",
            "embedding": {"provider": "hash"},
        },
        "red.jsonl": {"id": "r", "who": "red", "title": "A red secret", "content": "Oolong."},
        "assistants/shop/package.yao": {
            "db": {"models": ["order"]},
            "kb": {"collections": ["notes"]},
            "search": {
                "kb": True,
                "db": True,
                "web": {"pages": {"hosts": [f"127.0.0.1:{web.port}"]}},
            },
        },
    }
    write(
        app,
        {name: text if isinstance(text, str) else json.dumps(text) for name, text in files.items()},
    )

    async def fill() -> None:
        async with open_host(app) as host:
            await host.database.load(now=host.runtime.now)
            await host.add_documents("notes", app / "red.jsonl")

    run(fill)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEARXNG_URL", web.url)
        with serving(app) as server:
            yield server


def answer(client: httpx.Client, method: str, params: Mapping[str, Any]) -> Any:
    """The result, or the error, of a request to the MCP server."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    text = client.post("/mcp", json=body, headers=accept).text
    data = text if text.startswith("{") else text.partition("data: ")[2].partition("\r\n")[0]
    whole = json.loads(data)
    return whole.get("result", whole.get("error"))


def requests_for(id: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Every request that names a source."""
    return [
        ("tools/call", {"name": "fetch", "arguments": {"id": id}}),
        ("tools/call", {"name": "batch_fetch", "arguments": {"ids": [id]}}),
        ("resources/read", {"uri": f"groundhook://{id.replace(':', '/', 1)}"}),
    ]


def test_an_id_of_another_tenants_source_is_answered_as_one_that_does_not_exist(
    served: Served, web: Loopback
) -> None:
    search = {"name": "search", "arguments": {"query": "oolong"}}
    with served.client(KEYS["red"]) as red, served.client(KEYS["blue"]) as blue:
        ids = [
            one["id"] for one in answer(red, "tools/call", search)["structuredContent"]["results"]
        ]
        assert {id.partition(":")[0] for id in ids} == {"kb", "db", "web"}
        for id in ids:
            assert not answer(red, *requests_for(id)[0])["isError"]
        web.requests.clear()
        for id in ids:
            name = id.partition(":")[2]
            for real, unreal in zip(requests_for(id), requests_for(f"{id}0"), strict=True):
                seen = json.dumps(answer(blue, *real))
                assert "half oxidised" not in seen
                assert "secret" not in seen
                assert seen.replace(name, f"{name}0") == json.dumps(answer(blue, *unreal)), real
        assert web.requests == []
        assert answer(blue, "resources/list", {})["resources"] == []
        offered = answer(blue, "tools/call", search)["structuredContent"]["results"]
        assert not set(ids) & {one["id"] for one in offered}
