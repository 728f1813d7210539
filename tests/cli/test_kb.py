"""`groundhook kb` from the shell: add, list, search, replace, remove."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook


@pytest.fixture
def shop(shop: Path) -> Path:
    """The shop with a collection, whose worker ends soon after the test."""
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text('{"name": "Notes"}', encoding="utf-8")
    (shop / "agent/agent.yml").write_text("connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8")
    docs = shop / "docs"
    docs.mkdir()
    (docs / "pens.md").write_text("# Pens\n\nA fountain pen is filled with ink.\n", encoding="utf-8")
    (docs / "paper.txt").write_text("Paper is made of wood pulp.\n", encoding="utf-8")
    (docs / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    return shop


def test_documents_are_added_listed_found_and_removed(groundhook: Groundhook, shop: Path) -> None:
    added = groundhook("kb", "add", "notes", "docs")
    assert (added.code, added.err) == (0, "")
    assert added.out.startswith("Added 2 documents to notes (2 chunks), 1 skipped (of a kind that cannot be read: photo.jpg) in ")

    listed = groundhook("kb", "list")
    assert listed.out.splitlines()[-1].split()[:4] == ["notes", "Notes", "2", "2"]
    assert {line["document"] for line in groundhook("kb", "list", "--json").lines[0]["documents"]} == {"pens.md", "paper.txt"}
    assert "pens.md" in groundhook("kb", "list", "notes").out

    found = groundhook("search", "kb", "How is a fountain pen filled?", "--collection", "notes")
    assert found.code == 0
    assert "notes / pens.md" in found.out

    again = groundhook("kb", "add", "notes", "docs/pens.md", "--json")
    assert [(line["document"], line["outcome"]) for line in again.lines] == [("pens.md", "unchanged")]

    removed = groundhook("kb", "remove", "notes", "pens.md")
    assert (removed.code, removed.out) == (0, "Removed 1 document from notes.\n")
    assert groundhook("kb", "remove", "notes", "pens.md").code == 1


def test_a_feed_is_added_filtered_counted_and_removed_as_a_whole(groundhook: Groundhook, shop: Path) -> None:
    (shop / "kb/notes.kb.yao").unlink()
    folder = shop / "assistants/shop/kb"
    folder.mkdir()
    declared = '{"embedding": {"provider": "hash"}, "fields": {"year": {"type": "integer", "facetable": true}}}'
    (folder / "feed.kb.yao").write_text(declared, encoding="utf-8")
    rows = (
        '[{"id": "a", "content": "ink", "year": 2020}, {"id": "b", "content": "ink", "year": "soon"}, {"id": "c", "text": "ink"}]'
    )
    added = groundhook("kb", "add", "feed", "-", stdin=rows)
    assert added.code == 1
    assert added.out.startswith("Added 2 documents to agents.shop.feed (2 chunks), 1 failed in ")
    assert "error: standard input:1: was not added: 'year' should be a whole number, not 'soon'" in added.err

    asked = ("search", "kb", "ink", "--collection", "feed", "--threshold", "0")
    found = groundhook(*asked, "--filter", '{"year": {"gte": 2020}}', "--facet", "year")
    assert "1 result from" in found.out
    assert "agents.shop.feed / a" in found.out
    assert found.out.splitlines()[-1] == "year: 2020 1"
    assert "no filterable field 'yaer' (did you mean 'year'?)" in groundhook(*asked, "--filter", '{"yaer": 1}').err
    assert groundhook("kb", "remove", "feed", "--all").out == "Removed 2 documents from feed.\n"


def test_a_file_that_cannot_be_added_is_told_and_the_others_are_there(groundhook: Groundhook, shop: Path) -> None:
    (shop / "docs/empty.md").write_text("", encoding="utf-8")
    (shop / "docs/broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 1
    errors = ran.err.splitlines()
    assert len(errors) == 2
    assert all(line.startswith("error: ") for line in errors)
    assert "broken.pdf" in ran.err
    assert "empty.md" in ran.err
    assert "Added 2 documents to notes" in ran.out
    assert "2 failed" in ran.out


def test_a_path_that_is_not_there_is_told(groundhook: Groundhook) -> None:
    ran = groundhook("kb", "add", "notes", "nowhere.md")
    assert ran.code == 1
    assert "nowhere.md" in ran.err


def test_ctrl_c_in_the_middle_of_an_add_leaves_what_can_be_added_again(groundhook: Groundhook, shop: Path) -> None:
    for number in range(200):
        text = "\n\n".join(f"# Part {part}\n\n{'Ink and paper and pens. ' * 60}" for part in range(5))
        (shop / f"docs/book{number:03}.md").write_text(f"{text}\n{number}\n", encoding="utf-8")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, "kb", "add", "notes", "docs"],
        cwd=shop,
        env=ENVIRONMENT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"book" not in shown:  # the progress bar names the document that is under way
        shown += os.read(ours, 65536)
    os.killpg(child.pid, signal.SIGINT)
    while b"stopping" not in shown:  # at once, whatever is still being computed
        shown += os.read(ours, 65536)
    with suppress(OSError):  # which a terminal says that nobody writes to any more
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    assert child.wait(15) == 130
    assert b"error:\x1b[0m interrupted; what was added stays" in shown
    assert b"Traceback" not in shown
    listed = groundhook("kb", "list", "--json").lines[0]["documents"]
    for stored in listed:
        assert groundhook("kb", "add", "notes", f"docs/{stored['document']}", "--json").lines[0]["outcome"] == "unchanged"
        break
    assert len(listed) < 202
