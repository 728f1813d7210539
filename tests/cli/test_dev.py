"""`groundhook dev` as a child process: it tells of swaps, answers lines, and ends when it is
interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT

HOOK = (
    "function Create() { return { search: false, connector: 'plain', metadata: { version: VERSION }"
    " }; }\n"
)


class Dev:
    """The command with `--json`, talked to line by line."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that holds; the test's own deadline ends a wait in vain."""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            event: dict[str, Any] = json.loads(line)
            if holds(event):
                return event
        raise AssertionError(self.child.stderr and self.child.stderr.read())

    def type(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def version(self) -> Any:
        self.type("hello")
        return self.until(lambda event: event["type"] == "stream_end")["metadata"].get("version")


@contextmanager
def dev(app: Path, *arguments: str, **popen: Any) -> Iterator[Dev]:
    child = subprocess.Popen(
        [COMMAND, "dev", "--json", *arguments],
        cwd=app,
        env={**ENVIRONMENT, "HOME": str(app)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **{"stdin": subprocess.PIPE, **popen},
    )
    with child:
        try:
            yield Dev(child)
        finally:
            child.kill()


@pytest.fixture
def hook(shop: Path) -> Path:
    path = shop / "assistants/shop/index.ts"
    path.write_text(HOOK.replace("VERSION", "1"), encoding="utf-8")
    return path


def test_a_saved_file_takes_effect_with_the_next_line_and_a_broken_one_does_not(
    hook: Path, shop: Path
) -> None:
    with dev(shop, "shop") as running:
        running.until(lambda event: event["type"] == "watching")
        assert running.version() == 1
        hook.write_text(HOOK.replace("VERSION", "2"), encoding="utf-8")
        swap = running.until(lambda event: event["type"] == "swap")
        assert (swap["assistants"], swap["files"], swap["broken"]) == (
            ["shop"],
            ["assistants/shop/index.ts"],
            False,
        )
        assert running.version() == 2
        hook.write_text("function Create() {\n  return {{;\n}", encoding="utf-8")
        error = running.until(lambda event: event["type"] == "error")
        assert (error["file"], error["line"], error["column"]) == (
            "assistants/shop/index.ts",
            2,
            11,
        )
        assert running.until(lambda event: event["type"] == "swap")["broken"] is True
        assert running.version() == 2
        hook.write_text(HOOK.replace("VERSION", "3"), encoding="utf-8")
        assert running.until(lambda event: event["type"] == "swap")["repaired"] == [
            "assistants/shop"
        ]
        assert running.version() == 3


@pytest.mark.parametrize("stdin", [subprocess.PIPE, subprocess.DEVNULL])
def test_an_interrupt_ends_it_cleanly(hook: Path, shop: Path, stdin: int) -> None:
    with dev(shop, "shop", stdin=stdin) as running:
        running.until(lambda event: event["type"] == "watching")
        running.child.send_signal(signal.SIGINT)
        out, err = running.child.communicate(timeout=60)
        assert (running.child.returncode, out, err) == (0, "", "")


def test_a_failed_turn_is_reported_and_the_next_one_runs(hook: Path, shop: Path) -> None:
    hook.write_text(
        "function Create(ctx, messages) { if (messages[messages.length - 1].content === 'fail') throw new Error('so"
        " be it'); }",
        encoding="utf-8",
    )
    with dev(shop, "shop") as running:
        running.type("fail")
        assert (
            running.until(lambda event: event["type"] == "error")["message"]
            == "Create threw so be it"
        )
        running.type("Which products are there?")
        assert running.until(
            lambda event: event["type"] == "stream_end" and bool(event["content"])
        )["citations"]


def test_lines_belong_to_the_chat_that_is_named(hook: Path, shop: Path) -> None:
    hook.write_text(
        "const Create = (ctx) => ({ search: false, connector: 'plain', metadata: { version:"
        " ctx.memory.chat.Incr('n') } });",
        encoding="utf-8",
    )
    with dev(shop, "shop", "--user", "ada", "--chat", "c1") as running:
        assert [running.version(), running.version()] == [1, 2]


@pytest.mark.parametrize(
    ("lines", "code", "ended"),
    [("hello\nagain", 0, 2), ("", 0, 0), ("hello\nfail\n", 1, 2), ("fail\nhello\n", 1, 2)],
)
def test_the_end_of_piped_lines_ends_it(
    hook: Path, shop: Path, lines: str, code: int, ended: int
) -> None:
    hook.write_text(
        "function Create(ctx, messages) {\n  if (messages.at(-1).content === 'fail') throw new Error('no');\n"
        "  return { search: false, connector: 'plain' };\n}",
        encoding="utf-8",
    )
    with dev(shop, "shop") as running:
        out, _ = running.child.communicate(lines, timeout=60)
    assert running.child.returncode == code
    assert sum(json.loads(line)["type"] == "stream_end" for line in out.splitlines()) == ended


def test_an_unknown_assistant_is_one_clear_line(shop: Path) -> None:
    with dev(shop, "shpo") as running:
        assert running.until(lambda event: True)["code"] == "unknown_name"
        assert running.child.wait(60) == 1
