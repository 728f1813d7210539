"""The toolkit `catalogue`: `searchDatasets` and `searchResources` over a portal of open data that
was synced into two collections.

The source of a catalogue's sync: a CKAN portal, or a file with packages in CKAN's shape.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from groundhook.core.errors import ConfigError, Place
from groundhook.core.ports import ClientOf, Clock
from groundhook.core.sync_source import SyncBatch, SyncSource
from groundhook.core.types.search import Item
from groundhook.core.types.sync import SyncSettings, SyncStatus
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import Tool
from groundhook.toolkits.catalogue.answers import (
    DatasetArguments,
    DatasetsFound,
    ResourceArguments,
    ResourcesFound,
)
from groundhook.toolkits.catalogue.ckan import Portal
from groundhook.toolkits.catalogue.columns import ColumnReader
from groundhook.toolkits.catalogue.packages import PackageReader
from groundhook.toolkits.catalogue.search import CatalogueSearch
from groundhook.toolkits.catalogue.settings import CatalogueSettings, CatalogueSource
from groundhook.toolkits.catalogue.several import SeveralSources

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


DATASETS = (
    "Search the datasets of an open-data catalogue by meaning, in any language, and by organization"
    " and tags. Returns titles, descriptions, publishers and how current each dataset is. Give a"
    " query or a filter."
)
RESOURCES = (
    "Search the files and services of an open-data catalogue by meaning, in any language, by"
    " dataset and by format. Returns their addresses. Give a query or a filter."
)


class CatalogueToolkit:
    """A catalogue as its file declares it. `synced` returns the state of its syncs."""

    def __init__(
        self,
        spec: ToolkitSpec,
        *,
        client_of: ClientOf,
        now: Clock,
        synced: Callable[[], Awaitable[SyncStatus]],
    ) -> None:
        self._spec = spec
        self._settings = spec.read(CatalogueSettings)
        self._client_of = client_of
        self._now = now
        search = CatalogueSearch(self._settings, spec.name, synced)
        self._tools = (
            Tool(
                name="searchDatasets",
                description=DATASETS,
                arguments=DatasetArguments,
                run=search.datasets,
                answers=DatasetsFound,
                items=dataset_items,
            ),
            Tool(
                name="searchResources",
                description=RESOURCES,
                arguments=ResourceArguments,
                run=search.resources,
                answers=ResourcesFound,
                items=resource_items,
            ),
        )

    def tools(self) -> Sequence[Tool]:
        """Return the two tools."""
        return self._tools

    def sync(self) -> SyncSource:
        """Return the portal, or the files and portals as one source."""
        found = [self._source(source) for source in self._settings.sources]
        if len(found) == 1 and isinstance(found[0], PortalSource):
            return found[0]  # it lists its changes, and keeps its ids apart
        return SeveralSources(found, self._settings.sync)

    def _source(self, source: CatalogueSource) -> SyncSource:
        settings, collections = self._settings.sync, self._settings.collections
        if source.file:
            reader = PackageReader(collections=collections, tenant=source.tenant)
            return FileSource(self._spec.folder / source.file, source.file, reader, settings)
        portal = Portal(source, settings.page, self._client_of, self._now, self._spec.shown)
        reader = PackageReader(
            collections=collections,
            portal=portal.base,
            tenant=source.tenant,
            columns=ColumnReader(portal, source, self._client_of).of if source.columns else None,
        )
        return PortalSource(portal, reader, settings)


def dataset_items(found: DatasetsFound) -> list[Item]:
    """Return the datasets as sources that a model can cite."""
    return [
        Item(
            type="kb",
            key=f"kb:{each._key}/{each.id}",
            title=each.title,
            content=each.description or each.title,
            url=each.url,
            score=each.score,
            document_id=each.id,
            collection=each._key,
        )
        for each in found.datasets
    ]


def resource_items(found: ResourcesFound) -> list[Item]:
    """Return the resources as sources that a model can cite."""
    return [
        Item(
            type="kb",
            key=f"kb:{each._key}/{each.id}",
            title=f"{each.datasetTitle}: {each.name}",
            content=each.description or each.name,
            url=each.url if each.url.startswith(("http://", "https://")) else "",
            score=each.score,
            document_id=each.id,
            collection=each._key,
        )
        for each in found.resources
    ]
