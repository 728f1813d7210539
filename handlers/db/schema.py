"""A model as queries see it: its fields with their kinds, its primary key, its title, the texts that are searched.

Pure; knows no database. What a model's options add (timestamps, soft deletes, permission columns) are fields as well, marked
`hidden`: they can be asked about by name, and are never returned or searched unless selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from host.types.specs import DELETED, PERMISSION, TIMESTAMPS, ColumnSpec, ModelSpec

Kind = Literal["text", "integer", "number", "boolean", "date", "moment", "json"]

KINDS: dict[str, Kind] = {
    "ID": "integer",
    "string": "text",
    "char": "text",
    "uuid": "text",
    "text": "text",
    "longText": "text",
    "enum": "text",
    "smallInteger": "integer",
    "integer": "integer",
    "bigInteger": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "boolean": "boolean",
    "date": "date",
    "datetime": "moment",
    "timestamp": "moment",
    "json": "json",
}
LONG = frozenset({"text", "longText"})
TITLES = ("title", "name", "full_name", "label", "subject", "headline", "number", "code", "sku", "email")


@dataclass(frozen=True)
class Field:
    """A field of a model. `options`: the values of an enum. `long`: prose rather than a short value."""

    name: str
    kind: Kind
    label: str = ""
    comment: str = ""
    options: tuple[str, ...] = ()
    nullable: bool = True
    long: bool = False
    hidden: bool = False

    @property
    def shown(self) -> str:
        """As a person reads it: `Released`, or `Unit price` for a column `unit_price` without a label."""
        return self.label or self.name.replace("_", " ").strip().capitalize()


@dataclass(frozen=True)
class Schema:
    """A model's fields in the order of declaration, by name. `names`: what people call the model."""

    id: str
    name: str
    names: tuple[str, ...]
    fields: dict[str, Field]
    key: str
    title: str

    @property
    def visible(self) -> list[Field]:
        return [field for field in self.fields.values() if not field.hidden]

    @property
    def texts(self) -> list[Field]:
        """The fields that a text search looks into."""
        return [field for field in self.visible if field.kind == "text"]


def schema_of(spec: ModelSpec) -> Schema:
    """The schema of a model."""
    fields = {column.name: _declared(column) for column in spec.columns}
    if spec.option.timestamps:
        fields.update((name, Field(name, "moment", hidden=True)) for name in TIMESTAMPS if name not in fields)
    if spec.option.soft_deletes and DELETED not in fields:
        fields[DELETED] = Field(DELETED, "moment", hidden=True)
    if spec.option.permission:
        fields.update((name, Field(name, "text", hidden=True)) for name in PERMISSION)
    key = next(column.name for column in spec.columns if column.primary or column.type == "ID")
    own = spec.id.rpartition(".")[2].replace("_", " ")
    name = spec.name or own.capitalize()
    names = (name, own, spec.table.name.replace("_", " "), *short_pieces(spec.table.comment))
    return Schema(spec.id, name, names, fields, key, _title(fields))


def short_pieces(comment: str) -> list[str]:
    """The pieces of a comment, parted by commas, that are names rather than sentences: up to three words."""
    pieces = (piece.strip() for piece in comment.replace(";", ",").split(","))
    return [piece for piece in pieces if 0 < len(piece.split()) <= 3]


def _declared(column: ColumnSpec) -> Field:
    return Field(
        column.name,
        KINDS[column.type],
        column.label,
        column.comment,
        column.option,
        nullable=column.nullable,
        long=column.type in LONG,
    )


def _title(fields: dict[str, Field]) -> str:
    """The field that names a record best; empty where no short text does."""
    short = [
        field.name for field in fields.values() if field.kind == "text" and not (field.long or field.options or field.hidden)
    ]
    return next((name for name in TITLES if name in short), short[0] if short else "")
