"""What the files of an app declare beside assistants: collections, models, connectors and MCP servers.

One pydantic model for each kind of file (`*.kb.yao`, `*.mod.yao`, `*.conn.yao`, `*.mcp.yao`); `host.packages` reads and checks
them, the handlers and the composition root receive them. `id` is given by the file's place: `docs`, or `agents.shop.product` for
`assistants/shop/models/product.mod.yao`.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from host.types.base import Value

# ------------------------------------------------------------------------------------------------ *.kb.yao


class EmbeddingSpec(Value):
    provider: str = Field(
        default="builtin",
        description="`builtin` runs offline on the CPU; `voyage`, `openai`, or a name under `embedders` of agent/agent.yml",
    )
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
    "char",
    "uuid",
    "text",
    "longText",
    "smallInteger",
    "integer",
    "bigInteger",
    "float",
    "double",
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
    label: str = Field(default="", description="What people call it; questions may use it")
    comment: str = Field(default="", description="Pieces of up to three words, parted by commas, are further names for questions")
    option: tuple[str, ...] = Field(default=(), description="Values of an enum")
    primary: bool = Field(default=False, description="The primary key, where no column has the type ID")
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
    timestamps: bool = Field(default=False, description="Columns created_at and updated_at")
    soft_deletes: bool = Field(default=False, description="Column deleted_at; rows that have it are never found")
    permission: bool = Field(default=False, description="Columns __yao_*; rows are found by those they belong to, nobody else")


TIMESTAMPS = ("created_at", "updated_at")
DELETED = "deleted_at"
CREATED_BY, UPDATED_BY, TEAM, TENANT = "__yao_created_by", "__yao_updated_by", "__yao_team_id", "__yao_tenant_id"
SHARE = "__yao_share"  # private (default), team or tenant
PERMISSION = (CREATED_BY, UPDATED_BY, TEAM, TENANT, SHARE)


class ModelSpec(Value):
    """A database model. The columns that its options add (`TIMESTAMPS`, `DELETED`, `PERMISSION`) are not declared."""

    id: str = ""
    name: str = ""
    description: str = ""
    table: TableSpec
    columns: tuple[ColumnSpec, ...]
    relations: dict[str, RelationSpec] = {}
    indexes: tuple[IndexSpec, ...] = ()
    option: ModelOptions = ModelOptions()
    values: tuple[dict[str, Any], ...] = ()

    @field_validator("columns")
    @classmethod
    def _usable(cls, columns: tuple[ColumnSpec, ...]) -> tuple[ColumnSpec, ...]:
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the column {name!r} is declared twice")
        for column in columns:
            if column.type == "enum" and not column.option:
                raise ValueError(f"the enum column {column.name!r} has no 'option' with its values")
        keys = [column.name for column in columns if column.primary or column.type == "ID"]
        if len(keys) != 1:
            raise ValueError(f"needs exactly one primary key (a column of type 'ID', or 'primary: true'); has {keys or 'none'}")
        return columns

    @model_validator(mode="after")
    def _columns_exist(self) -> ModelSpec:
        names = {column.name for column in self.columns} | {*TIMESTAMPS, DELETED, *PERMISSION}
        for index in self.indexes:
            for missing in set(index.columns) - names:
                raise ValueError(f"the index {index.name!r} is over a column {missing!r} that is not declared")
        for name, relation in self.relations.items():
            if relation.foreign not in names:
                raise ValueError(f"the relation {name!r} starts from a column {relation.foreign!r} that is not declared")
        return self


# ------------------------------------------------------------------------------------------------ *.conn.yao


class ConnectorOptions(Value):
    model: str = ""
    host: str = Field(default="", description="Base URL of an OpenAI-compatible endpoint")
    key: str = ""
    timeout: float = Field(default=30.0, gt=0, description="Seconds without a byte before a call counts as stalled")
    retries: int = Field(default=2, ge=0, description="Tries again before the first byte")
    headers: dict[str, str] = {}
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=0)
    script: tuple[Any, ...] = Field(default=(), description="What a scripted connector answers, in order")


class ConnectorSpec(Value):
    """A language model."""

    id: str = ""
    label: str = ""
    type: Literal["openai", "extractive", "scripted"]
    options: ConnectorOptions = ConnectorOptions()


# ------------------------------------------------------------------------------------------------ *.mcp.yao


class ServerSpec(Value):
    """An MCP server: a program that speaks over its standard streams (`stdio`), or an address (`http`, streamable HTTP)."""

    id: str = ""
    label: str = ""
    description: str = ""
    transport: Literal["stdio", "http"] = "stdio"
    command: str = Field(default="", validate_default=True, description="Program of a stdio server; runs in the app's folder")
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(
        default={}, description="Variables for the program, beside HOME, LOGNAME, PATH, SHELL, TERM, USER"
    )
    url: str = Field(default="", validate_default=True, description="Address of an http server, such as https://host/mcp")
    headers: dict[str, str] = Field(default={}, description="Sent with every request to an http server")
    timeout: float = Field(default=30.0, gt=0, description="Seconds for one call")
    start_timeout: float = Field(
        default=30.0, gt=0, description="Seconds for starting or connecting, which the first call waits for"
    )
    result_kb: int = Field(default=4096, ge=1, description="Largest answer, as JSON")
    tools: tuple[str, ...] = Field(default=(), description="Tools that may be used; none named: all")
    read_only: tuple[str, ...] = Field(
        default=(), description="Tools that only read although the server does not say so; their calls may be tried again"
    )

    @field_validator("command")
    @classmethod
    def _program(cls, command: str, info: ValidationInfo) -> str:
        if not command.strip() and info.data.get("transport") == "stdio":
            raise ValueError("a stdio server needs the program to run (or say transport: 'http')")
        return command

    @field_validator("url")
    @classmethod
    def _address(cls, url: str, info: ValidationInfo) -> str:
        if info.data.get("transport") == "http":
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("an http server needs its address, such as 'https://host/mcp'")
        return url
