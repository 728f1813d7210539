"""What every store promises, held against each: the embedded engine in its worker, and a Qdrant
server.

The server is a loopback one; set GROUNDHOOK_TEST_QDRANT_URL (and GROUNDHOOK_TEST_QDRANT_KEY) to run
the same against a real one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groundhook.core.app_settings import QdrantSettings
from groundhook.core.errors import ConfigError, NotPermitted, StorageError
from groundhook.core.types.filters import Both, Exists, Not, OneOf, Range
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.store import ServerStore
from groundhook.handlers.kb.store.messages import pack_vector, unpack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorAnswer,
    VectorQuestion,
    VectorStore,
)
from tests.loopback.qdrant import qdrant
from tests.loopback.qdrant_grpc import grpc_door
from tests.loops import run

pytestmark = pytest.mark.usefixtures("one_loop")

MADE = CollectionSettings(provider="test", model="test", dimensions=4, language="english")
TENANTED = replace(MADE, tenanted=True)
LONG = 150  # passages: three batches

_REAL_URL = os.environ.get("GROUNDHOOK_TEST_QDRANT_URL", "")  # noqa: TID251
_REAL_KEY = os.environ.get("GROUNDHOOK_TEST_QDRANT_KEY", "")  # noqa: TID251
ENGINES = ["embedded", "server", "server by gRPC", *(["real", "real by gRPC"] if _REAL_URL else [])]


@dataclass(frozen=True)
class Place:
    """Where the stores of this module are. `settings`: of a server."""

    state: Path
    settings: QdrantSettings

    def store(self) -> KBClient | ServerStore:
        if self.settings.url:
            return ServerStore(ServerConnection(self.settings), self.settings.prefix)
        return KBClient(self.state, idle_s=20)


@pytest.fixture(scope="module", params=ENGINES)
def where(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("conformance")
    by_grpc = request.param.endswith("by gRPC")
    if request.param.startswith("server"):
        with qdrant(folder, key="secret") as server, grpc_door(server) as port:
            settings = QdrantSettings(
                url=server.url, api_key="secret", retries=0, prefer_grpc=by_grpc, grpc_port=port
            )
            yield Place(folder, settings)
    elif request.param.startswith("real"):
        prefix = f"groundhook-test-{uuid.uuid4().hex[:8]}."
        yield Place(
            folder,
            QdrantSettings(url=_REAL_URL, api_key=_REAL_KEY, prefix=prefix, prefer_grpc=by_grpc),
        )
    else:
        yield Place(folder, QdrantSettings())

        async def stop() -> None:
            client = KBClient(folder, idle_s=5)
            await client.stop_worker()
            await client.aclose()

        run(stop)


@pytest.fixture
async def store(where: Place) -> AsyncIterator[VectorStore]:
    """A store whose collections `a` and `b` are not there yet."""
    opened = where.store()
    yield opened
    for collection in ("a", "b"):
        await opened.remove(collection, None, None)
    await opened.aclose()


def passage(number: int, text: str, *, near: float = 0.0) -> Passage:
    return Passage(
        passage=f"p{number}",
        content=text,
        text=f"Title\n\n{text}",
        vector=pack_vector([1.0, near, 0.0, 0.0]),
        heading="Part",
        page=number + 1,
        start=number * 10,
        end=number * 10 + len(text),
        gap="\n  ",
    )


def document(name: str, *texts: str, version: str = "1", **more: Any) -> FullDocument:
    passages = tuple(passage(n, text, near=n / 10) for n, text in enumerate(texts))
    return FullDocument(
        document=name,
        title=f"About {name}",
        fingerprint=version,
        passages=passages,
        url=f"file:///{name}",
        **more,
    )


def long(version: str) -> FullDocument:
    return document("long.md", *(f"{version} {n}" for n in range(LONG)), version=version)


async def ask(
    store: VectorStore, text: str = "pear", made: CollectionSettings = MADE, **more: Any
) -> VectorAnswer:
    question: dict[str, Any] = {
        "vector": pack_vector([1.0, 0.0, 0.0, 0.0]),
        "text": text,
        "limit": 10,
        **more,
    }
    return await store.search("a", made, VectorQuestion(**question))


def contents(answer: VectorAnswer) -> list[str]:
    return [hit.content for hit in answer.hits]


async def versions(store: VectorStore) -> set[str]:
    """Which versions of the long document a search sees; each must be whole."""
    seen: dict[str, set[str]] = {}
    for hit in (await ask(store, "x", limit=2 * LONG)).hits:
        seen.setdefault(hit.content.split()[0], set()).add(hit.passage)
    assert all(len(passages) == LONG for passages in seen.values()), {
        version: len(found) for version, found in seen.items()
    }
    return set(seen)


# ---------------------------------------------------------------------------------------- documents


async def test_a_document_is_found_with_all_that_was_put(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "ripe pears", "green apples"))
    best = (await ask(store, "pear")).hits[0]
    assert (best.document, best.title, best.url) == ("one.md", "About one.md", "file:///one.md")
    assert (best.passage, best.content, best.heading, best.page, best.ordinal) == (
        "p0",
        "ripe pears",
        "Part",
        1,
        0,
    )
    assert (best.start, best.end, best.gap) == (0, 10, "\n  ")
    assert best.cosine == pytest.approx(1.0, abs=1e-5)


async def test_a_store_knows_the_name_of_what_all_passages_are_about(store: VectorStore) -> None:
    subjects = ["uploads", "passwords", "invoices", "holidays", "parcels", "lamps"]
    text = "This page of Quickfile is about {}. In Quickfile they are kept."
    pages = [document(f"{each}.md", text.format(each), each) for each in subjects]
    await store.put("a", MADE, *pages)
    asked = ["quickfile", "passwords", "kept", "nowhere", "page"]
    assert await store.names("a", None, asked) == ["quickfile"]
    assert await store.names("a", None, asked) == ["quickfile"]
    others = [document(f"{n}.md", f"Another text, number {n}.") for n in range(30)]
    await store.put("b", MADE, *pages, *others)
    assert await store.names("b", None, asked) == []
    assert await store.names("none", None, asked) == []


async def test_a_name_is_of_one_tenant(store: VectorStore) -> None:
    text = "This page of {} is about lamps. In {} they are kept."
    for tenant, name in (("red", "Quickfile"), ("blue", "Velmora")):
        own = [
            document(f"{n}.md", text.format(name, name), tenant=tenant, version=tenant)
            for n in range(6)
        ]
        await store.put("a", TENANTED, *own)
    asked = ["quickfile", "velmora"]
    assert await store.names("a", "red", asked) == ["quickfile"]
    assert await store.names("a", "blue", asked) == ["velmora"]
    with pytest.raises(NotPermitted):
        await store.names("a", None, asked)


async def test_words_lift_what_the_vector_alone_would_not_find_first(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", *(f"number {n}" for n in range(10))))
    assert contents(await ask(store, "zebra", limit=1)) == ["number 0"]
    lifted = await ask(store, "number 7", limit=10)
    assert contents(lifted)[0] == "number 7"
    scores = [hit.words for hit in lifted.hits]
    assert scores[0] == max(scores) > min(scores) > 0  # all have "number"


async def test_a_question_finds_passages_of_any_language(store: VectorStore) -> None:
    def written(name: str, text: str, accent: float) -> FullDocument:
        passages = tuple(
            replace(
                passage(n, f"{text} {n}"),
                vector=pack_vector([1.0, 0.1 * n, accent, 0.1 * (n % 3)]),
            )
            for n in range(12)
        )
        return replace(document(name), passages=passages)

    english = written("en.md", "The boats are in the harbour and the nets are on the quay", -0.4)
    hebrew = written("he.md", "הסירות עוגנות בנמל והרשתות פרושות על הרציף", 0.4)
    vector = pack_vector([0.2, 1.0, -1.0, 0.0])
    await store.put("a", MADE, english, hebrew)
    both = await ask(store, "zebra", vector=vector, limit=6)
    assert {hit.document for hit in both.hits} == {"en.md", "he.md"}
    assert {*both.languages} == {"english", "hebrew"}
    assert both.languages["hebrew"].shift > 0.2
    assert both.languages["hebrew"].share == 0.5
    nearest = max(hit.cosine for hit in both.hits)
    assert (await ask(store, "zebra", vector=vector, least_cosine=nearest - 1e-4)).hits
    await store.remove("a", None, ["he.md"])
    alone = await ask(store, "zebra", vector=vector, limit=6)
    assert [*alone.languages] == ["english"]
    assert alone.languages["english"].shift == 0.0
    unchanged = [hit.cosine for hit in both.hits if hit.document == "en.md"]
    assert [hit.cosine for hit in alone.hits][: len(unchanged)] == pytest.approx(
        unchanged, abs=1e-5
    )


async def test_passages_of_an_unknown_script_and_of_one_endless_line_are_found(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, document("one.md", "ᎣᏏᏲ ᏙᎯᏧ", "pear " * 20_000, "ripe pears"))
    assert len((await ask(store)).hits) == 3


async def test_a_passage_that_alone_has_a_word_is_found_below_the_threshold_with_its_similarity(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, document("one.md", "ripe pears", "green pears", "granite"))
    answer = await ask(store, "granite", least_cosine=0.999_99)
    found = {hit.content: hit.cosine for hit in answer.hits}
    [unfiltered] = [hit for hit in (await ask(store, "granite")).hits if hit.content == "granite"]
    assert sorted(found) == ["granite", "ripe pears"]
    assert found["granite"] == pytest.approx(unfiltered.cosine)
    assert unfiltered.cosine < 0.999_99
    assert contents(await ask(store, "zebra", least_cosine=0.999_99)) == ["ripe pears"]


async def test_the_effect_of_words_is_reported(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "ripe pears", "green apples"))
    lexical = [(await ask(store, text)).lexical for text in ("pear", "梨", "zebra")]
    assert lexical == ["used", "no match", "no match"]


async def test_passages_that_are_not_similar_enough_are_counted_and_left_out(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, document("one.md", *(f"pear {n}" for n in range(10))))
    answer = await ask(store, least_cosine=0.93, limit=20)
    assert all(hit.cosine >= 0.93 for hit in answer.hits)
    assert (answer.candidates, answer.below, len(answer.hits)) == (10, 6, 4)


async def test_a_document_is_read_whole_in_order_and_in_parts(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "first", "second", "third"))
    assert [
        hit.content for hit in (await store.passages("a", None, {"one.md": None}))["one.md"]
    ] == [
        "first",
        "second",
        "third",
    ]
    parts = (await store.passages("a", None, {"one.md": [2, 0, 7]}))["one.md"]
    assert [(hit.content, hit.ordinal) for hit in parts] == [("third", 2), ("first", 0)]
    assert await store.passages("a", None, {"two.md": None}) == {}
    assert await store.passages("b", None, {"one.md": None}) == {}


async def test_passages_of_several_documents_are_looked_up_together(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "first", "second"), document("two.md", "third"))
    wanted = {"two.md": None, "gone.md": None, "one.md": [1, 5]}
    found = await store.passages("a", None, wanted)
    assert {name: [hit.content for hit in hits] for name, hits in found.items()} == {
        "two.md": ["third"],
        "one.md": ["second"],
    }


async def test_a_document_comes_back_as_it_was_put(store: VectorStore) -> None:
    made = replace(MADE, fields={"year": "integer", "draft": "boolean", "tags": "keyword"})
    put = document(
        "one.md",
        "ripe pears",
        "apples",
        bytes=17,
        fields={"year": 2024, "draft": False, "tags": ["a", "b"]},
    )
    odd = replace(put.passages[0], text="something else than the content")
    put = replace(put, passages=(odd, *put.passages[1:]))
    await store.put("a", made, put)
    [back] = await store.full_documents("a", [("", "one.md")])
    for was, now in zip(put.passages, back.passages, strict=True):
        assert replace(now, vector=b"") == replace(was, vector=b"")
        assert unpack_vector(now.vector) == pytest.approx(
            normalise(unpack_vector(was.vector)), abs=1e-6
        )
    assert replace(back, passages=()) == replace(put, passages=())
    assert await store.full_documents("a", [("", "two.md")]) == []
    assert await store.full_documents("b", [("", "one.md")]) == []


async def test_many_documents_are_listed_and_returned_in_the_requested_order(
    store: VectorStore,
) -> None:
    await store.put(
        "a",
        MADE,
        *[
            document(f"{n}.md", *["pear"] * (n % 3 + 1), source=f"/fruit/{n}.md" if n % 2 else "-")
            for n in range(30)
        ],
    )
    listed = sorted(
        [(one.document, one.chunks) async for one in store.documents_from("a", None, "")]
    )
    assert listed == sorted((f"{n}.md", n % 3 + 1) for n in range(30))
    wanted = [("", f"{n}.md") for n in (28, 3, 99, 17, 0)]
    assert [
        (one.document, len(one.passages)) for one in await store.full_documents("a", wanted)
    ] == [
        ("28.md", 2),
        ("3.md", 1),
        ("17.md", 3),
        ("0.md", 1),
    ]
    assert await store.full_documents("a", []) == []


def normalise(vector: list[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


async def test_hits_have_their_vectors_on_request(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "ripe pears"))
    [bare], [full] = (await ask(store)).hits, (await ask(store, vectors=True)).hits
    assert bare.vector == b""
    assert unpack_vector(full.vector) == pytest.approx([1.0, 0.0, 0.0, 0.0])


async def test_stored_documents_are_listed(store: VectorStore) -> None:
    assert (await store.usage("a", None)).documents == ()
    assert (await store.usage("a", None)).settings is None
    await store.put("a", MADE, document("two.md", "pears", bytes=5))
    await store.put("a", MADE, document("one.md", "apples", "plums", version="7"))
    usage = await store.usage("a", None)
    assert usage.settings == MADE
    assert [
        (one.document, one.title, one.chunks, one.fingerprint, one.bytes) for one in usage.documents
    ] == [
        ("one.md", "About one.md", 2, "7", 0),
        ("two.md", "About two.md", 1, "1", 5),
    ]
    assert [one.document for one in await store.document_records("a", None, ["two.md", "x"])] == [
        "two.md"
    ]


async def test_documents_are_found_by_the_folder_that_they_come_from(store: VectorStore) -> None:
    for name, source in (
        ("1", "/a/x.md"),
        ("2", "/a/b/y.csv"),
        ("3", "/ab/x.md"),
        ("4", ""),
        ("5", "/a%/x.md"),
    ):
        await store.put("a", MADE, document(name, "pears", source=source))
    for source, wanted in (
        ("/a", "12"),
        ("/a/x.md", "1"),
        ("/a/b/y.csv", "2"),
        ("/a%", "5"),
        ("/c", ""),
    ):
        assert (
            "".join(sorted([one.document async for one in store.documents_from("a", None, source)]))
            == wanted
        )


async def test_a_document_that_moved_says_where_it_is(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "pears"))
    assert [hit.url for hit in (await ask(store)).hits] == ["file:///one.md"]
    await store.relocate(
        "a", "", {"one.md": ("file:///elsewhere", "/elsewhere"), "none.md": ("file:///x", "/x")}
    )
    assert [hit.url for hit in (await ask(store)).hits] == ["file:///elsewhere"]
    listed = (await store.usage("a", None)).documents
    assert [(one.url, one.source) for one in listed] == [("file:///elsewhere", "/elsewhere")]


async def test_removed_documents_are_gone_and_the_last_one_takes_the_collection_with_it(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, document("one.md", "pears"))
    await store.put("a", MADE, document("two.md", "pears"))
    assert await store.remove("a", None, ["one.md", "none.md"]) == ["one.md"]
    assert [hit.document for hit in (await ask(store)).hits] == ["two.md"]
    assert await store.remove("a", None, ["two.md"]) == ["two.md"]
    assert not (await ask(store)).exists
    other = replace(MADE, dimensions=2)
    small = replace(
        document("one.md", "pears"),
        passages=(replace(passage(0, "pears"), vector=pack_vector([1.0, 0.0])),),
    )
    assert await store.put("a", other, small) == ["added"]
    assert (await store.usage("a", None)).settings == other


async def test_an_empty_document_is_stored_and_listed(store: VectorStore) -> None:
    await store.put("a", MADE, document("none.md"))
    assert [one.chunks for one in (await store.usage("a", None)).documents] == [0]
    assert (await ask(store)).hits == ()


# -------------------------------------------------------------------------------------------- pages


def crowd(count: int, name: str = "many.md") -> FullDocument:
    """A document whose passages have falling cosines, each two of them the same."""
    made = document(name, *(f"pear {n}" for n in range(count)))
    passages = (
        replace(one, vector=pack_vector([1.0, (n // 2) / count, 0.0, 0.0]))
        for n, one in enumerate(made.passages)
    )
    return replace(made, passages=tuple(passages))


async def test_pages_put_together_are_the_whole_and_count_it_alike(store: VectorStore) -> None:
    await store.put("a", MADE, crowd(150), document("other.md", "a plum", "plum and pear"))
    whole = await ask(store, "pear 7", limit=10, least_cosine=0.8)
    pages = [
        await ask(store, "pear 7", limit=10, offset=n, least_cosine=0.8) for n in range(0, 170, 10)
    ]
    found = [(hit.document, hit.ordinal) for page in pages for hit in page.hits]
    assert pages[0].hits == whole.hits
    assert len(found) == len(set(found)) == 152
    assert {(page.total, page.total_is) for page in pages} == {(152, "exact")}


async def test_the_total_counts_what_reaches_the_threshold_and_fulfils_the_filter(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, crowd(300))
    near = await ask(store, least_cosine=0.9, limit=3)
    none = await ask(store, least_cosine=0.9, filter=OneOf("document_id", ("other.md",)))
    expected = sum((1 + (n // 2 / 300) ** 2) ** -0.5 >= 0.9 for n in range(300))
    assert (near.total, near.total_is, len(near.hits)) == (expected, "exact", 3)
    assert (none.total, none.total_is) == (0, "exact")


async def test_more_than_a_thousand_matches_are_at_least_a_thousand(store: VectorStore) -> None:
    await store.put("a", MADE, crowd(1_100))
    first = await ask(store, "pear", limit=5)
    last = await ask(store, "pear", limit=5, offset=1_000)
    assert {(one.total, one.total_is) for one in (first, last)} == {(1_000, "at_least")}
    assert len({hit.ordinal for hit in (*first.hits, *last.hits)}) == 10


async def test_pages_of_grouped_passages_have_each_document_once(store: VectorStore) -> None:
    await store.put("a", MADE, crowd(100), *(crowd(3, f"{n}.md") for n in range(30)))
    pages = [await ask(store, "pear", limit=8, offset=n, groups=1) for n in range(0, 40, 8)]
    assert sorted(hit.document for page in pages for hit in page.hits) == sorted(
        ["many.md", *(f"{n}.md" for n in range(30))]
    )
    assert {(page.total, page.total_is) for page in pages} == {(31, "exact")}


async def test_where_every_document_is_one_passage_groups_cost_and_change_nothing(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, *(crowd(1, f"{n}.md") for n in range(200)))
    plain, grouped = [await ask(store, "pear", limit=5, groups=groups) for groups in (0, 1)]
    assert grouped == plain
    await store.put("a", MADE, crowd(3, "three.md"))
    names = [hit.document for hit in (await ask(store, "pear", limit=50, groups=1)).hits]
    assert len(names) == len(set(names)) == 50


async def test_several_questions_in_one_request_are_answered_in_their_order(
    store: VectorStore,
) -> None:
    await store.put("a", MADE, document("one.md", "ripe pears", "green apples"))
    vectors = pack_vector([0.0, 1.0, 0.0, 0.0]), pack_vector([1.0, 0.0, 0.0, 0.0])
    wanted = [VectorQuestion(vector=vector, text="plums", limit=1) for vector in vectors]
    answers = await store.search_many("a", MADE, wanted)
    assert [contents(answer) for answer in answers] == [["green apples"], ["ripe pears"]]
    assert [one.exists for one in await store.search_many("b", MADE, wanted)] == [False, False]
    with pytest.raises(ConfigError):
        await store.search_many("a", replace(MADE, model="other"), wanted)


# ----------------------------------------------------------------------------------------- versions


async def test_a_replaced_document_is_there_once(store: VectorStore) -> None:
    assert await store.put("a", MADE, document("one.md", "old pears", "old plums")) == ["added"]
    assert await store.put("a", MADE, document("one.md", "new pears", version="2")) == ["replaced"]
    assert contents(await ask(store, limit=20)) == ["new pears"]
    assert [(one.chunks, one.fingerprint) for one in (await store.usage("a", None)).documents] == [
        (1, "2")
    ]


async def test_searches_see_the_old_version_or_the_new_one_and_never_a_part(
    where: Place, store: VectorStore
) -> None:
    await store.put("a", MADE, long("old"))
    other = where.store()
    seen: list[set[str]] = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                # However quick searches are beside a put.
                while len(seen) < 6 or len(set.union(*seen)) < 2:
                    seen.append(await versions(other))
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            for number in range(1000):
                await store.put("a", MADE, long(f"new{number}"))
    await other.aclose()
    assert all(len(one) == 1 for one in seen)
    assert len(set.union(*seen)) > 1


@pytest.mark.parametrize("batches", [1, 2, 3])
async def test_a_put_that_is_given_up_leaves_the_old_version(
    store: VectorStore, batches: int
) -> None:
    await store.put("a", MADE, long("old"))
    seen = 0

    def progress(_done: int, _total: int) -> None:
        nonlocal seen
        seen += 1
        if seen == batches:
            given_up.cancel()

    with anyio.CancelScope() as given_up:
        await store.put("a", MADE, long("new"), progress=progress)
    assert await versions(store) in ({"old"}, {"new"})
    await store.put("a", MADE, long("new"))
    assert await versions(store) == {"new"}


async def test_two_that_put_the_same_document_leave_one(where: Place, store: VectorStore) -> None:
    other = where.store()
    await store.put("a", MADE, document("zero.md", "x"))
    async with anyio.create_task_group() as tasks:
        for one in (store, other, store):
            tasks.start_soon(one.put, "a", MADE, document("one.md", "pears"))
    await other.aclose()
    assert contents(await ask(store, filter=OneOf("document_id", ("one.md",)))) == ["pears"]
    assert len((await store.usage("a", None)).documents) == 2


async def test_documents_put_together_are_each_there_as_if_put_alone(store: VectorStore) -> None:
    await store.put(
        "a", MADE, document("old.md", "old pears", "old plums"), document("kept.md", "pears")
    )
    many = [document(f"{n}.md", f"pears {n}") for n in range(100)]
    together = [
        document("old.md", "new pears", version="2"),
        document("none.md"),
        long("1"),
        *many,
        document("7.md", "plums"),
    ]
    steps: list[tuple[int, int]] = []
    outcomes = await store.put(
        "a", MADE, *together, progress=lambda done, total: steps.append((done, total))
    )
    assert outcomes == ["replaced", "added", "added", *["added"] * 100, "replaced"]
    assert steps == sorted(steps)
    assert steps[-1] == (LONG + 102, LONG + 102)
    stored = {one.document: one.chunks for one in (await store.usage("a", None)).documents}
    assert stored == {
        "old.md": 1,
        "kept.md": 1,
        "none.md": 0,
        "long.md": LONG,
        **{f"{n}.md": 1 for n in range(100)},
    }
    everything = contents(await ask(store, "x", limit=1000))
    expected = [
        "new pears",
        "pears",
        *(f"1 {n}" for n in range(LONG)),
        *(f"pears {n}" for n in range(100) if n != 7),
        "plums",
    ]
    assert sorted(everything) == sorted(expected)


async def test_documents_put_at_the_same_time_make_one_collection(store: VectorStore) -> None:
    async with anyio.create_task_group() as tasks:
        for n in range(4):
            tasks.start_soon(store.put, "a", MADE, document(f"{n}.md", "pears"))
    assert sorted(hit.document for hit in (await ask(store)).hits) == [
        "0.md",
        "1.md",
        "2.md",
        "3.md",
    ]


# ---------------------------------------------------------------------------- what it was made with


async def test_another_embedding_is_refused_with_the_command_that_helps(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "pears"))
    others = (
        replace(MADE, model="x"),
        replace(MADE, dimensions=8),
        replace(MADE, language="german"),
    )
    for other, command in (
        *((each, "kb rebuild a") for each in others),
        (TENANTED, "kb remove a --all"),
    ):
        for attempt in (
            store.put("a", other, document("two.md", "pears")),
            ask(store, made=other, tenant="t"),
            store.usage("a", None, settings=other),
        ):
            with pytest.raises(ConfigError, match=rf"'a' was made with.* {command}`"):
                await attempt
    assert len((await store.usage("a", None)).documents) == 1


async def test_the_language_is_found_out_by_the_first_document_and_kept(store: VectorStore) -> None:
    auto = replace(MADE, language="auto")
    await store.put(
        "a",
        auto,
        document("one.md", "the pear is on the tree and it is ripe, as you can see from here"),
    )
    assert (await store.usage("a", None)).language == "english"
    assert (await ask(store, made=auto)).language == "english"
    await store.put(
        "a", auto, document("two.md", "die Birne ist nicht auf dem Baum und wird nicht reif")
    )
    assert (await store.usage("a", None)).language == "english"


async def test_the_language_of_many_short_documents_is_that_of_most(store: VectorStore) -> None:
    auto = replace(MADE, language="auto")
    texts = (
        "Gelato",
        "the pear is ripe",
        "and it is on the tree",
        "as you can see from here",
        "this is not for you",
    )
    await store.put("a", auto, *(document(f"{n}.md", text) for n, text in enumerate(texts)))
    assert (await store.usage("a", None)).language == "english"


async def test_one_collection_takes_the_place_of_another(store: VectorStore) -> None:
    other = replace(MADE, model="other")
    await store.put("a", MADE, document("one.md", "pears"))
    await store.put("b", other, document("one.md", "pears"))
    await store.put("b", other, document("two.md", "plums"))
    assert not await store.swap("b", "a")
    assert (await store.usage("a", None)).settings == MADE
    await store.put("a", MADE, document("two.md", "plums"))
    assert await store.swap("b", "a")
    usage = await store.usage("a", None)
    assert usage.settings == other
    assert [one.document for one in usage.documents] == ["one.md", "two.md"]
    assert contents(await ask(store, "plums", other, limit=1)) == ["plums"]
    assert (await store.usage("b", None)).settings is None
    with pytest.raises(StorageError, match="no rebuilt version to replace it"):
        await store.swap("b", "a")


# ------------------------------------------------------------------------------------------- fields

FIELDS = replace(
    MADE,
    fields={
        "year": "integer",
        "price": "float",
        "tag": "keyword",
        "draft": "boolean",
        "at": "datetime",
    },
)


async def catalogue(
    store: VectorStore, tenant: str = "", made: CollectionSettings = FIELDS
) -> None:
    for name, fields in {
        "a.md": {
            "year": 2020,
            "price": 1.5,
            "tag": ["red", "big"],
            "draft": True,
            "at": "2020-01-01T00:00:00Z",
        },
        "b.md": {
            "year": 2021,
            "price": 2.5,
            "tag": "red",
            "draft": False,
            "at": "2021-01-01T00:00:00Z",
        },
        "c.md": {"year": 2022, "tag": "blue", "draft": False},
        "d.md": {},
    }.items():
        await store.put(
            "a", made, document(name, "pears", "more pears", tenant=tenant, fields=fields)
        )


FILTERS: list[tuple[Any, str]] = [
    (OneOf("year", (2020, 2022)), "ac"),
    (OneOf("tag", ("big",)), "a"),
    (OneOf("draft", (False,)), "bc"),
    (OneOf("tag", ()), ""),
    (OneOf("document_id", ("b.md", "d.md")), "bd"),
    (Range("year", gte=2021), "bc"),
    (Range("price", gt=1.5, lt=3), "b"),
    (Range("at", lt="2020-06-01T00:00:00Z"), "a"),
    (Exists("tag"), "abc"),
    (Not(Exists("tag")), "d"),
    (Not(OneOf("tag", ("red",))), "cd"),
    (Both("and", (OneOf("tag", ("red",)), Not(OneOf("draft", (True,))))), "b"),
    (Both("or", (OneOf("tag", ("big",)), Range("year", gt=2021))), "ac"),
]


async def test_a_filter_finds_what_fulfils_it(store: VectorStore) -> None:
    await catalogue(store)
    for filter, expected in FILTERS:
        answer = await ask(store, made=FIELDS, filter=filter, limit=20)
        assert "".join(sorted({hit.document[0] for hit in answer.hits})) == expected, filter
        assert len(answer.hits) == 2 * len(expected)
        assert await store.count("a", None, filter) == len(expected), filter
        listed = await store.matching_documents("a", None, filter)
        assert "".join(one.document[0] for one in listed) == expected, filter


async def test_hits_have_their_fields_and_facets_count_documents(store: VectorStore) -> None:
    await catalogue(store)
    [hit, _] = (await ask(store, made=FIELDS, filter=OneOf("year", (2020,)))).hits
    assert hit.fields == {
        "year": 2020,
        "price": 1.5,
        "tag": ["red", "big"],
        "draft": True,
        "at": "2020-01-01T00:00:00Z",
    }
    found = await store.facets("a", None, ["tag", "draft", "year"], Not(OneOf("year", (2022,))), 2)
    assert found == {
        "tag": [("red", 2), ("big", 1)],
        "draft": [(False, 1), (True, 1)],
        "year": [(2020, 1), (2021, 1)],
    }
    assert await store.facets("b", None, ["tag"], None, 5) == {}


async def test_fields_may_be_declared_later_and_differently(store: VectorStore) -> None:
    await store.put("a", MADE, document("one.md", "pears", fields={"tag": "red"}))
    tagged = replace(MADE, fields={"tag": "keyword"})
    await store.put("a", tagged, document("two.md", "pears", fields={"tag": "red"}))
    assert (await store.facets("a", None, ["tag"], None, 5)) == {"tag": [("red", 2)]}
    await store.put(
        "a",
        replace(MADE, fields={"year": "integer"}),
        document("three.md", "pears", fields={"year": 1}),
    )
    assert (await store.facets("a", None, ["tag", "year"], None, 5)) == {"year": [(1, 1)]}


async def test_a_field_that_becomes_a_boolean_is_shown_as_one_in_what_was_found_before(
    store: VectorStore,
) -> None:
    await store.put(
        "a",
        replace(MADE, fields={"draft": "integer"}),
        document("one.md", "pears", fields={"draft": 1}),
    )
    assert [hit.fields for hit in (await ask(store)).hits] == [{"draft": 1}]
    await store.put(
        "a",
        replace(MADE, fields={"draft": "boolean"}),
        document("two.md", "pears", fields={"draft": False}),
    )
    found = {hit.document: hit.fields["draft"] for hit in (await ask(store)).hits}
    assert (found["one.md"], found["two.md"]) == (True, False)
    assert all(isinstance(value, bool) for value in found.values())


# ------------------------------------------------------------------------------------------ tenants


async def test_without_a_tenant_a_collection_that_keeps_them_apart_answers_nothing(
    store: VectorStore,
) -> None:
    await catalogue(store, "t", replace(FIELDS, tenanted=True))
    for tenant in (None, ""):
        with pytest.raises(NotPermitted):
            await ask(store, made=replace(FIELDS, tenanted=True), tenant=tenant)
        assert await store.passages("a", tenant, {"a.md": None}) == {}
        with pytest.raises(NotPermitted):
            await store.facets("a", tenant, ["tag"], None, 5)
        with pytest.raises(NotPermitted):
            await store.count("a", tenant, None)
        with pytest.raises(NotPermitted):
            await store.matching_documents("a", tenant, None)


async def test_how_rare_a_word_is_depends_on_the_tenant_alone(store: VectorStore) -> None:
    mine = ["alpha beta", "alpha gamma", "alpha delta", "beta epsilon"]
    await store.put("a", TENANTED, document("mine.md", *mine, tenant="t"))
    alone = [
        (hit.content, hit.ordinal)
        for hit in (await ask(store, "alpha beta", TENANTED, tenant="t")).hits
    ]
    for n in range(20):  # elsewhere `beta` is as common as can be
        await store.put("a", TENANTED, document(f"{n}.md", "beta", "beta zeta", tenant="other"))
    answer = await ask(store, "alpha beta", TENANTED, tenant="t")
    assert [(hit.content, hit.ordinal) for hit in answer.hits] == alone


OPERATIONS = st.tuples(
    st.sampled_from(["put", "put", "remove"]),
    st.sampled_from("st"),
    st.sampled_from(["x.md", "y.md"]),
)


EACH_OPERATION = [
    ("put", "s", "x.md"),
    ("put", "t", "x.md"),
    ("put", "t", "y.md"),
    ("remove", "s", "y.md"),
    ("put", "s", "x.md"),
    ("remove", "t", "x.md"),
]


@given(operations=st.lists(OPERATIONS, min_size=2, max_size=6))
@example(operations=EACH_OPERATION)
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_a_tenant_sees_its_own_on_every_path(
    store: VectorStore, operations: list[tuple[str, str, str]]
) -> None:
    made = replace(TENANTED, fields={"owner": "keyword"})
    await store.remove("a", None, None)
    expected: dict[tuple[str, str], str] = {}
    for number, (operation, tenant, name) in enumerate(operations):
        if operation == "put":
            text = f"a pear of {tenant} {number}"
            await store.put(
                "a", made, document(name, text, tenant=tenant, fields={"owner": tenant})
            )
            expected[tenant, name] = text
        else:
            gone = await store.remove("a", tenant, [name])
            assert gone == ([name] if expected.pop((tenant, name), None) else [])
    for tenant in "stu":
        own = {name: text for (owner, name), text in expected.items() if owner == tenant}
        for filter in (None, OneOf("owner", ("s", "t")), Not(OneOf("owner", ("u",)))):
            answer = await ask(store, "pear", made, tenant=tenant, filter=filter)
            assert sorted(contents(answer)) == sorted(own.values())
            counted = (await store.facets("a", tenant, ["owner"], filter, 5)).get("owner", [])
            assert counted == ([(tenant, len(own))] if own else [])
            assert await store.count("a", tenant, filter) == len(own)
            matching = await store.matching_documents("a", tenant, filter)
            assert [(one.document, one.fields) for one in matching] == [
                (name, {"owner": tenant}) for name in sorted(own)
            ]
        listed = (await store.usage("a", tenant)).documents
        assert {one.document for one in listed} == own.keys()
        for name in ("x.md", "y.md"):
            read = [
                hit.content
                for hit in (await store.passages("a", tenant, {name: None})).get(name, ())
            ]
            assert read == ([own[name]] if name in own else [])
        both = [(tenant, "x.md"), (tenant, "y.md")]
        assert [one.document for one in await store.full_documents("a", both)] == sorted(own)
    everything = (await store.usage("a", None)).documents
    assert {(one.tenant, one.document) for one in everything} == expected.keys()
