"""`groundhook kb rebuild`, `export` and `import` from the shell."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Groundhook

WORDS = '{"name": "Notes", "embedding": {"provider": "hash"}}'
OTHER = '{"name": "Notes", "embedding": {"provider": "hash", "dimensions": 64}}'


@pytest.fixture
def shop(shop: Path) -> Path:
    """The shop with a filled collection, whose worker ends soon after the test."""
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text(WORDS, encoding="utf-8")
    (shop / "kb/copy.kb.yao").write_text(OTHER, encoding="utf-8")
    (shop / "kb/piped.kb.yao").write_text(WORDS, encoding="utf-8")
    (shop / "agent/agent.yml").write_text(
        "connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8"
    )
    (shop / "docs").mkdir()
    (shop / "docs/pens.md").write_text(
        "# Pens\n\nA fountain pen is filled with ink, not with thé.\n", encoding="utf-8"
    )
    return shop


def test_a_changed_embedding_is_found_refused_and_rebuilt(
    groundhook: Groundhook, shop: Path
) -> None:
    assert groundhook("kb", "add", "notes", "docs").code == 0
    (shop / "kb/notes.kb.yao").write_text(OTHER, encoding="utf-8")
    for arguments in (
        ("check",),
        ("kb", "add", "notes", "docs"),
        ("search", "kb", "pen", "--collection", "notes"),
    ):
        ran = groundhook(*arguments)
        assert ran.code == 1
        assert "groundhook kb rebuild notes" in ran.err
    rebuilt = groundhook("kb", "rebuild", "notes")
    assert (rebuilt.code, rebuilt.problems) == (0, [])
    assert rebuilt.out.startswith("Rebuilt notes: 1 document (1 chunk) in ")
    assert groundhook("check").code == 0
    assert (
        "notes / pens.md" in groundhook("search", "kb", "fountain pen", "--collection", "notes").out
    )


def test_a_rebuild_that_goes_on_tells_of_the_whole_and_of_what_was_done_before(
    groundhook: Groundhook, shop: Path
) -> None:
    # What a rebuild that was stopped leaves.
    (shop / "kb/notes~new.kb.yao").write_text(OTHER, encoding="utf-8")
    assert groundhook("kb", "add", "notes~new", "docs").code == 0
    (shop / "kb/notes~new.kb.yao").unlink()
    (shop / "docs/inks.md").write_text("# Inks\n\nInk is blue.\n", encoding="utf-8")
    assert "Added 2 documents" in groundhook("kb", "add", "notes", "docs").out
    (shop / "kb/notes.kb.yao").write_text(OTHER, encoding="utf-8")
    rebuilt = groundhook("kb", "rebuild", "notes").out
    output = (
        "Rebuilt notes: 2 documents (2 chunks); 1 document (1 chunk) of them in an"
        " earlier run, the rest in "
    )
    assert rebuilt.startswith(output)


def test_a_rebuild_keeps_the_chunks_and_says_so_and_an_add_cuts_again(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "docs/pens.md").write_text(
        "# Pens\n\n" + "A fountain pen is filled with ink. " * 40, encoding="utf-8"
    )
    assert "(1 chunk)" in groundhook("kb", "add", "notes", "docs").out
    (shop / "kb/notes.kb.yao").write_text(
        WORDS[:-1] + ', "chunk": {"size": 64, "overlap": 0}}', encoding="utf-8"
    )
    rebuilt = groundhook("kb", "rebuild", "notes")
    assert rebuilt.out.startswith("Rebuilt notes: 1 document (1 chunk) in ")
    assert (
        "Chunks have not changed: after a change of `chunk`, add the documents again" in rebuilt.out
    )
    again = groundhook("kb", "add", "notes", "docs", "--json")
    assert again.lines[0]["outcome"] == "replaced"
    assert again.lines[0]["chunks"] > 1


def test_an_exported_collection_is_imported(groundhook: Groundhook, shop: Path) -> None:
    groundhook("kb", "add", "notes", "docs")
    exported = groundhook("kb", "export", "notes", "notes.jsonl.gz")
    assert exported.out.startswith("Exported 1 document (1 chunk) of notes in ")
    with gzip.open(shop / "notes.jsonl.gz", "rt") as lines:
        assert len(lines.readlines()) == 4
    refused = groundhook("kb", "import", "copy", "notes.jsonl.gz")
    assert refused.code == 1
    assert "--embed" in refused.err
    imported = groundhook("kb", "import", "copy", "notes.jsonl.gz", "--embed", "--json")
    written = {
        "collection": "copy",
        "documents": 1,
        "passages": 1,
        "unchanged": 0,
        "unchanged_passages": 0,
    }
    assert imported.lines == [written]
    streamed = groundhook("kb", "export", "notes", "-")
    assert streamed.out.count("\n") == 4
    elsewhere = {"PYTHONIOENCODING": "latin-1"}
    assert groundhook("kb", "export", "notes", "-", environment=elsewhere).out == streamed.out
    piped = groundhook(
        "kb", "import", "piped", "-", "--embed", "--json", environment=elsewhere, stdin=streamed.out
    )
    assert (piped.code, piped.lines[0]["passages"]) == (0, 1)
    assert (
        groundhook("kb", "export", "piped", "-").out.count("thé") == streamed.out.count("thé") > 0
    )
    assert not list(shop.glob("*.part"))


def test_a_compressed_export_is_imported_whatever_its_name_and_from_a_pipe(
    groundhook: Groundhook, shop: Path
) -> None:
    groundhook("kb", "add", "notes", "docs")
    groundhook("kb", "export", "notes", "notes.jsonl.gz")
    whole = (shop / "notes.jsonl.gz").read_bytes()
    (shop / "compressed.jsonl").write_bytes(whole)
    (shop / "plain.gz").write_bytes(b"\xef\xbb\xbf" + gzip.decompress(whole))  # with a mark
    for name in ("compressed.jsonl", "plain.gz"):
        groundhook("kb", "remove", "piped", "--all")
        imported = groundhook("kb", "import", "piped", name)
        assert imported.out.startswith("Imported 1 document (1 chunk) into piped in ")
    groundhook("kb", "remove", "piped", "--all")
    with (shop / "notes.jsonl.gz").open("rb") as exported:
        done = subprocess.run(
            [COMMAND, "kb", "import", "piped", "-"],
            stdin=exported,
            capture_output=True,
            text=True,
            check=True,
            cwd=shop,
        )
    assert done.stdout.startswith("Imported 1 document (1 chunk) into piped in ")


def test_an_export_replaces_a_file_only_when_it_is_requested(
    groundhook: Groundhook, shop: Path
) -> None:
    groundhook("kb", "add", "notes", "docs")
    (shop / "notes.jsonl").write_text("precious", encoding="utf-8")
    refused = groundhook("kb", "export", "notes", "notes.jsonl")
    assert refused.code == 2
    assert "'notes.jsonl' exists and was not changed: --overwrite replaces it" in refused.err
    assert (shop / "notes.jsonl").read_text(encoding="utf-8") == "precious"
    assert groundhook("kb", "export", "notes", "notes.jsonl", "--overwrite").code == 0
    assert (shop / "notes.jsonl").read_text(encoding="utf-8").endswith('{"end": 1}\n')


def test_an_export_to_what_is_no_file_replaces_nothing(groundhook: Groundhook, shop: Path) -> None:
    groundhook("kb", "add", "notes", "docs")
    os.mkfifo(shop / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=shop, stdout=subprocess.PIPE, text=True) as reader:
        assert groundhook("kb", "export", "notes", "pipe").code == 0
        read, _ = reader.communicate(timeout=60)
    assert [json.loads(line) for line in read.splitlines()][-1] == {"end": 1}
    assert (shop / "pipe").is_fifo()
    (shop / "latest.jsonl").symlink_to("dated.jsonl")
    assert groundhook("kb", "export", "notes", "latest.jsonl").code == 0
    assert (shop / "latest.jsonl").is_symlink()
    assert (shop / "dated.jsonl").read_text(encoding="utf-8") == read


def test_a_damaged_compressed_file_is_reported(groundhook: Groundhook, shop: Path) -> None:
    groundhook("kb", "add", "notes", "docs")
    groundhook("kb", "export", "notes", "notes.jsonl.gz")
    whole = (shop / "notes.jsonl.gz").read_bytes()
    for at in (1, len(whole) // 2, len(whole) * 2 // 3, len(whole) - 6):
        (shop / "damaged.gz").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        imported = groundhook("kb", "import", "piped", "damaged.gz")
        assert (imported.code, imported.err.count("\n")) == (1, 1)
        assert imported.err.startswith("error: 'damaged.gz'")


def test_a_collection_is_named_by_its_whole_id_whatever_was_typed(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "assistants/shop/kb").mkdir()
    (shop / "assistants/shop/kb/texts.kb.yao").write_text(WORDS, encoding="utf-8")
    lines = [
        groundhook("kb", *arguments).out.splitlines()[0]
        for arguments in (
            ("add", "texts", "docs"),
            ("rebuild", "texts"),
            ("export", "texts", "texts.jsonl"),
            ("import", "texts", "texts.jsonl"),
            ("remove", "texts", "pens.md"),
        )
    ]
    assert [line.split()[0] for line in lines] == [
        "Added",
        "Rebuilt",
        "Exported",
        "Imported",
        "Removed",
    ]
    assert all("agents.shop.texts" in line for line in lines)
