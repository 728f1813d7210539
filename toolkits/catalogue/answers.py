"""The arguments and answers of `searchDatasets` and `searchResources`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints

from groundhook.core.types.base import Few

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
MOST_RESULTS = 100  # of one page


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DatasetArguments(_Arguments):
    """The arguments of `searchDatasets`."""

    query: _Text | None = Field(
        default=None, description="What the datasets are about, in any language"
    )
    organization: _Name | None = Field(
        default=None, description="Only datasets of this organization: its name, title or id"
    )
    tag: _Name | None = Field(default=None, description="Only datasets with this tag")
    tags: Few[list[_Name]] = Field(
        default=[], max_length=20, description="Only datasets with all of these tags"
    )
    limit: int | None = Field(
        default=None, ge=1, le=MOST_RESULTS, description="Most datasets to return (default: 10)"
    )
    offset: int = Field(default=0, ge=0, le=1000, description="Datasets to skip: of earlier pages")
    refine: bool = Field(
        default=False,
        description="Count the results by organization, tag and format, to narrow the search",
    )


class ResourceArguments(_Arguments):
    """The arguments of `searchResources`."""

    query: _Text | None = Field(
        default=None, description="What the files are about, in any language"
    )
    datasetId: _Name | None = Field(  # noqa: N815
        default=None, description="Only files of this dataset: its id or name"
    )
    format: _Name | None = Field(default=None, description="Only files of this format, such as csv")
    limit: int | None = Field(
        default=None, ge=1, le=MOST_RESULTS, description="Most files to return (default: 10)"
    )
    offset: int = Field(default=0, ge=0, le=1000, description="Files to skip: of earlier pages")


class Dataset(_Answer):
    """A dataset that was found. `organization` and `tags` can be used as filters."""

    id: str
    title: str
    description: str
    organization: str = Field(description="Short name of the organization")
    organizationTitle: str  # noqa: N815
    tags: list[str]
    score: float = Field(ge=0, le=1, description="Relevance, 0-1; 1 without a query")
    url: str
    modified: str = Field(description="Last change in the catalogue, ISO 8601; empty: not known")
    formats: list[str]
    frequency: str = Field(description="How often it should be updated; empty: not given")
    overdue: bool | None = Field(description="Whether an update is overdue; null: not known")
    _key: str = PrivateAttr("")


class DatasetResource(_Answer):
    """A file or service of a dataset."""

    id: str
    name: str
    url: str
    format: str
    description: str
    datasetId: str  # noqa: N815
    datasetTitle: str  # noqa: N815
    columns: list[str] = Field(description="Columns of a table; empty: not known")
    score: float = Field(ge=0, le=1, description="Relevance, 0-1; 1 without a query")
    _key: str = PrivateAttr("")


class Count(_Answer):
    """A value and the number of results that have it."""

    value: str
    count: int


class Refinements(_Answer):
    """Counts over the results, the most frequent values first."""

    organizations: list[Count]
    tags: list[Count]
    formats: list[Count]


class _Found(_Answer):
    success: bool
    total: int = Field(description="All results, not only those of this page")
    totalIs: Literal["exact", "at_least"] = Field(  # noqa: N815
        default="exact", description="`at_least`: there are more than were counted"
    )
    asOf: str = Field(  # noqa: N815
        default="", description="When the catalogue was last synced, ISO 8601; empty: not known"
    )
    message: str = Field(default="", description="What is missing or wrong, if anything is")


class DatasetsFound(_Found):
    """The answer of `searchDatasets`."""

    datasets: list[Dataset]
    refinements: Refinements | None = Field(default=None, description="Only if `refine` is set")


class ResourcesFound(_Found):
    """The answer of `searchResources`."""

    resources: list[DatasetResource]
