"""An app's folder that holds modules named like ours, like those of our dependencies and like
Python's own: no command runs one of them, in no process."""

from __future__ import annotations

import ast
import json
import re
import signal
import stat
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from groundhook import open_host
from tests.cli.conftest import COMMAND, ENVIRONMENT, run_in
from tests.conftest import MakeApp
from tests.parts.product import ROOT, parsed

OURS = (
    "groundhook",
    "core",
    "toolkits",
    "host",
    "hooks",
    "handlers",
    "rerankers",
    "agent",
    "tests",
)
AT_START = ("sitecustomize", "usercustomize")
PLANTED = """\
with open({diary!r}, "a", encoding="utf-8") as diary:
    diary.write(__name__ + "\\n")
"""
HOOK = "function Create(ctx: any) { ctx.search.KB('pens'); return { metadata: { version: 1 } }; }\n"


@cache
def dependencies() -> set[str]:
    return {name for name in packages_distributions() if name.isidentifier()}


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    """What planted modules have written: nothing, if none has run."""
    return tmp_path / "diary"


@pytest.fixture
def app(make_app: MakeApp, diary: Path) -> Path:
    planted = PLANTED.format(diary=str(diary))
    names = {*AT_START, *dependencies(), *sys.stdlib_module_names} - {*OURS}
    package = {
        "connector": "extractive",
        "kb": {"collections": ["notes"]},
        "db": {"models": ["pen"]},
    }
    columns = [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}]
    model = {"name": "Pen", "table": {"name": "pen"}, "columns": columns}
    app = make_app(
        {
            **{f"{name}/__init__.py": planted for name in OURS},
            "hooks/worker.py": planted,
            "groundhook/host/cli/main.py": planted,
            "agent/agent.yml": "kb_storage:\n  idle_s: 1\n",
            "kb/notes.kb.yao": '{"embedding": {"provider": "hash"}}',
            "models/pen.mod.yao": json.dumps({**model, "values": [{"name": "red"}]}),
            "assistants/pens/package.yao": json.dumps(package),
            "assistants/pens/index.ts": HOOK,
            "docs/pens.md": "# Pens\n\nA fountain pen is filled with ink.\n",
            "docs/more.html": "<title>More</title><p>A ball pen is not filled at all.</p>",
        }
    )
    for name in names:
        (app / f"{name}.py").hardlink_to(app / "hooks/worker.py")
    return app


def test_no_command_runs_a_module_of_the_folder_it_works_in(app: Path, diary: Path) -> None:
    for command in (
        ["check"],
        ["db", "load"],
        ["kb", "add", "notes", "docs"],
        ["chat", "pens", "How is a fountain pen filled?", "--json"],
    ):
        ran = run_in(app, *command)
        assert (ran.code, ran.err) == (0, ""), command
    assert not diary.exists()


def test_dev_runs_no_module_of_the_folder_it_works_in(app: Path, diary: Path) -> None:
    dev = subprocess.Popen(
        [COMMAND, "dev", "pens", "--json"],
        cwd=app,
        env={**ENVIRONMENT, "HOME": str(app)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with dev:
        assert dev.stdin is not None
        assert dev.stdout is not None
        dev.stdin.write("hello\n")
        dev.stdin.flush()
        events = (json.loads(line) for line in dev.stdout)
        end = next(event for event in events if event["type"] == "stream_end")
        dev.send_signal(signal.SIGINT)
        dev.stdin.close()
    assert end["metadata"] == {"version": 1}
    assert not diary.exists()


def loaded_for_any_module(folder: Path) -> set[str]:
    """The top modules that Python has loaded when it runs any module with `-m`."""
    (folder / "empty").mkdir(parents=True)
    (folder / "empty/__init__.py").touch()
    (folder / "empty/__main__.py").write_text("import sys; print(*sys.modules)", encoding="utf-8")
    command = [sys.executable, "-m", "empty"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_module_as_a_command_runs_only_what_python_itself_looks_for_in_the_folder(
    app: Path, diary: Path, tmp_path: Path
) -> None:
    for name in OURS:
        (app / name / "__init__.py").unlink()
    (app / "groundhook/host/cli/main.py").unlink()
    unavoidable = loaded_for_any_module(tmp_path / "elsewhere") | set(AT_START)
    assert not {"typing", "json", "click", "subprocess", "socket", "asyncio"} & unavoidable
    for name in unavoidable:
        (app / f"{name}.py").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "groundhook", "chat", "pens", "hello", "--json"],
        cwd=app,
        env={**ENVIRONMENT, "HOME": str(app)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not diary.exists()


def test_a_folder_of_modules_that_the_user_names_is_no_hindrance(app: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "my_module.py").write_text("")
    ran = run_in(app, "chat", "pens", "hello", "--json", environment={"PYTHONPATH": str(mine)})
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[-1]["metadata"] == {"version": 1}


def test_every_child_process_of_ours_is_started_by_the_one_safe_command() -> None:
    started = {
        (path.relative_to(ROOT).as_posix(), node.value)
        for folder in ("core", "host", "handlers", "hooks", "rerankers", "toolkits", "src")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"-[mcP]\b", path.read_text(encoding="utf-8"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and node.value in ("-m", "-c", "-P")
    }
    assert started == {
        ("core/workers.py", "-P"),
        ("core/workers.py", "-m"),
        ("src/groundhook/__main__.py", "-P"),
        ("host/check/env_file.py", "-c"),  # of git, which sets with it that no program is run
    }


async def test_state_files_that_others_could_read_are_closed_when_the_app_is_opened(
    app: Path,
) -> None:
    state = app / ".groundhook"
    (state / "graphs").mkdir(parents=True)
    names = ("memory.sqlite", "data.sqlite", "embeddings.sqlite-wal", "graphs/notes.sqlite-shm")
    for name in names:
        (state / name).touch(mode=0o644)
    async with open_host(app, environment={}):
        modes = {stat.S_IMODE((state / name).stat().st_mode) for name in names}
    assert modes == {0o600}


async def test_the_files_beside_a_database_are_for_its_owner_to_read_too(app: Path) -> None:
    (app / "kb/notes.kb.yao").write_text(
        '{"embedding": {"provider": "builtin"}, "graph": true}', encoding="utf-8"
    )
    async with open_host(app, environment={}) as host:
        await host.add_documents("notes", app / "docs")
        await host.search({"type": "kb", "query": "pen", "collections": ["notes"]})
        state = app / ".groundhook"
        files = [path for path in state.rglob("*.sqlite*") if "kb" not in path.parts]
        assert {path.name.partition("sqlite")[2] for path in files} >= {"", "-wal", "-shm"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_only_its_owner_can_read_the_state_of_an_app(app: Path) -> None:
    for command in (["db", "load"], ["kb", "add", "notes", "docs"]):
        assert run_in(app, *command).code == 0
    state = app / ".groundhook"
    readable = {
        path.relative_to(state).parts[0]
        for path in state.rglob("*")
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077
    }
    assert stat.S_IMODE((state / "data.sqlite").stat().st_mode) == 0o600
    assert stat.S_IMODE((state / "kb").stat().st_mode) == 0o700
    assert readable <= {"kb", "hooks"}  # in a folder that is closed; code of the packages
