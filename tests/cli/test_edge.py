"""Every end of a command is one line and an exit code; only a bug with `--debug` shows a
traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from groundhook.core.errors import ConfigError, ConfigErrors, HookThrew, HostError, Place
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report

Run = Callable[..., tuple[int, str, str]]
GROUNDHOOK = (sys.executable, "-c", "from groundhook.host.cli.main import main; main()")


@pytest.fixture
def ended_by(capsys: pytest.CaptureFixture[str]) -> Run:
    """Ends a command with an exception → exit code, standard output, standard error."""

    def run(
        error: BaseException, *, json: bool = False, debug: bool = False
    ) -> tuple[int, str, str]:
        async def work() -> int:
            raise error

        with ThreadPoolExecutor(1) as fresh:  # where no event loop of the tests can be in the way
            code = fresh.submit(execute, work, Report(json=json), debug=debug).result()
        return (code, *capsys.readouterr())

    return run


def test_an_error_is_one_line_with_place_and_hint(ended_by: Run) -> None:
    error = HookThrew(
        "no such\nshelf", place=Place("assistants/x/index.ts", 35, 11), hint="build one"
    )
    assert ended_by(error) == (
        1,
        "",
        "error: assistants/x/index.ts:35:11: no such shelf (build one)\n",
    )


@pytest.mark.parametrize(
    "error",
    [
        ConfigErrors([ConfigError("one"), ConfigError("two")]),
        ExceptionGroup("tasks", [HostError("one"), ExceptionGroup("more", [HostError("two")])]),
    ],
)
def test_several_errors_are_a_line_each(ended_by: Run, error: Exception) -> None:
    assert ended_by(error) == (1, "", "error: one\nerror: two\n")


def test_an_error_with_json_is_an_event_as_well(ended_by: Run) -> None:
    code, out, err = ended_by(ConfigError("odd"), json=True)
    assert (code, json.loads(out)["type"], json.loads(out)["code"]) == (1, "error", "config")
    assert err == "error: odd\n"


def test_a_bug_is_one_line_that_says_how_to_see_more(ended_by: Run) -> None:
    code, out, err = ended_by(KeyError("shelf"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: internal error: KeyError: 'shelf' (")
    assert "--debug" in err


def test_debug_shows_the_traceback_of_a_bug_and_not_of_an_error(ended_by: Run) -> None:
    assert "Traceback (most recent call last)" in ended_by(KeyError("shelf"), debug=True)[2]
    assert "Traceback" not in ended_by(HostError("odd"), debug=True)[2]


def test_an_interruption_outranks_what_it_caused(ended_by: Run) -> None:
    assert ended_by(BaseExceptionGroup("tasks", [KeyError("x"), KeyboardInterrupt()])) == (
        130,
        "",
        "error: interrupted\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command", [("config", "explain", "docs"), ("docs",), ("docs", "hooks"), ("schema", "model")]
)
def test_a_full_disk_behind_the_output_is_reported_once(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*GROUNDHOOK, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ended.returncode, ended.stderr) == (
        1,
        "error: standard output cannot be written: No space left on device\n",
    )


def closed(streams: str, *arguments: str, stdout: int | None = None) -> tuple[int, str, str]:
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh", *GROUNDHOOK, *arguments]
    ended = subprocess.run(shell, stdout=stdout, stderr=subprocess.PIPE, text=True)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("command", [("check",), ("new", "assistant", "hello"), ("--help",)])
def test_a_command_whose_output_is_closed_says_so_and_does_nothing(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "assistants").mkdir()
    code, _, err = closed(
        ">&-", *command, *(["--app", str(tmp_path)] if command != ("--help",) else [])
    )
    assert (code, err) == (
        1,
        (
            "error: standard output cannot be written: it is closed (to discard the output: >"
            " /dev/null)\n"
        ),
    )
    assert not list((tmp_path / "assistants").iterdir())


def test_a_command_without_input_and_standard_error_goes_on() -> None:
    code, out, err = closed("<&- 2>&-", "config", "explain", "docs", stdout=subprocess.PIPE)
    assert (code, err) == (0, "")
    assert "connector" in out
    assert closed("<&- >&- 2>&-", "config", "explain", "docs")[0] == 1


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-"])
def test_a_hook_runs_where_standard_error_is_closed(streams: str, tmp_path: Path) -> None:
    at = ("--app", str(tmp_path))
    assert closed("", "new", "assistant", "hello", *at)[0] == 0
    code, out, _ = closed(
        streams, "chat", "hello", "who is there?", "--json", *at, stdout=subprocess.PIPE
    )
    assert (code, "hook_crashed" in out) == (0, False)


EMBEDDED = """
import asyncio, sys
from pathlib import Path
from groundhook.hooks.runner import open_engine
from groundhook.core.hook_engine import HookScript

async def main(folder):
    (folder / "index.ts").write_text("function Create(ctx) { return { metadata: {} }; }")
    async with open_engine(workers=1, cache=folder) as engine:
        await engine.check(HookScript(entry=folder / "index.ts", root=folder, shown="x"))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_hook_runs_in_a_program_that_has_closed_its_standard_error(tmp_path: Path) -> None:
    program = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", EMBEDDED, str(tmp_path)]
    assert subprocess.run(program, cwd=Path(__file__).parents[2]).returncode == 0


@pytest.mark.parametrize("command", ["add", "import"])
def test_input_that_is_closed_is_not_called_empty(command: str, shop: Path) -> None:
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text('{"embedding": {"provider": "hash"}}', encoding="utf-8")
    code, _, err = closed(
        "<&-", "kb", command, "notes", "-", "--app", str(shop), stdout=subprocess.PIPE
    )
    assert (code, err) == (
        1,
        (
            "error: standard input cannot be read: it is closed (pipe or redirect something into"
            " it: < FILE)\n"
        ),
    )


def test_bytes_that_are_no_text_are_wrong_usage() -> None:
    ended = subprocess.run(
        [*GROUNDHOOK, "chat", "docs", b"\xff hello"], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "b'\\xff hello' is not UTF-8 text" in ended.stderr


@pytest.mark.parametrize("command", [("chat", "docs"), ("search", "kb")])
def test_an_empty_question_is_wrong_usage(command: tuple[str, str]) -> None:
    ended = subprocess.run([*GROUNDHOOK, *command, " "], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "it is empty" in ended.stderr


def test_every_signal_wakes_a_command_that_is_about_to_wait() -> None:
    code = """
import signal, sys
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report

async def work():
    return 0 if signal.set_wakeup_fd(-1) != -1 else 1

sys.exit(execute(work, Report(json=False)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
