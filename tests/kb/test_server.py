"""A Qdrant server that refuses, fails, hangs, restarts or is not there: what people are told, and what is tried again."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
import trustme

from handlers.kb.base import open_kb
from handlers.kb.server import ServerStore
from handlers.kb.server_layout import alias
from handlers.kb.server_link import ServerLink
from handlers.kb.store import Answer, Incoming, Made, Passage, Question, packed
from host.config.schema import KBStorageSettings, QdrantSettings
from host.errors import ConfigError, StorageError
from tests.kb.conftest import Writes, providers, search, spec
from tests.loopback.qdrant import Qdrant, qdrant
from tests.loopback.server import Cut, Hang, Html, Json, Trickle

MADE = Made(provider="test", model="test", dimensions=2, language="english")
BUSY = Json({"status": {"error": "too many requests"}, "time": 0.0}, 429)
BROKEN = Json({"status": {"error": "Service internal error: disk is full"}, "time": 0.0}, 500)
SEARCH = "/points/query/batch"


def document(name: str = "one.md", text: str = "ripe pears") -> Incoming:
    passage = Passage(passage="p", content=text, text=text, vector=packed([1.0, 0.0]))
    return Incoming(document=name, title="One", fingerprint="1", passages=(passage,))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Qdrant]:
    with qdrant(tmp_path / "qdrant") as serving:
        yield serving


@asynccontextmanager
async def at(url: str, **more: object) -> AsyncIterator[ServerStore]:
    settings = QdrantSettings(**{"url": url, "timeout_s": 5.0, **more})
    store = ServerStore(ServerLink(settings), settings.prefix)
    try:
        yield store
    finally:
        await store.aclose()


async def ask(store: ServerStore) -> Answer:
    return await store.search("docs", MADE, Question(vector=packed([1.0, 0.0]), text="pear", limit=5))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BROKEN, r"answered 500: Service internal error: disk is full"),
        (Json({"status": {"error": "Forbidden"}}, 403), r"refused the key \(403\).*qdrant\.api_key"),
        (Html(), r"answered something else than Qdrant does.*qdrant\.url"),
        (Json({"result": [{"points": "?"}], "status": "ok", "time": 0}), r"answered something else"),
        (Hang(), r"did not answer within 0\.3 s.*qdrant\.timeout_s"),
        (Trickle(b" " * 100, pause=0.1), r"did not answer within 0\.3 s"),
        (Cut(b"{"), r"cannot be reached"),
    ],
)
async def test_a_search_that_fails_says_where_and_why(server: Qdrant, answer: object, said: str) -> None:
    async with at(server.url, retries=0) as store:
        await store.put("docs", MADE, document())
    async with at(server.url, retries=0, timeout_s=0.3) as store:
        await store.usage("docs", None)
        server.fails(SEARCH, answer)  # type: ignore[arg-type]
        with pytest.raises(StorageError, match=said) as failed:
            await ask(store)
        assert server.url in str(failed.value)


async def test_a_wrong_key_is_refused_in_these_words(tmp_path: Path) -> None:
    with qdrant(tmp_path / "q", key="right") as server:
        async with at(server.url, api_key="wrong") as store:
            with pytest.raises(StorageError, match=r"refused the key \(401\)"):
                await store.put("docs", MADE, document())
        assert len(server.asked) == 1
        async with at(server.url, api_key="right") as store:
            assert await store.put("docs", MADE, document()) == ["added"]


async def test_a_server_that_is_not_there_is_said_so(server: Qdrant) -> None:
    async with at("http://127.0.0.1:1", retries=1) as store:
        with pytest.raises(StorageError, match=r"'http://127\.0\.0\.1:1' cannot be reached.*qdrant\.url"):
            await ask(store)


@pytest.mark.parametrize("answers", [[BUSY], [BUSY, BUSY], [Cut()], [Json({"status": {"error": "starting"}}, 503), Cut()]])
async def test_reads_are_tried_again(server: Qdrant, answers: list[object]) -> None:
    async with at(server.url, retries=2) as store:
        await store.put("docs", MADE, document())
        server.fails(SEARCH, *answers)  # type: ignore[arg-type]
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]


async def test_writes_are_not_tried_again(server: Qdrant) -> None:
    async with at(server.url, retries=5) as store:
        await store.put("docs", MADE, document())
        server.fails("/points", BUSY)
        before = len(server.asked)
        with pytest.raises(StorageError, match="429"):
            await store.put("docs", MADE, document("two.md"))
        written = [path for path in server.paths()[before:] if path.startswith("PUT")]
        assert len(written) == 1
        assert [hit.document for hit in (await ask(store)).hits] == ["one.md"]


async def test_a_put_that_fails_at_any_request_leaves_the_old_version_or_the_new_one(server: Qdrant) -> None:
    async with at(server.url, retries=0) as store:
        await store.put("docs", MADE, document())
        before = len(server.asked)
        await store.put("docs", MADE, document(text="new pears"))
        requests = len(server.asked) - before
        assert requests >= 6
        for failing in range(requests):
            await store.put("docs", MADE, document())
            server.fails_after(failing, BROKEN)
            with pytest.raises(StorageError, match="disk is full"):
                await store.put("docs", MADE, document(text="new pears"))
            [hit] = (await ask(store)).hits
            assert hit.content in ("ripe pears", "new pears")


async def test_a_server_that_restarts_is_used_again(tmp_path: Path) -> None:
    with qdrant(tmp_path / "q") as first:
        port = first.port
        async with at(first.url, retries=0) as store:
            await store.put("docs", MADE, document())
    async with at(f"http://127.0.0.1:{port}", retries=0) as store:
        with pytest.raises(StorageError, match="cannot be reached"):
            await ask(store)
        with qdrant(tmp_path / "q", port=port):
            assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]


async def test_a_collection_removed_by_another_host_is_noticed(server: Qdrant) -> None:
    async with at(server.url) as one, at(server.url) as other:
        await one.put("docs", MADE, document())
        assert (await ask(other)).exists
        await one.remove("docs", None, None)
        assert not (await ask(other)).exists
        small = replace(MADE, dimensions=3)
        three = replace(document(), passages=(replace(document().passages[0], vector=packed([1.0, 0.0, 0.0])),))
        await other.put("docs", small, three)
        with pytest.raises(ConfigError, match="3 dimensions"):
            await ask(one)


async def test_a_put_into_a_collection_that_was_removed_makes_it_again(server: Qdrant) -> None:
    async with at(server.url) as one, at(server.url) as other:
        await one.put("docs", MADE, document())
        await other.remove("docs", None, None)
        assert await one.put("docs", MADE, document("two.md")) == ["added"]
        assert [hit.document for hit in (await ask(other)).hits] == ["two.md"]


async def test_how_a_collection_lies_on_the_cluster_is_asked_for(server: Qdrant) -> None:
    laid = replace(MADE, shards=6, replicas=2, quantisation="scalar", on_disk=True, tenanted=True)
    async with at(server.url, prefix="app1.") as store:
        await store.put("kb/é x", laid, replace(document(), tenant="t"))
    name = alias("app1.", "kb/é x") + "@1"
    assert name == "app1.kb_2f_c3_a9_20x@1"
    body = server.made[name]
    assert (body["shard_number"], body["replication_factor"]) == (6, 2)
    assert body["vectors"]["dense"] == {"size": 2, "distance": "Cosine", "on_disk": True}
    assert body["quantization_config"] == {"scalar": {"type": "int8", "always_ram": True}}
    assert body["sparse_vectors"] == {"bm25": {"modifier": "idf"}}
    asked = [request.json for request in server.asked if "/index?" in request.path]
    indexes = {body["field_name"]: body["field_schema"] for body in asked}
    assert indexes["tenant"] == {"type": "keyword", "is_tenant": True}


async def test_two_apps_on_one_server_do_not_meet(server: Qdrant) -> None:
    async with at(server.url, prefix="one.") as one, at(server.url, prefix="two.") as two:
        await one.put("docs", MADE, document())
        assert not (await ask(two)).exists


async def test_a_collection_of_somebody_else_is_left_alone(server: Qdrant) -> None:
    async with at(server.url, prefix="") as store:
        await store.put("docs", MADE, document())
    async with at(server.url, prefix="") as store:
        server.fails("/points", Json({"result": [], "status": "ok", "time": 0.0}))
        with pytest.raises(StorageError, match=r"not made by Groundhook.*qdrant\.prefix"):
            await store.put("docs", MADE, document())


async def test_a_knowledge_base_on_a_server_adds_and_searches(tmp_path: Path, server: Qdrant, write: Writes) -> None:
    folder = write({"a.txt": "a ripe pear", "b.txt": "a green apple"})
    there = QdrantSettings(url=server.url)
    async with open_kb(tmp_path / "state", {"docs": spec("docs")}, providers(), KBStorageSettings(), there) as kb:
        assert [file.outcome for file in (await kb.add("docs", [folder])).files] == ["added", "added"]
        assert [file.outcome for file in (await kb.add("docs", [folder])).files] == ["unchanged", "unchanged"]
        found = await search(kb, "ripe pear")
        assert found.items[0].document_id == "a.txt"
        assert await kb.remove("docs", ["a.txt"]) == ("a.txt",)
    assert not (tmp_path / "state").exists()


# ------------------------------------------------------------------------------------------------ TLS


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a server with a certificate of a private authority, and the authority's file."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with qdrant(tmp_path / "q", key="k", tls=context) as server:
        yield f"https://127.0.0.1:{server.port}", str(tmp_path / "ca.pem")


async def test_a_private_certificate_is_trusted_when_its_authority_is_named(secure: tuple[str, str]) -> None:
    url, authority = secure
    async with at(url, api_key="k", ca_file=authority) as store:
        assert await store.put("docs", MADE, document()) == ["added"]
    async with at(url, api_key="k") as store:
        with pytest.raises(StorageError, match=r"cannot be trusted.*qdrant\.ca_file"):
            await ask(store)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "ftp://x"}, r"qdrant\.url 'ftp://x' is not an address"),
        ({"url": "https://x", "ca_file": "/nowhere.pem"}, r"qdrant\.ca_file '/nowhere\.pem' cannot be used"),
        ({"url": "https://x", "ca_file": "/x", "prefer_grpc": True}, r"holds for HTTP only"),
    ],
)
async def test_settings_that_cannot_be_used_are_said(settings: dict[str, object], said: str) -> None:
    async with at(**settings) as store:  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=said):
            await ask(store)


async def test_grpc_that_is_not_there_is_said_so() -> None:
    async with at("http://127.0.0.1:1", prefer_grpc=True, grpc_port=1, retries=0) as store:
        with anyio.fail_after(10), pytest.raises(StorageError, match="Qdrant server"):
            await ask(store)


async def test_documents_of_a_folder_are_asked_for_by_it(server: Qdrant) -> None:
    async with at(server.url) as store:
        many = [replace(document(f"{n}.md"), source=f"/{'ab'[n % 10 == 0]}/{n}.md") for n in range(50)]
        await store.put("docs", MADE, *many)
        server.asked.clear()
        found = [one.document async for one in store.come_from("docs", None, "/b")]
        [scroll] = [asked for asked in server.asked if asked.path.endswith("/points/scroll")]
        assert await store.remove("docs", None, found[:2]) == sorted(found[:2])
        assert len((await store.usage("docs", None)).documents) == 48
    assert sorted(found) == ["0.md", "10.md", "20.md", "30.md", "40.md"]
    assert b'"/b"' in scroll.body
