"""Documents, records and pages of the web over MCP: found by `search`, read by `fetch`, and never by
somebody to whom no search offered them."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextResourceContents

from groundhook import Host, open_host
from groundhook.core.types.turn import Identity
from groundhook.core.types.web_providers import WebHit, WebProvider, WebQuery
from groundhook.host.server.identity.keys import make_key
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.plugins import Plugin
from tests.cli.conftest import COMMAND
from tests.conftest import MakeApp
from tests.loopback.embeddings import openai_answer
from tests.loopback.server import Html, Json, Loopback, Reads, Reply
from tests.loopback.server import serving as loopback
from tests.parts.mcp_results import BLUE, RED, structured, text_of
from tests.server.conftest import serving, settings

Mode = Literal["auto", "legacy"]
KEYS = {RED.tenant_id: make_key(), BLUE.tenant_id: make_key()}
PAGE = "<html><head><title>Tea</title></head><body><article><p>Oolong is half oxidised, and is steeped at ninety degrees.</p></article></body></html>"


@pytest.fixture(scope="module")
def web() -> Iterator[Loopback]:
    with loopback() as server:
        pages = [
            {"url": f"{server.url}/oolong", "title": "Ool\u202eong", "content": "About oolong tea."}
        ]
        server.on("/search", Json({"query": "x", "results": pages}))
        server.on("/oolong", Html(PAGE))
        yield server


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, web: Loopback) -> Path:
    """The assistant `shop` searches its records and the web, `agenda` the public web, `tea` its
    notes alone."""
    pages = {"hosts": [f"127.0.0.1:{web.port}"], "timeout_ms": 20_000}
    keys = [
        {"name": tenant, "key": key, "user": "u", "tenant": tenant} for tenant, key in KEYS.items()
    ]
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "sent", "type": "boolean", "label": "Delivered", "nullable": True},
    ]
    rows = [
        {
            "id": 1,
            "name": "oolong",
            "sent": True,
            "__yao_tenant_id": "red",
            "__yao_share": "tenant",
        },
        {"id": 2, "name": "oolong", "__yao_tenant_id": "blue", "__yao_share": "tenant"},
    ]
    files: dict[str, Any] = {
        "agent/agent.yml": settings(auth={"keys": keys}),
        "models/order.mod.yao": {
            "name": "Order",
            "table": {"name": "orders"},
            "columns": columns,
            "option": {"permission": True},
            "values": rows,
        },
        "assistants/agenda/package.yao": {"search": {"web": {"timeout_ms": 25_000}}},
        "assistants/shop/package.yao": {
            "db": {"models": ["order"]},
            "search": {"db": True, "web": {"pages": pages, "timeout_ms": 25_000}},
        },
        "assistants/tea/package.yao": {"kb": {"collections": ["notes"]}, "search": {"kb": True}},
        "kb/notes.kb.yao": {
            "name": "Notes",
            "tenant_field": "who",
            "fields": {"year": "integer"},
            "embedding": {"provider": "hash"},
        },
        "red.jsonl": {
            "id": "r",
            "who": "red",
            "title": "Red oolong",
            "content": "Oolong, briefly.",
        },
        "blue.jsonl": {"id": "b", "who": "blue", "title": "Blue oolong", "content": "Oolong."},
    }
    folder = tmp_path_factory.mktemp("sources") / "app"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
async def host(app: Path, web: Loopback) -> AsyncIterator[Host]:
    async with open_host(app, environment={"SEARXNG_URL": web.url}) as opened:
        await opened.database.load(now=opened.runtime.now)
        for name in ("red", "blue"):
            await opened.add_documents("notes", app / f"{name}.jsonl")
        yield opened


@asynccontextmanager
async def client(
    host: Host, identity: Identity = RED, *, mode: Mode = "auto", assistant: str = ""
) -> AsyncIterator[Client]:
    sources = McpSources(host=host, secret=Secret(host.app.state))
    tools = McpTools(host=host, sources=sources, connector=True)
    caller = McpCaller(identity=identity, assistant=assistant)
    async with Client(mcp_server(tools, lambda _: caller), mode=mode) as connected:
        yield connected


async def found(connected: Client, query: str = "oolong") -> dict[str, dict[str, str]]:
    """The results of a search, by the kind of their ids."""
    answer = await structured(connected, "search", {"query": query})
    return {one["id"].partition(":")[0]: one for one in answer["results"]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_assistants_search_is_found_and_read_by_its_id(
    host: Host, mode: Mode, web: Loopback
) -> None:
    async with client(host, mode=mode) as connected:
        results = await found(connected)
        assert set(results) == {"kb", "db", "web"}
        assert results["db"]["id"] == "db:order/1"
        assert (results["web"]["title"], results["web"]["url"]) == ("Oolong", f"{web.url}/oolong")
        read = {
            kind: await structured(connected, "fetch", {"id": one["id"]})
            for kind, one in results.items()
        }
        assert all(set(one) == {"id", "title", "text", "url", "metadata"} for one in read.values())
        assert read["kb"]["text"] == "Oolong, briefly."
        assert read["db"]["text"] == "id: 1\nname: oolong\nDelivered: yes"
        assert read["db"]["metadata"] == {"id": 1, "name": "oolong", "sent": True}
        assert "steeped at ninety degrees" in read["web"]["text"]
        for kind, one in results.items():
            uri = f"groundhook://{one['id'].replace(':', '/', 1)}"
            [content] = (await connected.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents)
            assert content.text == read[kind]["text"]


async def test_an_id_of_another_tenant_reads_nothing(host: Host, web: Loopback) -> None:
    async with client(host) as connected:
        ids = [one["id"] for one in (await found(connected)).values()]
        everything = await structured(connected, "batch_fetch", {"ids": [*ids, "db:order/77"]})
        assert [one["id"] for one in everything["results"]] == ids
        assert everything["missing"] == ["db:order/77"]
    async with client(host, BLUE) as connected:
        web.requests.clear()
        nothing = await structured(connected, "batch_fetch", {"ids": ids})
        assert nothing == {"results": [], "missing": ids}
        for id in ids:
            refused = await connected.call_tool("fetch", {"id": id})
            never = await connected.call_tool("fetch", {"id": f"{id}0"})
            assert refused.is_error
            assert text_of(refused).replace(id, f"{id}0") == text_of(never)
        with pytest.raises(MCPError):
            await connected.read_resource("groundhook://db/order/1")
        assert web.requests == []


@pytest.mark.parametrize("of", ["another address", "no signature", "the signature of nobody"])
async def test_an_address_that_no_search_offered_is_not_requested(
    host: Host, web: Loopback, of: str
) -> None:
    async with client(host) as connected:
        offered = (await found(connected))["web"]["id"]
        signature, _, _ = offered.removeprefix("web:").partition("/")
        ids = {
            "another address": f"web:{signature}/{web.url}/secret",
            "no signature": f"web:/{web.url}/oolong",
            "the signature of nobody": f"web:{'A' * len(signature)}/{web.url}/oolong",
        }
        web.requests.clear()
        assert (await connected.call_tool("fetch", {"id": ids[of]})).is_error
        assert web.requests == []


async def test_an_assistant_without_the_web_reads_no_page(host: Host, web: Loopback) -> None:
    async with client(host, assistant="shop") as connected:
        offered = (await found(connected))["web"]["id"]
        hints = {tool.name: tool.annotations for tool in (await connected.list_tools()).tools}
        assert hints["fetch"] is not None
        assert hints["fetch"].open_world_hint
    async with client(host, assistant="tea") as connected:
        assert set(await found(connected)) == {"kb"}
        hints = {tool.name: tool.annotations for tool in (await connected.list_tools()).tools}
        assert hints["fetch"] is not None
        assert not hints["fetch"].open_world_hint
        web.requests.clear()
        for id in (offered, "db:order/1"):
            assert (await connected.call_tool("fetch", {"id": id})).is_error
        assert web.requests == []


@pytest.mark.parametrize("name", ["lost", "picture"])
async def test_a_page_that_cannot_be_read_is_an_error_in_words(
    host: Host, web: Loopback, name: str
) -> None:
    web.on("/picture", Reply(b"\x89PNG", content_type="image/png"))
    lost = [{"url": f"{web.url}/{name}", "title": "Lost", "content": f"A {name} about pu-erh."}]
    web.on("/search", Json({"query": "x", "results": lost}))
    try:
        async with client(host, assistant="shop") as connected:
            offered = (await found(connected, f"pu-erh {name}"))["web"]["id"]
            answer = await connected.call_tool("fetch", {"id": offered})
            assert answer.is_error
            assert text_of(answer) == "the page could not be read"
            web.on("/search", Json({}, status=500))
            failed = await connected.call_tool(
                "search", {"query": f"matcha {name} in the web alone"}
            )
            assert text_of(failed) == "the search of type web failed"
    finally:
        pages = [{"url": f"{web.url}/oolong", "title": "Oolong", "content": "About oolong tea."}]
        web.on("/search", Json({"query": "x", "results": pages}))


async def test_documents_are_searched_with_scores_and_filters(host: Host) -> None:
    async with client(host) as connected:
        wanted = {"query": "oolong", "collections": ["notes"], "limit": 1}
        [item] = (await structured(connected, "search_documents", wanted))["items"]
        assert (item["id"], item["text"]) == ("kb:notes/red.jsonl#r", "Oolong, briefly.")
        assert 0 < item["score"] <= 1
        none = {**wanted, "filter": {"year": {"gte": 2020}}}
        assert await structured(connected, "search_documents", none) == {"items": []}
        for wrong in ({"collections": ["nots"]}, {"filter": {"year": {"above": 1}}}, {"limit": 0}):
            answer = await connected.call_tool("search_documents", {**wanted, **wrong})
            assert answer.is_error
            assert text_of(answer) != "the tool failed"


async def test_a_collection_whose_embedder_is_down_hides_no_other(
    make_app: MakeApp, web: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    web.on("/v1/embeddings", Reads(openai_answer))
    local = {"type": "openai", "host": f"{web.url}/v1", "retries": 0}
    far = {"provider": "local", "model": "m", "dimensions": 1536}
    app = make_app(
        {
            "agent/agent.yml": json.dumps(
                {"kb_storage": {"idle_s": 3}, "embedders": {"local": local}}
            ),
            "kb/far.kb.yao": json.dumps({"name": "Far", "embedding": far}),
            "kb/near.kb.yao": json.dumps({"name": "Near", "embedding": {"provider": "hash"}}),
            "tea.md": "# Oolong\n\nOolong is half oxidised.\n",
        }
    )
    async with open_host(app) as opened:
        for name in ("far", "near"):
            await opened.add_documents(name, app / "tea.md")
        web.on("/v1/embeddings", Json({}, status=500))
        async with client(opened) as connected:
            for tool, list in (("search", "results"), ("search_documents", "items")):
                answer = await connected.call_tool(tool, {"query": f"oolong {tool}"})
                assert not answer.is_error
                [one] = (answer.structured_content or {})[list]
                assert one["id"] == "kb:near/tea.md"
                assert json.loads(text_of(answer)) == answer.structured_content
                assert len(answer.content) == 1  # chat clients expect one text
                assert answer.meta is not None
                assert answer.meta["groundhook/warnings"] == [
                    "the search of the collection 'far' failed; its results are missing"
                ]
            wanted = {"query": "oolong alone", "collections": ["far"]}
            failed = await connected.call_tool("search_documents", wanted)
            assert failed.is_error
            assert text_of(failed) == "the search of the collection 'far' failed"
            assert "the collection 'far' is not searched" in caplog.text


async def test_an_embedder_that_is_down_hides_no_record(make_app: MakeApp, web: Loopback) -> None:
    web.on("/v1/embeddings", Json({}, status=500))
    local = {"type": "openai", "host": f"{web.url}/v1", "retries": 0}
    far = {"provider": "local", "model": "m", "dimensions": 1536}
    pen = {
        "name": "Pen",
        "table": {"name": "pen"},
        "columns": [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}],
        "values": [{"id": 1, "name": "oolong"}],
    }
    shop = {"db": {"models": ["pen"]}, "kb": {"collections": ["far"]}, "search": {"db": True}}
    files = {
        "agent/agent.yml": {"kb_storage": {"idle_s": 3}, "embedders": {"local": local}},
        "kb/far.kb.yao": {"name": "Far", "embedding": far},
        "models/pen.mod.yao": pen,
        "assistants/shop/package.yao": shop,
    }
    app = make_app({name: json.dumps(content) for name, content in files.items()})
    (app / "tea.md").write_text("Oolong.\n", encoding="utf-8")
    async with open_host(app) as opened:
        await opened.database.load(now=opened.runtime.now)
        web.on("/v1/embeddings", Reads(openai_answer))
        await opened.add_documents("far", app / "tea.md")
        web.on("/v1/embeddings", Json({}, status=500))
        async with client(opened) as connected:
            answer = await connected.call_tool("search", {"query": "oolong"})
    assert not answer.is_error
    assert [one["id"] for one in (answer.structured_content or {})["results"]] == ["db:pen/1"]
    assert "the search of the collection 'far' failed" in str(answer.meta)


async def test_one_question_starts_few_searches_at_a_time(make_app: MakeApp) -> None:
    """Of an app with many assistants, since each search computes on words of the question."""
    running, most = set[str](), 0

    class Engine:
        async def search(self, ask: WebQuery, /) -> list[WebHit]:
            nonlocal most
            running.add(ask.language)
            most = max(most, len(running))
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            running.remove(ask.language)
            return [WebHit(url=f"https://{ask.language}.example/", title="", content="Oolong.")]

    slow = WebProvider(variable="", host="https://a.b", max_results=9, make=lambda _: Engine())
    plugin = Plugin(lambda every: every.web_providers.add("slow", lambda _: slow), requires=1)
    web = {"provider": "slow", "api_key_env": "SLOW"}
    languages = ("en", "de", "fr", "he", "it", "es", "pt")
    app = make_app(
        {
            f"assistants/{one}/package.yao": json.dumps(
                {"search": {"web": {**web, "language": one}}}
            )
            for one in languages
        }
    )
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={"SLOW": "x"}, plugins=[plugin]) as opened,
            client(opened) as connected,
        ):
            answer = await structured(connected, "search", {"query": "oolong"})
    assert len(answer["results"]) == len(languages)
    assert 1 < most <= 4


async def test_all_documents_are_listed_however_many_there_are(make_app: MakeApp) -> None:
    rows = [json.dumps({"id": f"n{number:04}", "content": "Tea."}) for number in range(1250)]
    hash = json.dumps({"name": "Notes", "embedding": {"provider": "hash"}})
    files = {"kb/many.kb.yao": hash, "kb/none.kb.yao": hash, "kb/other.kb.yao": hash}
    files["agent/agent.yml"] = "kb_storage:\n  idle_s: 3\n"
    app = make_app({**files, "many.jsonl": "\n".join(rows), "other.md": "Oolong.\n"})
    async with open_host(app) as opened:
        await opened.add_documents("many", app / "many.jsonl")
        await opened.add_documents("other", app / "other.md")
        async with client(opened) as connected:
            uris: list[str] = []
            page = await connected.list_resources()
            uris += [str(one.uri) for one in page.resources]
            while page.next_cursor:
                page = await connected.list_resources(cursor=page.next_cursor)
                uris += [str(one.uri) for one in page.resources]
            assert len(uris) == len(set(uris)) == 1251
            assert uris[-1] == "groundhook://kb/other/other.md"
            for wrong in ("many 100", '["many"]', "[1, 2]", "[" * 5000, "[" * 20_000):
                with pytest.raises(MCPError, match="wrong cursor") as refused:
                    await connected.list_resources(cursor=wrong)
                assert len(str(refused.value)) < 200


async def test_a_collection_whose_file_is_damaged_hides_no_document_of_another(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    hash = json.dumps({"name": "Notes", "embedding": {"provider": "hash"}})
    app = make_app({"kb/bad.kb.yao": hash, "kb/good.kb.yao": hash, "tea.md": "Oolong.\n"})
    (app / "assistants").mkdir(exist_ok=True)
    async with open_host(app) as opened:
        for name in ("bad", "good"):
            await opened.add_documents(name, app / "tea.md")
    (app / "kb/bad.kb.yao").write_text("{")
    async with open_host(app) as opened, client(opened) as connected:
        listed = (await connected.list_resources()).resources
        assert [one.uri for one in listed] == ["groundhook://kb/good/tea.md"]
        assert "the documents of 'bad' are not listed" in caplog.text
        ids = ["kb:bad/tea.md", "kb:good/tea.md"]
        answer = await connected.call_tool("batch_fetch", {"ids": ids})
        assert not answer.is_error
        read = answer.structured_content or {}
        assert ([one["id"] for one in read["results"]], read["missing"]) == (ids[1:], ids[:1])
        assert "kb:bad/tea.md: the source could not be read" in str(answer.meta)
        assert "a source for an MCP client could not be read" in caplog.text


async def test_over_http_each_tenant_reads_what_its_own_search_offered(
    app: Path, host: Host, web: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(app, tmp_path / "app", ignore=shutil.ignore_patterns("*.sock"))
    monkeypatch.setenv("SEARXNG_URL", web.url)
    with serving(tmp_path / "app") as served:

        @asynccontextmanager
        async def connected(tenant: str) -> AsyncIterator[Client]:
            headers = {"authorization": f"Bearer {KEYS[tenant]}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as one,
            ):
                yield one

        async with connected("red") as one:
            ids = {kind: each["id"] for kind, each in (await found(one)).items()}
            assert set(ids) >= {"db", "web"}
            for id in ids.values():
                assert not (await one.call_tool("fetch", {"id": id})).is_error
        async with connected("blue") as one:
            assert (await found(one))["db"]["id"] == "db:order/2"
            for id in ids.values():
                assert (await one.call_tool("fetch", {"id": id})).is_error


async def test_over_standard_input_an_id_of_another_process_is_read(app: Path, host: Host) -> None:
    async with client(host, Identity(tenant_id="blue")) as one:
        ids = [each["id"] for each in (await found(one)).values()]
    assert "db:order/2" in ids
    arguments = ["mcp", "serve", "--app", str(app), "--connector", "--tenant", "blue"]
    server = StdioServerParameters(command=str(COMMAND), args=arguments)
    with anyio.fail_after(60):
        async with Client(server) as one:
            for id in ids:
                assert not (await one.call_tool("fetch", {"id": id})).is_error
