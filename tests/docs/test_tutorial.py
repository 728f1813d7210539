"""The tutorial, the page on conversations and the README's first program do what they print: files
are written, commands are run, and each line of shown output occurs in their output, in order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.parts.tutorial import BLOCK, follow, run

ROOT = Path(__file__).parents[2]


def test_everything_that_the_tutorial_shows_happens(tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    assert follow(page, tmp_path) >= 8


@pytest.mark.parametrize("toolkit", ["documents", "learning", "memory"])
def test_everything_that_the_page_of_a_toolkit_shows_happens(toolkit: str, tmp_path: Path) -> None:
    page = (ROOT / f"docs/toolkits/{toolkit}.md").read_text(encoding="utf-8")
    assert follow(page, tmp_path) >= 1


def test_the_first_program_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Hello")[2]
    program = next(body for language, _, body in BLOCK.findall(page) if language == "python")
    (tmp_path / "hello.py").write_text(program, encoding="utf-8")
    printed = run("python hello.py", tmp_path)
    shown = page.split("```")[3].strip()
    assert " ".join(shown.split()) in " ".join(printed.split())


def test_everything_that_the_page_on_conversations_shows_happens(tmp_path: Path) -> None:
    page = (ROOT / "docs/chats.md").read_text(encoding="utf-8")
    assert follow(page, tmp_path) >= 8


@pytest.mark.parametrize("target", ["demo", ".venv/.demo", ".venv/.installed", "docs", "lint"])
def test_the_commands_of_make_are_valid_shell(target: str) -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    checked = subprocess.run(
        ["/bin/sh", "-n"], input=shown.stdout, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
