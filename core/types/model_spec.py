"""The content of `*.mod.yao`: a database model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.model_options import DatabaseModelOptions, PermissionColumns

_Type = Literal[
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
# Further names of types; unsigned integers are as wide as all of their values need.
_SAME: dict[str, str] = {
    "id": "ID",
    "increments": "ID",
    "bigIncrements": "ID",
    "tinyInteger": "smallInteger",
    "unsignedTinyInteger": "smallInteger",
    "unsignedSmallInteger": "integer",
    "mediumInteger": "integer",
    "unsignedInteger": "bigInteger",
    "unsignedBigInteger": "bigInteger",
    "year": "smallInteger",
    "unsignedFloat": "float",
    "unsignedDouble": "double",
    "unsignedDecimal": "decimal",
    "mediumText": "longText",
    "dateTime": "datetime",
    "datetimeTz": "datetime",
    "dateTimeTz": "datetime",
    "timestampTz": "timestamp",
    "ipAddress": "string",
    "macAddress": "string",
    "JSON": "json",
    "jsonb": "json",
    "JSONB": "json",
}
ColumnType = Annotated[
    _Type,
    BeforeValidator(lambda name: _SAME.get(name, name) if isinstance(name, str) else name),
    WithJsonSchema({"type": "string", "enum": [*get_args(_Type), *_SAME]}),
]


TITLES = (
    "title",
    "name",
    "full_name",
    "label",
    "subject",
    "headline",
    "number",
    "code",
    "sku",
    "email",
)
SHORT_TEXT = frozenset({"string", "char"})

UNREAD = "Accepted, and not read"  # keys of writers and of pages, which do not change who sees what


class TableSpec(Value):
    """The table of a model."""

    name: str
    comment: str = ""


class ColumnFormat(Value):
    """How the values of a column are written for readers. Programs get them unchanged."""

    unit: str = Field(default="", max_length=20, description="Written after a number: `km`, `%`")
    currency: str = Field(
        default="", max_length=20, description="Written after an amount, with two decimals: `EUR`"
    )
    decimals: int | None = Field(
        default=None, ge=0, le=12, description="Decimals of a number (default: as many as it has)"
    )
    duration: Literal["ms", "s", "min", "h"] | None = Field(
        default=None, description="The number is a duration in this unit, written as `1:02:03`"
    )
    date: Literal["year", "month", "day", "minute"] | None = Field(
        default=None, description="The last part of a date that is written"
    )

    @model_validator(mode="after")
    def _is_one_kind(self) -> ColumnFormat:
        kinds = ("unit", "currency", "duration", "date")
        given = [name for name in kinds if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"{given[0]!r} and {given[1]!r} exclude each other")
        return self


class ColumnSpec(Value):
    """A column of a model."""

    name: str
    type: ColumnType
    label: str = Field(default="", description="Its name in questions")
    comment: str = Field(
        default="",
        description=(
            "Parts of up to three words, separated by commas, are more names for questions"
        ),
    )
    option: tuple[str, ...] = Field(default=(), description="Values of an enum")
    format: ColumnFormat | None = Field(
        default=None, description="How its values are written for readers"
    )
    primary: bool = Field(
        default=False,
        description="Whether it is the primary key, or one of its columns, if none has the type ID",
    )
    length: int | None = Field(default=None, ge=1)
    precision: int | None = Field(default=None, ge=1)
    scale: int | None = Field(default=None, ge=0)
    default: Any = None
    nullable: bool = False
    index: bool = False
    unique: bool = False
    title: str = Field(default="", description=UNREAD)
    description: str = Field(default="", description=UNREAD)
    example: Any = Field(default=None, description=UNREAD)
    validations: tuple[Any, ...] = Field(default=(), description=f"{UNREAD}: rows are not written")
    crypt: str = Field(default="", description="Refused: values that are encrypted or secret")

    @field_validator("crypt")
    @classmethod
    def _is_secret(cls, crypt: str) -> str:
        if crypt:
            raise ValueError(
                "encrypted columns cannot be read (remove the column from the model: the host reads"
                " no column that a model does not declare)"
            )
        return crypt

    @model_validator(mode="after")
    def _enum_has_options(self) -> ColumnSpec:
        if self.type == "enum" and not self.option:
            raise ValueError(f"the enum column {self.name!r} has no 'option' with its values")
        return self


class ThroughSpec(Value):
    """The join table of a relation between many records and many."""

    model: str = Field(description="Its model")
    key: str = Field(description="Its column with the values of `foreign`")
    foreign: str = Field(description="Its column with the values of `key` of the other model")


class RelationSpec(Value):
    """A relation to another model."""

    type: Literal["hasOne", "hasMany"]
    model: str
    key: str = Field(description="Field of the other model")
    foreign: str = Field(description="Field of this model")
    through: ThroughSpec | None = Field(
        default=None, description="The join table between the two models; for hasMany"
    )

    @model_validator(mode="after")
    def _joins_many(self) -> RelationSpec:
        if self.through and self.type != "hasMany":
            raise ValueError("'through' needs the type hasMany: a join table may have several rows")
        return self


class IndexSpec(Value):
    """An index over columns."""

    name: str
    columns: tuple[str, ...] = Field(min_length=1)
    type: Literal["index", "unique"] = "index"
    comment: str = Field(default="", description=UNREAD)


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


_IN_TITLE = re.compile(r"\{([^{}]*)\}")


def title_columns(title: str) -> tuple[str, ...]:
    """Return the columns that a model's `title` names: those in braces, or the title itself."""
    named = _IN_TITLE.findall(title)
    return tuple(dict.fromkeys(named)) if named else (title,) if title else ()


