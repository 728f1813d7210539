"""How values and records are written for readers."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from groundhook.core.types.model_spec import ColumnFormat, ModelSpec, fill_title
from groundhook.handlers.db.model.cells import MAX_TEXT, written
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import ColumnKind, Field, schema_of


def field(kind: ColumnKind = "number", **format: Any) -> Field:
    return Field("x", kind, format=ColumnFormat(**format))


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (1234.5, field(currency="EUR"), "1234.50 EUR"),
        (-3, field(currency="¥", decimals=0), "-3 ¥"),
        (4000.04, field(unit="m", decimals=1), "4000.0 m"),
        (7, field(unit="%"), "7 %"),
        (264058, field("integer", duration="ms"), "4:24"),
        (3723, field(duration="s"), "1:02:03"),
        (-90, field(duration="min"), "-1:30:00"),
        (0.35, field(duration="s"), "0.35 s"),
        (0, field(duration="h"), "0:00"),
        (date(2024, 3, 9), field("date", date="month"), "2024-03"),
        (datetime(2024, 3, 9, 7, 5, 9), field("moment", date="minute"), "2024-03-09 07:05"),
        (datetime(2024, 3, 9), field("moment"), "2024-03-09"),
        (datetime(2024, 3, 9, 7), field("moment"), "2024-03-09 07:00:00"),
        (Decimal("10.10"), None, "10.1"),
        (3.0, None, "3"),
        (True, None, "yes"),
        (None, field(currency="EUR"), ""),
        (float("nan"), None, "None"),
        ({"a": [1, None, float("inf")], "é": "x"}, field("json"), '{"a":[1,null,null],"é":"x"}'),
        ("many", field(currency="EUR"), "many"),
    ],
)
def test_a_value_is_written_as_its_column_says(value: Any, of: Field | None, text: str) -> None:
    assert written(value, of) == text


@pytest.mark.parametrize(
    ("average", "text"),
    [(264058.525, "264058.53"), (0.0123456, "0.0123"), (2.0, "2"), (0.0, "0"), (1e15 / 3, None)],
)
def test_an_average_has_no_more_digits_than_it_needs(average: float, text: str | None) -> None:
    shown = written(average, average=True)
    assert shown == text if text else len(shown.partition(".")[2]) <= 2


def test_midnight_is_written_where_other_moments_of_the_column_have_a_time() -> None:
    assert written(datetime(2024, 3, 9), field("moment"), timed=True) == "2024-03-09 00:00:00"


@given(
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(max_size=50),
    st.sampled_from(
        [{}, {"currency": "EUR"}, {"duration": "ms"}, {"decimals": 12}, {"date": "day"}]
    ),
    st.sampled_from(["number", "integer", "text", "moment"]),
    st.booleans(),
)
def test_every_value_has_a_bounded_text(
    value: Any, format: dict[str, Any], kind: ColumnKind, average: bool
) -> None:
    assert len(written(value, field(kind, **format), average=average)) <= MAX_TEXT


def model(*columns: dict[str, Any], **more: Any) -> ModelSpec:
    id = {"name": "id", "type": "ID"}
    return ModelSpec.model_validate(
        {
            "id": "invoice",
            "name": "Invoice",
            "table": {"name": "t"},
            "columns": [id, *columns],
            **more,
        }
    )


STREET, EMAIL = ({"name": name, "type": "string"} for name in ("street", "mail"))


@pytest.mark.parametrize(
    ("spec", "title"),
    [
        (model(STREET, EMAIL, title="{mail}, {street}"), "m@x, Rilská 3"),
        (model(STREET, EMAIL, title="street"), "Rilská 3"),
        (model(STREET, {**EMAIL, "unique": True}), "m@x"),
        (model(STREET, EMAIL), "Invoice 5"),
        (model(STREET, {"name": "name", "type": "string"}), "Ada"),
        (
            model(STREET, title="{street} {nothing_known}".replace("{nothing_known}", "")),
            "Rilská 3",
        ),
    ],
)
def test_what_stands_for_a_record(spec: ModelSpec, title: str) -> None:
    values = {"id": "5", "street": "Rilská 3", "mail": "m@x", "name": "Ada"}
    assert schema_of(spec).title_of(values) == title


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (Decimal("1E300"), 10**300),
        (Decimal("9" * 100_000), "9" * 100_000),
        (Decimal(f"-{'9' * 5000}.5"), f"-{'9' * 5000}.5"),
        (Decimal(f"0.{'0' * 400}"), 0),
        (Decimal("0.1"), 0.1),
    ],
    ids=["a number", "thousands of digits", "a fraction", "zeros", "a float"],
)
def test_a_number_beyond_those_of_json_is_text(value: Decimal, read: Any) -> None:
    assert to_json(value) == read
    json.dumps(to_json(value))


def test_a_record_without_the_values_of_its_title_has_its_key() -> None:
    assert (
        schema_of(model(STREET, title="{street}")).title_of({"id": "5", "street": ""})
        == "Invoice 5"
    )


def test_a_title_with_a_column_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValidationError, match="'title' names the column 'nme'"):
        model(STREET, title="{nme}")


def test_two_kinds_of_format_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="'currency' and 'duration' exclude each other"):
        ColumnFormat(currency="EUR", duration="s")


def test_values_with_braces_do_not_fill_a_title_again() -> None:
    assert fill_title("{a} {b}", {"a": "{b}", "b": "{a}"}) == "{b} {a}"
