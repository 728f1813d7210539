"""`groundhook chat` without a message: a conversation in a terminal, and lines of a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import sqlite3
import stat
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.cli.conftest import COMMAND, ENVIRONMENT, run_in
from tests.parts.command import run_command

_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>])|\r")
PATIENCE = 40  # seconds; the test's own deadline is the bound


class Screen:
    """A command in a terminal of its own. `text` is all that it wrote, without control codes."""

    def __init__(self, child: subprocess.Popen[bytes], terminal: int) -> None:
        self.child, self._terminal = child, terminal
        self._written = b""

    @property
    def text(self) -> str:
        return _CONTROL.sub("", self._written.decode("utf-8", "replace"))

    def until(self, wanted: str, *, after: int = 0) -> int:
        """Read until the command has written `wanted` behind a place; return the place behind
        it."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.text.find(wanted, after)) < 0:
            ready, _, _ = select.select([self._terminal], [], [], deadline - time.monotonic())
            assert ready, f"{wanted!r} is not in {self.text[after:]!r}"
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:  # the command has ended
                piece = b""
            assert piece, f"ended without {wanted!r}: {self.text[after:]!r}"
            self._written += piece
        return found + len(wanted)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def ask(self, line: str, wanted: str) -> int:
        """Type a line at the prompt and read until `wanted`, then until the next prompt."""
        begin = len(self.text)
        self.type(line + "\r")
        place = self.until(wanted, after=begin)
        self.until("›", after=place)
        return place

    def ended(self) -> int:
        """Read to the end; return the exit code."""
        while True:
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            self._written += piece
        return self.child.wait(60)


def _take_terminal() -> None:
    """Make standard input the terminal that Ctrl-C is typed at."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(app: Path, *arguments: str) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=app,
        env={**ENVIRONMENT, "HOME": str(app), "COLUMNS": "200", "PROMPT_TOOLKIT_NO_CPR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    try:
        yield Screen(child, ours)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def kept(app: Path) -> list[dict[str, object]]:
    done = ran(app, "chats", "list", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def chatting(app: Path, typed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `groundhook chat` with what a person types."""
    return ran(app, "chat", *arguments, typed=typed)


