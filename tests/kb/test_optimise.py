"""A collection is optimised in the background: what is found stays the same, whatever happens
meanwhile."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import psutil
import pytest

from groundhook.handlers.kb.embedded import collection as storage
from groundhook.handlers.kb.embedded import optimise, shard_copy
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedded.collection import Collection
from groundhook.handlers.kb.embedded.folder import Folder
from groundhook.handlers.kb.embedded.optimise import Optimiser
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorQuestion,
)

MADE = CollectionSettings(
    provider="test", model="test", dimensions=8, language="english", fields={"tag": "keyword"}
)


def document(name: str, passages: int = 50, word: str = "pear") -> FullDocument:
    chance = random.Random(name)
    made = [
        Passage(
            passage=str(n),
            content=f"{word} {name} {n}",
            text=f"{word} {name} {n}",
            vector=pack_vector(vector(chance)),
        )
        for n in range(passages)
    ]
    return FullDocument(
        document=name, title=name, fingerprint="1", passages=tuple(made), fields={"tag": word}
    )


def vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(8)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth its while."""
    monkeypatch.setattr(storage, "_WORTH_POINTS", 1)
    monkeypatch.setattr(optimise, "_QUIET_S", 0.0)
    monkeypatch.setattr(optimise, "_LOOK_S", 0.01)


@dataclass
class Open:
    collection: Collection
    path: Path

    def put(self, *documents: FullDocument) -> None:
        for one in documents:
            list(self.collection.put(one))

    def found(self) -> dict[str, int]:
        """Passages by document, as a search for all of them sees them."""
        answer = self.collection.search(
            VectorQuestion(vector=pack_vector([1.0] * 8), text="pear", limit=5000)
        )
        counted: dict[str, int] = {}
        for hit in answer.hits:
            counted[hit.document] = counted.get(hit.document, 0) + 1
        return counted


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Open]:
    made = Collection.create(tmp_path / "c", "docs", MADE, document("a"))
    yield Open(made, tmp_path / "c")
    made.close()


async def optimised(opened: Open, meanwhile: object = None) -> None:
    """Run the optimiser until it has done its work once; `meanwhile` happens between the copy and
    its return."""
    locks = {"docs": anyio.Lock()}
    optimiser = Optimiser({"docs": opened.collection}, locks)
    before = shard_name(opened)
    make = shard_copy.ShardCopy.make

    def made(copy: shard_copy.ShardCopy) -> None:
        make(copy)
        if callable(meanwhile):
            anyio.from_thread.run_sync(meanwhile)

    shard_copy.ShardCopy.make = made  # type: ignore[assignment,method-assign]
    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(optimiser.run)
                while shard_name(opened) == before:  # noqa: ASYNC110 - a process beside
                    await anyio.sleep(0.02)
                tasks.cancel_scope.cancel()
    finally:
        shard_copy.ShardCopy.make = make  # type: ignore[method-assign]


def shard_name(opened: Open) -> str:
    contents = Folder(opened.path).read("docs")
    assert contents is not None
    return contents.shard


async def test_what_is_found_stays_and_the_copy_is_the_only_one(open_: Open) -> None:
    open_.put(document("a"), document("b"))
    before = open_.found()
    await optimised(open_)
    assert open_.found() == before == {"a": 50, "b": 50}
    assert [path.name for path in open_.path.iterdir() if path.is_dir()] == [shard_name(open_)]
    assert open_.collection.facets(None, ["tag"], None, 5) == {"tag": [("pear", 2)]}
    open_.put(document("c", 3))
    assert open_.found() == {**before, "c": 3}


async def test_what_is_written_and_removed_meanwhile_is_there_afterwards(open_: Open) -> None:
    open_.put(document("a"), document("b"), document("gone"))

    def meanwhile() -> None:
        open_.collection.declare({"tag": "keyword", "year": "integer"})
        open_.put(
            document("b", 7), document("c", 130), replace(document("d", 1), fields={"year": 7})
        )
        open_.collection.remove(
            [one for one in open_.collection.document_records(None) if one.document == "gone"]
        )

    await optimised(open_, meanwhile)
    assert open_.found() == {"a": 50, "b": 7, "c": 130, "d": 1}
    assert open_.collection.facets(None, ["year"], None, 5) == {"year": [(7, 1)]}
    open_.collection.close()
    again = Collection.open(open_.path, "docs")
    assert again is not None
    open_.collection = again
    assert open_.found() == {"a": 50, "b": 7, "c": 130, "d": 1}
    again.close()


async def test_a_copy_that_a_killed_process_left_is_removed(open_: Open) -> None:
    open_.put(document("a"))
    copy = open_.collection.begin_copy()
    copy.make()
    open_.collection.close()
    again = Collection.open(open_.path, "docs")
    assert again is not None
    again.close()
    assert not _there(copy.path)


async def test_without_the_disk_for_a_copy_nothing_happens(
    open_: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    open_.put(document("a"))
    before = shard_name(open_)
    usage = shutil.disk_usage(open_.path)
    full = usage._replace(free=1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _path: full)
        optimiser = Optimiser({"docs": open_.collection}, {"docs": anyio.Lock()})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(optimiser.run)
            with anyio.fail_after(60):
                while not optimiser._not_before:  # noqa: ASYNC110 - it tells nobody
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert "'docs' was not optimised: it needs" in capfd.readouterr().err
    assert shard_name(open_) == before
    assert open_.found() == {"a": 50}


def _there(path: Path) -> bool:
    return path.exists()


async def test_searches_go_on_while_a_worker_optimises(state: Path) -> None:
    plain = replace(MADE, fields={})
    client = KBClient(state, idle_s=20)
    for number in range(4):
        await client.put("docs", plain, document(f"{number}", 1500))
    pear = VectorQuestion(vector=pack_vector([1.0] * 8), text="pear", limit=5)
    with anyio.fail_after(120):
        while not (found := await anyio.to_thread.run_sync(_optimising, state)):
            assert len((await client.search("docs", plain, pear)).hits) == 5
            await anyio.sleep(0.01)
        [process] = found
        process.suspend()  # so that it cannot be done before the answer
        assert len((await client.search("docs", plain, pear)).hits) == 5
        process.resume()
        await anyio.to_thread.run_sync(process.wait)
        while "shard-2" not in await anyio.to_thread.run_sync(_names, state / "kb" / "c-docs"):
            assert len((await client.search("docs", plain, pear)).hits) == 5
            await anyio.sleep(0.01)
    assert (
        len(
            (
                await client.search(
                    "docs",
                    plain,
                    VectorQuestion(vector=pack_vector([1.0] * 8), text="x", limit=6000),
                )
            ).hits
        )
        == 6000
    )
    await client.aclose()


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _optimising(state: Path) -> list[psutil.Process]:
    """The process beside this state folder's worker, when it is at work."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if "groundhook.handlers.kb.embedded.optimise" in (command := process.info["cmdline"] or [])
        and str(state) in " ".join(command)
    ]
