"""Models for the tables and views of an existing database: columns, keys, relations from foreign
keys and through join tables, labels from names, titles, and options from few distinct values.

Records are told apart by a key: where none is declared, a column whose values are all different is
taken, and said; a table or view without one is named and skipped, as are columns of types that no
model has. Nothing is written to the database.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.types import TypeEngine

from groundhook.handlers.db.model import fulltext
from groundhook.handlers.db.model.schema_diff import MOST_KEYED, Difference, compare
from groundhook.handlers.db.model.tables import Declared
from groundhook.handlers.db.model.updating import IMPORTED

SAMPLED = 5000  # rows that are read for the options of a column
MOST_OPTIONS = 12
LEAST_FLAGS = 10  # rows of a column of 0 and 1 that is read as no and yes
LEAST_REPEATS = 5  # rows for each option
LONGEST_OPTION = 40  # characters
LONGEST_STRING = 120  # characters of values that are names rather than prose
MOST_TRIED = 50  # columns of which one may be the key
TITLE_WORDS = ("title", "name", "full name", "label", "subject", "headline")
PERSON_WORDS = (
    ("first name", "given name", "forename", "firstname"),
    ("last name", "family name", "surname", "lastname"),
)
# Columns of names, of which many share one: few values do not make them a choice.
NAME_WORDS = frozenset({"name", "full name", "title", "middle name", *sum(PERSON_WORDS, ())})
# Only what means one word in any table: "dep" is a departure, a department or a deposit.
ABBREVIATED = {
    "acct": "account",
    "addr": "address",
    "amt": "amount",
    "dept": "department",
    "dest": "destination",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "mgr": "manager",
    "qty": "quantity",
}
TYPES: tuple[tuple[type[TypeEngine[Any]], str], ...] = (
    (sa.Boolean, "boolean"),
    (sa.SmallInteger, "smallInteger"),
    (sa.BigInteger, "bigInteger"),
    (sa.Integer, "integer"),
    (sa.Float, "double"),
    (sa.Numeric, "decimal"),
    (sa.DateTime, "datetime"),
    (sa.Date, "date"),
    (sa.JSON, "json"),
    (sa.Uuid, "uuid"),
    (sa.Enum, "enum"),
    (sa.Text, "text"),
    (sa.String, "string"),
)
_MOMENT = re.compile(
    r"[12]\d{3}-[01]\d-[0-3]\d(?P<time>[T ][0-2]\d:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?Z?)?"
)
INTEGERS = frozenset({"smallInteger", "bigInteger", "integer"})


@dataclass
class ImportedModel:
    """The content of a model's file, and what was left out of it."""

    id: str
    content: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        return str(self.content["table"]["name"])

    @property
    def keys(self) -> list[str]:
        """The columns of its primary key."""
        columns = self.content["columns"]
        return [one["name"] for one in columns if one["type"] == "ID" or one.get("primary")]


@dataclass
class Import:
    """The models of a database's tables, and why other tables have none. `declared` are the ids of
    the app's own models of these tables, by table, and `differences` how they differ, by id."""

    models: list[ImportedModel]
    left_out: dict[str, str]
    declared: dict[str, str] = field(default_factory=dict)
    differences: dict[str, list[Difference]] = field(default_factory=dict)


def read_models(connection: Connection, declared: Sequence[Declared] = ()) -> Import:
    """Return models for the tables of a database, which refer to `declared` models by their ids
    where there are some."""
    found = _Reader.read(connection)
    tables = {model.table: model for model in found.models}
    for each in declared:
        if (model := tables.get(each.table.name)) is not None:
            found.declared.setdefault(model.table, each.spec.id)
            found.differences[each.spec.id] = compare(connection, each)
    ids = {model.id: found.declared.get(model.table, model.id) for model in found.models}
    for model in found.models:
        model.id = ids[model.id]
        for relation in model.content.get("relations", {}).values():
            relation["model"] = ids[relation["model"]]
            if "through" in relation:
                relation["through"]["model"] = ids[relation["through"]["model"]]
    return found


