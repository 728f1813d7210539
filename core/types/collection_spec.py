"""The content of `*.kb.yao`: a knowledge base collection."""

from __future__ import annotations

from re import fullmatch
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.fields import FieldType
from groundhook.core.types.filters import DOCUMENT, WORDS
from groundhook.core.types.serialisation import WebAddress
from groundhook.core.types.turn import Identity

NEVER = ("blob", "data", "file", "javascript", "vbscript")  # schemes that clients run or read from


class EmbeddingSpec(Value):
    """The embedding model of a collection."""

    provider: str = Field(
        default="builtin",
        description=(
            "`builtin`: offline, on the CPU; `onnx`: a model in a folder; `voyage`, `openai`, or a"
            " name under `embedders` of agent/agent.yml"
        ),
    )
    model: str = Field(default="", description="The provider's model; empty: its default")
    dimensions: int = Field(default=0, ge=0, description="0: the model's own")
    path: str = Field(default="", description="Of `onnx`: the folder, below the app's")


class ChunkSpec(Value):
    """The cutting of documents into chunks."""

    size: int = Field(default=400, ge=32, le=2000, description="Maximum tokens in a chunk")
    overlap: int = Field(
        default=40,
        ge=0,
        description="Tokens repeated from the previous chunk of a section; at most half a chunk",
    )
    by: Literal["heading", "paragraph", "page", "size"] = Field(
        default="heading",
        description=(
            "Boundary that no chunk crosses: a heading's section, a paragraph (list, table, code),"
            " a page; size: none"
        ),
    )

    @model_validator(mode="after")
    def _overlaps(self) -> ChunkSpec:
        if "overlap" in self.model_fields_set and self.overlap > self.size // 2:
            raise ValueError(
                f"overlap must be at most half of size, {self.size // 2}, not {self.overlap}"
            )
        return self


class AnalyserSpec(Value):
    """The analysis of text for BM25."""

    language: str = Field(
        default="auto", description="Language of stemming and stop words for BM25"
    )


class RowSpec(Value):
    """The meaning of columns in CSV and JSON Lines files; by default it follows from their
    names."""

    id: str = Field(default="", description="Column with the unique id of the row")
    title: str = Field(default="", description="Column with the title")
    text: tuple[str, ...] = Field(default=(), description="Columns with the text")
    url: str = Field(default="", description="Column with the address")


class FieldSpec(Value):
    """A payload field; the type alone is enough: `"year": "integer"`."""

    type: FieldType = Field(
        default="keyword",
        description="`keyword` is compared as a whole, `text` is only returned",
    )
    filterable: bool = Field(
        default=True, description="Whether `filter` may use it; never for text"
    )
    facetable: bool = Field(
        default=False,
        description="Whether `facets` may count its values: keyword, integer, boolean",
    )
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _type_alone(cls, raw: Any) -> Any:
        return {"type": raw} if isinstance(raw, str) else raw

    @model_validator(mode="after")
    def _possible(self) -> FieldSpec:
        if self.type == "text" and "filterable" in self.model_fields_set and self.filterable:
            raise ValueError("a filter cannot use a text field; declare it as a keyword")
        if self.facetable and self.type not in ("keyword", "integer", "boolean"):
            raise ValueError(
                f"values of type {self.type} cannot be counted; keyword, integer and boolean can"
            )
        return self


class EntitySpec(Value):
    """The entities of a collection's graph."""

    types: tuple[str, ...] = Field(default=(), description="Types of entities to keep; none: all")
    extractor: str = Field(
        default="builtin",
        description="`builtin` (rules), `spacy[:model]`, `connector:<id>`, an assistant, or"
        " `mcp:<server>[.<tool>]`",
    )
    dictionary: dict[str, tuple[str, ...]] = Field(default={}, description="Names to find, by type")


class PermissionSpec(Value):
    """The identities that may search a collection: with `named`, those with a user, a team or a
    tenant; with lists, those in one of them. An empty list allows none. The word alone is enough:
    `"permission": "user"`."""

    named: Literal["anyone", "user", "team", "tenant"] = "anyone"
    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    scopes: tuple[str, ...] = Field(default=(), description="Words in the identity's scope")

    @model_validator(mode="before")
    @classmethod
    def _word_alone(cls, raw: Any) -> Any:
        return {"named": raw} if isinstance(raw, str) else raw

    def admits(self, identity: Identity) -> bool:
        """Return whether the identity is one of those that the permission names."""
        if self.named != "anyone" and not getattr(identity, f"{self.named}_id"):
            return False
        if not self.model_fields_set & {"users", "teams", "tenants", "scopes"}:
            return True
        listed = (
            (self.users, [identity.user_id]),
            (self.teams, [identity.team_id]),
            (self.tenants, [identity.tenant_id]),
            (self.scopes, identity.scope.split()),
        )
        return any(name and name in allowed for allowed, names in listed for name in names)


