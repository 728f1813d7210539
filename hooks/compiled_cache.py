"""Compiled files on disk, by the hash of their source. An entry has a digest: one that was cut,
changed or copied from another entry is ignored, and its file is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = "18/typescript-5.7.3"  # of the entries; change it with the compiler or transpile.js
LARGEST_ENTRY = 32 * 1024 * 1024  # bytes


@dataclass
class CompiledFile:
    """A file as the compiler left it: `requires` are (name, emitted line, emitted column),
    the other lists those of transpile.js."""

    code: str
    mappings: str = ""
    requires: list[tuple[str, int, int]] = field(default_factory=list)
    functions: list[dict[str, Any]] = field(default_factory=list)
    reexports: list[dict[str, Any]] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    names: list[dict[str, Any]] = field(default_factory=list)


def cache_key(suffix: str, source: str) -> str:
    """Return the key of a source file."""
    return hashlib.sha256(f"{VERSION}\n{suffix}\n{source}".encode()).hexdigest()


def load(folder: Path, key: str) -> CompiledFile | None:
    """Return the entry of a key; None if there is none, or if it was changed."""
    path = folder / f"{key}.json"
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_ENTRY:
            return None
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        requires = [(str(name), int(line), int(column)) for name, line, column in raw["requires"]]
        found = CompiledFile(
            str(raw["code"]),
            str(raw["mappings"]),
            requires,
            list(raw["functions"]),
            list(raw["reexports"]),
            list(raw["imports"]),
            list(raw["names"]),
        )
        return found if raw["digest"] == _digest(key, found) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def save(folder: Path, key: str, compiled: CompiledFile) -> None:
    """Write an entry; a cache that cannot be written only costs time."""
    path = folder / f"{key}.json"
    fresh = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        # "x": never write through a link that another user of the folder has created
        with fresh.open("x", encoding="utf-8") as file:
            file.write(json.dumps({**vars(compiled), "digest": _digest(key, compiled)}))
        fresh.replace(path)


def _digest(key: str, compiled: CompiledFile) -> str:
    """Return the digest that binds a compiled file to its source: an entry that was cut, or copied
    from another key, has a wrong one."""
    whole = json.dumps([key, *vars(compiled).values()])
    return hashlib.sha256(whole.encode()).hexdigest()
