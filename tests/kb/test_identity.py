"""The id of a document: folders and files with the same relative paths, added in any order and
spelling."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from tests.kb.conftest import Opens, Writes


async def stored(kb: KnowledgeBase) -> dict[str, str]:
    """Return the titles of the documents by their ids."""
    [listing] = await kb.list_collections(["docs"])
    return {each.document: each.title for each in listing.documents}


@pytest.fixture
def folder(write: Writes) -> Path:
    return write(
        {
            "en/returns.md": "# Returns\n\nThirty days.",
            "de/returns.md": "# Rückgabe\n\nDreißig Tage.",
            "other/de/returns.md": "# Retours\n\nTrente jours.",
        }
    )


BOTH = {"returns.md": "Returns", "de/returns.md": "Rückgabe"}


async def test_two_folders_with_the_same_relative_paths_keep_their_documents(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        second = await kb.add("docs", [folder / "de"])
        assert await stored(kb) == BOTH
        [note] = second.notes
        again = [await kb.add("docs", [folder / one]) for one in ("de", "en")]
        assert await stored(kb) == BOTH
    assert "'de/returns.md'" in note
    assert str(folder / "en/returns.md") in note
    assert (second.counts, [each.counts for each in again]) == (
        {"added": 1},
        [{"unchanged": 1}, {"unchanged": 1}],
    )
    assert [each.notes for each in again] == [(), ()]


async def test_two_folders_of_one_add_keep_their_documents_and_ids(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en", folder / "de"])
        assert await stored(kb) == BOTH
        turned = await kb.add("docs", [folder / "de", folder / "en"])
        assert turned.counts == {"unchanged": 2}
        assert await stored(kb) == BOTH


async def test_a_collection_in_which_one_folder_had_replaced_another_gets_both_and_keeps_its_ids(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "de"])  # as stored by a version that replaced the English
        await kb.add("docs", [folder / "en"])
        assert await stored(kb) == {"returns.md": "Rückgabe", "en/returns.md": "Returns"}
        await kb.add("docs", [folder / "en", folder / "de"])
        assert await stored(kb) == {"returns.md": "Rückgabe", "en/returns.md": "Returns"}


async def test_a_third_folder_that_has_no_name_left_is_refused_and_both_files_are_named(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en", folder / "de"])
        report = await kb.add("docs", [folder / "other/de"])
        assert await stored(kb) == BOTH
    [failed] = report.files
    assert failed.outcome == "failed"
    for path in ("other/de/returns.md", "en/returns.md", "de/returns.md"):
        assert str(folder / path) in failed.error
    assert "add the folder that holds all of them" in failed.error


async def test_the_folder_that_holds_both_takes_over_their_documents(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        await kb.add("docs", [folder / "de"])
        await kb.add("docs", [folder])
        whole = await stored(kb)
        narrow = await kb.add("docs", [folder / "en"])
        assert await stored(kb) == whole
    assert list(whole) == ["de/returns.md", "en/returns.md", "other/de/returns.md"]
    assert narrow.counts == {"unchanged": 1}


async def test_a_folder_is_the_same_in_every_spelling(
    opens: Opens, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link").symlink_to(folder / "en", target_is_directory=True)
    monkeypatch.chdir(folder / "de")
    spellings = [Path("../en"), folder / "link", folder / "de/../en", folder / "en/returns.md"]
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        for number, spelling in enumerate(spellings):
            (folder / "en/returns.md").write_text(f"# Returns\n\n{number} days.", encoding="utf-8")
            report = await kb.add("docs", [spelling])
            assert (report.counts, report.notes) == ({"replaced": 1}, ())
        assert await stored(kb) == {"returns.md": "Returns"}
        monkeypatch.chdir(folder / "en")
        assert (await kb.add("docs", [Path()])).counts == {"unchanged": 1}


async def test_what_is_gone_from_one_folder_is_removed_and_the_other_keeps_its_document(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        await kb.add("docs", [folder / "de"])
        (folder / "en/returns.md").unlink()
        await kb.add("docs", [folder / "en"], prune=True)
        assert await stored(kb) == {"de/returns.md": "Rückgabe"}
        await kb.add("docs", [folder / "de"])
        assert await stored(kb) == {"de/returns.md": "Rückgabe"}


async def test_a_folder_that_moved_and_changed_replaces_itself_and_says_so(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        moved = (folder / "en").rename(folder / "english")
        (moved / "returns.md").write_text("# Refunds\n\nForty days.", encoding="utf-8")
        report = await kb.add("docs", [moved])
        assert await stored(kb) == {"returns.md": "Refunds"}
    [note] = report.notes
    assert "no longer exist" in note
    assert str(folder / "en/returns.md") in note


async def test_single_files_of_one_name_and_links_to_one_file_are_documents_of_their_own(
    opens: Opens, folder: Path
) -> None:
    for place in ("en", "de"):
        os.link(folder / "other/de/returns.md", folder / place / "terms.md")
        (folder / place / "price.md").symlink_to(folder / "other/de/returns.md")
    files = [folder / one / name for one in ("en", "de") for name in ("terms.md", "price.md")]
    async with opens() as kb:
        for file in files:
            await kb.add("docs", [file])
        apart = await stored(kb)
        assert (await kb.add("docs", files)).counts == {"unchanged": 4}
    assert list(apart) == ["de/price.md", "de/terms.md", "price.md", "terms.md"]


async def test_rows_of_two_files_of_one_name_keep_apart(opens: Opens, write: Writes) -> None:
    folder = write({"en/t.csv": "id,text\n1,fig\n", "de/t.csv": "id,text\n1,Feige\n2,Apfel\n"})
    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        for _ in range(2):
            await kb.add("docs", [folder / "de"])
            assert list(await stored(kb)) == ["de/t.csv#1", "t.csv#1", "t.csv#2"]
        (folder / "de/t.csv").write_text("id,text\n2,Apfel\n", encoding="utf-8")
        await kb.add("docs", [folder / "de"])
        assert list(await stored(kb)) == ["t.csv#1", "t.csv#2"]


async def test_a_feed_does_not_replace_the_document_of_a_file(opens: Opens, folder: Path) -> None:
    def feed(id: str) -> io.BytesIO:
        return io.BytesIO(json.dumps({"id": id, "text": "from a feed"}).encode())

    async with opens() as kb:
        await kb.add("docs", [folder / "en"])
        report = await kb.add("docs", [], feed=feed("returns.md"))
        assert await stored(kb) == {"returns.md": "Returns"}
        await kb.add("docs", [], feed=feed("de/returns.md"))
        refused = await kb.add("docs", [folder / "de"])
    failed = [each.error for each in (*report.files, *refused.files) if each.outcome == "failed"]
    assert str(folder / "en/returns.md") in failed[0]
    assert "give it another id" in failed[0]
    assert "standard input" in failed[1]


async def test_an_upload_replaces_an_upload_of_its_name_and_no_other_document(
    opens: Opens, folder: Path
) -> None:
    async with opens() as kb:
        added = [await kb.add("docs", [folder / "de"], uploaded=True, prune=False)]
        (folder / "other/de/sent.md").write_text("# Sent\n\nOnce.")
        added += [await kb.add("docs", [folder / "other/de"], uploaded=True, prune=False)]
        assert await stored(kb) == {"returns.md": "Retours", "sent.md": "Sent"}
        beside = await kb.add("docs", [folder / "en"])
        assert await stored(kb) == {
            "returns.md": "Retours",
            "sent.md": "Sent",
            "en/returns.md": "Returns",
        }
        await kb.remove("docs", ["returns.md"])
        await kb.add("docs", [folder / "de/returns.md"])
        refused = await kb.add("docs", [folder / "other/de"], uploaded=True, prune=False)
    assert [each.counts for each in added] == [{"added": 1}, {"replaced": 1, "added": 1}]
    assert beside.counts == {"added": 1}
    [error] = [each.error for each in refused.files if each.outcome == "failed"]
    assert "under another name" in error
    assert str(folder) not in error
