"""The file: concurrent processes, full disks, invalid files, and closing."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from groundhook.core.app_settings import MemorySettings, StoreSettings
from groundhook.core.errors import StorageError
from groundhook.host.chats.memory.memory import Memory, Namespace, open_memory
from tests.memory.conftest import ADA, LIMITS, Clock


@pytest.fixture
def store() -> StoreSettings:
    """A file, for every memory here."""
    return StoreSettings()


def rows(path: Path) -> int:
    db = sqlite3.connect(path)
    (count,) = db.execute("select count(*) from entries").fetchone()
    db.close()
    return int(count)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def read(path: Path) -> bytes:
    return path.read_bytes()


def count_in_processes(path: Path) -> list[int]:
    """Run two processes that start at the same time, and return their exit codes."""
    command = [sys.executable, "-m", "tests.memory.counting_process", str(path), "150"]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:  # both make the file, and find it being made by the other
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=60)
    return [child.returncode for child in children]


async def test_processes_that_count_at_once_lose_nothing(path: Path, clock: Clock) -> None:
    assert await anyio.to_thread.run_sync(count_in_processes, path) == [0, 0]

    async with open_memory(path, clock, LIMITS) as memory:
        assert (
            await memory.of(ADA.model_copy(update={"tenant_id": ""})).namespace("user").get("n")
            == 300
        )


async def test_no_file_is_created_before_the_first_value(path: Path, clock: Clock) -> None:
    async with open_memory(path, clock, LIMITS) as memory:
        await memory.of(ADA).namespace("context").set("k", 1)
        assert list(path.parent.parent.iterdir()) == []

        await memory.of(ADA).namespace("user").set("k", 1)
        assert path in path.parent.iterdir()


async def test_only_the_owner_of_the_process_may_read_the_file(memory: Memory, path: Path) -> None:
    await memory.of(ADA).namespace("user").set("k", 1)

    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


async def test_expired_entries_are_deleted_as_others_are_written(
    memory: Memory, path: Path, clock: Clock
) -> None:
    for user in range(5):
        kept = memory.of(ADA.model_copy(update={"user_id": f"u{user}"})).namespace("user")
        for n in range(20):
            await kept.set(f"k{n}", n, ttl_ms=10)
    assert rows(path) == 100
    clock.pass_ms(10)
    for _ in range(4):
        await memory.of(ADA).namespace("user").set("mine", 1)

    assert rows(path) == 1


async def test_closing_leaves_no_file_open_and_no_connection_usable(
    path: Path, clock: Clock
) -> None:
    process = psutil.Process()
    async with open_memory(path, clock, LIMITS) as memory:
        kept = memory.of(ADA).namespace("user")
        async with anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(kept.incr, f"k{n}")
        assert any(file.path.startswith(str(path)) for file in process.open_files())

    assert [file.path for file in process.open_files() if file.path.startswith(str(path))] == []
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(StorageError, match="is closed"):
        await kept.get("k1")


async def test_the_memory_works_after_a_cancelled_call(memory: Memory) -> None:
    kept = memory.of(ADA).namespace("user")
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(kept.incr, "n")
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    before = await kept.get("n") or 0
    assert await kept.incr("n") == before + 1


# ---- what can go wrong


@pytest.mark.parametrize(
    "content",
    [
        b"this is not a database, but it is long enough to look at" * 50,
        b"SQLite format 3\x00" + b"\xff" * 4000,
    ],
)
async def test_a_file_that_is_not_a_database_is_named_and_unchanged(
    path: Path, clock: Clock, content: bytes
) -> None:
    write(path, content)

    async with open_memory(path, clock, LIMITS) as memory:
        with pytest.raises(StorageError, match="cannot be used") as caught:
            await memory.of(ADA).namespace("user").set("k", 1)
    assert repr(str(path)) in str(caught.value)
    assert "move it away" in caught.value.hint
    assert read(path) == content


async def test_a_file_damaged_in_the_middle_is_an_error_and_not_a_wrong_value(
    path: Path, clock: Clock
) -> None:
    async with open_memory(path, clock, LIMITS) as memory:
        for n in range(20):
            await memory.of(ADA).namespace("user").set(f"k{n}", "x" * 900)
    whole = read(path)
    write(path, whole[:4096] + b"\xa5" * (len(whole) - 4096))

    async with open_memory(path, clock, LIMITS) as memory:
        with pytest.raises(StorageError, match="malformed") as caught:
            await memory.of(ADA).namespace("user").get("k3")
    assert repr(str(path)) in str(caught.value)


async def test_a_locked_file_is_an_error_after_busy_ms_and_works_afterwards(
    path: Path, clock: Clock
) -> None:
    async with open_memory(path, clock, MemorySettings(busy_ms=30)) as memory:
        kept = memory.of(ADA).namespace("user")
        await kept.set("k", 1)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("begin immediate")
        with anyio.fail_after(60), pytest.raises(StorageError, match="locked") as caught:
            await kept.set("k", 2)
        assert "memory.busy_ms" in caught.value.hint
        assert await kept.get("k") == 1  # readers do not wait for a writer
        holder.execute("rollback")
        holder.close()

        await kept.set("k", 3)
        assert await kept.get("k") == 3


async def test_a_file_of_a_newer_version_is_an_error_and_unchanged(
    path: Path, clock: Clock
) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 99")
    db.close()

    async with open_memory(path, clock, LIMITS) as memory:
        with pytest.raises(StorageError, match="newer version"):
            await memory.of(ADA).namespace("user").get("k")


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_file(
    tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    path = tmp_path / "state" / "memory.sqlite"

    async with open_memory(path, clock, LIMITS) as memory:
        with pytest.raises(StorageError, match="must be writable") as caught:
            await memory.of(ADA).namespace("user").get("k")
    assert repr(str(path)) in str(caught.value)


async def fill(kept: Namespace) -> None:
    for n in range(10):
        await kept.set(f"k{n}", "x" * 1000)


async def test_a_full_disk_is_an_error_and_earlier_values_are_intact(
    memory: Memory, path: Path
) -> None:
    kept = memory.of(ADA).namespace("user")
    await kept.set("k", "before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(f"{path}-wal").st_size + 100, hard))  # noqa: PTH116
    try:
        with pytest.raises(StorageError, match="cannot be used") as caught:
            await fill(kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "full" in str(caught.value)
    assert repr(str(path)) in str(caught.value)

    assert await kept.get("k") == "before"
    await kept.set("k", "after")
    assert await kept.get("k") == "after"


async def test_the_number_of_threads_is_limited(memory: Memory) -> None:
    before = threading.active_count()
    kept = memory.of(ADA).namespace("user")
    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(kept.incr, "n")

    assert threading.active_count() - before <= 4
