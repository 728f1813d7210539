"""The source of a catalogue's sync: a CKAN portal, or a file with packages in CKAN's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from groundhook.core.errors import ConfigError, Place
from groundhook.core.sync_source import SyncBatch
from groundhook.core.types.sync import SyncSettings
from groundhook.toolkits.catalogue.ckan import Portal
from groundhook.toolkits.catalogue.packages import PackageReader

NOUN = "datasets"


class PortalSource:
    """A `SyncSource` over a portal."""

    noun = NOUN

    def __init__(self, portal: Portal, reader: PackageReader, settings: SyncSettings) -> None:
        self._portal = portal
        self._reader = reader
        self.settings = settings
        self.name = portal.name
        self.identity = f"ckan {portal.base} {reader.tenant}"

    async def newest(self) -> str:
        return await self._portal.newest()

    async def lists_changes(self, since: str, known: int, /) -> bool:
        return await self._portal.lists_changes(since, known)

    async def read(self, position: str, since: str, /) -> SyncBatch:
        page = await self._portal.read(position, since)
        return SyncBatch(
            records=[self._reader.record(package) for package in page.packages],
            position=page.position,
            total=page.total,
            last=page.last,
        )


class FileSource:
    """A `SyncSource` over a file: a list of packages, or an answer of CKAN that holds one. `shown`
    is its path in messages."""

    noun = NOUN

    def __init__(
        self, path: Path, shown: str, reader: PackageReader, settings: SyncSettings
    ) -> None:
        self._path = path
        self._shown = shown
        self._reader = reader
        self.settings = settings
        self.name = f"the file {shown!r}"
        self.identity = f"file {shown} {reader.tenant}"
        self._packages: Sequence[Mapping[str, Any]] = ()

    async def newest(self) -> str:
        """Return "": the file is read whole each time."""
        return ""

    async def lists_changes(self, _: str, __: int, /) -> bool:
        """Return False."""
        return False

    async def read(self, position: str, _: str, /) -> SyncBatch:
        """Return the next packages, from the first one if the file was not read yet. Raises
        ConfigError."""
        start = int(position or 0) if self._packages else 0
        if not start:
            self._packages = await anyio.to_thread.run_sync(self._read)
        end = start + self.settings.page
        return SyncBatch(
            records=[self._reader.record(package) for package in self._packages[start:end]],
            position=str(end),
            total=len(self._packages),
            last=end >= len(self._packages),
            resumable=False,  # the file may change
        )

    def _read(self) -> Sequence[Mapping[str, Any]]:
        try:
            value = json.loads(self._path.read_text(encoding="utf-8-sig"))
        except OSError as exc:
            raise ConfigError(
                f"{self._shown!r} cannot be read: {exc.strerror or exc}",
                hint="source.file of the toolkit names it",
            ) from exc
        except (ValueError, RecursionError) as exc:
            line = exc.lineno if isinstance(exc, json.JSONDecodeError) else 0
            raise ConfigError(f"it is not JSON: {exc}", place=Place(self._shown, line)) from exc
        while isinstance(value, dict):
            value = next((value[name] for name in ("result", "results") if name in value), None)
        if not isinstance(value, list) or not all(
            isinstance(each, dict) and each.get("id") for each in value
        ):
            raise ConfigError(
                "it is not a list of packages with ids, as CKAN returns them",
                place=Place(self._shown),
            )
        # Exports that were read page by page may have a package twice.
        return list({str(each["id"]): each for each in value}.values())
