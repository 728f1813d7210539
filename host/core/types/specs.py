"""What the files of an app declare beside assistants: collections, models, connectors and MCP
servers.

One pydantic model for each kind of file (`*.kb.yao`, `*.mod.yao`, `*.conn.yao`, `*.mcp.yao`);
`host.config.packages` reads and checks them, the handlers and the composition root receive them.
`id` is given by the file's place: `docs`, or `agents.shop.product` for
`assistants/shop/models/product.mod.yao`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.fields import FieldType
from groundhook.host.core.types.filters import DOCUMENT, WORDS
from groundhook.host.core.types.model_options import ModelOptions, PermissionColumns
from groundhook.host.core.types.serialisation import Headers, Variables, WebAddress, web_address

# ----------------------------------------------------------------------------------------- *.kb.yao


class EmbeddingSpec(Value):
    provider: str = Field(
        default="builtin",
        description=(
            "`builtin` runs offline on the CPU; `onnx`: a model in a folder of yours; `voyage`,"
            " `openai`, or a name under `embedders` of agent/agent.yml"
        ),
    )
    model: str = Field(default="", description="The provider's model; empty: its default")
    dimensions: int = Field(default=0, ge=0, description="0: the model's own")
    path: str = Field(default="", description="Of `onnx`: the folder, below the app's")


class ChunkSpec(Value):
    size: int = Field(default=400, ge=32, le=2000, description="Most tokens in a chunk")
    overlap: int = Field(
        default=40,
        ge=0,
        description="Tokens repeated from the chunk before, within a section; half a chunk at most",
    )
    by: Literal["heading", "paragraph", "page", "size"] = Field(
        default="heading",
        description=(
            "What no chunk goes beyond: a heading's section, a paragraph (list, table, code), a"
            " page; size: nothing"
        ),
    )

    @model_validator(mode="after")
    def _overlaps(self) -> ChunkSpec:
        if "overlap" in self.model_fields_set and self.overlap > self.size // 2:
            raise ValueError(
                f"overlap is at most half of size, {self.size // 2}, not {self.overlap}"
            )
        return self


class AnalyserSpec(Value):
    language: str = Field(
        default="auto", description="Language of stemming and stop words for BM25"
    )


class RowSpec(Value):
    """Which columns of CSV and JSON Lines files mean what; what is not said goes by the columns'
    names."""

    id: str = Field(default="", description="Column with the id of the row, which no other row has")
    title: str = Field(default="", description="Column with the title")
    text: tuple[str, ...] = Field(default=(), description="Columns with the text")
    url: str = Field(default="", description="Column with the address")


class FieldSpec(Value):
    """A payload field; its type alone will do: `"year": "integer"`."""

    type: FieldType = Field(
        default="keyword",
        description="`keyword` is compared whole, `text` is shown and not compared",
    )
    filterable: bool = Field(default=True, description="`filter` may use it; text never")
    facetable: bool = Field(
        default=False, description="`facets` may count its values: keyword, integer and boolean"
    )
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _type_alone(cls, raw: Any) -> Any:
        return {"type": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _possible(self) -> FieldSpec:
        if self.type == "text" and "filterable" in self.model_fields_set and self.filterable:
            raise ValueError("a text field cannot be filtered by; declare it as a keyword")
        if self.facetable and self.type not in ("keyword", "integer", "boolean"):
            raise ValueError(
                f"values of type {self.type} cannot be counted; keyword, integer and boolean can"
            )
        return self


class EntitySpec(Value):
    """What the graph of a collection is made of."""

    types: tuple[str, ...] = Field(
        default=(), description="Kinds of entities to keep; none: all that are found"
    )
    extractor: str = Field(
        default="builtin",
        description="`builtin` (rules), `spacy[:model]`, an assistant, or `mcp:<server>[.<tool>]`",
    )
    dictionary: dict[str, tuple[str, ...]] = Field(
        default={}, description="Names to look for, by their kind"
    )


class PermissionSpec(Value):
    """Who may search a collection: with `named`, requests whose identity names a user, a team or a
    tenant; with lists, those that are in one of them. A list that is empty lets nobody in. The word
    alone will do: `"permission": "user"`."""

    named: Literal["anyone", "user", "team", "tenant"] = "anyone"
    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    scopes: tuple[str, ...] = Field(default=(), description="Words of the identity's scope")

    @model_validator(mode="before")
    @classmethod
    def _word_alone(cls, raw: Any) -> Any:
        return {"named": raw} if isinstance(raw, str) else raw


class StorageSpec(Value):
    """How a collection lies on a Qdrant server or cluster; `quantisation` and `on_disk` hold for
    the embedded engine too."""

    shards: int = Field(
        default=1, ge=1, le=1024, description="Parts that a cluster spreads over its machines"
    )
    replicas: int = Field(
        default=1, ge=1, le=64, description="Copies of each part, on different machines"
    )
    quantisation: Literal["none", "scalar", "binary"] = Field(
        default="none",
        description=(
            "`scalar` keeps a byte a dimension in memory, `binary` a bit (for 1,024 dimensions and"
            " more)"
        ),
    )
    on_disk: bool = Field(
        default=False, description="Full vectors are read from disk instead of kept in memory"
    )


class CollectionSpec(Value):
    """A knowledge base collection."""

    id: str = ""
    name: str = ""
    description: str = ""
    embedding: EmbeddingSpec = EmbeddingSpec()
    analyser: AnalyserSpec = AnalyserSpec()
    chunk: ChunkSpec = ChunkSpec()
    rows: RowSpec = RowSpec()
    fields: dict[str, FieldSpec] = Field(
        default={}, description="What front matter and columns say of a document, by name"
    )
    tenant_field: str = Field(
        default="",
        description="Documents belong to tenants; the field or column that says to which",
    )
    entities: EntitySpec = EntitySpec()
    graph: bool = False
    threshold: float | None = Field(default=None, ge=0, le=1)
    permission: PermissionSpec = PermissionSpec()
    storage: StorageSpec = StorageSpec()

    @field_validator("fields")
    @classmethod
    def _names(cls, fields: dict[str, FieldSpec]) -> dict[str, FieldSpec]:
        for name in fields:
            if name in (*WORDS, DOCUMENT):
                raise ValueError(
                    f"no field can be called {name!r}: it has a meaning of its own in filters"
                )
            if not name.strip() or len(name) > 64 or '"' in name or not name.isprintable():
                raise ValueError(
                    f"{name!r} cannot be a field's name: 1 to 64 characters, none of them a double"
                    " quote"
                )
        return fields

    @field_validator("tenant_field")
    @classmethod
    def _apart(cls, name: str, info: ValidationInfo) -> str:
        if name in info.data.get("fields", {}):
            alone = "only the host filters by it, so it cannot be among 'fields' as well"
            raise ValueError(f"{alone}: remove {name!r} from 'fields', or name another field here")
        return name

    @property
    def types(self) -> dict[str, FieldType]:
        """The type of each field."""
        return {name: field.type for name, field in self.fields.items()}

    @property
    def filterable(self) -> dict[str, FieldType]:
        """The fields that a filter may use."""
        usable = {
            name: field.type
            for name, field in self.fields.items()
            if field.filterable and field.type != "text"
        }
        return {DOCUMENT: "keyword", **usable}


# ---------------------------------------------------------------------------------------- *.mod.yao

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
    comment: str = Field(
        default="",
        description=(
            "Pieces of up to three words, parted by commas, are further names for questions"
        ),
    )
    option: tuple[str, ...] = Field(default=(), description="Values of an enum")
    primary: bool = Field(
        default=False, description="The primary key, where no column has the type ID"
    )
    length: int | None = Field(default=None, ge=1)
    precision: int | None = Field(default=None, ge=1)
    scale: int | None = Field(default=None, ge=0)
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
    columns: tuple[str, ...] = Field(min_length=1)
    type: Literal["index", "unique"] = "index"


TIMESTAMPS = ("created_at", "updated_at")
DELETED = "deleted_at"
CREATED_BY, UPDATED_BY, TEAM, TENANT = (
    "__yao_created_by",
    "__yao_updated_by",
    "__yao_team_id",
    "__yao_tenant_id",
)
SHARE = "__yao_share"  # private (default), team or tenant
PERMISSION = (CREATED_BY, UPDATED_BY, TEAM, TENANT, SHARE)


class ModelSpec(Value):
    """A database model. The columns that its options add (`TIMESTAMPS`, `DELETED`, `PERMISSION`)
    are not declared."""

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
            raise ValueError(
                "needs exactly one primary key (a column of type 'ID', or 'primary: true'); has"
                f" {keys or 'none'}"
            )
        return columns

    @model_validator(mode="after")
    def _columns_exist(self) -> ModelSpec:
        names = {column.name for column in self.columns} | {*TIMESTAMPS, DELETED, *PERMISSION}
        for index in self.indexes:
            for missing in set(index.columns) - names:
                raise ValueError(
                    f"the index {index.name!r} is over a column {missing!r} that is not declared"
                )
        said = self.option.permission
        for missing in set(said.named if isinstance(said, PermissionColumns) else ()) - names:
            raise ValueError(f"'option.permission' names a column {missing!r} that is not declared")
        for name, relation in self.relations.items():
            if relation.foreign not in names:
                raise ValueError(
                    f"the relation {name!r} starts from a column {relation.foreign!r} that is not"
                    " declared"
                )
        return self


# --------------------------------------------------------------------------------------- *.conn.yao


class ConnectorOptions(Value):
    model: str = ""
    host: WebAddress = Field(default="", description="Base URL of an OpenAI-compatible endpoint")
    key: str = ""
    first_token_timeout: float = Field(
        default=60.0, gt=0, description="Seconds from the request to the first token of an answer"
    )
    timeout: float = Field(
        default=30.0, gt=0, description="Seconds from one token to the next, and to connect"
    )
    retries: int = Field(default=2, ge=0, description="Tries again before the first token")
    headers: Headers = {}
    sources: Literal["user", "system"] = Field(
        default="user",
        description="Where sources stand: in front of the question, or in the system message",
    )
    system: Literal["first", "none"] = Field(
        default="first",
        description="`none`: the first user message begins with what the system message says",
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(
        default=None, ge=0, description="0: the model's own, as if it was not said"
    )
    max_completion_tokens: int | None = Field(
        default=None, ge=0, description="As `max_tokens`, for models that want this name"
    )
    top_p: float | None = Field(default=None, ge=0, le=1)
    stop: tuple[str, ...] = ()
    seed: int | None = None
    body: dict[str, Any] = Field(
        default={}, description="Further keys of each request, for what an endpoint has of its own"
    )
    script: tuple[Any, ...] = Field(
        default=(), description="What a scripted connector answers, in order"
    )
    plugin: dict[str, Any] = Field(
        default={}, description="What a plug-in's connector has of its own"
    )


class ConnectorSpec(Value):
    """A language model."""

    id: str = ""
    label: str = ""
    type: str = Field(
        min_length=1, description="`openai`, `extractive`, `scripted`, or that of a plug-in"
    )
    options: ConnectorOptions = ConnectorOptions()


# ---------------------------------------------------------------------------------------- *.mcp.yao


class ServerSpec(Value):
    """An MCP server: a program that speaks over its standard streams (`stdio`), or an address
    (`http`, streamable HTTP)."""

    id: str = ""
    label: str = ""
    description: str = ""
    transport: Literal["stdio", "http"] = "stdio"
    command: str = Field(
        default="",
        validate_default=True,
        description="Program of a stdio server; runs in the app's folder",
    )
    args: tuple[str, ...] = ()
    env: Variables = Field(
        default={},
        description="Variables for the program, beside HOME, LOGNAME, PATH, SHELL, TERM, USER",
    )
    url: str = Field(
        default="",
        validate_default=True,
        description="Address of an http server, such as https://host/mcp",
    )
    headers: Headers = Field(default={}, description="Sent with every request to an http server")
    timeout: float = Field(default=30.0, gt=0, description="Seconds for one call")
    start_timeout: float = Field(
        default=30.0,
        gt=0,
        description="Seconds for starting or connecting, which the first call waits for",
    )
    result_kb: int = Field(default=4096, ge=1, description="Largest answer, as JSON")
    tools: tuple[str, ...] = Field(
        default=(), description="Tools that may be used; none named: all"
    )
    read_only: tuple[str, ...] = Field(
        default=(),
        description=(
            "Tools that only read although the server does not say so; their calls may be tried"
            " again"
        ),
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
            if not url:
                raise ValueError("an http server needs its address, such as 'https://host/mcp'")
            web_address(url)
        return url
