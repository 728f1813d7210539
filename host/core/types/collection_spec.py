"""The content of `*.kb.yao`: a knowledge base collection."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from groundhook.host.core.types.base import Value
from groundhook.host.core.types.fields import FieldType
from groundhook.host.core.types.filters import DOCUMENT, WORDS


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
