"""A file that only the user of the server can read, and that one process makes for all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from groundhook.core.errors import StorageError


def read_or_make(path: Path, content: bytes) -> bytes:
    """Return the content of a file, which is made with `content` if it is missing. Of several
    processes that make it at once, the first one's content holds. Raises StorageError."""
    try:
        if not path.exists():
            _make(path, content)
        return path.read_bytes()
    except OSError as exc:
        raise StorageError(f"{str(path)!r} cannot be used: {exc.strerror}") from exc


def _make(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        # Before it has its name: after a power cut the name must not lead to an empty file.
        os.fsync(file.fileno())
    try:
        os.link(new, path)  # which fails if another process was first
    except FileExistsError:
        pass
    finally:
        new.unlink()