@dataclass
class _Reader:
    connection: Connection
    inspector: sa.Inspector
    models: dict[str, ImportedModel] = field(default_factory=dict)  # by table
    left_out: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(connection: Connection) -> Import:
        reader = _Reader(connection, sa.inspect(connection))
        tables = reader.inspector.get_table_names()
        indexes = tuple(map(fulltext.name_of, tables))
        for table in sorted(tables):
            if not table.startswith(indexes):  # SQLite keeps a full-text index in tables
                reader._add(table)
        for view in sorted(reader.inspector.get_view_names()):
            reader._add(view, view=True)
        for table in reader.models:
            reader._relate(table)
        for table in reader.models:
            reader._relate_through(table)
        return Import(list(reader.models.values()), reader.left_out)

    def _add(self, table: str, *, view: bool = False) -> None:
        model = ImportedModel(self._id(table), {"name": words_of(table), "table": {"name": table}})
        key = [] if view else self.inspector.get_pk_constraint(table)["constrained_columns"]
        if not key and (guessed := self._guess_key(table)):
            model.notes.append(f"the key is guessed: all values of {guessed!r} are different")
            key = [guessed]
        if not key:
            kind = "a view has no primary key" if view else "its primary key is missing"
            self.left_out[table] = f"{kind}, and no column has a different value in each row"
            return
        unique = {
            names[0]
            for one in self.inspector.get_unique_constraints(table)
            if len(names := one["column_names"]) == 1
        }
        columns: list[dict[str, Any]] = []
        for found in self.inspector.get_columns(table):
            if guess := self._guess_type(table, found):
                model.notes.append(f"{found['name']!r} is read as {guess}, by its values")
            column = self._column(table, found, key, guess)
            if column is None:
                model.notes.append(f"the column {found['name']!r} ({found['type']!r}) is left out")
                if found["name"] in key:
                    self.left_out[table] = f"the type of its primary key is {found['type']!r}"
                    return
                continue
            if found["name"] in unique:
                column["unique"] = True
            columns.append(column)
        self.models[table] = model
        if title := title_of(columns):
            model.content["title"] = title
            model.notes.append(f"records are shown as {title!r}")
        model.content["columns"] = columns
        model.content[IMPORTED] = [one["name"] for one in self.inspector.get_columns(table)]

    def _guess_key(self, table: str) -> str:
        """Return a column without NULL whose values are all different: one that is declared unique,
        else one that is called like a key, else the first; "" for none, or for a table that is
        empty or too large to look."""
        columns = [one for one in self.inspector.get_columns(table) if self._has_type(one)]
        unique = [one["column_names"] for one in self.inspector.get_unique_constraints(table)]
        filled = [one["name"] for one in columns if not one["nullable"] and [one["name"]] in unique]
        if filled or not columns:
            return next(iter(filled), "")
        names = [one["name"] for one in columns[:MOST_TRIED]]
        source = sa.table(table, *map(sa.column, names))
        some = sa.select(source).limit(MOST_KEYED + 1).subquery()
        numbers = (sa.func.count(sa.distinct(some.c[name])) for name in names)
        rows, *values = self.connection.execute(sa.select(sa.func.count(), *numbers)).one()
        fitting = [name for name, each in zip(names, values, strict=True) if each == rows]
        fitting.sort(key=lambda name: not _is_called_like_a_key(name))
        return fitting[0] if fitting and 0 < rows <= MOST_KEYED else ""

    @staticmethod
    def _has_type(found: Any) -> bool:
        kinds = (sa.Integer, sa.String, sa.Uuid, sa.Numeric, sa.types.NullType)
        return isinstance(found["type"], kinds) and "." not in found["name"]

    def _id(self, table: str) -> str:
        """Return a file's name for a table that no other model has."""
        plain = re.sub(r"\W+", "_", "_".join(parts_of(table))).strip("_").lower() or "table"
        taken = {model.id for model in self.models.values()}
        numbers = (f"{plain}_{number}" for number in range(2, len(taken) + 3))
        return plain if plain not in taken else next(id for id in numbers if id not in taken)

    def _column(
        self, table: str, found: Mapping[str, Any], key: Sequence[str], guess: str
    ) -> dict[str, Any] | None:
        """Return a column of the model; None if no model has its type or its name."""
        name, kind = found["name"], found["type"]
        type = guess or next((name for of, name in TYPES if isinstance(kind, of)), None)
        if type is None or "." in name:
            return None
        column: dict[str, Any] = {"name": name, "type": type, "label": words_of(name)}
        if found.get("comment"):
            column["comment"] = found["comment"]
        if name in key:
            return {**column, **self._key(type, found, key)}
        if found["nullable"]:
            column["nullable"] = True
        return {**column, **self._details(table, name, type, kind)}

    def _key(self, type: str, found: Mapping[str, Any], key: Sequence[str]) -> dict[str, Any]:
        """Return how a column is the primary key: generated by the database, or not."""
        if len(key) > 1 or not found.get("primary_key", True):
            return {"primary": True}
        generated = (
            self.connection.dialect.name == "sqlite"  # any integer key is
            or found.get("autoincrement") in (True, "auto")
            or found.get("identity")
        )
        return {"type": "ID"} if type in INTEGERS and generated else {"primary": True}

    def _details(self, table: str, name: str, type: str, kind: Any) -> dict[str, Any]:
        """Return the digits, the length or the options of a column."""
        if type == "decimal" and kind.precision:
            return {"precision": kind.precision, "scale": kind.scale or 0}
        if type == "enum":
            return {"option": list(kind.enums)}
        if type in ("string", "text"):
            values = self._values(table, name)
            if options := options_of(words_of(name), values):
                return {"type": "enum", "option": options}
            # Many declare every text as such; questions name the values of short ones.
            if values and all(len(str(value)) <= LONGEST_STRING for value in values):
                type = "string"
            elif type == "text":
                return {}
            length = getattr(kind, "length", None)  # a view's computed column has no type
            return {"type": type, **({"length": length} if length else {})}
        return {}

    def _guess_type(self, table: str, found: Mapping[str, Any]) -> str:
        """Return the type of a column of SQLite by its values: of a view's computed column, which
        declares none, of a text that is a date in each row, and of a number that is 0 or 1; ""
        elsewhere. There are neither dates nor booleans on SQLite."""
        name, declared = found["name"], found["type"]
        if self.connection.dialect.name != "sqlite" or "." in name:
            return ""
        if isinstance(declared, sa.Integer):
            values = [] if _is_called_like_a_key(name) else self._values(table, name)
            return "boolean" if set(values) == {0, 1} and len(values) >= LEAST_FLAGS else ""
        if isinstance(declared, sa.String):
            type = _type_of(self._values(table, name))
            return type if type in ("date", "datetime") else ""
        untyped = isinstance(declared, sa.types.NullType)
        return _type_of(self._values(table, name)) if untyped else ""

    def _values(self, table: str, name: str) -> list[Any]:
        """Return the values of a column in some rows."""
        column: sa.ColumnClause[Any] = sa.column(name)
        some = sa.select(column).select_from(sa.table(table, column)).limit(SAMPLED)
        return [value for value in self.connection.execute(some).scalars() if value is not None]

    def _relate(self, table: str) -> None:
        """Add the relations of a table's foreign keys, on both sides."""
        here = self.models[table]
        for one in self._foreign_keys(table):
            there = self.models.get(one["referred_table"])
            if there is None or len(one["constrained_columns"]) != 1:
                columns = ", ".join(one["constrained_columns"])
                here.notes.append(
                    f"no relation for {columns} (to the table {one['referred_table']!r})"
                )
                continue
            (foreign,), (key,) = one["constrained_columns"], one["referred_columns"]
            name = re.sub(r"_?id$", "", "_".join(parts_of(foreign)).lower()) or there.id
            if any(name == column["name"] for column in here.content["columns"]):
                name = there.id  # "emp_no" of both tables
            _add_relation(
                here, name, {"type": "hasOne", "model": there.id, "key": key, "foreign": foreign}
            )
            back = here.id if there is not here else f"{here.id}_of_{name}"
            if name not in (there.id, there.id.removesuffix("s")) and there is not here:
                back = f"{here.id}_as_{name}"
            _add_relation(
                there, back, {"type": "hasMany", "model": here.id, "key": foreign, "foreign": key}
            )

    def _foreign_keys(self, table: str) -> Sequence[Any]:
        with warnings.catch_warnings():
            # of a key that only a comment of the table's statement has
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            return self.inspector.get_foreign_keys(table)

    def _relate_through(self, table: str) -> None:
        """Join the two models whose keys are the whole key of a table, over that table."""
        link = self.models[table]
        ends = [
            (relation, self._by_id(relation["model"]))
            for relation in link.content.get("relations", {}).values()
            if relation["type"] == "hasOne" and relation["foreign"] in link.keys
        ]
        if len(ends) != 2 or len(link.keys) != 2:
            return
        for (near, here), (far, there) in (ends, ends[::-1]):
            relation = {
                "type": "hasMany",
                "model": there.id,
                "key": far["key"],
                "foreign": near["key"],
                "through": {"model": link.id, "key": near["foreign"], "foreign": far["foreign"]},
            }
            _add_relation(here, there.id, relation)

    def _by_id(self, id: str) -> ImportedModel:
        return next(model for model in self.models.values() if model.id == id)


