"""One sync of a toolkit at a time, also among processes.

The lock is the kernel's, so that it ends with its process, however that ended. The file holds the
number of the process for messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import portalocker
import psutil

from groundhook.core.errors import StorageError


@contextmanager
def alone(folder: Path, toolkit: str) -> Iterator[None]:
    """Hold the lock of a toolkit. Raises StorageError if another sync of it is running."""
    path = _path(folder, toolkit)
    try:
        # Not `w`, which would empty the number of the process that holds the lock.
        file = path.open("a+", encoding="ascii")
    except OSError as exc:
        raise StorageError(f"{str(path)!r} cannot be written: {exc.strerror or exc}") from exc
    with file:
        try:
            portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.LockException as exc:
            holder = _read(path)
            by = f" in process {holder}" if holder else ""
            raise StorageError(
                f"a sync of {toolkit!r} is already running{by}",
                hint="wait for it, or end that process: the next sync continues where it stopped",
            ) from exc
        path.chmod(0o600)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def holder(folder: Path, toolkit: str) -> int:
    """Return the process that syncs a toolkit at this moment, 0 if none does."""
    path = _path(folder, toolkit)
    process = _read(path)
    if not process or not psutil.pid_exists(process):
        return 0
    try:  # the number of a killed process, which another process may have now
        with path.open("r+", encoding="ascii") as file:
            portalocker.lock(file, portalocker.LOCK_SH | portalocker.LOCK_NB)
    except portalocker.LockException:
        return process
    except OSError:
        pass
    return 0


def _path(folder: Path, toolkit: str) -> Path:
    return folder / f"sync.{re.sub(r'[^A-Za-z0-9._-]', '_', toolkit)}.lock"


def _read(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii") or 0)
    except (OSError, ValueError):
        return 0
