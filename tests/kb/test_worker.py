"""The worker process: killed, raced, idle, gone. What was acknowledged stays, and nobody sees half
a document."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
import pytest

from groundhook.core.errors import WAITS, SourceNotConfigured, StorageError
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.workers import interpreter
from groundhook.handlers.kb.embed import HashEmbedder
from groundhook.handlers.kb.embedded import client as embedded
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    StoreProgress,
    VectorQuestion,
)
from tests.kb.conftest import Opens, Writes, scope, search, spec
from tests.parts.clock import jump
from tests.parts.forks import started_not_forked

MADE = CollectionSettings(provider="test", model="test", dimensions=4, language="english")
LONG = 200  # passages: four batches


def document(version: str, passages: int = LONG, name: str = "a.md") -> FullDocument:
    return FullDocument(
        document=name,
        title="A",
        fingerprint=version,
        passages=tuple(
            Passage(
                passage=f"{n}",
                content=f"{version} {n}",
                text=f"pear {version} {n}",
                vector=pack_vector([1.0, n / LONG, 0.0, 0.0]),
            )
            for n in range(passages)
        ),
    )


@asynccontextmanager
async def client(state: Path, idle_s: float = 20) -> AsyncIterator[KBClient]:
    opened = KBClient(state, idle_s=idle_s)
    yield opened
    await opened.aclose()


def worker_of(state: Path) -> psutil.Process:
    return psutil.Process(json.loads((state / "kb/worker.json").read_text())["pid"])


def kill(state: Path) -> None:
    process = worker_of(state)
    process.kill()
    process.wait(60)


def there(path: str | Path) -> bool:
    return Path(path).exists()


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


async def versions(kb: KBClient, passages: int = LONG) -> set[str]:
    """Which versions of the document a search sees; each must be whole."""
    question = VectorQuestion(vector=pack_vector([1.0, 0.5, 0.0, 0.0]), text="pear", limit=2 * LONG)
    hits = (await kb.search("docs", MADE, question)).hits
    seen: dict[str, set[str]] = {}
    for hit in hits:
        seen.setdefault(hit.content.split()[0], set()).add(hit.passage)
    assert all(len(found) == passages for found in seen.values()), {
        version: len(found) for version, found in seen.items()
    }
    return set(seen)


async def test_a_start_that_takes_longer_than_any_wait_is_a_start(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec

    async def slowly(*command: Any, **options: Any) -> Any:
        process = await start(*command, **options)
        jump(3600)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new", 1))
        assert await versions(kb, 1) == {"new"}


@pytest.mark.parametrize("batch", [1, 2, 4])
async def test_a_worker_killed_in_the_middle_of_a_document_shows_one_version_whole(
    state: Path, batch: int
) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("old"))

        def progress(done: int, _total: int) -> None:
            if done >= min(LONG, batch * 64) and not stopped.cancel_called:
                kill(state)
                stopped.cancel()

        with anyio.CancelScope() as stopped:
            await kb.put("docs", MADE, document("new"), progress=progress)
        assert await versions(kb) in ({"old"}, {"new"})
        assert await kb.put("docs", MADE, document("new")) == ["replaced"]
        assert await versions(kb) == {"new"}
        assert [stored.chunks for stored in (await kb.usage("docs", None)).documents] == [LONG]


@pytest.mark.parametrize("batch", [1, 3])
async def test_a_worker_killed_in_the_middle_of_many_documents_shows_each_as_it_was_or_as_it_is(
    state: Path, batch: int
) -> None:
    many = [document("new", 3, f"{n}.md") for n in range(100)]
    async with client(state) as kb:
        await kb.put("docs", MADE, *(document("old", 2, f"{n}.md") for n in range(50)))

        def progress(done: int, _total: int) -> None:
            if done >= batch * 64 and not stopped.cancel_called:
                kill(state)
                stopped.cancel()

        with anyio.CancelScope() as stopped:
            await kb.put("docs", MADE, *many, progress=progress)
        question = VectorQuestion(vector=pack_vector([1.0, 0.5, 0.0, 0.0]), text="pear", limit=1000)
        seen = Counter(
            (hit.document, hit.content.split()[0])
            for hit in (await kb.search("docs", MADE, question)).hits
        )
        assert all(count == {"old": 2, "new": 3}[version] for (_, version), count in seen.items())
        assert (
            len(dict(seen.keys()))
            == len(seen)
            == len((await kb.usage("docs", None)).documents)
            >= 50
        )
        await kb.put("docs", MADE, *many)
        assert sum(stored.chunks for stored in (await kb.usage("docs", None)).documents) == 300


async def test_a_put_whose_worker_is_killed_is_done_by_the_next(state: Path) -> None:
    killed: list[int] = []

    def progress(_done: int, _total: int) -> None:
        if not killed:
            killed.append(worker_of(state).pid)
            kill(state)

    async with client(state) as kb:
        assert await kb.put("docs", MADE, document("new"), progress=progress) == ["added"]
        assert await versions(kb) == {"new"}
        assert worker_of(state).pid not in killed


async def test_a_worker_killed_after_an_answer_has_lost_nothing(state: Path) -> None:
    async with client(state) as kb:
        for version in ("one", "two"):
            await kb.put("docs", MADE, document(version))
            kill(state)
            assert await versions(kb) == {version}
        await kb.remove("docs", None, ["a.md"])
        kill(state)
        assert await kb.usage("docs", None) == await kb.usage("never", None)


async def test_a_search_in_flight_when_the_worker_dies_is_sent_again(state: Path) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new"))
        worker_of(state).suspend()
        async with anyio.create_task_group() as tasks:
            seen: list[set[str]] = []

            async def ask() -> None:
                seen.append(await versions(kb))

            for _ in range(3):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            kill(state)
    assert seen == [{"new"}] * 3


async def test_searches_go_on_while_a_document_is_stored(state: Path) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("old"))
        during: list[set[str]] = []
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as inner:

            async def ask() -> None:
                during.append(await versions(kb))

            def progress(_done: int, _total: int) -> None:
                tasks.start_soon(ask)

            inner.start_soon(_put, kb, document("new"), progress)
        assert {"old"} in during
        assert all(seen in ({"old"}, {"new"}) for seen in during)
        assert await versions(kb) == {"new"}


async def _put(kb: KBClient, incoming: FullDocument, progress: StoreProgress) -> None:
    await kb.put("docs", MADE, incoming, progress=progress)


async def test_a_file_that_a_killed_process_left_incomplete_is_made_again(state: Path) -> None:
    half = state / "kb" / "c-docs" / "shard"
    half.mkdir(parents=True)
    (half / "edge_config.json").write_text("{")
    async with client(state) as kb:
        assert not (
            await kb.search(
                "docs", MADE, VectorQuestion(vector=pack_vector([1.0] * 4), text="x", limit=1)
            )
        ).exists
        await kb.put("docs", MADE, document("new"))
        assert await versions(kb) == {"new"}


async def test_a_broken_collection_is_an_error_that_names_it_and_spares_the_others(
    state: Path,
) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new"))
        await kb.put("other", MADE, document("new", 1))
        kill(state)
        (state / "kb/c-other/made.json").write_text("{")
        with pytest.raises(StorageError, match="'other'"):
            await kb.usage("other", None)
        assert await versions(kb) == {"new"}


def spoil(folder: Path, damage: str) -> None:
    """Damage the files of a collection."""
    [segment] = (folder / "shard/segments").iterdir()
    match damage:
        case "settings":
            (folder / "made.json").write_text("{")
        case "nested settings":
            (folder / "made.json").write_text("[" * 100_000)
        case "settings of another type":
            settings = json.loads((folder / "made.json").read_text())
            (folder / "made.json").write_text(json.dumps({**settings, "manifest": 5}))
        case "a folder of settings":
            (folder / "made.json").unlink()
            (folder / "made.json").mkdir()
        case "a file":
            shutil.rmtree(folder)
            folder.write_text("")
        case "no list":
            (folder / "manifest.sqlite").unlink()
        case "list" | "an empty list":
            for path in folder.glob("manifest.sqlite*"):  # also its journal, which may have all
                path.write_bytes(b"junk" * 2000 if damage == "list" else b"")
        case "no vectors":
            shutil.rmtree(folder / "shard")
        case "segment":
            (segment / "segment.json").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        "settings",
        "nested settings",
        "settings of another type",
        "a folder of settings",
        "a file",
        "an empty list",
        "no list",
        "list",
        "no vectors",
        "segment",
    ],
)
async def test_a_damaged_collection_is_listed_with_its_error_and_can_be_removed_and_added_again(
    opens: Opens, write: Writes, state: Path, damage: str
) -> None:
    folder = write({"a.txt": "pear"})
    specs = spec("docs"), spec("other")
    async with opens(*specs) as kb:
        await kb.add("docs", [folder])
        await kb.add("other", [folder])
    kill(state)
    spoil(state / "kb/c-docs", damage)
    async with opens(*specs) as kb:
        damaged, other = await kb.list_collections()
        assert "groundhook kb remove docs --all" in damaged.error
        assert (other.chunks, other.error) == (1, "")
        with pytest.raises(StorageError, match="groundhook kb remove docs --all"):
            await kb.list_collections(["docs"])
        with pytest.raises(StorageError, match="groundhook kb remove docs --all"):
            await kb.add("docs", [folder])
        with pytest.raises(StorageError, match="groundhook kb remove docs --all"):
            await search(kb, "pear")
        with pytest.raises(StorageError):
            await kb.remove("docs", ["a.txt"])
        assert await kb.remove("docs", None) == ()
        await kb.add("docs", [folder])
        assert [item.content for item in (await search(kb, "pear")).items] == ["pear"]


@pytest.fixture
def blocked(state: Path) -> Iterator[None]:
    """A file in place of the folder of collections, until the worker of the test is ended."""
    state.mkdir()
    (state / "kb").write_text("")
    yield
    (state / "kb").unlink()


@pytest.mark.usefixtures("blocked")
async def test_a_store_that_cannot_be_used_is_one_error_of_the_listing(opens: Opens) -> None:
    async with opens(spec("docs"), spec("other")) as kb:
        with pytest.raises(StorageError, match="cannot be started"):
            await kb.list_collections()


KILLED_AT_ONCE = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
KILLED_BEFORE_IT_LISTENS = """
import os, signal, sys
from groundhook.handlers.kb.embedded import worker
worker._listen = lambda folder, lock: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(worker.main(*sys.argv[1:]))
"""


def starts_as(monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """The first workers are these programs, the later ones the real one."""
    left, real = list(programs), interpreter

    def command(module: str) -> tuple[str, ...]:
        return (sys.executable, "-c", left.pop(0)) if left else real(module)

    monkeypatch.setattr(embedded, "interpreter", command)


async def test_a_worker_killed_while_it_starts_is_started_again(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts_as(monkeypatch, KILLED_AT_ONCE, KILLED_BEFORE_IT_LISTENS)
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new"))
        assert await versions(kb) == {"new"}


async def test_a_worker_that_is_killed_whenever_it_starts_is_an_error_that_says_so(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts_as(monkeypatch, *[KILLED_AT_ONCE] * 3)
    async with client(state) as kb:
        with pytest.raises(StorageError, match="was killed 3 times while it started"):
            await kb.put("docs", MADE, document("new", 3))


async def test_stale_files_of_a_killed_worker_do_not_stop_the_next(state: Path) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new"))
        address = json.loads((state / "kb/worker.json").read_text())
        kill(state)
        assert there(address["socket"])
        (state / "kb/worker.json").write_text(json.dumps({**address, "pid": 1}))
        assert await versions(kb) == {"new"}


async def test_a_copy_of_the_folder_has_a_worker_of_its_own_while_that_of_the_original_runs(
    state: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    async with client(state) as original:
        await original.put("docs", MADE, document("new"))
        shutil.copytree(state, copied)
        async with client(copied) as copy:
            assert await versions(copy) == {"new"}
            await copy.remove("docs", None, None)
            assert await versions(original) == {"new"}
            assert worker_of(copied).pid != worker_of(state).pid
            await copy.stop_worker()


async def test_many_that_come_first_share_one_worker(state: Path) -> None:
    clients = [KBClient(state, idle_s=20) for _ in range(4)]
    with started_not_forked():
        async with anyio.create_task_group() as tasks:
            for number, one in enumerate(clients):
                tasks.start_soon(one.put, "docs", MADE, document("new", 3, name=f"{number}.md"))
    assert len((await clients[0].usage("docs", None)).documents) == 4
    assert len(_workers(state)) == 1
    for one in clients:
        await one.aclose()


async def test_a_worker_that_another_version_started_makes_room(state: Path) -> None:
    old = await _started(
        state, "from groundhook.handlers.kb.store import port; port.PROTOCOL = '1'"
    )
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new"))
        assert await versions(kb) == {"new"}
        assert worker_of(state).pid != old.pid
    await anyio.to_thread.run_sync(old.wait, 60)


async def _started(state: Path, before: str) -> psutil.Process:
    """A worker in which something was done first."""
    (state / "kb").mkdir(parents=True)
    code = (
        f"import sys; {before}; from groundhook.handlers.kb.embedded.worker import main;"
        " sys.exit(main(*sys.argv[1:]))"
    )
    await anyio.run_process(
        [sys.executable, "-c", code, str(state), "60"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return worker_of(state)


async def test_a_worker_ends_when_nobody_asks_and_the_next_question_starts_another(
    state: Path,
) -> None:
    async with client(state, idle_s=0.2) as kb:
        await kb.put("docs", MADE, document("new", 1))
        first = worker_of(state)
        await anyio.to_thread.run_sync(first.wait, 60)
        assert not (state / "kb/worker.json").exists()
        assert await versions(kb, 1) == {"new"}


HELD = """
import os
from groundhook.handlers.kb.embedded import worker
worker._END_S = {end_s}
worker.WorkerRequests.close = lambda requests: os.read(os.open({gate!r}, os.O_RDONLY), 1)
"""


async def _ending(state: Path, gate: Path, end_s: int) -> psutil.Process:
    """A worker that has the folder, no longer listens, and closes its collections until a byte
    comes through the gate."""
    os.mkfifo(gate)
    old = await _started(state, f"exec({HELD.format(end_s=end_s, gate=str(gate))!r})")
    async with client(state) as kb:
        await kb.stop_worker()
    assert not (state / "kb/worker.json").exists()
    return old


async def test_a_question_waits_for_a_worker_that_is_ending_and_starts_the_next_once(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, looks = await _ending(state, tmp_path / "gate", end_s=60), itertools.count(1)
    started: list[bool] = []

    def held(kb: KBClient) -> bool:
        if next(looks) == 3:
            (tmp_path / "gate").write_bytes(b".")
        return is_held(kb)

    def command(module: str) -> tuple[str, ...]:
        started.append(old.is_running())
        return interpreter(module)

    is_held = KBClient._is_held
    monkeypatch.setattr(KBClient, "_is_held", held)
    monkeypatch.setattr(embedded, "interpreter", command)
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new", 3))
    assert len(started) == 1
    assert next(looks) > 3  # it looked until the gate was opened


async def test_a_question_that_waits_for_another_process_says_so_once(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _ending(state, tmp_path / "gate", end_s=60)
    said: list[str] = []

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            (tmp_path / "gate").write_bytes(b".")

    monkeypatch.setattr(embedded, "_TELL_S", 0.0)
    monkeypatch.setattr(logging.getLogger(WAITS), "handlers", [Shown()])
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new", 3))
    assert said == ["waiting for the knowledge base's worker, which another process started"]


async def test_a_worker_that_does_not_end_by_itself_is_ended(state: Path, tmp_path: Path) -> None:
    await _ending(state, tmp_path / "gate", end_s=1)
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new", 3))


async def test_a_put_that_a_worker_was_stopped_in_is_done_by_the_next(state: Path) -> None:
    seen: list[int] = []

    def progress(done: int, _total: int) -> None:
        seen.append(done)
        if len(seen) == 1:
            worker_of(state).terminate()

    async with client(state) as kb:
        long = document("new", 16 * LONG)
        assert await kb.put("docs", MADE, long, progress=progress) == ["added"]


async def test_a_worker_ends_when_its_state_folder_is_gone(state: Path) -> None:
    async with client(state) as kb:
        await kb.put("docs", MADE, document("new", 1))
        worker, socket = (
            worker_of(state),
            json.loads((state / "kb/worker.json").read_text())["socket"],
        )
        move_away(state)
        await anyio.to_thread.run_sync(worker.wait, 60)
        assert not there(socket)


async def test_a_long_state_path_has_a_worker_too(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 30) / ("path" * 30)
    async with client(deep) as kb:
        await kb.put("docs", MADE, document("new", 1))
        await kb.stop_worker()


async def test_a_state_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    async with client(tmp_path / "file" / "state") as kb:
        with pytest.raises(StorageError, match="cannot be started in"):
            await kb.usage("docs", None)


async def test_a_collection_whose_name_is_a_path_stays_inside_the_state_folder(state: Path) -> None:
    async with client(state) as kb:
        await kb.put("../../../tmp/x", MADE, document("new", 1))
        assert [
            stored.document for stored in (await kb.usage("../../../tmp/x", None)).documents
        ] == ["a.md"]
    assert len([path for path in (state / "kb").iterdir() if path.is_dir()]) == 1


async def test_closing_leaves_no_thread_no_file_and_no_process_of_ours(
    state: Path, opens: Opens, write: Writes
) -> None:
    folder = write({"a.md": "pear"})
    with started_not_forked():
        async with opens() as kb:
            await kb.add("docs", [folder])
        me = psutil.Process()
        files, threads, children = me.num_fds(), _threads(), set(me.children())
        for _ in range(5):
            async with opens() as kb:
                await kb.add("docs", [folder])
                await search(kb, "pear")
        assert me.num_fds() <= files
        assert _threads() <= threads
        assert set(me.children()) <= children


def _threads() -> set[threading.Thread]:
    # Those are kept for any process that wants one.
    return {thread for thread in threading.enumerate() if "AnyIO" not in thread.name}


async def test_opening_starts_nothing(state: Path, opens: Opens) -> None:
    async with opens():
        pass
    assert not there(state)


class Waiting(HashEmbedder):
    """Embeds a question as soon as the worker listens."""

    state: Path

    async def embed_query(self, text: str, /) -> list[float]:
        with anyio.fail_after(60):
            while not there(self.state / "kb/worker.json"):
                await anyio.lowlevel.checkpoint()
        return await super().embed_query(text)


async def test_the_worker_starts_while_the_first_question_is_embedded(
    state: Path, opens: Opens
) -> None:
    Waiting.state = state
    declared = spec("docs", embedding=EmbeddingSpec(provider="waiting", dimensions=64))
    async with opens(declared, embedders={"waiting": Waiting}) as kb:
        with pytest.raises(SourceNotConfigured, match="is empty"):
            await search(kb, "pears")


def _workers(state: Path) -> list[int]:
    """Started processes that have the state folder as argument."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(state) in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


