"""The files of a collection are read from the disk before its first searches need them."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

import pytest

from groundhook.handlers.kb.embedded.folder import read_ahead

SIZE = 256 * mmap.PAGESIZE


def in_memory(path: Path) -> int:
    """Return how many pages of a file the system has in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = (ctypes.c_ubyte * (SIZE // mmap.PAGESIZE))()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), SIZE) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        try:
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), SIZE, flags)
        finally:
            del first
    assert not failed, os.strerror(ctypes.get_errno())
    return sum(flag & 1 for flag in flags)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system has no read-ahead")
def test_files_that_left_memory_are_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "segments" / "vectors.bin"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(path):
        pytest.skip("this file system keeps its files in memory")
    read_ahead(tmp_path)
    until = time.monotonic() + 10
    while in_memory(path) < SIZE // mmap.PAGESIZE // 2 and time.monotonic() < until:
        pass  # the system reads in the background
    assert in_memory(path) >= SIZE // mmap.PAGESIZE // 2


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    read_ahead(tmp_path / "gone")
