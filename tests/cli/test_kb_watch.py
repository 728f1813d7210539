"""`groundhook kb watch` as a child process: it follows files that are saved, broken, mended and
removed, and ends when it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook

Line = dict[str, Any]


def outcomes(line: Line) -> set[tuple[str, str]]:
    if line.get("type") == "watching":
        return {("", "watching")}
    return {(line["document"], each) for each in (line["outcome"], *line["rows"])}


@pytest.fixture
def shop(shop: Path) -> Path:
    """The shop with a collection, whose worker ends soon after the test."""
    (shop / "kb").mkdir()
    spec = {"name": "Notes", "embedding": {"provider": "hash", "dimensions": 64}}
    (shop / "kb/notes.kb.yao").write_text(json.dumps(spec), encoding="utf-8")
    (shop / "agent/agent.yml").write_text("kb_storage: {idle_s: 3}\n", encoding="utf-8")
    (shop / "docs/drafts").mkdir(parents=True)
    (shop / "docs/pens.md").write_text("# Pens\n\nA pen is filled with ink.\n", encoding="utf-8")
    return shop


def test_saved_files_are_added_removed_ones_removed_and_an_interrupt_ends_it(
    groundhook: Groundhook, shop: Path
) -> None:
    docs = shop / "docs"
    command = [str(COMMAND), "kb", "watch", "notes", "docs", "--exclude", "drafts", "--json"]
    with subprocess.Popen(
        command,
        cwd=shop,
        env={**ENVIRONMENT, "HOME": str(shop)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as child:

        def until(*wanted: tuple[str, str]) -> list[Line]:
            """The lines up to the last of these outcomes of documents; the test's own deadline ends
            a wait in vain."""
            assert child.stdout is not None
            lines, missing = [], set(wanted)
            for text in child.stdout:
                lines.append(json.loads(text))
                missing -= outcomes(lines[-1])
                if not missing:
                    return lines
            raise AssertionError(child.stderr and child.stderr.read())

        try:
            assert len(until(("", "watching"))) == 2
            # In a folder that is made now, in one that is excluded, in place of a file, and half of
            # a file, as of one that is being written.
            (docs / "more").mkdir()
            (docs / "more/paper.md").write_text("Paper is made of pulp.", encoding="utf-8")
            (docs / "drafts/idea.md").write_text("Not yet.", encoding="utf-8")
            (docs / "pens.md").write_text("A pencil has no ink.", encoding="utf-8")
            (docs / "rows.jsonl").write_text('{"id": "a", "text": "Ink', encoding="utf-8")
            wanted = ("more/paper.md", "added"), ("pens.md", "replaced"), ("rows.jsonl", "failed")
            assert not any("idea.md" in line.get("path", "") for line in until(*wanted))
            (docs / "rows.jsonl").write_text('{"id": "a", "text": "Ink dries."}', encoding="utf-8")
            (docs / "more/paper.md").unlink()
            until(("rows.jsonl", "added"), ("more/paper.md", "removed"))
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
            assert (child.returncode, err) == (0, "")
        finally:
            child.kill()
    [listed] = groundhook("kb", "list", "notes", "--json").lines
    assert {each["document"] for each in listed["documents"]} == {"pens.md", "rows.jsonl#a"}


def test_standard_input_cannot_be_watched(groundhook: Groundhook, shop: Path) -> None:
    refused = groundhook("kb", "watch", "notes", "-")
    assert refused.code == 2
    assert "standard input cannot be watched" in refused.err
