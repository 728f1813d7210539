"""Adding again: unchanged and deleted documents, rows and feeds, tenants, and a
report that stays small."""

from __future__ import annotations

import io
import json
import os
import re
import tracemalloc
import zipfile
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from rich.console import Console
from rich.filesize import decimal

from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.errors import StorageError, UnknownName, UsageError
from groundhook.core.types.collection_spec import (
    ChunkSpec,
    EmbeddingSpec,
    FieldSpec,
    RowSpec,
)
from groundhook.core.types.fields import FieldType
from groundhook.handlers.kb.embed import HashEmbedder
from groundhook.handlers.kb.ingest.report import MOST_ROWS, AddReport
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.host.cli.progress import ProgressLines
from tests.kb.conftest import Counting, Opens, Writes, search, spec


async def documents(kb: KnowledgeBase, collection: str = "docs") -> list[str]:
    [listing] = await kb.list_collections([collection])
    return [stored.document for stored in listing.documents]


def counts(report: AddReport) -> dict[str, int]:
    return dict(report.counts)


# ------------------------------------------------------------------------------------- what is gone


async def test_a_file_that_is_gone_from_a_folder_is_removed_when_the_folder_is_added_again(
    opens: Opens, write: Writes
) -> None:
    folder = write(
        {
            "a.md": "pear",
            "sub/b.md": "plum",
            "t.csv": "id,text\n1,fig\n2,apple\n",
            "old.csv": "id,text\n1,x\n",
        }
    )
    async with opens() as kb:
        await kb.add("docs", [folder])
        (folder / "sub/b.md").unlink()
        (folder / "old.csv").unlink()
        (folder / "t.csv").write_text("id,text\n2,apple\n", encoding="utf-8")
        report = await kb.add("docs", [folder])
        left = await documents(kb)
    assert counts(report) == {"unchanged": 2, "removed": 3}
    assert sorted(file.document for file in report.files if file.outcome == "removed") == [
        "old.csv#1",
        "sub/b.md",
        "t.csv#1",
    ]
    assert left == ["a.md", "t.csv#2"]


async def test_other_folders_and_single_files_are_left_alone(opens: Opens, write: Writes) -> None:
    folder = write({"one/a.md": "pear", "one/b.md": "plum", "onemore/c.md": "fig", "d.md": "apple"})
    async with opens() as kb:
        await kb.add("docs", [folder / "one", folder / "onemore", folder / "d.md"])
        (folder / "one/b.md").unlink()
        (folder / "onemore/c.md").unlink()
        (folder / "d.md").unlink()
        await kb.add("docs", [folder / "one/a.md"])
        assert await documents(kb) == ["a.md", "b.md", "c.md", "d.md"]
        await kb.add("docs", [folder / "one"])
        assert await documents(kb) == ["a.md", "c.md", "d.md"]


async def test_a_file_that_cannot_be_read_now_keeps_its_document(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "pear", "b.md": "plum", "t.csv": "id,text\n1,fig\n2,apple\n"})
    async with opens() as kb:
        await kb.add("docs", [folder])
        write({"a.md": b"\xff\xff\xff", "t.csv": 'id,text\n1,fig\n9,"an open quote\n'})
        report = await kb.add("docs", [folder])
        left = await documents(kb)
    assert counts(report) == {"failed": 2, "unchanged": 2}
    assert left == ["a.md", "b.md", "t.csv#1", "t.csv#2"]


async def test_a_folder_that_lost_everything_is_reported_and_kept_unless_pruned(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "pear", "b.md": "plum"})
    async with opens() as kb:
        await kb.add("docs", [folder])
        for name in ("a.md", "b.md"):
            (folder / name).unlink()
        careful = await kb.add("docs", [folder])
        assert await documents(kb) == ["a.md", "b.md"]
        write({"c.md": "fig"})
        never = await kb.add("docs", [folder], prune=False)
        assert await documents(kb) == ["a.md", "b.md", "c.md"]
        (folder / "c.md").unlink()
        sure = await kb.add("docs", [folder], prune=True)
        assert await documents(kb) == []
    [note] = careful.notes
    assert "none of the 2 documents that came from" in note
    assert "--prune" in note
    assert (careful.counts, never.counts, sure.counts) == ({}, {"added": 1}, {"removed": 3})


async def test_a_folder_that_moved_takes_its_documents_along(opens: Opens, write: Writes) -> None:
    folder = write({"a.md": "pear", "b.md": "plum"})
    async with opens() as kb:
        await kb.add("docs", [folder])
        moved = folder.rename(folder.with_name("elsewhere"))
        await kb.add("docs", [moved])
        (moved / "b.md").unlink()
        report = await kb.add("docs", [moved])
        assert await documents(kb) == ["a.md"]
    assert counts(report) == {"unchanged": 1, "removed": 1}


