"""Conditions, orders and figures of a database query, as hooks and requests write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Discriminator, Field, Tag, model_validator

from groundhook.core.types.base import UNNAMED, Few, FewOf, Value

# prefix of a table's name in place of a model's: the model that declares the table
OF_TABLE = "table:"


def _group(listed: Any) -> Any:
    """Return a list of conditions with `or: true` as groups; `or: true` joins a condition to those
    before it. AND binds closer: [a, b, {…c, or: true}, d] is (a and b) or (c and d)."""
    if not isinstance(listed, (list, tuple)) or not any(
        _joins(entry) is not None for entry in listed
    ):
        return listed
    runs: list[list[Any]] = [[]]
    for entry in listed:
        if _joins(entry) and runs[-1]:
            runs.append([])
        runs[-1].append(
            entry
            if _joins(entry) is None
            else {key: value for key, value in entry.items() if key != "or"}
        )
    return (
        runs[0]
        if len(runs) == 1
        else [{"or": [run[0] if len(run) == 1 else {"and": run} for run in runs]}]
    )


def _joins(entry: Any) -> bool | None:
    """Return the boolean `or` of a condition; None without one."""
    joined = entry.get("or") if isinstance(entry, Mapping) else None
    return joined if isinstance(joined, bool) else None


class Where(Value):
    """A condition on a field, a condition on related records, or a group of conditions; conditions
    of a list are ANDed.

    `field` may belong to a related record: `product.brand.name`. It is compared with `value`, or
    with `other`. A group holds if any of its conditions does (`or`) or all do (`and`, also written
    `wheres`). `or: true` in a condition joins it to those before it.

    `related` is a relation. The condition holds if a related record meets `wheres`; with `none` if
    no related record does; with `all` if there are related records and each does; with `count` if
    the number of those that do is in range: `{">": 6}`.
    """

    field: str = Field(default="", validation_alias=AliasChoices("field", "column"))
    op: str = "="
    value: Any = None
    other: Compared | None = None
    any_of: Wheres | None = Field(
        default=None, validation_alias=AliasChoices("or", "any_of"), serialization_alias="or"
    )
    all_of: Wheres | None = Field(
        default=None,
        validation_alias=AliasChoices("and", "wheres", "all_of"),
        serialization_alias="and",
    )
    related: str = ""
    count: Few[dict[str, int]] | None = None
    none: bool = False
    every: bool = Field(
        default=False, validation_alias=AliasChoices("all", "every"), serialization_alias="all"
    )

    @model_validator(mode="after")
    def _check_one_kind(self) -> Where:
        kinds = [
            bool(self.field),
            bool(self.related),
            self.any_of is not None,
            self.all_of is not None and not self.related,
        ]
        if sum(kinds) != 1:
            raise ValueError(
                "needs either a field, or 'related' with a relation, or 'or' with a list of"
                " conditions, or 'and' with one"
            )
        kinds = [self.count is not None, self.none, self.every]
        if any(kinds) and not self.related:
            raise ValueError("'count', 'none' and 'all' need 'related' with a relation")
        if sum(kinds) > 1:
            raise ValueError("takes one of 'count', 'none' and 'all'")
        if self.other is not None and (not self.field or "value" in self.model_fields_set):
            raise ValueError("'other' stands in place of the 'value' of a field")
        return self

    @property
    def group(self) -> Sequence[Where] | None:
        """The conditions of a group; None for a condition on a field or on related records."""
        if self.related:
            return None
        return self.all_of if self.any_of is None else self.any_of

    @property
    def name(self) -> str:
        """The field or the relation of a condition; "" for a group."""
        return self.field or self.related

    def wire(self) -> dict[str, Any]:
        """Return the condition as JSON of the query language."""
        if self.group is not None:
            return {"and" if self.any_of is None else "or": [where.wire() for where in self.group]}
        if self.related:
            inner = [where.wire() for where in self.all_of or ()]
            made = {"wheres": inner, "count": self.count, "none": self.none, "all": self.every}
            return {"related": self.related, **{key: value for key, value in made.items() if value}}
        if self.other is not None:
            return {"field": self.field, "op": self.op, "other": self.other.wire()}
        return {
            "field": self.field,
            "op": self.op,
            "value": self.model_dump(mode="json", include={"value"})["value"],
        }


Wheres = Annotated[FewOf[Where], BeforeValidator(_group)]
Function = Literal["count", "sum", "avg", "min", "max"]


class Compared(Value):
    """What a condition compares its field with in place of a value: another `field` of the same
    record, or, with `function`, one figure over all records of `model` (by default that of the
    condition) that meet `wheres`: `{"function": "avg", "field": "total"}`."""

    field: str = Field(default="", validation_alias=AliasChoices("field", "column"))
    function: Function | None = Field(
        default=None, validation_alias=AliasChoices("function", "func", "fn")
    )
    distinct: bool = False
    model: str = ""
    wheres: Wheres = ()

    @model_validator(mode="after")
    def _check_one_kind(self) -> Compared:
        if self.function is None and (self.distinct or self.model or self.wheres):
            raise ValueError("'distinct', 'model' and 'wheres' need a 'function'")
        if not self.field and self.function != "count":
            raise ValueError("needs a field")
        return self

    @property
    def aggregate(self) -> Aggregate | None:
        """The figure; None for another field."""
        if self.function is None:
            return None
        return Aggregate(function=self.function, field=self.field or "*", distinct=self.distinct)

    def wire(self) -> dict[str, Any]:
        """Return it as JSON of the query language."""
        values = self.model_dump(mode="json", exclude={"wheres"})
        values["wheres"] = [where.wire() for where in self.wheres]
        return {key: value for key, value in values.items() if value}


class Aggregate(Value):
    """A figure over the matching records: their number (`count` of `*`), or the sum, average, least
    or greatest value of a field. `as` is its name in orders and results. `distinct` counts
    different values."""

    function: Function = Field(validation_alias=AliasChoices("function", "func", "fn"))
    field: str = Field(default="*", validation_alias=AliasChoices("field", "column"))
    name: str = Field(
        default="", validation_alias=AliasChoices("as", "name"), serialization_alias="as"
    )
    distinct: bool = False

    @property
    def called(self) -> str:
        """Its name in results: `as`, or else `count`, `sum_price`, `max_product_price`."""
        plain = self.field.replace(".", "_")
        return self.name or (self.function if plain == "*" else f"{self.function}_{plain}")


BucketUnit = Literal["year", "quarter", "month", "week", "day", "weekday", "hour"]


class DateBucket(Value):
    """A group of records by a part of a date, in UTC: `year` (2026), `quarter` ("2026-Q1"), `month`
    ("2026-01"), `week` ("2026-W05", ISO 8601), `day` ("2026-01-31"), `weekday` (1 is Monday),
    `hour` (0 to 23). `as` is its name in orders and results."""

    field: str = Field(validation_alias=AliasChoices("field", "column"))
    by: BucketUnit
    name: str = Field(
        default="", validation_alias=AliasChoices("as", "name"), serialization_alias="as"
    )

    @property
    def called(self) -> str:
        """Its name in results: `as`, or else `paid_at_month`."""
        return self.name or f"{self.field.replace('.', '_')}_{self.by}"


def _kind_of_group(group: Any) -> str:
    return UNNAMED if isinstance(group, (Mapping, DateBucket)) else "field"


# A field, or a part of a date.
Group = Annotated[
    Annotated[str, Tag("field")] | Annotated[DateBucket, Tag(UNNAMED)],
    Discriminator(_kind_of_group),
]


def group_name(group: Group) -> str:
    """Return the name of a group in orders and results."""
    return group if isinstance(group, str) else group.called


def group_field(group: Group) -> str:
    """Return the field that a group reads."""
    return group if isinstance(group, str) else group.field


class Order(Value):
    """A sort order; descending by default, as in QueryDSL."""

    field: str = Field(validation_alias=AliasChoices("field", "column"))
    order: Literal["asc", "desc"] = Field(
        default="desc", validation_alias=AliasChoices("order", "sort")
    )


Where.model_rebuild()
Compared.model_rebuild()