class StorageSpec(Value):
    """Storage of a collection on a Qdrant server or cluster; `quantisation` and `on_disk` also
    apply to the embedded engine."""

    shards: int = Field(
        default=1, ge=1, le=1024, description="Parts distributed over the machines of a cluster"
    )
    replicas: int = Field(
        default=1, ge=1, le=64, description="Copies of each part, on different machines"
    )
    quantisation: Literal["none", "scalar", "binary"] = Field(
        default="none",
        description=(
            "In memory `scalar` keeps a byte for each dimension, `binary` a bit (for 1,024"
            " dimensions and more)"
        ),
    )
    on_disk: bool = Field(
        default=False,
        description="Whether full vectors are read from disk instead of kept in memory",
    )


class ExistingSpec(Value):
    """A collection of a Qdrant server that another program makes and fills; it is only read. Every
    point is a document of one passage; keys of its payload may be paths, such as
    `metadata.source`."""

    collection: str = Field(min_length=1, description="Its name on the server")
    url: WebAddress = Field(
        default="", description="Address of the server; empty: that of `qdrant.url`"
    )
    api_key: str = Field(default="", description="Key of that server, as $ENV.NAME")
    vector: str = Field(
        default="", description="Name of the vector that is searched; empty: the only one"
    )
    title: str = Field(default="title", description="Key of the payload with the title")
    text: tuple[str, ...] = Field(
        default=("text",), description="Keys with the text, in the order in which it is read"
    )
    address: str = Field(default="url", description="Key with the address")


class CollectionSpec(Value):
    """A knowledge base collection.

    `id` follows from the file's path: `docs`, or `agents.shop.manuals` for
    `assistants/shop/kb/manuals.kb.yao`.
    """

    id: str = ""
    name: str = ""
    description: str = ""
    embedding: EmbeddingSpec = defaults_of(EmbeddingSpec)
    analyser: AnalyserSpec = defaults_of(AnalyserSpec)
    chunk: ChunkSpec = defaults_of(ChunkSpec)
    rows: RowSpec = defaults_of(RowSpec)
    fields: dict[str, FieldSpec] = Field(
        default={}, description="Fields of documents from front matter and columns, by name"
    )
    tenant_field: str = Field(
        default="",
        description="Field or column with the tenant of a document",
    )
    entities: EntitySpec = defaults_of(EntitySpec)
    graph: bool = False
    threshold: float | None = Field(default=None, ge=0, le=1)
    schemes: tuple[str, ...] = Field(
        default=(),
        description="Schemes that addresses of its documents may have, besides http and https",
    )
    permission: PermissionSpec = defaults_of(PermissionSpec)
    storage: StorageSpec = defaults_of(StorageSpec)
    existing: ExistingSpec | None = Field(
        default=None, description="Read from a Qdrant collection that another program made"
    )

    @model_validator(mode="after")
    def _readable(self) -> CollectionSpec:
        if self.existing is not None and self.graph:
            raise ValueError("a collection that another program made has no graph: remove 'graph'")
        return self

    @field_validator("fields")
    @classmethod
    def _names(cls, fields: dict[str, FieldSpec]) -> dict[str, FieldSpec]:
        for name in fields:
            if name in (*WORDS, DOCUMENT):
                raise ValueError(f"a field cannot be named {name!r}: filters use that word")
            if not name.strip() or len(name) > 64 or '"' in name or not name.isprintable():
                raise ValueError(
                    f"{name!r} cannot be a field's name: use 1 to 64 characters without double"
                    " quotes"
                )
        return fields

    @field_validator("schemes")
    @classmethod
    def _linkable(cls, schemes: tuple[str, ...]) -> tuple[str, ...]:
        for scheme in schemes:
            if not fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
                raise ValueError(
                    f"{scheme!r} is not a scheme: write it in small letters, without ':'"
                )
            if scheme in NEVER:
                raise ValueError(f"{scheme!r} cannot be allowed: clients would run or read it")
        return schemes

    @field_validator("tenant_field")
    @classmethod
    def _apart(cls, name: str, info: ValidationInfo) -> str:
        if name in info.data.get("fields", {}):
            alone = "only the host may filter by it, so it cannot be in 'fields' too"
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
