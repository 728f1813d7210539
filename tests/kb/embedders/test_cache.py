"""The cache of vectors: what was embedded once is not embedded again, by whichever process; and it
never fails a request."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.ports import Embedder
from groundhook.core.trace import recording
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.events import TraceNode
from groundhook.handlers.kb.embed import EmbedderFactory
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from tests.kb.conftest import Opens, Writes, search, spec
from tests.loops import run
from tests.parts.words_embedder import SPEC, Words


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "embeddings.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(path, most_bytes=1 << 20)
    yield opened
    opened.close()


async def test_a_text_is_embedded_once_and_a_question_is_another_text_than_a_document(
    cache: VectorCache,
) -> None:
    inner = Words()
    model = CachedEmbedder(inner, cache)
    first = await model.embed_documents(["pear", "moon", "pear"])
    again = await model.embed_documents(["moon", "pear", "sun"])
    assert inner.texts == ["pear", "moon", "sun"]
    assert again[:2] == [first[1], first[0]]
    assert await model.embed_query("pear") == first[0]
    assert inner.texts[3:] == ["pear"]


async def test_in_context_a_passage_with_other_neighbours_is_embedded_again(
    cache: VectorCache,
) -> None:
    inner = Words(in_context=True)
    model = CachedEmbedder(inner, cache)
    await model.embed_documents(["pear", "moon"])
    await model.embed_documents(["pear", "moon"])
    await model.embed_documents(["pear", "sun"])
    assert inner.texts == ["pear", "moon", "pear", "sun"]


def test_another_process_finds_what_this_one_embedded(cache: VectorCache, path: Path) -> None:
    run(CachedEmbedder(Words(), cache).embed_documents, ["pear"])
    code = f"""
import anyio, pathlib
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from tests.parts.words_embedder import Words
inner = Words()
cache = VectorCache(pathlib.Path({str(path)!r}), most_bytes=1 << 20)
anyio.run(CachedEmbedder(inner, cache).embed_documents, ["pear", "moon"])
print(inner.texts)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "['moon']"


def test_the_cache_stays_within_its_bound_and_keeps_repeated_requests(path: Path) -> None:
    most = 400_000
    cache = VectorCache(path, most_bytes=most)
    kept = b"kept"
    cache.put({kept: bytes(1000)})
    for number in range(40):
        cache.put({f"{number}-{n}".encode(): bytes(1000) for n in range(50)})
        assert cache.get([kept]).keys() == {kept}, f"after {number} rounds"
    cache.close()
    assert path.stat().st_size < most * 1.5
    with closing(VectorCache(path, most_bytes=most)) as again:
        assert list(again.get([b"39-1", b"0-1"])) == [b"39-1"]


def test_a_batch_that_is_larger_than_the_cache_is_not_kept(path: Path) -> None:
    cache = VectorCache(path, most_bytes=1000)
    cache.put({b"a": bytes(2000)})
    assert cache.get([b"a"]) == {}
    cache.close()


@given(
    st.lists(
        st.dictionaries(
            st.binary(min_size=1, max_size=3), st.binary(min_size=4, max_size=8), max_size=5
        ),
        max_size=6,
    )
)
def test_what_is_found_is_what_was_put_first(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[dict[bytes, bytes]]
) -> None:
    cache = VectorCache(tmp_path_factory.mktemp("c") / "v.sqlite", most_bytes=1 << 20)
    expected: dict[bytes, bytes] = {}
    for vectors in rounds:
        cache.put(vectors)
        expected = {**vectors, **expected}
        assert cache.get([*expected, b"missing"]) == expected
    cache.close()


@pytest.fixture
def something_else(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else" * 1000)


async def test_a_file_that_is_no_database_is_replaced(
    cache: VectorCache, path: Path, something_else: None
) -> None:
    inner = Words()
    model = CachedEmbedder(inner, cache)
    assert await model.embed_query("pear") == await model.embed_query("pear")
    assert inner.texts == ["pear"]


async def test_a_vector_that_was_damaged_is_made_again(cache: VectorCache, path: Path) -> None:
    inner = Words()
    model = CachedEmbedder(inner, cache)
    first = await model.embed_query("pear")
    with sqlite3.connect(path) as db:
        db.execute("update vectors set vector = substr(vector, 1, 100)")
    db.close()
    assert await model.embed_query("pear") == first
    assert inner.texts == ["pear", "pear"]


async def test_a_cache_that_cannot_be_used_costs_nothing_but_the_time_and_says_so(
    tmp_path: Path,
) -> None:
    nodes: list[TraceNode] = []
    with recording(nodes.append):
        vector = await CachedEmbedder(
            Words(), VectorCache(tmp_path, most_bytes=1 << 20)
        ).embed_query("pear")
    assert vector == await Words().embed_query("pear")
    assert {(node.type, node.status) for node in nodes} >= {("vector_cache", "failed")}


@pytest.mark.parametrize(("megabytes", "times"), [(16, 1), (0, 2)])
async def test_a_collection_that_is_made_again_is_not_embedded_again_unless_the_cache_is_off(
    opens: Opens, write: Writes, megabytes: int, times: int
) -> None:
    made: list[Words] = []

    def factory(spec: EmbeddingSpec) -> Embedder:
        made.append(Words(spec))
        return made[-1]

    folder = write({"tea.md": "# Tea\n\nGreen tea is brewed with water of eighty degrees."})
    storage = KBStorageSettings(idle_s=20, reserve_mb=1, vector_cache_mb=megabytes)
    embedders: dict[str, EmbedderFactory] = {"words": factory}
    async with opens(spec("docs", embedding=SPEC), storage=storage, embedders=embedders) as kb:
        for _ in range(2):
            await kb.add("docs", [folder])
            assert [item.document_id for item in (await search(kb, "green tea", "docs")).items] == [
                "tea.md"
            ]
            await kb.remove("docs", None)
    assert sum(len(each.texts) for each in made) == 2 * times


async def test_a_model_that_embeds_in_context_is_given_each_document_whole_and_in_order(
    opens: Opens, write: Writes
) -> None:
    calls: list[list[str]] = []

    class InContext(Words):
        async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
            calls.append(list(texts))
            return await super().embed_documents(texts)

    def factory(spec: EmbeddingSpec) -> Embedder:
        return InContext(spec, in_context=True)

    sections = "".join(f"\n\n## Part {n}\n\n{'word ' * (60 - n)}" for n in range(20))
    folder = write({"long.md": f"# Long{sections}", "short.md": "# Short\n\nA line."})
    embedders: dict[str, EmbedderFactory] = {"words": factory}
    async with opens(spec("docs", embedding=SPEC), embedders=embedders) as kb:
        await kb.add("docs", [folder])
    assert len(calls) == 2
    long = max(calls, key=len)
    assert len(long) >= 20
    assert [text for n in range(20) for text in long if f"Part {n}\n" in text] == [
        text for text in long if "Part " in text
    ]
