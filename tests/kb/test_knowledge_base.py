"""The knowledge base through its own door: what is added is found, replaced, listed and removed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.errors import (
    ConfigError,
    NotPermitted,
    SourceNotConfigured,
    StorageError,
    UnknownName,
    UsageError,
)
from groundhook.core.trace import recording
from groundhook.core.types.collection_spec import (
    AnalyserSpec,
    ChunkSpec,
    CollectionSpec,
    EmbeddingSpec,
    FieldSpec,
)
from groundhook.core.types.events import TraceNode
from groundhook.core.types.search import Extent, Item, SearchRequest
from groundhook.handlers.kb.embed import EmbedderFactory
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from tests.kb.conftest import Counting, Opens, Warnings, Writes, end_worker, scope, search, spec
from tests.parts.pdf_files import pdf

GUIDE = (
    "# Guide\n\nAll about it.\n\n## Install\n\nRun the installer with pip.\n\n## Remove\n\nDelete"
    " the folder.\n"
)


async def test_a_passage_says_where_it_comes_from(opens: Opens, write: Writes) -> None:
    folder = write({"guide.md": GUIDE})
    async with opens() as kb:
        report = await kb.add("docs", [folder])
        [item] = (await search(kb, "installer pip", limit=1)).items
    assert [(file.document, file.outcome, file.chunks) for file in report.files] == [
        ("guide.md", "added", 3)
    ]
    assert item.title == "Guide › Install"
    assert item.content == "## Install\n\nRun the installer with pip."
    assert (item.collection, item.document_id) == ("docs", "guide.md")
    assert item.url == (folder / "guide.md").as_uri()
    assert item.key.startswith("kb:docs/guide.md#")


async def test_what_is_found_is_what_validating_it_would_have_made(
    opens: Opens, write: Writes
) -> None:
    long = "Pears are picked in September, before they are ripe. " * 40
    folder = write(
        {
            "guide.md": f"---\nyear: 2024\n---\n{GUIDE}",
            "pears.md": long,
            "paper.pdf": pdf("about the plum " * 5),
        }
    )
    async with opens(
        spec(
            "docs", chunk=ChunkSpec(size=400, overlap=0), fields={"year": FieldSpec(type="integer")}
        )
    ) as kb:
        await kb.add("docs", [folder])
        items = (await search(kb, "when are pears picked with an installer")).items
    assert {item.document_id for item in items} == {"guide.md", "pears.md", "paper.pdf"}
    for item in items:
        assert item.extent is not None
        extent = Extent.model_validate(item.extent.model_dump(exclude_unset=True), strict=True)
        fields = {name: getattr(item, name) for name in item.model_fields_set}
        validated = Item.model_validate({**fields, "extent": extent}, strict=True)
        assert item == validated
        assert repr(item) == repr(validated)
        assert item.model_dump_json(exclude_unset=True) == validated.model_dump_json(
            exclude_unset=True
        )
        assert (
            {"key", "content", "score", "extent"} <= item.model_fields_set < set(Item.model_fields)
        )


async def test_a_passage_of_a_pdf_opens_at_its_page(opens: Opens, write: Writes) -> None:
    folder = write({"paper.pdf": pdf("about the pear " * 5, "about the plum " * 5, title="Fruit")})
    async with opens(spec("docs", chunk=ChunkSpec(size=32, overlap=0))) as kb:
        await kb.add("docs", [folder])
        found = await search(kb, "plum", limit=1)
    assert found.items[0].title == "Fruit"
    assert found.items[0].url == (folder / "paper.pdf").as_uri() + "#page=2"


async def test_a_passage_keeps_its_key_when_another_one_changes(
    opens: Opens, write: Writes
) -> None:
    async with opens() as kb:
        folder = write({"guide.md": GUIDE})
        await kb.add("docs", [folder])
        before = {item.title: item.key for item in (await search(kb, "installer")).items}
        write({"guide.md": GUIDE.replace("Delete the folder", "Throw it away")})
        report = await kb.add("docs", [folder])
        after = {item.title: item.key for item in (await search(kb, "installer")).items}
    assert [file.outcome for file in report.files] == ["replaced"]
    assert {title for title in before if before[title] == after[title]} == {
        "Guide",
        "Guide › Install",
    }


async def test_a_replaced_document_is_found_in_its_new_words_only(
    opens: Opens, write: Writes
) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.txt": "the old pear", "b.txt": "a plum"})])
        await kb.add("docs", [write({"a.txt": "the new apple"})])
        found = await search(kb, "pear apple plum")
    assert sorted(item.content for item in found.items) == ["a plum", "the new apple"]


async def test_a_file_that_did_not_change_is_not_embedded_again(
    opens: Opens, write: Writes
) -> None:
    counting = Counting(EmbeddingSpec(provider="counting"))
    factory: EmbedderFactory = lambda _: counting  # noqa: E731
    declared = spec("docs", embedding=EmbeddingSpec(provider="counting"))
    folder = write({"a.md": "# A\n\nOne.", "b.md": "# B\n\nTwo."})
    async with opens(declared, embedders={"counting": factory}) as kb:
        await kb.add("docs", [folder])
        embedded = counting.embedded
        report = await kb.add("docs", [folder])
    assert counting.embedded == embedded == 2
    assert [file.outcome for file in report.files] == ["unchanged", "unchanged"]


async def test_a_change_of_chunking_builds_documents_again(opens: Opens, write: Writes) -> None:
    folder = write({"a.md": "word " * 150})
    async with opens() as kb:
        await kb.add("docs", [folder])
    async with opens(spec("docs", chunk=ChunkSpec(size=32, overlap=0))) as kb:
        report = await kb.add("docs", [folder])
        found = await search(kb, "word", limit=100)
    assert report.files[0].outcome == "replaced"
    assert len(found.items) == report.files[0].chunks


async def test_files_that_moved_keep_their_vectors_and_get_their_new_address(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "The pear is ripe."})
    async with opens() as kb:
        await kb.add("docs", [folder])
        moved = folder.rename(folder.with_name("elsewhere"))
        report = await kb.add("docs", [moved])
        [item] = (await search(kb, "pear")).items
    assert report.files[0].outcome == "unchanged"
    assert item.url == (moved / "a.md").as_uri()


async def test_folders_are_walked_in_order_without_what_is_hidden(
    opens: Opens, write: Writes
) -> None:
    folder = write(
        {
            "b.md": "two",
            "a/z.txt": "one",
            ".git/x.md": "no",
            ".hidden.md": "no",
            "code.py": "no",
            "a/empty.md": "",
            "c.html": "<p>x",
        }
    )
    async with opens() as kb:
        report = await kb.add("docs", [folder])
    assert [(file.document, file.outcome) for file in report.files] == [
        ("b.md", "added"),
        ("c.html", "added"),
        ("a/empty.md", "failed"),
        ("a/z.txt", "added"),
    ]
    assert report.skipped == 1
    assert report.failed
    assert "empty.md" in report.files[2].error


async def test_a_file_that_cannot_be_added_does_not_stop_the_others(
    opens: Opens, write: Writes
) -> None:
    folder = write({"good.md": "fine", "bad.md": b"\xff\xfe\xfd", "prog.exe": b"MZ\0"})
    async with opens() as kb:
        report = await kb.add(
            "docs", [folder / "gone.md", folder / "bad.md", folder / "prog.exe", folder / "good.md"]
        )
    assert [file.outcome for file in report.files] == ["failed", "failed", "failed", "added"]
    for file, word in zip(report.files, ("No such file", "UTF", "cannot be read", ""), strict=True):
        assert word in file.error
        assert not file.error or Path(file.path).name in file.error


async def test_two_files_of_one_id_do_not_replace_each_other_unseen(
    opens: Opens, write: Writes
) -> None:
    folder = write({"one/index.md": "pear", "two/index.md": "plum", "x/two/index.md": "fig"})
    given = [folder / "one", folder / "two", folder / "x/two", folder / "one/index.md"]
    async with opens() as kb:
        report = await kb.add("docs", given)
        found = await search(kb, "pear plum fig")
    assert [file.document for file in report.files] == ["index.md", "two/index.md", "index.md"]
    assert [file.outcome for file in report.files] == ["added", "added", "failed"]
    assert sorted(item.content for item in found.items) == ["pear", "plum"]


async def test_progress_reaches_the_size_of_the_files(opens: Opens, write: Writes) -> None:
    folder = write({"a.md": "word " * 400, "b.md": "x" * 100, "c.md": ""})
    seen: list[tuple[int, int, str]] = []
    async with opens() as kb:
        await kb.add(
            "docs",
            [folder],
            progress=lambda done, total, current, _: seen.append((done, total, current)),
        )
    assert seen[-1][:2] == (2100, 2100)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert {current for _, _, current in seen} == {"a.md", "b.md", "c.md"}


async def test_an_add_that_is_cancelled_leaves_whole_documents_only(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "pear " * 50, "b.md": "pear " * 2000, "c.md": "pear"})

    def watch(_done: int, _total: int, current: str, _passages: int) -> None:
        if current == "b.md":
            cancelled.cancel()

    async with opens() as kb:
        with anyio.CancelScope() as cancelled:
            await kb.add("docs", [folder], progress=watch)
        [listing] = await kb.list_collections()
        again = await kb.add("docs", [folder])
    there = {document.document: document.chunks for document in listing.documents}
    assert there in ({}, {"a.md": 2})
    assert [file.outcome for file in again.files] == [
        "unchanged" if "a.md" in there else "added",
        "added",
        "added",
    ]


async def test_a_full_disk_keeps_the_old_version(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.txt": "the old pear"})])
    async with opens(storage=KBStorageSettings(idle_s=20, reserve_mb=1 << 40)) as kb:
        with pytest.raises(StorageError, match=r"a\.txt.*MB of disk are free"):
            await kb.add("docs", [write({"a.txt": "the new pear"})])
        found = await search(kb, "pear")
    assert [item.content for item in found.items] == ["the old pear"]


async def test_the_trace_of_a_search_has_the_language_of_the_question_and_those_of_the_passages(
    opens: Opens, write: Writes
) -> None:
    folder = write({"en.txt": "a ripe pear of the orchard", "he.txt": "אגס בשל מן הפרדס"})
    nodes: list[TraceNode] = []
    async with opens() as kb:
        await kb.add("docs", [folder])
        with recording(nodes.append):
            await search(kb, "a ripe pear", threshold=0.0)
            await search(kb, "אגס בשל", threshold=0.0)
    english, hebrew = [
        node.data for node in nodes if node.type == "vector_search" and node.status == "completed"
    ]
    assert (english["question"], hebrew["question"]) == ("english", "hebrew")
    for data, own in ((english, "english"), (hebrew, "hebrew")):
        assert {language: one["share"] for language, one in data["languages"].items()} == {
            "english": 0.5,
            "hebrew": 0.5,
        }
        weights = {language: one["words"] for language, one in data["languages"].items()}
        assert weights == {"english": 0.0, "hebrew": 0.0} | {own: 1.0}
        assert all("shifted" in one for one in data["languages"].values())


async def test_the_threshold_is_a_similarity(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add(
            "docs",
            [write({"a.txt": "pear plum", "b.txt": "pear apple cherry quince", "c.txt": "stone"})],
        )
        every = await search(kb, "pear plum")
        some = await search(kb, "pear plum", threshold=every.items[0].score - 0.01)
    assert every.items[0].document_id == "a.txt"
    assert len(every.items) == 3
    assert [item.document_id for item in some.items] == ["a.txt"]


async def test_an_off_topic_question_finds_nothing_and_a_related_one_its_passage(
    opens: Opens, write: Writes
) -> None:
    pages = {
        "tea.md": (
            "# Tea\n\nGreen tea is brewed with water of about eighty degrees, for two minutes at"
            " most."
        ),
        "bicycle.md": (
            "# Bicycle\n\nThe chain is oiled after every ride in the rain, and cleaned once a"
            " month."
        ),
    }
    async with opens(CollectionSpec(id="docs")) as kb:
        await kb.add("docs", [write(pages)])
        default = 0.3
        tea = await search(kb, "How hot should the water be for green tea?", threshold=default)
        chinese = await search(kb, "绿茶应该用多少度的水冲泡？", threshold=default)
        off_topic = await search(kb, "Who won the football world cup in 1998?", threshold=default)
    assert tea.items[0].document_id == chinese.items[0].document_id == "tea.md"
    assert tea.items[0].score > 0.5
    assert off_topic.items == ()


async def test_the_same_question_has_the_same_answer_however_many_passages_are_equal(
    opens: Opens, write: Writes
) -> None:
    async with opens() as kb:
        await kb.add(
            "docs", [write({f"{n:03}.txt": f"the pear is ripe {n % 3}" for n in range(80)})]
        )
        first = await search(kb, "ripe pear", limit=20)
        for _ in range(10):
            assert await search(kb, "ripe pear", limit=20) == first
    assert [item.score for item in first.items] == sorted(
        (item.score for item in first.items), reverse=True
    )


async def test_several_collections_are_one_ranking(opens: Opens, write: Writes) -> None:
    async with opens(
        spec("docs"), spec("news", embedding=EmbeddingSpec(provider="hash", dimensions=128))
    ) as kb:
        await kb.add("docs", [write({"a.txt": "pear plum"})])
        await kb.add("news", [write({"b.txt": "pear plum apple", "a.txt": "stone"})])
        found = await search(kb, "pear plum", "news", "docs")
    assert [(item.collection, item.document_id) for item in found.items][:2] == [
        ("docs", "a.txt"),
        ("news", "b.txt"),
    ]


async def test_a_collection_that_cannot_answer_is_a_warning_beside_one_that_can(
    opens: Opens, write: Writes
) -> None:
    warnings = Warnings()
    request = SearchRequest(
        type="kb", query="pear", collections=("empty", "dosc", "docs"), threshold=0, limit=5
    )
    async with opens(spec("docs"), spec("empty")) as kb:
        await kb.add("docs", [write({"a.txt": "pear"})])
        found = await kb.search(request, scope(warn=warnings))
    assert [item.content for item in found.items] == ["pear"]
    assert [code for code, _ in warnings.received] == ["source_not_configured"] * 2
    assert "groundhook kb add empty" in warnings.received[0][1]
    assert "did you mean 'docs'?" in warnings.received[1][1]


async def test_an_empty_collection_says_how_to_fill_it(opens: Opens) -> None:
    async with opens() as kb:
        with pytest.raises(SourceNotConfigured, match="groundhook kb add docs PATH"):
            await search(kb, "anything")


async def test_a_collection_made_with_another_embedding_is_refused(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.txt": "pear"})
    async with opens() as kb:
        await kb.add("docs", [folder])
    async with opens(spec("docs", embedding=EmbeddingSpec(provider="hash", dimensions=32))) as kb:
        for attempt in (kb.add("docs", [folder]), search(kb, "pear")):
            with pytest.raises(
                ConfigError,
                match=(
                    r"'docs' was made with.*64 dimensions.*declared with.*32 dimensions.*kb rebuild"
                    r" docs"
                ),
            ):
                await attempt
        assert await kb.remove("docs", None) == ("a.txt",)
        await kb.add("docs", [folder])
        assert len((await search(kb, "pear")).items) == 1


async def test_another_analyser_language_is_refused(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.txt": "the pear is on the tree and it is ripe"})])
        [listing] = await kb.list_collections()
    async with opens(spec("docs", analyser=AnalyserSpec(language="german"))) as kb:
        with pytest.raises(ConfigError, match=r"'english'.*'german'"):
            await search(kb, "pear")
    async with opens(spec("docs", analyser=AnalyserSpec(language="englsh"))) as kb:
        with pytest.raises(ConfigError, match="did you mean 'english'"):
            await search(kb, "pear")
    assert listing.language == "english"


async def test_a_document_is_read_whole_and_in_order(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"guide.md": GUIDE})])
        found = await kb.fetch_document("docs", "guide.md", scope())
        with pytest.raises(SourceNotConfigured, match=r"no document 'gide\.md'"):
            await kb.fetch_document("docs", "gide.md", scope())
    assert "\n\n".join(item.content for item in found.items) == GUIDE.strip()


async def test_removed_documents_are_not_found(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.txt": "pear", "b.txt": "pear plum"})])
        with pytest.raises(UnknownName, match=r"no document 'c\.txt'"):
            await kb.remove("docs", ["a.txt", "c.txt"])
        assert await kb.remove("docs", ["a.txt"]) == ("a.txt",)
        found = await search(kb, "pear")
        [listing] = await kb.list_collections()
    assert [item.document_id for item in found.items] == ["b.txt"]
    assert (len(listing.documents), listing.chunks, listing.source_bytes) == (1, 1, 9)


# ------------------------------------------------------------------------------------------ tenants


@given(
    added=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["x.txt", "y.txt"])),
        min_size=1,
        max_size=6,
    ),
    asking=st.sampled_from("abcd"),
)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_tenant_sees_its_own_documents_on_every_path(
    opens: Opens, write: Writes, added: list[tuple[str, str]], asking: str
) -> None:
    async with opens(spec("docs", tenant_field="tenant")) as kb:
        await kb.remove("docs", None)
        for tenant, name in added:
            folder = write({f"{tenant}/{name}": f"a ripe pear of {tenant}"})
            await kb.add("docs", [folder / tenant / name], tenant=tenant)
        own = sorted({name for tenant, name in added if tenant == asking})
        assert (
            sorted(
                item.document_id for item in (await search(kb, "ripe pear", tenant=asking)).items
            )
            == own
        )
        [listing] = await kb.list_collections(tenant=asking)
        assert [document.document for document in listing.documents] == own
        for name in {name for _, name in added}:
            await _reads(kb, name, asking, name in own)
        for name in own:
            await kb.remove("docs", [name], tenant=asking)
        rest = {pair for pair in added if pair[0] != asking}
        [listing] = await kb.list_collections()
        assert {(document.tenant, document.document) for document in listing.documents} == rest


async def _reads(kb: KnowledgeBase, name: str, tenant: str, own: bool) -> None:
    if own:
        assert (await kb.fetch_document("docs", name, scope(tenant))).items[
            0
        ].content == f"a ripe pear of {tenant}"
        return
    with pytest.raises(SourceNotConfigured):
        await kb.fetch_document("docs", name, scope(tenant))


async def test_without_a_tenant_nothing_of_a_tenanted_collection_is_shown_or_added(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.txt": "pear"})
    async with opens(spec("docs", tenant_field="tenant")) as kb:
        await kb.add("docs", [folder], tenant="a")
        with pytest.raises(NotPermitted):
            await search(kb, "pear")
        with pytest.raises(NotPermitted):
            await kb.fetch_document("docs", "a.txt", scope())
        [file] = (await kb.add("docs", [folder])).files
        assert file.outcome == "failed"
        assert "has no tenant in 'tenant'" in file.error
        assert "--tenant" in file.error
        with pytest.raises(UsageError, match="--tenant"):
            await kb.remove("docs", ["a.txt"])


async def test_tenants_are_neither_ignored_nor_dropped_later(opens: Opens, write: Writes) -> None:
    folder = write({"a.txt": "pear"})
    async with opens(spec("docs"), spec("private", tenant_field="tenant")) as kb:
        with pytest.raises(UsageError, match="has no tenants"):
            await kb.add("docs", [folder], tenant="a")
        await kb.add("private", [folder], tenant="a")
    async with opens(spec("private")) as kb:
        with pytest.raises(ConfigError, match="with tenants"):
            await search(kb, "pear", "private")


async def test_a_check_recommends_to_rebuild_a_collection_of_a_version_without_languages(
    opens: Opens, write: Writes, state: Path
) -> None:
    async with opens() as kb:
        assert await kb.check_collections() == ()
        await kb.add("docs", [write({"a.txt": "a ripe pear"})])
        assert await kb.check_collections() == ()
    await end_worker(state)
    with closing(sqlite3.connect(state / "kb/c-docs/manifest.sqlite")) as before:
        before.execute("alter table generations drop column languages")
    async with opens() as kb:
        [problem] = await kb.check_collections()
        assert isinstance(problem, UsageError)
        assert "groundhook kb rebuild docs" in str(problem)
        await kb.rebuild("docs")
        assert await kb.check_collections() == ()