def options_of(label: str, values: Sequence[Any]) -> list[str]:
    """Return the different values of a text column if there are few and its label does not say
    that they are names; else none."""
    if {label.lower(), _turned(label.lower())} & NAME_WORDS:
        return []
    counts = Counter(map(str, values))
    few = 1 < len(counts) <= MOST_OPTIONS and len(values) >= LEAST_REPEATS * len(counts)
    short = all(0 < len(value.strip()) == len(value) <= LONGEST_OPTION for value in counts)
    return sorted(counts) if few and short else []


def _type_of(values: Sequence[Any]) -> str:
    """Return the type of a column with these values; "" for none, or values of several types."""
    kinds = {type(value) for value in values}
    if kinds == {str}:
        matches = [_MOMENT.fullmatch(value) for value in values]
        if not all(matches):
            return "string"
        return "datetime" if any(match and match["time"] for match in matches) else "date"
    if kinds and kinds <= {int, float}:
        return "bigInteger" if kinds == {int} else "double"
    return ""


def _turned(label: str) -> str:
    return " ".join(reversed(label.split()))


def _is_called_like_a_key(name: str) -> bool:
    return parts_of(name)[-1].lower() in ("id", "key", "code")


def title_of(columns: Sequence[Mapping[str, Any]]) -> str:
    """Return the title of a record: first and last name, else a text called title or name; ""
    where no column's name says it."""
    labels = {
        one["label"].lower(): one["name"] for one in columns if one["type"] in ("string", "text")
    }
    # Of `name_first` as of `first_name`.
    turned = {_turned(label): name for label, name in labels.items()}
    texts = {**turned, **labels}
    person = [next((texts[word] for word in words if word in texts), "") for words in PERSON_WORDS]
    if all(person):
        return " ".join(f"{{{name}}}" for name in person)
    behind = [label for word in TITLE_WORDS[:2] for label in labels if label.endswith(f" {word}")]
    return next((texts[word] for word in (*TITLE_WORDS, *behind) if word in texts), "")


def _add_relation(model: ImportedModel, name: str, relation: dict[str, Any]) -> None:
    """Add a relation under a name that neither a column nor another relation has."""
    relations = model.content.setdefault("relations", {})
    taken = {*relations, *(column["name"] for column in model.content["columns"])}
    names: Iterator[str] = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    relations[name if name not in taken else next(one for one in names if one not in taken)] = (
        relation
    )


def parts_of(name: str) -> list[str]:
    """Return the words of a name: of `UnitPrice` and `unit_price` the same two."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [part for part in re.split(r"[_\s]+", split) if part]


def words_of(name: str) -> str:
    """Return a name for readers: `Unit price`; abbreviations in capitals stay, and those that can
    mean only one word are written out."""
    words = [part if part.isupper() and len(part) > 1 else part.lower() for part in parts_of(name)]
    text = " ".join(ABBREVIATED.get(word, word) for word in words)
    return text[:1].upper() + text[1:]
