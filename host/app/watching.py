"""Watches files for changes: those of an app, and others."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
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
    some are, and update `seen` when the next ones are read."""

    async def look() -> dict[Path, Stamp]:
        return stamps(root)

    def folders() -> list[Path]:
        return [folder for name in FOLDERS if (folder := root / name).is_dir()]

    async with aclosing(looks(folders, look, seen)) as all:
        async for changed in all:
            if changed:
                yield changed


async def looks(
    folders: Callable[[], list[Path]],
    look: Callable[[], Awaitable[dict[Path, Stamp]]],
    seen: dict[Path, Stamp],
) -> AsyncGenerator[frozenset[Path]]:
    """Look at files whenever something happens in the folders, and at the latest after LOOK_MS.
    Yield those that differ from `seen`, also if there are none, and update `seen` when the next
    ones are read. An event of the operating system only triggers a look, since files in a new
    folder have no events."""
    with extra("authoring", "watching files"):
        from watchfiles import awatch
    while True:
        watched = folders()
        watching = awatch(
            *watched,
            step=SETTLED_MS,
            debounce=10 * SETTLED_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
        )
        async with aclosing(watching) as wakes:
            async for _ in wakes:
                now = await look()
                yield frozenset(
                    path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)
                )
                seen.clear()
                seen.update(now)
                if folders() != watched:
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
                if (stamp := stamp_of(path)) is not None:
                    found[path] = stamp
    return found


def stamp_of(path: Path) -> Stamp | None:
    """Return values that change when the file does; None if it was removed since it was listed."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
