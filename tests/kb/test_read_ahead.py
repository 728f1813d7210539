"""The files of a collection are read from the disk before its first searches need them."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedded.folder import read_ahead
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import CollectionSettings, FullDocument, Passage
from tests.kb.conftest import end_worker

SIZE = 256 * mmap.PAGESIZE


needs_read_ahead = pytest.mark.skipif(
    not hasattr(os, "posix_fadvise"), reason="the system has no read-ahead"
)


def in_memory(path: Path, size: int = SIZE) -> int:
    """Return how many pages of a file's first `size` bytes the system has in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = (ctypes.c_ubyte * (size // mmap.PAGESIZE))()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        try:
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), size, flags)
        finally:
            del first
    assert not failed, os.strerror(ctypes.get_errno())
    return sum(flag & 1 for flag in flags)


def evict(path: Path) -> None:
    """Have the system drop the file from memory; skip the test where it does not."""
    until = time.monotonic() + 5
    while time.monotonic() < until:  # a process that just ended may still have it mapped
        with path.open("r+b") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if not in_memory(path):
            return
    pytest.skip("this file system keeps its files in memory")


@needs_read_ahead
def test_files_that_left_memory_are_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "segments" / "vectors.bin"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
    evict(path)
    read_ahead(tmp_path)
    until = time.monotonic() + 60
    while in_memory(path) < SIZE // mmap.PAGESIZE // 2 and time.monotonic() < until:
        pass  # the system reads in the background
    assert in_memory(path) >= SIZE // mmap.PAGESIZE // 2


@needs_read_ahead
async def test_a_collection_is_read_ahead_when_it_is_opened(tmp_path: Path) -> None:
    made = CollectionSettings(provider="hash", model="letters", dimensions=1)
    passages = tuple(
        Passage(passage=str(at), content="pear " * 100, text="pear", vector=pack_vector([1.0]))
        for at in range(SIZE // 500)
    )
    client = KBClient(tmp_path, idle_s=60)
    await client.put(
        "a", made, FullDocument(document="x", title="", fingerprint="1", passages=passages)
    )
    await client.aclose()
    await end_worker(tmp_path)
    texts = max((tmp_path / "kb").rglob("page_*.dat"), key=lambda path: path.stat().st_blocks)
    evict(texts)
    client = KBClient(tmp_path, idle_s=60)
    try:
        assert (await client.usage("a", None)).documents  # reads no passage
        with anyio.fail_after(60):
            while in_memory(texts) < SIZE // mmap.PAGESIZE // 2:
                await anyio.lowlevel.checkpoint()
    finally:
        await client.aclose()
        await end_worker(tmp_path)


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    read_ahead(tmp_path / "gone")