# ---------------------------------------------------------------------------------- whole processes

ADDER = """
import anyio, sys
from pathlib import Path
from groundhook.handlers.kb.opening import open_kb
from tests.kb.conftest import providers, spec
from groundhook.core.app_settings import KBStorageSettings

async def main(state, folder):
    async with open_kb(Path(state), {"docs": spec("docs")}, providers(), KBStorageSettings(idle_s=20, reserve_mb=1)) as kb:
        await kb.add("docs", [Path(folder)], progress=lambda done, total, current, passages: print(done, current, flush=True))

anyio.run(main, *sys.argv[1:])
"""


@contextmanager
def adding(state: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that adds a folder and says how far it is."""
    process = subprocess.Popen(
        [sys.executable, "-c", ADDER, str(state), str(folder)], stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        process.kill()


@pytest.mark.parametrize(("lines", "both"), [(4, False), (9, True)])
async def test_an_adder_killed_in_the_middle_leaves_whole_documents_and_adding_again_completes(
    opens: Opens, write: Writes, state: Path, lines: int, both: bool
) -> None:
    folder = write({f"{n}.txt": f"pear number {n}. " * 300 for n in range(4)})
    with adding(state, folder) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
        if both and (state / "kb/worker.json").exists():
            kill(state)
    async with opens() as kb:
        [listing] = await kb.list_collections()
        for stored in listing.documents:
            assert (
                len((await kb.fetch_document("docs", stored.document, scope())).items)
                == stored.chunks
            )
        report = await kb.add("docs", [folder])
        assert {file.outcome for file in report.files} <= {"added", "unchanged"}
        [listing] = await kb.list_collections()
        found = await search(kb, "pear", limit=1000)
    assert [stored.document for stored in listing.documents] == ["0.txt", "1.txt", "2.txt", "3.txt"]
    assert len(found.items) == listing.chunks == 4 * listing.documents[0].chunks


async def test_two_processes_add_and_search_at_once(
    opens: Opens, write: Writes, state: Path
) -> None:
    ours = write({f"ours/{n}.txt": f"pear {n}" for n in range(10)}) / "ours"
    theirs = write({f"theirs/t{n}.txt": f"pear {n}" for n in range(10)}) / "theirs"
    async with opens() as kb:
        with adding(state, theirs) as process:
            await kb.add("docs", [ours])
            await anyio.to_thread.run_sync(process.communicate)
            assert process.returncode == 0
        found = await search(kb, "pear", limit=50)
    assert len(found.items) == 20


async def test_a_terminal_that_interrupts_the_adder_does_not_end_the_worker(
    state: Path, write: Writes
) -> None:
    with adding(state, write({"a.txt": "pear " * 5000})) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        worker = worker_of(state)
        assert os.getsid(worker.pid) != os.getsid(process.pid)
    assert worker.is_running()
