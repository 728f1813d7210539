"""Kinds of computed values: figures, and parts of dates. Pure."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Aggregate, DateBucket
from groundhook.handlers.db.model.schema import ColumnKind, Field

DATES = frozenset({"date", "moment"})
NUMBERS = frozenset({"integer", "number"})
_NUMBERED = frozenset({"year", "weekday", "hour"})


def figure_field(one: Aggregate, of: Field | None) -> Field:
    """Return a figure as a field, under its name in results. `of` is the field that it is computed
    of; None for the number of records."""
    if one.function == "count" or of is None:
        return Field(one.called, "integer")
    if one.function in ("sum", "avg"):
        return Field(one.called, "number")
    return replace(of, name=one.called)


def bucket_kind(bucket: DateBucket) -> ColumnKind:
    """Return the kind of the values of a part of a date."""
    return "integer" if bucket.by in _NUMBERED else "text"


def comparable(one: Field, other: Field) -> bool:
    """Return whether values of two fields can be compared with each other."""
    if "json" in (one.kind, other.kind):
        return False
    return one.kind == other.kind or any(
        {one.kind, other.kind} <= kinds for kinds in (DATES, NUMBERS)
    )
