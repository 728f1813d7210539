"""Watches an app's files for changes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from groundhook.core.extras import extra
from groundhook.host.config import tree

FOLDERS = ("agent", "assistants", *tree.ENDINGS)  # of an app; others are not watched
SETTLED_MS = 20  # time without a change after which changes are reported
LOOK_MS = 1000  # longest time until new folders, and files in them, are seen

_SKIPPED = frozenset({"node_modules", "__pycache__"})

Stamp = tuple[int, int, int]


async def changes(root: Path, seen: dict[Path, Stamp]) -> AsyncGenerator[frozenset[Path]]:
    """Yield the files of the app that were created, written or removed since `seen`, each time that
    some are, and update `seen` when the next ones are read. An event of the operating system only
    triggers a look at the files, since files in a new folder have no events."""
    with extra("authoring", "watching files"):
        from watchfiles import awatch
    while True:
        folders = [folder for name in FOLDERS if (folder := root / name).is_dir()]
        watching = awatch(
            *folders,
            step=SETTLED_MS,
            debounce=10 * SETTLED_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
        )
        async with aclosing(watching) as wakes:
            async for _ in wakes:
                now = stamps(root)
                changed = frozenset(
                    path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)
                )
                if changed:
                    yield changed
                seen.clear()
                seen.update(now)
                if [folder for name in FOLDERS if (folder := root / name).is_dir()] != folders:
                    break  # to watch the new folder as well


def stamps(root: Path) -> dict[Path, Stamp]:
    """Return every file that an app may consist of, with values that change when the file does."""
    found: dict[Path, Stamp] = {}
    for name in FOLDERS:
        for folder, inner, files in os.walk(root / name):
            inner[:] = [
                each
                for each in inner
                if not each.startswith(".") and each not in _SKIPPED and each != "tests"
            ]
            for file in files:
                if file.startswith(".") or file.endswith(("~", ".swp", ".tmp")):
                    continue
                path = Path(folder, file)
                try:
                    status = path.stat()
                except OSError:
                    continue  # removed since it was listed
                found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
