"""Conditions, orders and figures of a database query, as hooks and requests write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from groundhook.core.types.base import FewOf, Value

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
    """A condition on a field, or a group of conditions; conditions of a list are ANDed.

    `field` may belong to a related record: `product.brand.name`. A group holds if any of its
    conditions does (`or`) or all do (`and`, also written `wheres`). `or: true` in a condition joins
    it to those before it.
    """

    field: str = Field(default="", validation_alias=AliasChoices("field", "column"))
    op: str = "="
    value: Any = None
    any_of: Wheres | None = Field(
        default=None, validation_alias=AliasChoices("or", "any_of"), serialization_alias="or"
    )
    all_of: Wheres | None = Field(
        default=None,
        validation_alias=AliasChoices("and", "wheres", "all_of"),
        serialization_alias="and",
    )

    @model_validator(mode="after")
    def _check_one_kind(self) -> Where:
        kinds = [bool(self.field), self.any_of is not None, self.all_of is not None]
        if sum(kinds) != 1:
            raise ValueError(
                "needs either a field, or 'or' with a list of conditions, or 'and' with one"
            )
        return self

    @property
    def group(self) -> Sequence[Where] | None:
        """The conditions of a group; None for a condition on a field."""
        return self.all_of if self.any_of is None else self.any_of

    def wire(self) -> dict[str, Any]:
        """Return the condition as JSON of the query language."""
        if self.group is None:
            return {
                "field": self.field,
                "op": self.op,
                "value": self.model_dump(mode="json", include={"value"})["value"],
            }
        return {"and" if self.any_of is None else "or": [where.wire() for where in self.group]}


Wheres = Annotated[FewOf[Where], BeforeValidator(_group)]

Where.model_rebuild()


class Aggregate(Value):
    """A figure over the matching records: their number (`count` of `*`), or the sum, average, least
    or greatest value of a field. `as` is its name in orders and results. `distinct` counts
    different values."""

    function: Literal["count", "sum", "avg", "min", "max"] = Field(
        validation_alias=AliasChoices("function", "func", "fn")
    )
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


class Order(Value):
    """A sort order; descending by default, as in QueryDSL."""

    field: str = Field(validation_alias=AliasChoices("field", "column"))
    order: Literal["asc", "desc"] = Field(
        default="desc", validation_alias=AliasChoices("order", "sort")
    )
