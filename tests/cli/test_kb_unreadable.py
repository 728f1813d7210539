"""`groundhook kb add` of folders in which not everything can be read: every such file is reported, and
nothing is taken for gone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook, Ran

# Root may read all files; without these capabilities permissions apply to it too.
PLAIN = [
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
]


@pytest.fixture
def docs(shop: Path) -> Path:
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text(
        json.dumps({"name": "Notes", "embedding": {"provider": "hash", "dimensions": 64}}),
        encoding="utf-8",
    )
    (shop / "agent/agent.yml").write_text(
        "connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8"
    )
    docs = shop / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "pens.md").write_text("A fountain pen is filled with ink.\n", encoding="utf-8")
    (docs / "deep/paper.md").write_text("Paper is made of wood pulp.\n", encoding="utf-8")
    (docs / "deep/prices.csv").write_text("id,text\n1,a pen costs two\n", encoding="utf-8")
    return docs


def add_as_anybody(app: Path, *arguments: str) -> Ran:
    prefix = PLAIN if os.geteuid() == 0 else []
    command = [*prefix, str(COMMAND), "kb", "add", "notes", *arguments]
    environment = {**ENVIRONMENT, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = subprocess.run(
        command, cwd=app, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def listed(groundhook: Groundhook) -> list[str]:
    return [
        each["document"]
        for each in groundhook("kb", "list", "notes", "--json").lines[0]["documents"]
    ]


@pytest.mark.parametrize("mode", [0o000, 0o444], ids=["cannot be listed", "cannot be entered"])
@pytest.mark.parametrize("prune", ["", "--prune"])
def test_documents_of_a_folder_that_cannot_be_read_now_stay(
    groundhook: Groundhook, shop: Path, docs: Path, mode: int, prune: str
) -> None:
    assert groundhook("kb", "add", "notes", "docs").code == 0
    (docs / "deep").chmod(mode)
    try:
        added = add_as_anybody(shop, *filter(None, ["docs", prune]))
    finally:
        (docs / "deep").chmod(0o755)
    assert added.code == 1
    assert "'docs/deep" in added.err
    assert "cannot be read: Permission denied" in added.err
    assert listed(groundhook) == ["deep/paper.md", "deep/prices.csv#1", "pens.md"]


def test_a_file_in_an_unreadable_folder_is_reported(
    groundhook: Groundhook, shop: Path, docs: Path
) -> None:
    (docs / "deep").chmod(0)
    try:
        added = add_as_anybody(shop, "docs/deep/paper.md")
    finally:
        (docs / "deep").chmod(0o755)
    assert added.code == 1
    assert added.err == "error: 'docs/deep/paper.md' cannot be read: Permission denied\n"


def test_a_pipe_and_a_dangling_link_are_reported_without_waiting(
    groundhook: Groundhook, docs: Path
) -> None:
    os.mkfifo(docs / "pipe.md")
    (docs / "gone.md").symlink_to("nowhere.md")
    for paths in (["docs"], ["docs/pipe.md", "docs/gone.md"]):
        added = groundhook("kb", "add", "notes", *paths)
        assert added.code == 1
        assert "error: 'docs/gone.md' cannot be read: No such file or directory\n" in added.err
        assert (
            "error: 'docs/pipe.md' was not added: it is a pipe or a device, not a file" in added.err
        )
    assert listed(groundhook) == ["deep/paper.md", "deep/prices.csv#1", "pens.md"]


def test_links_to_folders_are_reported_and_not_followed(groundhook: Groundhook, docs: Path) -> None:
    (docs / "again").symlink_to("deep")
    (docs / "round").symlink_to("..")
    added = groundhook("kb", "add", "notes", "docs")
    assert added.code == 0
    assert "links to folders are not followed: 'again', 'round' (name those folders" in added.err
    assert listed(groundhook) == ["deep/paper.md", "deep/prices.csv#1", "pens.md"]


def test_a_folder_is_the_same_whichever_way_it_is_named(
    groundhook: Groundhook, shop: Path, docs: Path
) -> None:
    assert groundhook("kb", "add", "notes", "assistants/../docs").code == 0
    (docs / "deep/paper.md").unlink()
    again = groundhook("kb", "add", "notes", "docs")
    assert again.out.startswith("Added 0 documents to notes (0 chunks), 2 unchanged, 1 removed in ")
    found = groundhook("search", "kb", "fountain pen", "--collection", "notes", "--json").lines[-1]
    assert found["items"][0]["url"] == (docs / "pens.md").as_uri()
