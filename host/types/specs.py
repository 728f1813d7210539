"""What the files of an app declare beside assistants: collections, models and connectors.

One pydantic model for each kind of file (`*.kb.yao`, `*.mod.yao`, `*.conn.yao`); `host.packages` reads and checks them, the
handlers and the composition root receive them. `id` is given by the file's place: `docs`, or `agents.shop.product` for
`assistants/shop/models/product.mod.yao`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from host.types.base import Value

# ------------------------------------------------------------------------------------------------ *.kb.yao


class EmbeddingSpec(Value):
    provider: str = Field(default="builtin", description="`builtin` runs offline on the CPU")
    model: str = Field(default="", description="The provider's model; empty: its default")
    dimensions: int = Field(default=0, ge=0, description="0: the model's own")


class ChunkSpec(Value):
    size: int = Field(default=400, ge=32, le=2000, description="Most tokens in a chunk")
    overlap: int = Field(default=40, ge=0, description="Tokens repeated from the chunk before, within a section")


class AnalyserSpec(Value):
    language: str = Field(default="auto", description="Language of stemming and stop words for BM25")


class FieldSpec(Value):
    type: Literal["keyword", "text", "integer", "float", "boolean", "datetime"] = "keyword"


class EntitySpec(Value):
    types: tuple[str, ...] = ()


class CollectionSpec(Value):
    """A knowledge base collection."""

    id: str = ""
    name: str = ""
    description: str = ""
    embedding: EmbeddingSpec = EmbeddingSpec()
    analyser: AnalyserSpec = AnalyserSpec()
    chunk: ChunkSpec = ChunkSpec()
    fields: dict[str, FieldSpec] = {}
    tenant_field: str = ""
    entities: EntitySpec = EntitySpec()
    graph: bool = False
    threshold: float | None = Field(default=None, ge=0, le=1)


# ------------------------------------------------------------------------------------------------ *.mod.yao

ColumnType = Literal[
    "ID",
    "string",
    "text",
    "integer",
    "bigInteger",
    "float",
    "decimal",
    "boolean",
    "date",
    "datetime",
    "timestamp",
    "enum",
    "json",
]


class TableSpec(Value):
    name: str
    comment: str = ""


class ColumnSpec(Value):
    name: str
    type: ColumnType
    label: str = ""
    comment: str = ""
    option: tuple[str, ...] = Field(default=(), description="Values of an enum")
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    default: Any = None
    nullable: bool = False
    index: bool = False
    unique: bool = False


class RelationSpec(Value):
    type: Literal["hasOne", "hasMany"]
    model: str
    key: str = Field(description="Field of the other model")
    foreign: str = Field(description="Field of this model")


class IndexSpec(Value):
    name: str
    columns: tuple[str, ...]
    type: Literal["index", "unique"] = "index"


class ModelOptions(Value):
    timestamps: bool = False
    soft_deletes: bool = False
    permission: bool = False


class ModelSpec(Value):
    """A database model."""

    id: str = ""
    name: str = ""
    description: str = ""
    table: TableSpec
    columns: tuple[ColumnSpec, ...]
    relations: dict[str, RelationSpec] = {}
    indexes: tuple[IndexSpec, ...] = ()
    option: ModelOptions = ModelOptions()
    values: tuple[dict[str, Any], ...] = ()


# ------------------------------------------------------------------------------------------------ *.conn.yao


class ConnectorOptions(Value):
    model: str = ""
    host: str = Field(default="", description="Base URL of an OpenAI-compatible endpoint")
    key: str = ""
    timeout: float = Field(default=30.0, gt=0, description="Seconds without a byte before a call counts as stalled")
    retries: int = Field(default=2, ge=0, description="Tries again before the first byte")
    headers: dict[str, str] = {}
    temperature: float | None = None
    max_tokens: int | None = None
    script: tuple[Any, ...] = Field(default=(), description="What a scripted connector answers, in order")


class ConnectorSpec(Value):
    """A language model."""

    id: str = ""
    label: str = ""
    type: Literal["openai", "extractive", "scripted"]
    options: ConnectorOptions = ConnectorOptions()
