"""A Qdrant server that refuses, fails, hangs, restarts or is not there: which errors people see, and
what is tried again."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import pytest
import trustme
from qdrant_client import AsyncQdrantClient

from groundhook.core.app_settings import (
    KBStorageSettings,
    QdrantSettings,
)
from groundhook.core.errors import ConfigError, StorageError
from groundhook.handlers.kb.opening import open_kb
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.filter import of_records
from groundhook.handlers.kb.server.layout import alias
from groundhook.handlers.kb.server.store import ServerStore
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorAnswer,
    VectorQuestion,
)
from tests.kb.conftest import Writes, providers, search, spec
from tests.loopback.qdrant import Qdrant, qdrant
from tests.loopback.qdrant_grpc import grpc_door
from tests.loopback.server import Answer as Answered
from tests.loopback.server import Cut, Hang, Html, Json, Trickle

pytestmark = pytest.mark.usefixtures("one_loop")

MADE = CollectionSettings(provider="test", model="test", dimensions=2, language="english")
BUSY = Json({"status": {"error": "too many requests"}, "time": 0.0}, 429)
STARTING = Json({"status": {"error": "starting"}}, 503)
LATER = Json(
    {"status": {"error": "too many requests"}}, 429, Retry_After="Wed, 25 Nov 2026 10:00:00 GMT"
)
BROKEN = Json({"status": {"error": "Service internal error: disk is full"}, "time": 0.0}, 500)
SEARCH = "/points/query/batch"


def document(name: str = "one.md", text: str = "ripe pears") -> FullDocument:
    passage = Passage(passage="p", content=text, text=text, vector=pack_vector([1.0, 0.0]))
    return FullDocument(document=name, title="One", fingerprint="1", passages=(passage,))


@pytest.fixture(params=["http", "grpc"])
def speaks(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def serving(
    folder: Path, speaks: str, *, key: str = "", port: int = 0, grpc_port: int = 0
) -> Iterator[Qdrant]:
    with qdrant(folder, key=key, port=port) as server, ExitStack() as doors:
        if speaks == "grpc":
            doors.enter_context(grpc_door(server, port=grpc_port))
        yield server


@pytest.fixture
def server(tmp_path: Path, speaks: str) -> Iterator[Qdrant]:
    with serving(tmp_path / "qdrant", speaks) as server:
        yield server


@asynccontextmanager
async def at(server: Qdrant | str, **more: object) -> AsyncIterator[ServerStore]:
    """A store on a server, by gRPC where that door is open; or at an address."""
    where: dict[str, object] = {"url": server}
    if isinstance(server, Qdrant):
        where = {"url": server.url}
        if server.grpc_port:
            where |= {"prefer_grpc": True, "grpc_port": server.grpc_port}
    settings = QdrantSettings(**{**where, "timeout_s": 60.0, **more})
    store = ServerStore(ServerConnection(settings), settings.prefix)
    try:
        yield store
    finally:
        await store.aclose()


async def ask(store: ServerStore) -> VectorAnswer:
    return await store.search(
        "docs", MADE, VectorQuestion(vector=pack_vector([1.0, 0.0]), text="pear", limit=5)
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (BROKEN, r"answered 500: Service internal error: disk is full"),
        (
            Json({"status": {"error": "Forbidden"}}, 403),
            r"refused the key \(403\).*qdrant\.api_key",
        ),
        (Hang(), r"did not answer within 1 s.*qdrant\.timeout_s"),
        (Cut(b"{"), r"cannot be reached.*see qdrant\.url"),
    ],
)
async def test_a_search_that_fails_says_where_and_why(
    server: Qdrant, answer: Answered, message: str
) -> None:
    await fails_with(server, answer, message)


@pytest.mark.parametrize("speaks", ["http"], indirect=True)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Html(), r"answered with something other than Qdrant.*qdrant\.url"),
        (
            Json({"result": [{"points": "?"}], "status": "ok", "time": 0}),
            r"answered with something other",
        ),
        (Trickle(b" " * 100, pause=0.1), r"did not answer within 1 s"),
    ],
)
async def test_an_answer_that_is_none_says_so(
    server: Qdrant, answer: Answered, message: str
) -> None:
    await fails_with(server, answer, message)


async def fails_with(server: Qdrant, answer: Answered, message: str) -> None:
    async with at(server, retries=0) as store:
        await store.put("docs", MADE, document())
    async with at(server, retries=0, timeout_s=1) as store:
        await store.usage("docs", None)
        server.fails(SEARCH, answer)
        with pytest.raises(StorageError, match=message) as failed:
            await ask(store)
        assert server.url in str(failed.value)


async def test_a_wrong_key_is_refused_in_these_words(tmp_path: Path, speaks: str) -> None:
    with serving(tmp_path / "q", speaks, key="right") as server:
        async with at(server, api_key="wrong") as store:
            with pytest.raises(StorageError, match=r"refused the key \(401\)"):
                await store.put("docs", MADE, document())
        assert len(server.requests) == 1
        async with at(server, api_key="right") as store:
            assert await store.put("docs", MADE, document()) == ["added"]


@pytest.mark.parametrize("grpc", [False, True])
async def test_an_unreachable_server_is_reported(grpc: bool) -> None:
    async with at("http://127.0.0.1:1", retries=1, prefer_grpc=grpc, grpc_port=2) as store:
        with pytest.raises(
            StorageError, match=r"'http://127\.0\.0\.1:1' cannot be reached.*qdrant\.url"
        ):
            await ask(store)


@pytest.mark.parametrize(
    "answers",
    [[BUSY], [LATER], [BUSY, BUSY], [Cut()], [Json({"status": {"error": "starting"}}, 503), Cut()]],
)
async def test_reads_are_tried_again(server: Qdrant, answers: list[Answered]) -> None:
    async with at(server, retries=2) as store:
        await store.put("docs", MADE, document())
        server.fails(SEARCH, *answers)
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]


async def test_a_server_is_called_again_after_its_retry_after(
    server: Qdrant,
) -> None:
    async with at(server, retries=1) as store:
        await store.put("docs", MADE, document())
        server.fails(SEARCH, left_alone("1"))
        began = anyio.current_time()
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
        assert anyio.current_time() - began >= 1


async def test_a_server_that_wants_to_be_left_alone_for_long_is_not_waited_for(
    server: Qdrant,
) -> None:
    async with at(server, retries=1) as store:
        await store.put("docs", MADE, document())
        server.fails(SEARCH, left_alone("3600"))
        with anyio.fail_after(60), pytest.raises(StorageError, match="429"):
            await ask(store)


def left_alone(seconds: str) -> Answered:
    return Json({"status": {"error": "too many requests"}, "time": 0.0}, 429, Retry_After=seconds)


@pytest.mark.parametrize(("answer", "message"), [(BUSY, "429"), (Cut(), "cannot be reached")])
async def test_writes_are_not_tried_again(server: Qdrant, answer: Answered, message: str) -> None:
    async with at(server, retries=5) as store:
        await store.put("docs", MADE, document())
        server.fails("/points", answer)
        before = len(server.requests)
        with pytest.raises(StorageError, match=message):
            await store.put("docs", MADE, document("two.md"))
        written = [path for path in server.paths()[before:] if path.startswith("PUT")]
        assert len(written) == 1
        assert [hit.document for hit in (await ask(store)).hits] == ["one.md"]


async def test_a_put_that_fails_at_any_request_leaves_the_old_version_or_the_new_one(
    server: Qdrant,
) -> None:
    async with at(server, retries=0) as store:
        await store.put("docs", MADE, document())
        before = len(server.requests)
        await store.put("docs", MADE, document(text="new pears"))
        requests = len(server.requests) - before
        assert requests >= 6
        for failing in range(requests):
            await store.put("docs", MADE, document())
            server.fails_after(failing, BROKEN)
            with pytest.raises(StorageError, match="disk is full"):
                await store.put("docs", MADE, document(text="new pears"))
            [hit] = (await ask(store)).hits
            assert hit.content in ("ripe pears", "new pears")


async def test_a_put_whose_answers_are_lost_leaves_the_old_version_or_the_new_one(
    server: Qdrant,
) -> None:
    async with at(server, retries=0) as store:
        for written in range(2):  # the passages' answer, or the records'
            await store.put("docs", MADE, document())
            server.loses("PUT", "/points", written, BROKEN)
            with pytest.raises(StorageError, match="disk is full"):
                await store.put("docs", MADE, document(text="new pears"))
            assert [hit.content for hit in (await ask(store)).hits] == [
                "new pears" if written else "ripe pears"
            ]


async def test_many_documents_take_few_requests(server: Qdrant) -> None:
    async with at(server) as store:
        await store.put("docs", MADE, document("0.md"))
        many = [document(f"{number}.md") for number in range(80)]
        for _ in range(2):
            before = len(server.requests)
            outcomes = await store.put("docs", MADE, *many)
            assert len(server.requests) - before < 15
        assert outcomes == ["replaced"] * 80
        before = len(server.requests)
        await store.relocate(
            "docs", "", {one.document: (f"file:///new/{one.document}", "/new") for one in many}
        )
        assert len(server.requests) - before < 5
        assert len([one async for one in store.documents_from("docs", None, "/new")]) == 80
        before = len(server.requests)
        await store.remove("docs", None, [one.document for one in many[:60]])
        assert len(server.requests) - before < 10
        assert len((await store.usage("docs", None)).documents) == 20


async def test_the_last_of_two_versions_in_one_put_counts(server: Qdrant) -> None:
    async with at(server) as store:
        assert await store.put("docs", MADE, document(), document(text="new pears")) == [
            "added",
            "replaced",
        ]
        assert [hit.content for hit in (await ask(store)).hits] == ["new pears"]


async def test_a_server_that_restarts_is_used_again(tmp_path: Path, speaks: str) -> None:
    with serving(tmp_path / "q", speaks) as first:
        port, grpc_port = first.port, first.grpc_port
        opened = at(first, retries=0)
        store = await opened.__aenter__()
        await store.put("docs", MADE, document())
    for _ in range(5):
        with pytest.raises(StorageError, match="cannot be reached"):
            await ask(store)
    with serving(tmp_path / "q", speaks, port=port, grpc_port=grpc_port) as again:
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
        assert bool(again.grpc_port) == (speaks == "grpc")
    await opened.__aexit__(None, None, None)


async def test_a_collection_removed_by_another_host_is_noticed(server: Qdrant) -> None:
    async with at(server) as one, at(server) as other:
        await one.put("docs", MADE, document())
        assert (await ask(other)).exists
        await one.remove("docs", None, None)
        assert not (await ask(other)).exists
        small = replace(MADE, dimensions=3)
        three = replace(
            document(),
            passages=(replace(document().passages[0], vector=pack_vector([1.0, 0.0, 0.0])),),
        )
        await other.put("docs", small, three)
        with pytest.raises(ConfigError, match="3 dimensions"):
            await ask(one)


async def test_a_put_into_a_collection_that_was_removed_makes_it_again(server: Qdrant) -> None:
    async with at(server) as one, at(server) as other:
        await one.put("docs", MADE, document())
        await other.remove("docs", None, None)
        assert await one.put("docs", MADE, document("two.md")) == ["added"]
        assert [hit.document for hit in (await ask(other)).hits] == ["two.md"]


async def test_the_layout_of_a_collection_on_the_cluster_is_requested(server: Qdrant) -> None:
    laid = replace(MADE, shards=6, replicas=2, quantisation="scalar", on_disk=True, tenanted=True)
    async with at(server, prefix="app1.") as store:
        await store.put("kb/é x", laid, replace(document(), tenant="t"))
    name = alias("app1.", "kb/é x") + "@1"
    assert name == "app1.kb_2f_c3_a9_20x@1"
    body = server.made[name]
    assert (body["shard_number"], body["replication_factor"]) == (6, 2)
    assert body["vectors"]["dense"] == {"size": 2, "distance": "Cosine", "on_disk": True}
    assert body["quantization_config"] == {"scalar": {"type": "int8", "always_ram": True}}
    assert body["sparse_vectors"] == {
        "bm25": {"modifier": "idf", "index": {"full_scan_threshold": 20_000}}
    }
    requested = [request.json for request in server.requests if "/index?" in request.path]
    indexes = {body["field_name"]: body["field_schema"] for body in requested}
    assert indexes["tenant"] == {"type": "keyword", "is_tenant": True}


async def test_two_apps_on_one_server_do_not_meet(server: Qdrant) -> None:
    async with at(server, prefix="one.") as one, at(server, prefix="two.") as two:
        await one.put("docs", MADE, document())
        assert not (await ask(two)).exists


async def test_a_collection_of_somebody_else_is_left_alone(server: Qdrant) -> None:
    async with at(server, prefix="") as store:
        await store.put("docs", MADE, document())
    async with at(server, prefix="") as store:
        server.fails("/points", Json({"result": [], "status": "ok", "time": 0.0}))
        with pytest.raises(StorageError, match=r"not made by Groundhook.*qdrant\.prefix"):
            await store.put("docs", MADE, document())


async def test_a_knowledge_base_on_a_server_adds_and_searches(
    tmp_path: Path, server: Qdrant, write: Writes
) -> None:
    folder = write({"a.txt": "a ripe pear", "b.txt": "a green apple"})
    there = QdrantSettings(url=server.url)
    async with open_kb(
        tmp_path / "state", {"docs": spec("docs")}, providers(), KBStorageSettings(), there
    ) as kb:
        assert [file.outcome for file in (await kb.add("docs", [folder])).files] == [
            "added",
            "added",
        ]
        assert [file.outcome for file in (await kb.add("docs", [folder])).files] == [
            "unchanged",
            "unchanged",
        ]
        found = await search(kb, "ripe pear")
        assert found.items[0].document_id == "a.txt"
        assert await kb.remove("docs", ["a.txt"]) == ("a.txt",)
    assert not (tmp_path / "state").exists()


async def test_a_collection_of_an_earlier_version_is_searched_and_its_rebuild_recommended(
    tmp_path: Path, server: Qdrant, write: Writes
) -> None:
    folder = write({"a.txt": "a ripe pear", "b.txt": "a green apple"})
    there = QdrantSettings(url=server.url)
    declared = {"docs": spec("docs")}
    async with open_kb(tmp_path / "state", declared, providers(), KBStorageSettings(), there) as kb:
        await kb.add("docs", [folder])
    client = AsyncQdrantClient(url=server.url, check_compatibility=False)
    await client.set_payload(alias(there.prefix, "docs"), {"languages": ""}, of_records(None))
    await client.close()
    async with open_kb(tmp_path / "state", declared, providers(), KBStorageSettings(), there) as kb:
        assert (await search(kb, "ripe pear")).items[0].document_id == "a.txt"
        [problem] = await kb.check_collections()
        assert "earlier version" in str(problem)
        await kb.rebuild("docs")
        assert await kb.check_collections() == ()
        assert (await search(kb, "ripe pear")).items[0].document_id == "a.txt"


# --------------------------------------------------------------------------------------------- gRPC


async def test_grpc_is_spoken_where_it_is_preferred_and_there(tmp_path: Path) -> None:
    with serving(tmp_path / "q", "grpc", key="k") as server:
        async with at(server, api_key="k") as store:
            await store.put("docs", MADE, document())
            assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
        assert all(
            "user-agent" in requested.headers and "host" not in requested.headers
            for requested in server.requests
        )


async def test_http_is_used_with_a_warning_while_the_grpc_port_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path / "q", "http") as server:
        async with at(server, prefer_grpc=True, grpc_port=1, retries=0) as store:
            assert await store.put("docs", MADE, document()) == ["added"]
            assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
    [warned] = caplog.records
    assert re.search(
        r"HTTP is used for the Qdrant server 'http://127\.0\.0\.1:\d+': its gRPC port 1 .*refused",
        warned.getMessage(),
    )


@pytest.mark.parametrize(
    "greeting", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
async def test_another_service_on_the_grpc_port_delays_no_search_for_long(
    tmp_path: Path, greeting: bytes
) -> None:
    async def greet(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.send(greeting)
                while True:
                    await stream.receive()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, greet)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with serving(tmp_path / "q", "http") as server:
            async with at(
                server, prefer_grpc=True, grpc_port=port, timeout_s=3.0, retries=0
            ) as store:
                with anyio.fail_after(60):
                    assert await store.put("docs", MADE, document()) == ["added"]
        tasks.cancel_scope.cancel()


async def test_a_grpc_port_that_closes_is_done_without(tmp_path: Path) -> None:
    with qdrant(tmp_path / "q") as server:
        with grpc_door(server):
            opened = at(server, retries=1)
            store = await opened.__aenter__()
            await store.put("docs", MADE, document())
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
        await opened.__aexit__(None, None, None)


async def test_a_search_that_is_given_up_ends_alone(server: Qdrant) -> None:
    async with at(server, retries=0) as store:
        await store.put("docs", MADE, document())
        server.fails(SEARCH, Hang())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, store)
            await server.until_requested(SEARCH)
            tasks.cancel_scope.cancel()
        assert [hit.content for hit in (await ask(store)).hits] == ["ripe pears"]
        assert server.requests[-1].left.is_set() or any(
            requested.left.wait(60)
            for requested in server.requests
            if requested.path.endswith(SEARCH)
        )


async def test_a_check_says_that_grpc_is_preferred_and_not_there(tmp_path: Path) -> None:
    with serving(tmp_path / "q", "grpc") as server:
        for port, message in [
            (server.grpc_port, ""),
            (1, "qdrant.prefer_grpc: its gRPC port 1 is not Qdrant's or is closed"),
        ]:
            there = QdrantSettings(url=server.url, prefer_grpc=True, grpc_port=port)
            async with open_kb(
                tmp_path / "state", {"docs": spec("docs")}, providers(), KBStorageSettings(), there
            ) as kb:
                assert [
                    str(problem)[: len(message)] for problem in await kb.check_collections()
                ] == ([message] if message else [])


# ---------------------------------------------------------------------------------------------- TLS


@pytest.fixture
def secure(tmp_path: Path, speaks: str) -> Iterator[tuple[dict[str, object], str]]:
    """Where a server with a certificate of a private authority is, and the authority's file."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = authority.issue_cert("127.0.0.1")
    own.configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with qdrant(tmp_path / "q", key="k", tls=context) as server, ExitStack() as doors:
        where: dict[str, object] = {"url": f"https://127.0.0.1:{server.port}"}
        if speaks == "grpc":
            chain = b"".join(each.bytes() for each in own.cert_chain_pems)
            doors.enter_context(grpc_door(server, tls=(own.private_key_pem.bytes(), chain)))
            where |= {"prefer_grpc": True, "grpc_port": server.grpc_port}
        yield where, str(tmp_path / "ca.pem")


