"""Files of strangers are parsed apart: what a hostile one costs, and whom."""

from __future__ import annotations

import pytest

from groundhook.core.types.collection_spec import FieldSpec
from groundhook.handlers.kb.ingest import parse
from tests.kb.conftest import Opens, Writes, search, spec

ENDLESS = b"<!--" * 500_000  # its parser looks for the end of each, from each


async def test_a_file_that_takes_too_long_is_named_and_the_others_are_added(
    opens: Opens, write: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "MAX_FILE_S", 3.0)
    monkeypatch.setattr(parse, "MAX_MEGABYTE_S", 0.0)
    folder = write({"a.html": b"<p>pears" + b" " * 3000, "b.html": ENDLESS, "c.md": "plums"})
    async with opens() as kb:
        report = await kb.add("docs", [folder])
        hit, *_ = (await search(kb, "pears")).items
    errors = {file.document: file.error for file in report.files if file.error}
    assert list(errors) == ["b.html"]
    assert str(folder / "b.html") in errors["b.html"]
    assert "took longer than 3 s" in errors["b.html"]
    assert report.counts["added"] == 2
    assert hit.document_id == "a.html"


async def test_a_file_that_is_damaged_in_another_process_is_an_error_of_its_own(
    opens: Opens, write: Writes
) -> None:
    folder = write({"a.html": b"<p>pears" + b" " * 3000, "b.pdf": b"%PDF-1.7 no more"})
    async with opens() as kb:
        report = await kb.add("docs", [folder])
    [error] = [file.error for file in report.files if file.error]
    assert "b.pdf" in error
    assert report.counts["added"] == 1


@pytest.mark.parametrize("words", [1, 800])  # parsed here, and in another process
async def test_front_matter_keeps_its_values_wherever_a_file_is_parsed(
    words: int, opens: Opens, write: Writes
) -> None:
    fields = {
        "due": FieldSpec(type="datetime"),
        "tags": FieldSpec(),
        "size": FieldSpec(type="float"),
    }
    front = "---\ntitle: Pears\ndue: 2024-05-01\ntags: [a, b]\nsize: 1.5\n---\n"
    folder = write({"a.md": front + "ripe " * words})
    async with opens(spec("docs", fields=fields)) as kb:
        report = await kb.add("docs", [folder])
        hit, *_ = (await search(kb, "ripe")).items
    assert not report.failed
    assert hit.title == "Pears"
    assert hit.data == {"due": "2024-05-01T00:00:00Z", "tags": ["a", "b"], "size": 1.5}


async def test_front_matter_with_a_template_is_read_without_its_value(
    opens: Opens, write: Writes
) -> None:
    written = (
        "---\ntitle: {{ page.title }}\ntag: {% if it's %}x{% endif %}\n---\n# Pears\n\nRipe.\n"
    )
    folder = write({"a.md": written})
    async with opens() as kb:
        await kb.add("docs", [folder])
        [hit] = (await search(kb, "pears")).items
    assert (hit.title, hit.content) == ("Pears", "# Pears\n\nRipe.")


async def test_files_and_folders_that_are_excluded_by_name_or_path_are_omitted(
    opens: Opens, write: Writes
) -> None:
    names = ["a.md", "b.tmp.md", "old/c.md", "docs/old/d.md", "docs/drafts/e.md", "docs/f.md"]
    folder = write(dict.fromkeys(names, "pears"))
    async with opens() as kb:
        before = await kb.add("docs", [folder])
        after = await kb.add("docs", [folder], exclude=["*.tmp.md", "old", "docs/drafts/*"])
        [listing] = await kb.list_collections(["docs"])
    assert before.counts["added"] == len(names)
    assert after.counts["removed"] == 4
    assert [stored.document for stored in listing.documents] == ["a.md", "docs/f.md"]
