"""Collections of a Qdrant server that another program made: read as they are, and never changed."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from groundhook import Host, UsageError, open_host
from groundhook.memory import Memory
from tests.conftest import MakeApp
from tests.loopback.embeddings import voyage_answer
from tests.loopback.foreign_qdrant import ForeignQdrant, foreign_qdrant
from tests.loopback.server import Reads, serving
from tests.parts.foreign_collections import HASH, fill

NOTES = (
    {"t": "Pears", "page": "Pears ripen late.", "m": {"src": "https://e.com/p"}, "kind": "fruit"},
    {"t": "Limits", "page": "A key has 120 requests a minute.", "m": {"src": "javascript:x"}},
    {"t": "", "page": "Bread needs an oven.", "kind": "food", "draft": True, "stars": 4.5},
)
EXISTING = {"collection": "notes", "title": "t", "text": "page", "address": "m.src"}


@pytest.fixture
def server() -> Iterator[ForeignQdrant]:
    with foreign_qdrant() as served:
        yield served


@asynccontextmanager
async def opened(
    make_app: MakeApp, server: ForeignQdrant, existing: Mapping[str, Any], **spec: Any
) -> AsyncIterator[Host]:
    declared = {"embedding": HASH, "existing": {"url": server.url, **existing}, **spec}
    app = make_app(
        {
            "assistants/a/package.yao": '{"kb": ["notes"], "search": {"kb": true}}',
            "kb/notes.kb.yao": json.dumps(declared),
            "kb/own.kb.yao": json.dumps({"embedding": HASH}),
        }
    )
    async with open_host(app, environment={}) as host:
        yield host


async def found(host: Host, query: str, tenant: str = "", **options: Any) -> Any:
    request = {"type": "kb", "query": query, "collections": ["notes"], "threshold": 0, **options}
    return await host.search(request, identity={"tenant_id": tenant}, assistant="a")


async def test_points_are_documents_with_the_title_text_and_address_of_their_payload(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    fill(server, "notes", NOTES)
    async with opened(make_app, server, EXISTING, fields={"kind": "keyword"}) as host:
        result = await found(host, "when do pears ripen")
        assert await host.check() == []
    assert result.error is None
    first, *rest = result.items
    assert (first.title, first.content, first.url) == ("Pears", NOTES[0]["page"], "https://e.com/p")
    assert (first.document_id, first.collection, first.data) == ("1", "notes", {"kind": "fruit"})
    assert {item.document_id: item.url for item in rest} == {"2": "", "3": ""}
    assert {item.title for item in rest} == {"Limits", "3"}
    assert (result.total, result.total_is) == (3, "exact")
    assert server.written() == []


async def test_a_named_vector_and_ids_that_are_uuids_are_read_as_well(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    ids = [str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))) for n in range(3)]
    fill(server, "notes", NOTES, vector="text", ids=ids, distance=models.Distance.DOT)
    async with opened(make_app, server, {**EXISTING, "vector": "text"}) as host:
        result = await found(host, "pears ripen", limit=1)
        whole = await host.search(
            {"type": "kb", "query": "x", "collections": ["notes"], "document": ids[1]}
        )
        missing = await host.search(
            {"type": "kb", "query": "x", "collections": ["notes"], "document": "no-such"}
        )
        second = await found(host, "pears ripen", limit=1, offset=1)
    assert [item.document_id for item in result.items] == [ids[0]]
    assert (result.total, len(second.items)) == (3, 1)
    assert second.items[0].document_id != ids[0]
    assert [item.content for item in whole.items] == [NOTES[1]["page"]]
    assert "has no document 'no-such'" in str(missing.error)


async def test_filters_and_facets_use_the_fields_of_the_payload(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    fill(server, "notes", NOTES)
    fields = {
        "kind": {"type": "keyword", "facetable": True},
        "draft": "boolean",
        "stars": "float",
    }
    async with opened(make_app, server, EXISTING, fields=fields) as host:

        async def ids(filter: Mapping[str, Any]) -> list[str]:
            result = await found(host, "bread", filter=filter)
            assert result.error is None
            return sorted(item.document_id for item in result.items)

        assert await ids({"kind": ["fruit", "food"]}) == ["1", "3"]
        assert await ids({"draft": True}) == ["3"]
        assert await ids({"stars": {"gt": 4}}) == ["3"]
        assert await ids({"kind": None}) == ["2"]
        assert await ids({"document_id": ["2", "x"]}) == ["2"]
        assert await ids({"kind": {"not": "fruit"}, "stars": 4.5}) == ["3"]
        facets = (await found(host, "bread", facets=["kind"])).facets
    assert [(count.value, count.count) for count in facets["kind"]] == [("food", 1), ("fruit", 1)]


async def test_what_would_change_it_is_refused_with_what_to_do(
    make_app: MakeApp, server: ForeignQdrant, tmp_path: Path
) -> None:
    fill(server, "notes", NOTES)
    (tmp_path / "more.md").write_text("# More\n\nMore text.")
    async with opened(make_app, server, EXISTING) as host:
        for change in (
            host.add_documents("notes", tmp_path / "more.md"),
            host.remove_documents("notes", ["1"]),
            host.remove_documents("notes", None),
            host.kb.rebuild("notes"),
        ):
            with pytest.raises(UsageError, match="collection 'notes' is only read") as caught:
                await change
            assert "change it with that program" in caught.value.hint
        added = await host.add_documents("own", tmp_path / "more.md")
        listed = await host.kb.list_collections(["notes", "own"])
    assert added.counts == {"added": 1}
    assert [len(each.documents) for each in listed] == [3, 1]
    assert server.written() == []


@pytest.mark.parametrize(
    ("existing", "spec", "said"),
    [
        ({"collection": "note"}, {}, ("no collection 'note'", "did you mean 'notes'?")),
        ({"vector": "text"}, {}, ("has no vector 'text'", "one without a name (64, Cosine)")),
        (
            {},
            {"embedding": {"provider": "hash", "dimensions": 32}},
            ("has vectors of 64 dimensions", "makes 32", "one without a name (64, Cosine)"),
        ),
        ({"collection": "two"}, {}, ("has several vectors", "a (8, Cosine), b (64, Euclid)")),
        ({"collection": "two", "vector": "b"}, {}, ("compares its vectors by Euclid",)),
    ],
)
async def test_a_wrong_declaration_is_an_error_that_lists_what_is_there(
    make_app: MakeApp,
    server: ForeignQdrant,
    existing: Mapping[str, Any],
    spec: Mapping[str, Any],
    said: Sequence[str],
) -> None:
    fill(server, "notes", NOTES)
    sizes = {"a": (8, models.Distance.COSINE), "b": (64, models.Distance.EUCLID)}
    server.client.create_collection(
        "two", {n: models.VectorParams(size=s, distance=d) for n, (s, d) in sizes.items()}
    )
    async with opened(make_app, server, {**EXISTING, **existing}, **spec) as host:
        result = await found(host, "pears")
        problems = [str(problem) for problem in await host.check()]
    for part in said:
        assert part in str(result.error)
        assert any(part in problem for problem in problems)


async def test_a_server_that_is_not_there_is_named(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    async with opened(make_app, server, {**EXISTING, "url": "http://127.0.0.1:9"}) as host:
        assert "http://127.0.0.1:9" in str((await found(host, "pears")).error)


async def test_its_key_is_sent_and_never_shown(make_app: MakeApp) -> None:
    with foreign_qdrant(key="a-long-secret-key") as server:
        fill(server, "notes", NOTES)
        for key, works in (("a-long-secret-key", True), ("another-secret-key", False)):
            declared = {**EXISTING, "url": server.url, "api_key": "$ENV.OTHERS_KEY"}
            app = make_app(
                {
                    "assistants/a/package.yao": '{"kb": ["notes"]}',
                    "kb/notes.kb.yao": json.dumps({"embedding": HASH, "existing": declared}),
                }
            )
            async with open_host(app, environment={"OTHERS_KEY": key}) as host:
                result = await found(host, "pears")
            assert (result.error is None) == works
            assert key not in str(result.error)


async def test_a_reload_reads_another_collection(make_app: MakeApp, server: ForeignQdrant) -> None:
    fill(server, "notes", NOTES)
    fill(server, "more", [{"t": "More", "page": "More pears."}])
    async with opened(make_app, server, EXISTING) as host:
        assert len((await found(host, "pears")).items) == 3
        declared = {"url": server.url, **EXISTING, "collection": "more"}
        path = host.app.root / "kb/notes.kb.yao"
        path.write_text(json.dumps({"embedding": HASH, "existing": declared}), encoding="utf-8")
        await host.reload()
        assert [item.title for item in (await found(host, "pears")).items] == ["More"]


async def test_the_two_stage_memory_of_another_program_is_searched_and_fetched(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    """A collection as that program makes it: numbers as ids, title, preview, content and tags,
    embedded with voyage-4-lite."""
    memories = [
        {
            "title": "Rate limits",
            "preview": "How keys are limited.",
            "content": "A key has 120 requests a minute.\n\nTags: limits",
            "tags": ["limits"],
        },
        {
            "title": "Pears",
            "preview": "When pears ripen.",
            "content": "Pears ripen late in the cellar.\n\nTags: fruit",
            "tags": ["fruit"],
        },
    ]
    fill(server, "backend", memories, ids=[7, 12], text="content", size=1024)
    fields = {"preview": "text", "tags": "keyword", "supersedes": "keyword", "links": "keyword"}
    backend = {
        "embedding": {"provider": "voyage", "model": "voyage-4-lite"},
        "fields": {**fields, "written": "datetime"},
        "existing": {"url": server.url, "collection": "backend", "text": "content"},
    }
    kit = {"type": "memory", "collections": {"backend": "backend"}, "owner": "app"}
    with serving() as voyage:
        voyage.on("/v1/embeddings", Reads(voyage_answer))
        app = make_app(
            {
                "agent/agent.yml": json.dumps(
                    {"embedders": {"voyage": {"host": f"{voyage.url}/v1"}}}
                ),
                "kb/backend.kb.yao": json.dumps(backend),
                "toolkits/memory.toolkit.yao": json.dumps(kit),
            }
        )
        async with open_host(app, environment={"VOYAGE_API_KEY": "k"}) as host:
            memory = Memory(host)
            previews = await memory.search("requests of a key", "backend", limit=1)
            whole = await memory.fetch(12, "backend")
            both = await memory.batch_fetch([(12, "backend"), (99, "backend"), (7, "backend")])
            with pytest.raises(ValueError, match="99"):
                await memory.fetch(99, "backend")
    assert [(each["id"], each["title"], each["preview"]) for each in previews] == [
        (7, "Rate limits", "How keys are limited.")
    ]
    assert "content" not in previews[0]
    assert (whole["id"], whole["content"]) == (12, memories[1]["content"])
    assert [each["id"] for each in both] == [12, 7]
    assert server.written() == []


async def test_it_can_be_copied_into_a_collection_of_the_apps_own(
    make_app: MakeApp, server: ForeignQdrant
) -> None:
    fill(server, "notes", NOTES)
    async with opened(make_app, server, EXISTING) as host:
        out = io.StringIO()
        exported = await host.kb.export("notes", out)
        out.seek(0)
        imported = await host.kb.import_documents("own", out)
        request = {"type": "kb", "query": "pears ripen", "collections": ["own"], "threshold": 0}
        result = await host.search(request)
    assert (exported.documents, imported.documents) == (3, 3)
    assert (result.items[0].title, result.items[0].content) == ("Pears", NOTES[0]["page"])
