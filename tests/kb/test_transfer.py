"""Collections rebuilt and moved: searched all the while, resumed when stopped, whole or not at
all."""

from __future__ import annotations

import base64
import io
import json
import math
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook.core.app_settings import (
    KBStorageSettings,
    QdrantSettings,
)
from groundhook.core.errors import ConfigError, StorageError, UsageError
from groundhook.core.types.collection_spec import (
    AnalyserSpec,
    ChunkSpec,
    EmbeddingSpec,
    FieldSpec,
)
from groundhook.handlers.kb.ingest.throttle import CORES
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb
from tests.kb.conftest import Counting, Opens, Writes, providers, search, spec
from tests.loopback.qdrant import qdrant

SMALL = EmbeddingSpec(provider="hash", dimensions=32)
FILES = {f"{n}.txt": f"pear number {n}, a fruit of its own" for n in range(6)}
TOGETHER = 2 * CORES * max(4, CORES)  # of those, so many are put first
MANY = {f"{n}.txt": f"pear number {n}, a fruit of its own" for n in range(2 * TOGETHER + CORES)}


async def test_a_rebuilt_collection_has_the_new_embedding_and_the_same_documents(
    opens: Opens, write: Writes
) -> None:
    async with opens() as kb:
        await kb.add("docs", [write(FILES)])
        before = (await kb.list_collections())[0].documents
    async with opens(spec("docs", embedding=SMALL)) as kb:
        with pytest.raises(ConfigError, match="kb rebuild docs"):
            await search(kb, "pear")
        seen: list[tuple[int, int]] = []
        done = await kb.rebuild(
            "docs", progress=lambda ready, total, _name: seen.append((ready, total))
        )
        assert (done.documents, done.passages) == (6, 6)
        assert [total for _, total in seen] == [6] * len(seen)
        assert seen[-1] == (6, 6)
        assert (await kb.list_collections())[0].documents == before
        assert (await search(kb, "number 3")).items[0].document_id == "3.txt"
        assert [file.outcome for file in (await kb.add("docs", [write(FILES)])).files] == [
            "unchanged"
        ] * 6


async def test_another_analyser_takes_the_vectors_as_they_are(opens: Opens, write: Writes) -> None:
    counting = Counting(SMALL)
    other = spec(
        "docs",
        embedding=EmbeddingSpec(provider="counting"),
        analyser=AnalyserSpec(language="german"),
    )
    async with opens(
        spec("docs", embedding=other.embedding), embedders={"counting": lambda _spec: counting}
    ) as kb:
        await kb.add("docs", [write(FILES)])
    embedded = counting.embedded
    async with opens(other, embedders={"counting": lambda _spec: counting}) as kb:
        await kb.rebuild("docs")
        assert [one.language for one in await kb.list_collections()] == ["german"]
    assert counting.embedded == embedded


async def test_searches_go_on_while_a_collection_is_rebuilt(opens: Opens, write: Writes) -> None:
    async with opens() as old, opens(spec("docs", embedding=SMALL)) as new:
        await old.add("docs", [write(MANY)])
        found: list[int] = []

        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                found.append(len((await search(old, "pear", limit=20)).items))

            def progress(done: int, total: int, _name: str) -> None:
                if done < total:
                    tasks.start_soon(ask)

            await new.rebuild("docs", progress=progress)
        assert len(found) > 2
        assert set(found) == {20}
        assert len((await search(new, "pear", limit=20)).items) == 20