# ----------------------------------------------------------------------------------- rows and feeds


def feed(*rows: Any) -> io.BytesIO:
    return io.BytesIO("\n".join(json.dumps(row) for row in rows).encode())


async def test_a_feed_adds_and_replaces_and_removes_only_on_request(opens: Opens) -> None:
    async with opens(spec("docs", fields={"year": FieldSpec(type="integer")})) as kb:
        first = await kb.add(
            "docs",
            feed=feed({"id": "a", "content": "pear", "url": "https://e.com/a", "year": "2020"}),
        )
        await kb.add(
            "docs",
            feed=feed({"id": "b", "title": "B", "content": "plum", "fields": {"year": 2021}}),
        )
        again = await kb.add(
            "docs",
            feed=feed({"id": "a", "content": "pear", "url": "https://e.com/a", "year": 2021}),
        )
        found = {item.document_id: item for item in (await search(kb, "pear plum")).items}
        last = await kb.add("docs", feed=feed({"id": "c", "content": "fig"}), prune=True)
        assert await documents(kb) == ["c"]
    assert (counts(first), counts(again), counts(last)) == (
        {"added": 1},
        {"replaced": 1},
        {"added": 1, "removed": 2},
    )
    assert (found["a"].url, found["a"].data) == ("https://e.com/a", {"year": 2021})
    assert (found["b"].title, found["b"].url, found["b"].data) == ("B", "", {"year": 2021})


async def test_rows_that_did_not_change_are_left_alone_and_wrong_ones_name_their_lines(
    opens: Opens, write: Writes
) -> None:
    declared = spec(
        "docs", fields={"price": FieldSpec(type="float")}, rows=RowSpec(id="sku", text=("about",))
    )
    table = "sku,about,price\nA,a pen,1.5\nB,paper,cheap\nA,another pen,2\nC,,3\n"
    async with opens(declared) as kb:
        folder = write({"goods.csv": table})
        first = await kb.add("docs", [folder])
        write({"goods.csv": table.replace("cheap", "2").replace("C,,3", "C,a box,3")})
        second = await kb.add("docs", [folder / "goods.csv"])
    errors = [file.error for file in first.files if file.outcome == "failed"]
    name = folder / "goods.csv"
    assert sorted(errors) == [
        (
            f"{name}:3: was not added: 'price' should be a number, not 'cheap' (`fields` declares"
            " it as float)"
        ),
        f"{name}:4: another row has the id 'A'",
        f"{name}:5: the row has no text in 'about'",
    ]
    assert (counts(first), counts(second)) == (
        {"added": 1, "failed": 3},
        {"added": 2, "unchanged": 1, "failed": 1},
    )


async def test_rows_of_two_tenants_may_have_the_same_ids(opens: Opens) -> None:
    rows = [{"id": "1", "firm": firm, "content": f"ripe pears of {firm}"} for firm in ("a", "b")]
    async with opens(spec("docs", tenant_field="firm")) as kb:
        first = await kb.add("docs", feed=feed(*rows))
        again = await kb.add("docs", feed=feed(*rows, {**rows[0], "content": "twice"}))
        found = {t: [i.content for i in (await search(kb, "pears", tenant=t)).items] for t in "ab"}
    assert (counts(first), counts(again)) == ({"added": 2}, {"unchanged": 2, "failed": 1})
    assert found == {"a": ["ripe pears of a"], "b": ["ripe pears of b"]}


async def test_the_first_of_very_many_wrong_rows_are_listed_and_the_rest_counted(
    opens: Opens,
) -> None:
    async with opens() as kb:
        report = await kb.add("docs", feed=feed(*({"id": n} for n in range(MOST_ROWS + 50))))
    assert counts(report) == {"failed": MOST_ROWS + 50}
    assert len(report.files) == MOST_ROWS + 1
    assert report.notes == (
        f"'standard input': {MOST_ROWS + 50} rows failed, of which the first {MOST_ROWS} are listed",
    )


async def test_documents_that_say_their_tenant_belong_to_it_and_to_no_other(
    opens: Opens, write: Writes
) -> None:
    files = {
        "a.md": "---\nfirm: acme\n---\nripe pear\n",
        "t.csv": "id,text,firm\n1,ripe fig,acme\n2,ripe plum,other\n3,ripe apple,\n",
    }
    async with opens(spec("docs", tenant_field="firm")) as kb:
        mixed = await kb.add("docs", [write(files)])
        seen = {
            t: sorted(item.document_id for item in (await search(kb, "ripe", tenant=t)).items)
            for t in ("acme", "other")
        }
        named = await kb.add("docs", [write(files) / "t.csv"], tenant="acme")
    assert seen == {"acme": ["a.md", "t.csv#1"], "other": ["t.csv#2"]}
    [progress] = [file.error for file in mixed.files if file.error]
    assert "'t.csv#3' was not added: it has no tenant in 'firm'" in progress
    assert counts(named) == {"unchanged": 1, "failed": 1, "added": 1}
    assert any(
        "it belongs to the tenant 'other', not to 'acme'" in file.error for file in named.files
    )


