"""The settings of a toolkit of type `catalogue`."""

from __future__ import annotations

from pydantic import Field, model_validator

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.serialisation import Headers, WebAddress
from groundhook.core.types.sync import SyncSettings
from groundhook.core.types.toolkit_spec import ToolkitSettings


class CatalogueCollections(Value):
    """The collections of datasets and of their resources."""

    datasets: str = "datasets"
    resources: str = "resources"


class CatalogueSource(Value):
    """The source of the catalogue: a portal, or a file with packages in CKAN's shape."""

    ckan: WebAddress = Field(
        default="", description="Address of a CKAN portal, such as https://data.example.org"
    )
    file: str = Field(
        default="",
        description="File with a list of packages as CKAN returns them, in the toolkit's folder",
    )
    columns: bool = Field(
        default=False,
        description=(
            "Whether the columns of a portal's files are read: from its datastore, else from the"
            " first 64 kB of CSV files on its own host; a request for each new file"
        ),
    )
    key: str = Field(default="", description="API key of the portal, as $ENV.NAME")
    headers: Headers = Field(default={}, description="Sent with every request")
    tenant: str = Field(
        default="", description="Tenant whose datasets these are, for collections with tenants"
    )
    timeout_ms: int = Field(default=30_000, ge=1, description="One request")
    retry_ms: int = Field(
        default=1000,
        ge=0,
        description="Pause before a failed request is repeated, twice as long the second time",
    )
    max_kb: int = Field(default=65_536, ge=1, description="Largest answer, after decompression")

    @model_validator(mode="after")
    def _check_one_source(self) -> CatalogueSource:
        if bool(self.ckan) == bool(self.file):
            raise ValueError("should name either a portal (`ckan`) or a file (`file`)")
        return self


class CatalogueSettings(ToolkitSettings):
    """The file of a toolkit of type `catalogue`."""

    collections: CatalogueCollections = defaults_of(CatalogueCollections)
    source: CatalogueSource | tuple[CatalogueSource, ...] = Field(
        description=(
            "A portal or a file; a list of them makes one catalogue, in which a dataset of several"
            " portals is that of the first"
        )
    )
    sync: SyncSettings = defaults_of(SyncSettings)
    limit: int = Field(
        default=10, ge=1, le=100, description="Results of a call that names no limit"
    )

    @property
    def sources(self) -> tuple[CatalogueSource, ...]:
        return self.source if isinstance(self.source, tuple) else (self.source,)

    @model_validator(mode="after")
    def _some(self) -> CatalogueSettings:
        if not self.sources:
            raise ValueError("source: should name a portal or a file")
        return self
