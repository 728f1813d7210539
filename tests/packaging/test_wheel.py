"""What a user installs: it holds every file, and works in a folder that has packages named like ours."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import NOT_OURS, ROOT, SOURCES, Built, run

pytestmark = pytest.mark.packaging

ASYNC = """\
import anyio
import handlers
import hooks

from groundhook import Host, Identity, SearchRequest, SearchResult, open_host


async def answer(host: Host, question: str) -> str:
    async with host.stream("tea", question, identity=Identity(user_id="u1")) as events:
        async for event in events:
            if event.type == "stream_end":
                return event.content
    return ""


async def main() -> None:
    async with open_host(".") as host:
        found: SearchResult = await host.search(
            SearchRequest(type="kb", query="How long does sencha steep?", collections=["agents.tea.tea"])
        )
        print(found.error, [item.title for item in found.items])
        print(await answer(host, "How do I add documents?"))
    print(hooks.OWNER, handlers.OWNER)


if __name__ == "__main__":
    anyio.run(main)
"""
SYNC = """\
from pathlib import Path

from groundhook import AddReport, Problem, Swap, for_readers
from groundhook.sync import open_host

with open_host(".") as host:
    added: AddReport = host.add_documents("agents.tea.tea", [Path("notes.md")])
    print(sorted(added.counts.items()), [file.error for file in added.files])
    with host.stream("tea", "How long does sencha steep?") as events:
        shown = [event for event in map(for_readers, events) if event is not None]
    last = shown[-1]
    if last.type == "stream_end":
        print(last.content)
    problems: list[Problem] = host.check()
    swap: Swap = host.reload()
    print([str(problem) for problem in problems], swap.assistants)
"""
NOTES = "# Sencha\n\nSencha steeps for two minutes.\n"
MISTAKES = """\
from groundhook import open_hots
from groundhook.sync import open_host

with open_host(".") as host:
    host.assistants().nothing
    host.stream(7, "q")
"""


def test_the_wheel_that_is_built_from_the_sdist_holds_every_file(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        held = {name for name in wheel.namelist() if not name.split("/")[0].endswith(".dist-info")}
    there = set()
    for name in SOURCES:
        base, prefix = (ROOT / "src", "") if name == "src" else (ROOT / name, f"groundhook/{name}/")
        for path in base.rglob("*"):
            inside = path.relative_to(base)
            if path.is_file() and not any(NOT_OURS("", list(inside.parts))):
                there.add(prefix + inside.as_posix())
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert held == there | {f"groundhook/{page}" for page in pages if "/plugins/" not in page}


def test_the_commands_run_among_packages_of_the_same_names(python: Path, folder: Path) -> None:
    command = [python.parent / "groundhook"]
    run([*command, "new", "assistant", "tea"], folder)
    assert "No mistakes" in run([*command, "check"], folder)
    added = run([*command, "kb", "add", "agents.tea.tea", "assistants/tea/docs"], folder)
    assert "Added 1 document" in added
    assert "#ref:" in run([*command, "chat", "tea", "How do I add documents?"], folder)
    assert "2 passed" in run([*command, "test"], folder)
    assert "tea" in run([python, "-m", "groundhook", "config", "explain", "tea"], folder)
    assert "# Over HTTP" in run([*command, "docs", "http"], folder)
    assert not (folder / "imported.txt").exists()


def test_a_program_with_packages_of_the_same_names_runs(python: Path, folder: Path) -> None:
    run([python.parent / "groundhook", "new", "assistant", "tea"], folder)
    (folder / "notes.md").write_text(NOTES, encoding="utf-8")
    (folder / "scripted.py").write_text(SYNC, encoding="utf-8")
    counts, *content, last = run([python, "scripted.py"], folder).splitlines()
    assert counts == "[('added', 1)] ['']"
    assert "two minutes" in "\n".join(content)
    assert last == "[] ('tea',)"
    (folder / "program.py").write_text(ASYNC, encoding="utf-8")
    found, *content, owner = run([python, "program.py"], folder).splitlines()
    assert found == "None ['Sencha']"
    assert content
    assert owner == "the user the user"
    imported = (folder / "imported.txt").read_text(encoding="utf-8").split()
    assert sorted(imported) == ["handlers", "hooks"]


def test_mypy_sees_every_type_and_no_any(python: Path, folder: Path) -> None:
    (folder / "program.py").write_text(ASYNC, encoding="utf-8")
    (folder / "scripted.py").write_text(SYNC, encoding="utf-8")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    mypy = [python, "-m", "mypy", "--strict", "--disallow-any-expr", "--no-error-summary"]
    result = run([*mypy, "program.py", "scripted.py", "mistakes.py"], folder, code=1)
    wrong = [line for line in result.splitlines() if ": error: " in line]
    assert [line.split(":")[:2] for line in wrong] == [["mistakes.py", n] for n in ("1", "5", "6")]


def test_pyright_sees_every_type_and_no_any(python: Path, folder: Path) -> None:
    pytest.importorskip("basedpyright", reason="make test-packaging installs it")
    (folder / "program.py").write_text(ASYNC, encoding="utf-8")
    (folder / "scripted.py").write_text(SYNC, encoding="utf-8")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    rules = {"typeCheckingMode": "strict", "reportAny": "error", "reportUnknownMemberType": "error"}
    (folder / "pyrightconfig.json").write_text(json.dumps(rules), encoding="utf-8")
    check = [python, "-m", "basedpyright", "--outputjson", "--pythonpath", python]
    result = json.loads(run([*check, "program.py", "scripted.py", "mistakes.py"], folder, code=1))
    wrong = [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["rule"])
        for one in result["generalDiagnostics"]
    ]
    assert {name for name, *_ in wrong} == {"mistakes.py"}, wrong
    assert {line for _, line, _ in wrong} == {1, 5, 6}