def ran(app: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    code, out, err = run_command(
        arguments, folder=app, environment={"HOME": str(app)}, stdin=typed.encode()
    )
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def under_way(app: Path) -> bool:
    """Whether a turn of a conversation runs."""
    database = app / ".groundhook/chats.sqlite"
    if not database.exists():
        return False
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as rows:
        try:
            return bool(rows.execute("select 1 from turns where state = 'running'").fetchall())
        except sqlite3.OperationalError:  # the tables are being made
            return False


def test_a_conversation_in_a_terminal(shop: Path) -> None:
    with terminal(shop, "chat", "shop") as screen:
        screen.until("/help shows the commands")
        screen.until("›")
        screen.ask("Is there a red pen?", "The red pen is cheap")
        screen.ask("/sources", "product / 1")
        screen.ask("/trace", "turn")
        screen.ask("/sorces", "did you mean /sources?")
        screen.ask("/help", "begin a new conversation")
        screen.ask("And a blue pen?", "The red pen is cheap")
        screen.type("/quit\r")
        assert screen.ended() == 0
        id = re.search(r"groundhook chat shop --chat (c_[0-9a-f]{32})", screen.text)
    assert id is not None
    history = shop / ".groundhook/questions"
    assert "Is there a red pen?" in history.read_text(encoding="utf-8")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600

    with terminal(shop, "chat", "shop", "--chat", id[1]) as screen:
        place = screen.until("(2 earlier messages)")
        place = screen.until("› And a blue pen?", after=place)
        screen.until("The red pen is cheap", after=place)
        screen.until("›", after=place + 1)
        screen.type("\x04")
        assert screen.ended() == 0


def test_a_number_chooses_one_of_several_readings(shop: Path) -> None:
    for model, column in (("album", "title"), ("artist", "name")):
        columns = [{"name": "id", "type": "ID"}, {"name": column, "type": "string"}]
        rows = [{"id": 1, column: "Iron Maiden"}, {"id": 2, column: "Queen"}]
        spec = {"name": model.title(), "table": {"name": model}, "columns": columns, "values": rows}
        (shop / f"models/{model}.mod.yao").write_text(json.dumps(spec), encoding="utf-8")
    package = {
        "connector": "extractive",
        "db": {"models": ["album", "artist"]},
        "search": {"db": True},
    }
    (shop / "assistants/shop/package.yao").write_text(json.dumps(package), encoding="utf-8")
    run_in(shop, "db", "load")
    with terminal(shop, "chat", "shop") as screen:
        screen.until("›")
        place = screen.ask("Iron Maiden", "a number chooses how the question is meant")
        offered = re.findall(r"^  (\d)  (\w+) where \w+ = Iron Maiden \(1\)", screen.text, re.M)
        assert [number for number, _ in offered] == ["1", "2"]
        screen.ask("2", f"{offered[1][1]} where")
        assert "Found 1 result" in screen.text[place:]
        screen.ask("7", 'Searching "7"')  # there is nothing to choose from any more
        screen.type("\x04")
        assert screen.ended() == 0
    piped = run_in(shop, "chat", "shop", "--json", stdin="Iron Maiden\n1\n")
    totals = [each["total"] for each in piped.lines if each["type"] == "search_complete"]
    assert totals == [0, 1]


def test_ctrl_c_stops_the_answer_and_not_the_program(shop: Path) -> None:
    with terminal(shop, "chat", "shop", "--connector", "slow", "--no-search") as screen:
        screen.until("›")
        begin = len(screen.text)
        screen.type("Wait for ever\r")
        screen.until("Wait for ever", after=begin)
        while not under_way(shop):  # the test's own deadline is the bound
            select.select([], [], [], 0.05)
        screen.type("\x03")
        place = screen.until("(stopped)", after=begin)
        screen.until("›", after=place)
        screen.type("\x03")
        place = screen.until("/quit or Ctrl-D ends the conversation", after=place)
        screen.until("›", after=place)
        screen.type("\x04")
        assert screen.ended() == 0


def test_new_begins_another_conversation(shop: Path) -> None:
    with terminal(shop, "chat", "shop") as screen:
        screen.until("›")
        screen.ask("Is there a red pen?", "The red pen is cheap")
        screen.ask("/new", "A new conversation begins")
        screen.ask("Is there a blue pen?", "The red pen is cheap")
        screen.type("\x04")
        assert screen.ended() == 0
    assert {chat["title"] for chat in kept(shop)} == {"Is there a red pen?", "Is there a blue pen?"}


def test_lines_of_a_pipe_are_questions_of_one_conversation(shop: Path) -> None:
    done = chatting(
        shop,
        "Is there a red pen?\n\n/red pen\n/sources\n/new\nIs there a blue pen?\n/quit\nNever?\n",
        "shop",
        "--json",
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [event for event in events if event["type"] == "stream_end"]
    starts = [event for event in events if event["type"] == "stream_start"]
    assert (done.returncode, len(ends)) == (0, 3)
    first, second, third = (start["chat_id"] for start in starts)
    assert first == second != third
    assert "/sources shows nothing with --json" in done.stderr


def test_a_question_of_a_hook_is_answered_in_the_terminal(tmp_path: Path) -> None:
    hook = """
    function Create(ctx) {
      return { answer: `Of ${ctx.Ask("Of which year?", ["2023", "2024"])}.` };
    }"""
    folder = tmp_path / "assistants/orders"
    folder.mkdir(parents=True)
    (folder / "package.yao").write_text("{}", encoding="utf-8")
    (folder / "index.ts").write_text(hook, encoding="utf-8")
    done = chatting(tmp_path, "How many?\n1066\n2\nHow many?\n2023\nHow many?\n/refuse\n", "orders")
    assert "1  2023" in done.stdout + done.stderr
    assert "type the answer" in done.stdout
    assert "'1066' is none of the choices" in done.stderr
    for answer in ("Of 2024.", "Of 2023.", "Of null."):
        assert answer in done.stdout


def test_a_call_is_approved_or_refused_in_the_terminal(tmp_path: Path) -> None:
    call = {"tool_calls": [{"name": "cancel", "arguments": {"order": 3}}]}
    script = [call, {"text": "It is cancelled."}, call, {"text": "As you wish."}]
    tool = """
    export const schemas = { cancel: {
      description: "Cancel an order", confirm: true,
      type: "object", properties: { order: { type: "integer" } }, required: ["order"] } };
    export function cancel({ order }: { order: number }) { return "cancelled " + order; }
    """
    files = {
        "connectors/s.conn.yao": json.dumps({"type": "scripted", "options": {"script": script}}),
        "assistants/orders/package.yao": '{"name": "Orders", "connector": "s"}',
        "assistants/orders/src/tools.ts": tool,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = chatting(
        tmp_path, "Cancel 3\n/approve\nAnd 3 again\n/refuse not twice\n/approve\n", "orders"
    )
    shown = done.stdout + done.stderr
    assert 'Approval required: cancel {"order": 3}' in shown
    assert "/approve runs it" in done.stdout
    assert "It is cancelled." in done.stdout
    assert "cancel: the user refused this call: not twice" in shown
    assert "As you wish." in done.stdout
    assert "no call of this answer waits" in done.stderr
    assert done.returncode == 1


def test_commands_in_a_pipe_are_run_as_in_a_terminal(shop: Path) -> None:
    done = chatting(shop, "/trace\nIs there a red pen?\n/sources\n/quit\nNever sent\n", "shop")
    assert done.returncode == 0
    assert done.stdout.startswith("There is no answer yet.\n")
    assert "product / 1" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 400  # not padded to the width of no terminal
    (only,) = kept(shop)
    assert only["messages"] == 2


def test_a_message_with_the_id_of_a_kept_chat_continues_it(shop: Path) -> None:
    def chat(*arguments: str) -> list[dict[str, object]]:
        done = chatting(
            shop, "Is there a red pen?\n" if not arguments else "", "shop", *arguments, "--json"
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    id = str(chat()[0]["chat_id"])
    chat("And the blue ones?", "--chat", id)
    chat("Not kept", "--chat", "c1")
    (only,) = kept(shop)
    assert (only["id"], only["messages"]) == (id, 4)


def test_a_chat_that_is_not_there_cannot_be_continued(shop: Path) -> None:
    done = chatting(shop, "", "shop", "--chat", "c_nothing")
    assert done.returncode == 1
    assert "no chat 'c_nothing'" in done.stderr


def test_dev_is_the_same_conversation_and_shows_type_errors_on_save(shop: Path) -> None:
    hook = shop / "assistants/shop/index.ts"
    hook.write_text("function Create() { return { search: false, connector: 'plain' }; }\n")
    with terminal(shop, "dev", "shop") as screen:
        screen.until("›")
        screen.ask("Hello", "Hello there.")
        begin = len(screen.text)
        hook.write_text("function Create() { const n: number = 'text'; return null; }\n")
        place = screen.until("TS2322", after=begin)
        hook.write_text("function Create() { return { search: false, connector: 'plain' }; }\n")
        screen.until("types fit again", after=place)
        screen.ask("Hello again", "Hello there.")
        screen.type("\x04")
        assert screen.ended() == 0