def fill_title(title: str, texts: Mapping[str, str]) -> str:
    """Return a model's `title` with the texts of its columns."""
    template = title if _IN_TITLE.search(title) else f"{{{title}}}"
    filled = _IN_TITLE.sub(lambda column: texts.get(column[1], ""), template)
    has_value = any(texts.get(name) for name in title_columns(title))
    return " ".join(filled.split()) if has_value else ""


def _key_columns(columns: Iterable[ColumnSpec]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.primary or column.type == "ID")


class ModelSpec(Value):
    """A database model. `columns` are without those that its options add (`TIMESTAMPS`, `DELETED`,
    `PERMISSION`).

    `id` follows from the file's path: `product`, or `agents.shop.product` for
    `assistants/shop/models/product.mod.yao`."""

    id: str = ""
    name: str = ""
    label: str = Field(default="", description="One more name in questions")
    title: str = Field(
        default="",
        max_length=500,
        description=(
            "What stands for a record: a column, or a text with columns such as `{first} {last}`"
        ),
    )
    description: str = ""
    connection: str = Field(
        default="", description="The database of its table, one of `databases`; empty: `database`"
    )
    table: TableSpec
    columns: tuple[ColumnSpec, ...]
    relations: dict[str, RelationSpec] = {}
    indexes: tuple[IndexSpec, ...] = ()
    option: DatabaseModelOptions = defaults_of(DatabaseModelOptions)
    values: tuple[dict[str, Any], ...] = ()
    imported: tuple[str, ...] = Field(
        default=(),
        description=(
            "Columns that the table had when `groundhook db import` read it: `--update` adds only"
            " others"
        ),
    )
    file: str = Field(
        default="",
        description=(
            "The file that its table was made of: `groundhook db import FILE` may fill it anew"
            " (`--replace`) or add to it (`--append`)"
        ),
    )
    tags: tuple[str, ...] = Field(default=(), description=UNREAD)
    sort: int = Field(default=0, description=UNREAD)
    builtin: bool = Field(default=False, description=UNREAD)
    readonly: bool = Field(default=False, description=UNREAD)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return _key_columns(self.columns)

    @property
    def titled(self) -> str:
        """What stands for a record: `title`, else a column with a usual name, else the first short
        text that is unique; "" for neither."""
        if self.title:
            return self.title
        short = [column for column in self.columns if column.type in SHORT_TEXT]
        usual = [name for name in TITLES if any(column.name == name for column in short)]
        single = {
            index.columns[0]
            for index in self.indexes
            if index.type == "unique" and len(index.columns) == 1
        }
        unique = [column.name for column in short if column.unique or column.name in single]
        return next(iter([*usual, *unique]), "")

    @field_validator("columns")
    @classmethod
    def _usable(cls, columns: tuple[ColumnSpec, ...]) -> tuple[ColumnSpec, ...]:
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the column {name!r} is declared twice")
        keys = _key_columns(columns)
        if not keys or (len(keys) > 1 and any(column.type == "ID" for column in columns)):
            raise ValueError(
                "needs a primary key: one column of type 'ID', or 'primary: true' for each column"
                f" of the key; not {list(keys) or 'none'}"
            )
        return columns

    @model_validator(mode="after")
    def _columns_exist(self) -> ModelSpec:
        declared = {column.name for column in self.columns}
        for name in title_columns(self.title):
            if name not in declared:
                raise ValueError(f"'title' names the column {name!r}, which is not declared")
        names = declared | {*TIMESTAMPS, DELETED, *PERMISSION}
        for index in self.indexes:
            for missing in set(index.columns) - names:
                raise ValueError(
                    f"the index {index.name!r} names the column {missing!r}, which is not declared"
                )
        owners = self.option.permission
        for missing in set(owners.named if isinstance(owners, PermissionColumns) else ()) - names:
            raise ValueError(
                f"'option.permission' names the column {missing!r}, which is not declared"
            )
        for name, relation in self.relations.items():
            if relation.foreign not in names:
                raise ValueError(
                    f"the relation {name!r} names the column {relation.foreign!r}, which is not"
                    " declared"
                )
        return self