async def test_what_is_added_and_removed_meanwhile_is_in_the_new_collection_too(
    opens: Opens, write: Writes
) -> None:
    async with opens() as old, opens(spec("docs", embedding=SMALL)) as new:
        await old.add("docs", [write(FILES)])
        started, changed = anyio.Event(), anyio.Event()

        class Slow(Counting):
            async def embed_documents(self, texts: object, /) -> list[list[float]]:
                started.set()
                await changed.wait()
                return await super().embed_documents(texts)  # type: ignore[arg-type]

        new._embedders[SMALL] = Slow(SMALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(new.rebuild, "docs")
            await started.wait()
            await old.add("docs", [write({"later.txt": "a late pear", "2.txt": "another text"})])
            await old.remove("docs", ["1.txt"])
            changed.set()
        names = [one.document for one in (await new.list_collections())[0].documents]
        assert names == ["0.txt", "2.txt", "3.txt", "4.txt", "5.txt", "later.txt"]
        assert (await search(new, "another text")).items[0].content == "another text"


async def test_a_rebuild_that_was_killed_goes_on_where_it_was(
    opens: Opens, write: Writes, state: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [write(MANY)])
    async with await anyio.open_process(
        [sys.executable, "-c", REBUILDER, str(state), str(TOGETHER)]
    ) as process:
        assert process.stdout is not None
        output = b""
        while b"\n" not in output:
            output += await process.stdout.receive()
        process.kill()
    async with opens() as kb:
        assert len((await kb.list_collections())[0].documents) == len(MANY)
        assert len((await search(kb, "pear", limit=20)).items) == 20
    async with opens(spec("docs", embedding=SMALL)) as kb:
        done = await kb.rebuild("docs")
        assert (done.documents, done.unchanged) == (len(MANY) - TOGETHER, TOGETHER)
        assert len((await search(kb, "pear", limit=20)).items) == 20


def there(path: Path) -> bool:
    return path.exists()


REBUILDER = """
import anyio, sys
from pathlib import Path
from groundhook.handlers.kb.opening import open_kb
from tests.kb.conftest import providers, spec
from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.types.collection_spec import EmbeddingSpec

async def main(state, together):
    declared = {"docs": spec("docs", embedding=EmbeddingSpec(provider="hash", dimensions=32))}
    async with open_kb(Path(state), declared, providers(), KBStorageSettings(idle_s=20, reserve_mb=1)) as kb:
        def progress(done, total, name):
            if done > int(together):
                print(done, flush=True)
                sys.stdin.read()  # until it is killed
        await kb.rebuild("docs", progress=progress)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize("tenanted", [False, True])
async def test_tenants_neither_come_nor_go_with_a_rebuild(
    opens: Opens, write: Writes, tenanted: bool
) -> None:
    """Who could not see a document before would, or nobody would any more."""
    plain, apart = spec("docs"), spec("docs", tenant_field="firm")
    was, now = (apart, plain) if tenanted else (plain, apart)
    tenants = ("acme", "zed") if tenanted else ("",)
    async with opens(was) as kb:
        for tenant in tenants:
            await kb.add("docs", [write(FILES)], tenant=tenant)
    async with opens(now) as kb:
        with pytest.raises(ConfigError, match="tenants, and is declared with") as refused:
            await kb.rebuild("docs")
        assert "`groundhook kb remove docs --all`" in refused.value.hint
    async with opens(was) as kb:
        assert len((await kb.list_collections())[0].documents) == len(tenants) * len(FILES)
    async with opens(now) as kb:
        await kb.remove("docs", None)
        await kb.add("docs", [write(FILES)], tenant="" if tenanted else "acme")
        assert (
            len((await search(kb, "pear", tenant="" if tenanted else "acme", limit=50)).items) == 6
        )


async def test_an_unfinished_rebuild_with_another_declaration_starts_again(
    opens: Opens, write: Writes
) -> None:
    async with opens() as kb:
        await kb.add("docs", [write(FILES)])
    other = spec("docs~new", embedding=EmbeddingSpec(provider="hash", dimensions=16))
    async with opens(other) as kb:
        await kb.add("docs~new", [write({"0.txt": "left behind"})])
    async with opens(spec("docs", embedding=SMALL)) as kb:
        assert (await kb.rebuild("docs")).documents == 6
        assert len((await search(kb, "left behind pear", limit=50)).items) == 6


async def test_an_empty_collection_cannot_be_rebuilt_or_exported(opens: Opens) -> None:
    async with opens() as kb:
        with pytest.raises(UsageError, match="kb add docs"):
            await kb.rebuild("docs")
        with pytest.raises(UsageError, match="nothing to export"):
            await kb.export("docs", io.StringIO())


async def test_collections_declared_otherwise_are_named_without_starting_anything(
    opens: Opens, write: Writes, state: Path
) -> None:
    async with opens() as kb:
        assert await kb.check_collections() == ()
        assert not there(state)
        await kb.add("docs", [write(FILES)])
        assert await kb.check_collections() == ()
    async with opens(spec("docs", embedding=SMALL), spec("none")) as kb:
        [problem] = await kb.check_collections()
    assert isinstance(problem, ConfigError)
    assert "kb rebuild docs" in str(problem)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"embedding": {"provider": "volage"}},
            "collection 'docs': no embedding provider 'volage'",
        ),
        (
            {"analyser": {"language": "germann"}},
            "no analyser for language 'germann' (did you mean 'german'?)",
        ),
    ],
)
async def test_an_embedding_or_a_language_that_there_is_not_is_named_before_anything_is_added(
    opens: Opens, declared: dict[str, Any], message: str
) -> None:
    async with opens(spec("docs", **declared)) as kb:
        wrong = kb.declaration_error(spec("docs", **declared))
        assert await kb.check_collections() == ()
    assert wrong is not None
    path, problem = wrong
    assert path == (*declared, *next(iter(declared.values())))
    assert message in str(problem)


async def test_shards_of_a_collection_on_the_embedded_engine_are_warned_about(opens: Opens) -> None:
    async with opens(spec("docs", storage={"shards": 3})) as kb:
        [problem] = await kb.check_collections()
    assert not isinstance(problem, ConfigError)
    assert "have no effect on the embedded engine" in str(problem)


# -------------------------------------------------------------------------------------------- files


async def exported(kb: KnowledgeBase, id: str = "docs") -> str:
    out = io.StringIO()
    await kb.export(id, out)
    return out.getvalue()


@pytest.mark.parametrize("engine", ["embedded", "server"])
async def test_an_exported_collection_is_imported_into_either_engine(
    opens: Opens, write: Writes, tmp_path: Path, engine: str
) -> None:
    tenanted = spec("docs", tenant_field="tenant")
    async with opens(tenanted) as kb:
        for tenant in "ab":
            await kb.add("docs", [write(FILES)], tenant=tenant)
        text = await exported(kb)
        before = (await kb.list_collections())[0].documents
    with qdrant(tmp_path / "qdrant") as server:
        # The server is in this process: whatever lets it rest for a while must not look like a
        # server that does not answer.
        there = QdrantSettings(url=server.url if engine == "server" else "", timeout_s=50)
        storage = KBStorageSettings(idle_s=1, reserve_mb=1)
        async with open_kb(
            tmp_path / "other", {"docs": tenanted}, providers(), storage, there
        ) as kb:
            done = await kb.import_documents("docs", io.StringIO(text))
            assert (done.documents, done.passages, done.unchanged) == (12, 12, 0)
            assert (await kb.list_collections())[0].documents == before
            assert len((await search(kb, "pear", tenant="a", limit=50)).items) == 6
            assert (await kb.import_documents("docs", io.StringIO(text))).unchanged == 12
            assert sorted(await exported(kb)) == sorted(text)


async def test_a_file_of_other_vectors_is_refused_unless_it_is_to_be_embedded(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs"), spec("small", embedding=SMALL)) as kb:
        await kb.add("docs", [write(FILES)])
        text = await exported(kb)
        with pytest.raises(ConfigError, match=r"64 dimensions, and collection 'small'.*--embed"):
            await kb.import_documents("small", io.StringIO(text))
        assert (await kb.import_documents("small", io.StringIO(text), embed=True)).documents == 6
        assert (await search(kb, "number 4", "small")).items[0].document_id == "4.txt"


class Calls(Counting):
    """Remembers how many texts each call was given."""

    def __init__(self) -> None:
        super().__init__(SMALL)
        self.calls: list[int] = []

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        self.calls.append(len(texts))
        return await super().embed_documents(texts)


async def test_an_import_embeds_in_batches_like_an_add_and_reports_progress_within_a_long_document(
    opens: Opens, write: Writes
) -> None:
    embedder, chunk = Calls(), ChunkSpec(size=32, overlap=0)
    anew = EmbeddingSpec(provider="calls")
    book = " ".join(
        f"The pear number {n} is a fruit of its own, and nobody eats it." for n in range(150)
    )
    async with (
        opens(spec("docs", chunk=chunk)) as old,
        opens(
            spec("docs", chunk=chunk, embedding=anew), embedders={"calls": lambda _spec: embedder}
        ) as new,
    ):
        await old.add("docs", [write({"book.txt": book})])
        text, seen = await exported(old), list[tuple[int, int]]()
        await new.rebuild("docs", progress=lambda ready, total, _name: seen.append((ready, total)))
        rebuilt, embedder.calls = embedder.calls, []
        await new.remove("docs", None)
        await new.import_documents("docs", io.StringIO(text), embed=True)
        loaded, embedder.calls = embedder.calls, []
        await new.remove("docs", None)
        await new.add("docs", [write({"book.txt": book})])
    assert (
        rebuilt[0]
        == loaded[0]
        == embedder.calls[0]
        < max(rebuilt)
        == max(loaded)
        == max(embedder.calls)
    )
    assert len(seen) == len(rebuilt)
    assert seen[-1] == (sum(rebuilt), sum(rebuilt))
    assert seen == sorted(seen)


async def test_new_vectors_are_made_on_every_core(opens: Opens, write: Writes) -> None:
    class Meeting(Counting):
        """Each call waits until there is one for each core."""

        async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
            self.under_way += 1
            if self.under_way == CORES:
                self.met.set()
            await self.met.wait()
            return await super().embed_documents(texts)

        under_way = 0
        met = anyio.Event()

    async with (
        opens() as old,
        opens(
            spec("docs", embedding=EmbeddingSpec(provider="meeting")),
            embedders={"meeting": lambda _spec: Meeting(SMALL)},
        ) as new,
    ):
        await old.add("docs", [write(MANY)])
        with anyio.fail_after(60):
            assert (await new.rebuild("docs")).documents == len(MANY)


async def test_what_was_read_of_a_file_that_was_cut_is_there(opens: Opens, write: Writes) -> None:
    async with opens(spec("docs"), spec("copy")) as kb:
        await kb.add("docs", [write(FILES)])
        lines = (await exported(kb)).splitlines(keepends=True)
        with pytest.raises(StorageError, match="is truncated"):
            await kb.import_documents("copy", io.StringIO("".join(lines[:6])))
        assert [
            document.document for document in (await kb.list_collections(["copy"]))[0].documents
        ] == [
            "0.txt",
            "1.txt",
        ]


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda text: text[: len(text) // 2], StorageError, "is truncated at line"),
        (lambda text: text[: text.rindex("\n", 0, -1) + 1], StorageError, "is truncated at line"),
        (
            lambda text: text.replace('{"end": 6}', '{"end": 7}'),
            StorageError,
            "has 6 documents, and its last line announces 7",
        ),
        (lambda _text: "hello\n", UsageError, r"not a collection.*line 1: not JSON"),
        (lambda _text: '{"x": 1}\n', UsageError, "not a collection that"),
        (lambda _text: "", StorageError, "is empty"),
        (lambda text: text + '{"end": 6}\n', UsageError, "line 15: more after its end"),
        (
            lambda text: text.replace('"vector": "', '"vector": "é'),
            UsageError,
            "not a collection that",
        ),
    ],
)
async def test_another_kind_of_file_or_a_truncated_one_is_an_error_with_its_line(
    opens: Opens, write: Writes, spoil: object, error: type[Exception], message: str
) -> None:
    async with opens(spec("docs"), spec("other")) as kb:
        await kb.add("docs", [write(FILES)])
        text = spoil(await exported(kb))  # type: ignore[operator]
        with pytest.raises(error, match=message):
            await kb.import_documents("other", io.StringIO(text))


def spoilt(number: int, **changed: Any) -> Callable[[str], str]:
    """An export in which a line says something else."""

    def spoil(text: str) -> str:
        lines = text.splitlines()
        line = json.loads(lines[number])
        lines[number] = json.dumps(
            {key: value for key, value in {**line, **changed}.items() if value is not ...}
        )
        return "\n".join(lines) + "\n"

    return spoil


def vector(*numbers: float) -> str:
    return base64.b64encode(array("f", numbers).tobytes()).decode()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoilt(0, made=...), "line 1: Input should be an object"),
        (spoilt(0, made={"provider": "hash"}), "line 1: 'model': Field required"),
        (
            spoilt(0, made={"provider": "hash", "model": "words", "dimensions": "64"}),
            "line 1: 'dimensions': ",
        ),
        (spoilt(1, document=None), "line 2: 'document': "),
        (spoilt(1, document=["a"]), "line 2: 'document': "),
        (spoilt(1, title=5), "line 2: 'title': "),
        (spoilt(1, title="\ud800"), "line 2: a lone surrogate"),
        (spoilt(1, bytes=-1), "line 2: 'bytes': "),
        (spoilt(1, fields=[1]), "line 2: 'fields': "),
        (spoilt(1, fields={"other": {"deep": 1}}), "line 2: 'fields.other"),
        (
            spoilt(1, fields={"year": "many"}),
            "line 2: 'year' of '0.txt' should be a whole number, not 'many'",
        ),
        (
            spoilt(1, tenant="acme"),
            "line 2: '0.txt' belongs to the tenant 'acme', and the collection has no tenants",
        ),
        (spoilt(1, passages=-1), "line 2: 'passages': "),
        (spoilt(1, passages=0), "line 2: 'passages': "),
        (spoilt(1, passages=10**9), "line 4: 'passage': Field required"),
        (spoilt(1, evil=1), "line 2: 'evil': "),
        (spoilt(2, page="x"), "line 3: 'page': "),
        (spoilt(2, page=10**30), "line 3: 'page': "),
        (spoilt(2, vector=""), "line 3: 'vector' should have 64 finite numbers"),
        (spoilt(2, vector=vector(1, 2)), "line 3: 'vector' should have 64 finite numbers"),
        (
            spoilt(2, vector=vector(*[1] * 63, math.nan)),
            "line 3: 'vector' should have 64 finite numbers",
        ),
        (spoilt(2, vector="!!!"), "line 3: 'vector': "),
        (lambda text: text.splitlines()[0] + "\n" + "[" * 100_000 + "\n", "line 2: not JSON"),
    ],
)
async def test_whatever_a_file_holds_that_no_export_writes_is_refused_with_its_line(
    opens: Opens, write: Writes, spoil: Callable[[str], str], message: str
) -> None:
    fields = {"year": FieldSpec(type="integer")}
    async with opens(spec("docs", fields=fields), spec("other", fields=fields)) as kb:
        await kb.add("docs", [write(FILES)])
        with pytest.raises(UsageError) as raised:
            await kb.import_documents("other", io.StringIO(spoil(await exported(kb))))
        assert message in str(raised.value)
        assert (await kb.list_collections(["other"]))[0].documents == ()


async def test_every_line_of_an_export_is_json(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.txt": "pear \u2028 \x85 plum"})])
        lines = (await exported(kb)).rstrip("\n").split("\n")
    assert [sorted(json.loads(line))[0] for line in lines] == [
        "collection",
        "bytes",
        "content",
        "end",
    ]


async def test_an_empty_collection_takes_its_new_declaration(opens: Opens, write: Writes) -> None:
    class Short(Counting):
        async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
            return [vector[:3] for vector in await super().embed_documents(texts)]

    broken = spec("docs", embedding=EmbeddingSpec(provider="short"))
    async with opens(broken, embedders={"short": lambda _spec: Short(SMALL)}) as kb:
        with pytest.raises(StorageError):
            await kb.add("docs", [write(FILES)])
    async with opens() as kb:
        with pytest.raises(ConfigError, match="kb rebuild docs"):
            await search(kb, "pear")
        assert (await kb.rebuild("docs")).documents == 0
        await kb.add("docs", [write(FILES)])
        assert len((await search(kb, "pear")).items) == 6
