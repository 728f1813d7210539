"""The toolkit `catalogue`: `searchDatasets` and `searchResources` over a portal of open data that
was synced into two collections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from groundhook.core.ports import ClientOf, Clock
from groundhook.core.sync_source import SyncSource
from groundhook.core.types.search import Item
from groundhook.core.types.sync import SyncStatus
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
from groundhook.toolkits.catalogue.source import FileSource, PortalSource

DATASETS = (
    "Search the datasets of an open-data catalogue by meaning, in any language, and by organization"
    " and tags. Returns titles, descriptions, publishers and how current each dataset is. Give a"
    " query or a filter."
)
RESOURCES = (
    "Search the files and services of an open-data catalogue by meaning, in any language, by"
    " dataset and by format. Returns their addresses. Give a query or a filter."
)


class Catalogue:
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
