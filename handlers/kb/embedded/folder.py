"""The folder of one collection: `made.json` with the settings and the names of the current files,
and those files.

`made.json` is replaced in one step. Files that it does not name were left by a process that was
killed and are removed when the collection is opened. A folder without it is incomplete and counts
as missing.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from urllib.parse import quote

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.store.port import CollectionSettings

_FILE = "made.json"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """`shard` and `manifest` are names in the folder."""

    settings: CollectionSettings
    shard: str = "shard"
    manifest: str = "manifest.sqlite"


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, id: str) -> Contents | None:
        """Return the contents; None if there is no collection. Raises StorageError."""
        try:
            raw = json.loads((self.path / _FILE).read_text(encoding="utf-8"))
            raw = {"analyser": 0, **raw}  # files of the first version have no number
            settings = CollectionSettings(
                **{
                    field.name: raw[field.name]
                    for field in fields(CollectionSettings)
                    if field.name in raw
                }
            )
            return Contents(
                settings=settings,
                **{name: str(raw[name]) for name in ("shard", "manifest") if name in raw},
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RecursionError) as exc:
            raise StorageError(
                f"collection {id!r} in {str(self.path)!r} cannot be read: {exc}", hint=remedy(id)
            ) from exc

    def write(self, contents: Contents) -> None:
        """Make these the current files. Raises OSError."""
        unfinished = self.path / f"{_FILE}.new"
        values = {
            **asdict(contents.settings),
            "shard": contents.shard,
            "manifest": contents.manifest,
        }
        unfinished.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.path / _FILE)

    def begin(self) -> None:
        """Create the folder, empty. Raises OSError."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def forget(self) -> None:
        """Make the folder count as missing; its files remain."""
        (self.path / _FILE).unlink()

    def remove(self) -> None:
        """Remove the folder, or a file in its place. Raises StorageError."""
        try:
            if (self.path / _FILE).is_file():
                self.forget()
            shutil.rmtree(self.path, ignore_errors=True)
            if self.path.is_file():
                self.path.unlink()
        except OSError as exc:
            raise StorageError(f"{str(self.path)!r} cannot be removed: {exc.strerror}") from exc

    def free_name(self, stem: str, suffix: str = "") -> str:
        """Return an unused name for files that replace others, such as `shard-2`."""
        number = 2
        while (self.path / f"{stem}-{number}{suffix}").exists():
            number += 1
        return f"{stem}-{number}{suffix}"

    def tidy(self, contents: Contents) -> None:
        """Remove files that are not current."""
        for path in self.path.iterdir():
            if (
                path.name == _FILE
                or path.name == contents.shard
                or path.name.startswith(contents.manifest)
            ):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def remedy(collection: str) -> str:
    """Return what to do about a collection whose files are damaged."""
    return (
        f"if its files are damaged, `groundhook kb remove {collection} --all` removes them; then"
        " add its documents again"
    )


def folder_of(root: Path, collection: str) -> Folder:
    """Return the folder of a collection. Ids are quoted, so that each has exactly one folder."""
    return Folder(root / ("c-" + quote(collection, safe=" ")))


def identity(file: os.stat_result) -> list[int]:
    """Return what distinguishes a file from its copies."""
    return [file.st_dev, file.st_ino]


def size(folder: Path) -> int:
    """Return the bytes on disk, without files that are removed at the same time."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                total += path.stat().st_blocks * 512
    return total


def read_ahead(folder: Path) -> None:
    """Have the system read a collection's vectors from the disk before the first searches need
    them. Does nothing where they would fill more than half of the free memory, or where the system
    cannot do it."""
    advise = getattr(os, "posix_fadvise", None)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if advise else 0
    if advise is None or size(folder) > free // 2:
        return
    for path in folder.rglob("*"):
        with suppress(OSError):  # files come and go while a collection is written
            if path.is_file():
                with path.open("rb") as file:
                    advise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
