"""A disk that is really full under the worker: nothing acknowledged is lost, and the error names
the disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorAnswer,
    VectorQuestion,
)
from tests.loops import run

MADE = CollectionSettings(provider="test", model="test", dimensions=256, language="english")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 300 MB; its worker is ended and it is gone when the test is over."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk of a test's own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:

        async def stop() -> None:
            (place / "filler").unlink(missing_ok=True)
            client = KBClient(place / "state", idle_s=5)
            await client.stop_worker()
            await client.aclose()

        try:
            run(stop)
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)


def document(name: str, passages: int) -> FullDocument:
    texts = [f"pear {name} {n} " * 20 for n in range(passages)]
    vectors = [pack_vector([1.0, n, *[0.5] * 254]) for n in range(passages)]
    made = [
        Passage(passage=str(n), content=texts[n], text=texts[n], vector=vectors[n])
        for n in range(passages)
    ]
    return FullDocument(document=name, title=name, fingerprint="1", passages=tuple(made))


def fill(disk: Path) -> None:
    """Take what is left of the disk."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass


async def ask(client: KBClient) -> VectorAnswer:
    return await client.search(
        "docs", MADE, VectorQuestion(vector=pack_vector([1.0] * 256), text="pear", limit=1000)
    )


async def test_a_disk_that_fills_while_a_document_is_written_loses_nothing_that_was_acknowledged(
    disk: Path,
) -> None:
    client = KBClient(disk / "state", idle_s=30)
    acknowledged = set()
    for number in range(5):
        await client.put("docs", MADE, document(f"{number}", 20))
        acknowledged.add(f"{number}")
    filled = False

    def progress(done: int, _total: int) -> None:
        nonlocal filled
        if not filled:
            filled = True
            fill(disk)

    refused = None
    for number in range(5, 60):
        try:
            await client.put("docs", MADE, document(f"{number}", 400), progress=progress)
        except StorageError as exc:
            refused = str(exc)
            break
        acknowledged.add(f"{number}")
    assert refused is not None
    assert "MB" in refused or "No space" in refused
    assert "what was added before is intact" in refused or "No space" in refused
    (disk / "filler").unlink()
    assert {one.document for one in (await client.usage("docs", None)).documents} == acknowledged
    for name in acknowledged:
        assert len((await client.passages("docs", None, {name: None}))[name]) == (
            20 if int(name) < 5 else 400
        )
    assert await client.put("docs", MADE, document("later", 20)) == ["added"]
    assert {hit.document for hit in (await ask(client)).hits} <= acknowledged | {"later"}
    await client.aclose()


async def test_on_a_full_disk_searches_are_answered_and_adding_is_refused(disk: Path) -> None:
    client = KBClient(disk / "state", idle_s=30)
    await client.put("docs", MADE, document("one", 20))
    fill(disk)
    assert os.statvfs(disk).f_bavail == 0
    assert len((await ask(client)).hits) == 20
    with pytest.raises(
        StorageError, match=r"0 MB of disk are free.*what was added before is intact"
    ):
        await client.put("docs", MADE, document("two", 20))
    assert len((await ask(client)).hits) == 20
    await client.aclose()