async def test_a_private_certificate_is_trusted_when_its_authority_is_named(
    secure: tuple[dict[str, object], str], caplog: pytest.LogCaptureFixture
) -> None:
    where, authority = secure
    url = str(where.pop("url"))
    async with at(url, api_key="k", ca_file=authority, **where) as store:
        assert await store.put("docs", MADE, document()) == ["added"]
    assert not caplog.records
    async with at(url, api_key="k", **where) as store:
        with pytest.raises(StorageError, match=r"cannot be trusted.*qdrant\.ca_file"):
            await ask(store)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"url": "https://x", "ca_file": "/nowhere.pem"},
            r"qdrant\.ca_file '/nowhere\.pem' cannot be used",
        ),
        (
            {"url": "https://x", "ca_file": "/nowhere.pem", "prefer_grpc": True},
            r"qdrant\.ca_file '/nowhere\.pem' cannot be used",
        ),
    ],
)
async def test_unusable_settings_are_reported(settings: dict[str, object], message: str) -> None:
    url = str(settings["url"])
    async with at(
        url, **{name: value for name, value in settings.items() if name != "url"}
    ) as store:
        with pytest.raises(ConfigError, match=message):
            await ask(store)


async def test_documents_of_a_folder_are_selected_by_it(server: Qdrant) -> None:
    async with at(server) as store:
        many = [
            replace(document(f"{n}.md"), source=f"/{'ab'[n % 10 == 0]}/{n}.md") for n in range(50)
        ]
        await store.put("docs", MADE, *many)
        server.requests.clear()
        found = [one.document async for one in store.documents_from("docs", None, "/b")]
        [scroll] = [
            requested for requested in server.requests if requested.path.endswith("/points/scroll")
        ]
        assert await store.remove("docs", None, found[:2]) == sorted(found[:2])
        assert len((await store.usage("docs", None)).documents) == 48
    assert sorted(found) == ["0.md", "10.md", "20.md", "30.md", "40.md"]
    assert b'"/b"' in scroll.body