# --------------------------------------------------------------------------------------------- DOCX


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def docx(*paragraphs: tuple[str, str], title: str = "") -> bytes:
    """A Word document of (style, text) paragraphs, with a table at its end."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    cells = "".join(
        f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in ("size", "price")
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading'
        f' {n}"/></w:style>'
        for n in (1, 2)
    )
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{package}/content-types"><Default Extension="xml"'
            ' ContentType="application/xml"/><Override PartName="/word/document.xml"'
            f' ContentType="{_TYPES}"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1"'
            f' Type="{relations}/officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="r1" Type="{relations}/styles" Target="styles.xml"/></Relationships>'
        ),
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
        "word/document.xml": (
            f'<w:document xmlns:w="{_WORD}"><w:body>{body}'
            f"<w:tbl><w:tr>{cells}</w:tr></w:tbl></w:body></w:document>"
        ),
        "docProps/core.xml": (
            f'<c:coreProperties xmlns:c="{package}/metadata/core-properties" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></c:coreProperties>'
        ),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


async def test_a_word_document_keeps_its_headings(opens: Opens, write: Writes) -> None:
    file = docx(
        ("Heading1", "Guide"),
        ("Heading2", "Install"),
        ("Normal", "Run the installer."),
        ("Heading2", "Remove"),
    )
    async with opens() as kb:
        await kb.add(
            "docs",
            [
                write(
                    {
                        "guide.docx": file,
                        "plain.docx": docx(("Normal", "Just words."), title="Words"),
                    }
                )
            ],
        )
        found = {
            item.title: item.content for item in (await search(kb, "installer size words")).items
        }
    assert found["Guide › Install"] == "# Guide\n\n## Install\n\nRun the installer."
    assert "| size | price |" in found["Guide › Remove"]
    assert found["Words"].startswith("Just words.")


async def test_guesses_and_omissions_in_a_document_are_reported_when_it_is_added(
    opens: Opens, write: Writes
) -> None:
    page = "<p>Die Öffnungszeiten der Bücherei: neun bis fünf</p>".encode("latin-1")
    folder = write({f"{n:02}.html": page + str(n).encode() for n in range(23)})
    async with opens() as kb:
        first, again = [await kb.add("docs", [folder]) for _ in range(2)]
    assert first.notes[0].startswith(
        f"{str(folder / '00.html')!r}: it declares no encoding and was read as "
    )
    assert (len(first.notes), first.notes[-1]) == (21, "3 more such warnings are not listed")
    assert (counts(first), counts(again), again.notes) == ({"added": 23}, {"unchanged": 23}, ())


# -------------------------------------------------------------------------------------- names, cuts


async def test_a_collection_may_be_called_by_the_end_of_its_id(opens: Opens, write: Writes) -> None:
    folder = write({"a.md": "pear"})
    async with opens(
        spec("agents.one.notes"), spec("agents.two.notes"), spec("agents.two.docs")
    ) as kb:
        report = await kb.add("docs", [folder])
        with pytest.raises(
            UsageError,
            match=(
                r"2 collections are called 'notes' \(use one of agents.one.notes,"
                r" agents.two.notes\)"
            ),
        ):
            await kb.add("notes", [folder])
        with pytest.raises(UnknownName, match="no collection 'nots'"):
            await kb.add("nots", [folder])
        assert await kb.remove("docs", ["a.md"]) == ("a.md",)
    assert report.collection == "agents.two.docs"


async def test_every_wrong_id_is_named_and_nothing_is_removed(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.md": "pear", "b.md": "plum"})])
        with pytest.raises(
            UsageError, match=r"no document 'c\.md'.*no document 'd\.md'.*nothing was removed"
        ):
            await kb.remove("docs", ["a.md", "c.md", "d.md"])
        assert await documents(kb) == ["a.md", "b.md"]


async def test_what_is_unchanged_is_taken_off_the_whole_and_is_no_speed(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "pear " * 100, "b.md": "plum " * 100})
    seen: list[tuple[int, int]] = []
    async with opens() as kb:
        await kb.add("docs", [folder])
        write({"b.md": "fig " * 50})
        await kb.add("docs", [folder], progress=lambda done, total, *_: seen.append((done, total)))
    assert seen[-1] == (200, 200)
    assert all(done <= 200 for done, _ in seen)


@pytest.mark.parametrize("type", ["keyword", "integer"])
async def test_a_changed_field_declaration_builds_documents_again(
    opens: Opens, write: Writes, type: FieldType
) -> None:
    folder = write({"a.md": "---\nyear: 2020\n---\npear\n"})
    async with opens(spec("docs", fields={"year": FieldSpec(type="integer")})) as kb:
        await kb.add("docs", [folder])
    async with opens(spec("docs", fields={"year": FieldSpec(type=type, facetable=True)})) as kb:
        report = await kb.add("docs", [folder])
        [item] = (await search(kb, "pear")).items
    assert counts(report) == ({"unchanged": 1} if type == "integer" else {"replaced": 1})
    assert item.data == {"year": 2020 if type == "integer" else "2020"}


# ------------------------------------------------------------------------------------ while it runs


class Stalling(Counting):
    """Embeds so many texts and then no more."""

    MOST = 3 * max(4, os.cpu_count() or 1)

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        if self.embedded >= self.MOST:
            await anyio.sleep_forever()
        return await super().embed_documents(texts)


async def test_the_first_of_many_small_documents_are_reported_and_stored_long_before_the_last(
    opens: Opens, write: Writes
) -> None:
    folder = write({f"{number}.md": f"pear {number}" for number in range(20 * Stalling.MOST)})
    stalling = spec("docs", embedding=EmbeddingSpec(provider="stalling", dimensions=64))
    progress: list[int] = []
    async with (
        opens(stalling, embedders={"stalling": Stalling}) as kb,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(
            partial(
                kb.add, "docs", [folder], progress=lambda done, total, *_: progress.append(done)
            )
        )
        with anyio.fail_after(60):
            while not await documents(kb):
                await anyio.lowlevel.checkpoint()
        assert max(progress) > 0
        tasks.cancel_scope.cancel()


async def test_a_full_disk_is_the_error_of_an_add_also_while_documents_wait_to_be_stored(
    opens: Opens, write: Writes
) -> None:
    folder = write({f"{n}.txt": f"pear {n}" for n in range(200)})
    full = KBStorageSettings(idle_s=20, reserve_mb=1 << 30)
    async with opens(storage=full) as kb:
        for _ in range(3):
            with pytest.raises(StorageError, match="of disk are free"):
                await kb.add("docs", [folder])


async def test_a_text_of_one_endless_line_is_added_in_bounded_memory(
    opens: Opens, write: Writes
) -> None:
    size = 200_000
    folder = write({"a.txt": "pear" * (size // 4), "b.txt": "pear fig " * (size // 9)})
    async with opens() as kb:
        await kb.add("docs", [write({"c.txt": "plum"}) / "c.txt"])  # loads what adding needs
        tracemalloc.start()
        try:
            report = await kb.add("docs", [folder / "a.txt", folder / "b.txt"])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert counts(report) == {"added": 2}
    assert peak < 30 * 2 * size


async def test_five_megabytes_in_one_line_are_added_and_found(opens: Opens, write: Writes) -> None:
    line = f"{'pear fig ' * 300_000}quince {'pear fig ' * 300_000}"
    folder = write({"a.txt": line})
    async with opens(spec("docs", chunk=ChunkSpec())) as kb:
        report = await kb.add("docs", [folder])
        assert counts(report) == {"added": 1}
        [item] = (await search(kb, "quince", limit=1)).items
    assert item.extent is not None
    assert item.content == line[item.extent.start : item.extent.end]
    assert "quince" in item.content


class Clocked(HashEmbedder):
    """Embeds at a steady pace, by a clock of its own: 8,000 characters a second."""

    seconds = 0.0

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        Clocked.seconds += sum(map(len, texts)) / 8_000
        return await super().embed_documents(texts)


async def test_the_time_left_is_right_from_the_first_line_on(opens: Opens, write: Writes) -> None:
    folder = write(
        {f"{n}.md": "\n\n".join(["pear fig plum " * 20] * (1 + n * 7 % 11)) for n in range(160)}
    )
    out = io.StringIO()
    shown: list[tuple[float, float]] = []  # when a line was written, and the seconds left in it
    Clocked.seconds = 0.0
    lines = ProgressLines(Console(file=out), "adding", decimal, now=lambda: Clocked.seconds)

    def progress(done: int, total: int, document: str, passages: int) -> None:
        before = out.tell()
        lines(done, total, document, passages)
        if found := re.search(r"(\d+):(\d+) left", out.getvalue()[before:]):
            shown.append((Clocked.seconds, int(found[1]) * 60 + int(found[2])))

    clocked = spec("docs", embedding=EmbeddingSpec(provider="clocked", dimensions=64))
    async with opens(clocked, embedders={"clocked": Clocked}) as kb:
        await kb.add("docs", [folder], progress=progress)
    assert shown[0][0] < 8
    assert len(shown) > 3
    for at, left in shown:
        # Calls that are under way.
        assert left == pytest.approx(Clocked.seconds - at, rel=0.25, abs=4)
