"""Chats whose process is killed, whose disk is full, or whose file is locked: questions and answers
are kept, and no turn runs for ever. `make test-faults` kills a hundred times."""

from __future__ import annotations

import random
import resource
import select
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from groundhook import StorageError
from groundhook.core.types.chats import ENDED, ChatMessage, ChatOwner
from groundhook.host.llm import scripted
from tests.chats.asking_process import ADA, CHAT, WORD_S, WORDS, word
from tests.conftest import MakeApp
from tests.parts.conversations import end_leases, opened, read
from tests.parts.turns import app_with, end, of

OWNER = ChatOwner("acme", "ada")
LOSES_S = 0.25 + 0.15  # a quarter of a second between two flushes, and a busy machine
LASTS_S = WORDS * WORD_S + 0.2


def killed(app: Path, number: int, after_s: float) -> list[str]:
    """Ask one question in a process, kill it so long after it is ready, and return its steps."""
    command = [sys.executable, "-m", "tests.chats.asking_process", str(app), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"opened\n", child.stderr.read().decode()
        select.select([], [], [], after_s)
        child.kill()
        return ["opened", *child.stdout.read().decode().splitlines()]


def check(path: list[ChatMessage], number: int, steps: list[str]) -> None:
    """The branch that is shown ends in the question of the turn and what its reader had."""
    if "begun" not in steps:
        return
    answer = path[-1]
    assert answer.role == "assistant"
    had = max((int(step.split()[1]) for step in steps if step.startswith("text")), default=0)
    whole = "".join(word(number, place) for place in range(WORDS))
    assert whole.startswith(answer.text)
    assert answer.text.count(" ") >= had - LOSES_S / WORD_S
    if number % 5 != 4:
        assert path[-2].text == f"Question {number}"
    if "ended" in steps:
        assert answer.text == whole
    elif answer.text != whole:
        assert answer.answer is not None
        assert [error.code for error in answer.answer.errors] == ["turn_lost"]


async def test_a_process_that_is_killed_anywhere_loses_no_question_and_blocks_no_chat(
    make_app: MakeApp, request: pytest.FixtureRequest
) -> None:
    app = app_with(make_app)
    chance = random.Random()
    times = [chance.uniform(0, LASTS_S) for _ in range(request.config.getoption("--kills"))]
    async with opened(app, patience=60 + 20 * len(times)) as host:
        for number, after_s in enumerate(times):
            steps = await anyio.to_thread.run_sync(killed, app, number, after_s)
            end_leases(app)
            await host.conversations.end_lost_turns()
            assert await host.chats.conversations.running(OWNER, CHAT) is None
            async with host.chat("a", identity=ADA, chat_id=CHAT, create=True) as chat:
                path = list(await chat.messages())
            check(path, number, steps)
            roles = [message.role for message in path]
            assert roles == ["user", "assistant"] * (len(path) // 2), f"killed after {after_s} s"
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        states = {state for (state,) in db.execute("select state from turns")}
        answers = db.execute("select count(*) from messages where role = 'assistant'").fetchone()
        turns = db.execute("select count(*) from turns").fetchone()
    assert states <= set(ENDED)
    assert answers == turns  # each turn has one answer, and none has two


@contextmanager
def full_disk(file: Path, room: int = 0) -> Iterator[None]:
    """No file of this process can grow; with `room`, by so many bytes beyond the size that the log
    of the database has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = Path(f"{file}-wal")
    # Less than the log has, else SQLite may begin it anew and find room.
    size = log.stat().st_size + room if room else 100
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_costs_what_could_not_be_kept_and_not_the_answer(
    make_app: MakeApp,
) -> None:
    app = app_with(make_app)
    file = app / ".groundhook/chats.sqlite"
    async with (
        opened(app, "One.", "Two.", "Three.") as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("First?"))
        async with chat.send("Second?") as events:
            with full_disk(file):
                seen = [event async for event in events]
        with full_disk(file), pytest.raises(StorageError) as caught:
            await read(chat.send("Third?"))  # not ChatBusy: nothing of it is under way
        await read(chat.send("Third?"))
        texts = [message.text for message in await chat.messages()]
    assert end(seen).content == "Two."
    assert [event.code for event in of(seen, "warning")] == ["storage"]
    assert "disk" in caught.value.hint
    assert texts[:3] == ["First?", "One.", "Second?"]
    assert texts[-2:] == ["Third?", "Three."]


async def test_a_chat_whose_answer_has_no_room_on_the_disk_goes_on_with_what_has(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_with(make_app)
    # The answer arrives at once, and so in one write: parts of it would use up the room.
    monkeypatch.setattr(scripted, "PIECE", 1_000_000)
    (app / "agent").mkdir()
    (app / "agent/agent.yml").write_text("store: {flush_ms: 1000}\n")
    file = app / ".groundhook/chats.sqlite"
    long = "".join(f"Sentence {number} is here. " for number in range(12_000))
    async with (
        opened(app, "One.", long, "Three.") as host,
        host.chat("a", identity=ADA) as chat,
    ):
        await read(chat.send("First?"))
        async with chat.send("Second?") as events:
            with full_disk(file, room=250_000):
                seen = [event async for event in events]
                with pytest.raises(StorageError):
                    await host.chats.upkeep.probe(500_000)
                await read(chat.send("Third?"))  # no lease has to end first
        path = list(await chat.messages())
    assert end(seen).content == long
    assert [event.code for event in of(seen, "warning")] == ["storage"]
    assert [message.text for message in path] == [
        "First?",
        "One.",
        "Second?",
        "",
        "Third?",
        "Three.",
    ]
    assert path[3].answer is not None
    assert [error.code for error in path[3].answer.errors] == ["storage"]


async def test_the_probe_of_a_store_leaves_nothing_behind(make_app: MakeApp) -> None:
    app = app_with(make_app)
    async with opened(app) as host:
        await host.chats.upkeep.probe(256_000)
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
        assert db.execute("select count(*) from logs").fetchall() == [(0,)]
