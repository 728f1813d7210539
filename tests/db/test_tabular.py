"""Tables of files: the types of columns, by their cells, and their values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from groundhook.core.errors import ConfigError
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.tabular import Column, tabular


def _column(*cells: Any, header: str = "value", **options: Any) -> Column:
    rows = [(line, {"id": line, header: cell}) for line, cell in enumerate(cells, 2)]
    return tabular("t", rows, **options).columns[1]


@pytest.mark.parametrize(
    ("cells", "type", "values"),
    [
        (("1", "-2", ""), "integer", [1, -2, None]),
        (("1,234.50", "7"), "decimal", [Decimal("1234.50"), 7]),
        (("1.234,50", "7"), "decimal", [Decimal("1234.50"), 7]),
        (("1 234,5", "7’000,25"), "decimal", [Decimal("1234.5"), Decimal("7000.25")]),
        (("1.5", "n/a", "-"), "decimal", [Decimal("1.5"), None, None]),
        (("007", "123"), "string", ["007", "123"]),
        (("1234567890123456", "1"), "string", ["1234567890123456", "1"]),
        (("yes", "No"), "boolean", [True, False]),
        (("ja", "nein"), "boolean", [True, False]),
        ((True, False), "boolean", [True, False]),
        (("2026-03-01", "2026-03-02"), "date", [date(2026, 3, 1), date(2026, 3, 2)]),
        (("1.3.2026", "02.03.2026"), "date", [date(2026, 3, 1), date(2026, 3, 2)]),
        (("13/03/2026", "02/03/2026"), "date", [date(2026, 3, 13), date(2026, 3, 2)]),
        (("03/13/2026", "03/02/2026"), "date", [date(2026, 3, 13), date(2026, 3, 2)]),
        (("05/05/2026",), "date", [date(2026, 5, 5)]),
        (("1.3.2026 9:05",), "datetime", [datetime(2026, 3, 1, 9, 5)]),
        (("2026-03-01T09:05:00+02:00",), "datetime", [datetime(2026, 3, 1, 7, 5)]),
        ((datetime(2026, 3, 1),), "date", [date(2026, 3, 1)]),
        (("31.02.2026", "x"), "string", ["31.02.2026", "x"]),
        (({"a": 1}, None), "json", [{"a": 1}, None]),
        (("NA", "DE"), "string", ["NA", "DE"]),  # Namibia
        ((1, 2.5), "decimal", [1, Decimal("2.5")]),
        (("48.053808600000004", "1e-05", "2"), "double", [48.053808600000004, 0.00001, 2.0]),
        (("1234567890123456", "2"), "string", ["1234567890123456", "2"]),
        (("", ""), "string", [None, None]),
    ],
)
def test_the_cells_of_a_column_decide_its_type(
    cells: tuple[Any, ...], type: str, values: list[Any]
) -> None:
    column = _column(*cells)
    assert (column.content["type"], column.values, column.wrong) == (type, values, [])


def test_a_cell_that_does_not_fit_where_nearly_all_do_is_named_by_line() -> None:
    column = _column(*map(str, range(30)), "1O")
    assert (column.content["type"], column.wrong) == ("integer", [(32, "1O")])
    assert column.values[-1] is None
    assert _column("1", "2", "x").content["type"] == "string"  # a few of few are no mistakes


def test_the_locale_decides_what_the_cells_leave_open() -> None:
    assert _column("1.234").values == [Decimal("1.234")]
    assert _column("1.234", locale="de").values == [1234]
    assert _column("1,234", locale="de").values == [Decimal("1.234")]
    assert _column("03/04/2026", locale="en-US").values == [date(2026, 3, 4)]
    assert _column("03/04/2026", locale="en-GB").values == [date(2026, 4, 3)]
    with pytest.raises(ConfigError, match="'ordered' may have the day or the month first") as found:
        _column("03/04/2026", header="ordered")
    assert "--locale en-GB" in found.value.hint


def test_a_type_may_be_given_and_an_unknown_one_is_refused() -> None:
    assert _column("1", "2", types={"value": "string"}).values == ["1", "2"]
    assert _column("1", "x", types={"value": "integer"}).wrong == [(3, "x")]
    with pytest.raises(ConfigError, match="no type 'float'"):
        _column("1", types={"value": "float"})
    with pytest.raises(ConfigError, match="no column 'valu'"):
        _column("1", types={"valu": "string"})


def test_a_currency_is_the_format_of_its_column() -> None:
    assert _column("1.234,50 €", "€ 3,00").content["format"] == {"currency": "EUR"}
    assert _column("12 %", "3%").content["format"] == {"unit": "%"}
    assert "format" not in _column("$3", "€4").content


def test_phone_numbers_and_postcodes_are_texts() -> None:
    assert _column("4915112345678", header="Phone").content["type"] == "string"
    assert _column("10115", header="PLZ").content["type"] == "string"


def test_the_key_is_a_column_that_is_called_like_one_else_the_number_of_the_row() -> None:
    def keys(header: str, *cells: str) -> tuple[str, ...]:
        rows = [(line, {header: cell}) for line, cell in enumerate(cells)]
        return ModelSpec.model_validate(tabular("t", rows).content).keys

    assert keys("Order ID", "A1", "A2") == ("order_id",)
    assert keys("Rechnungsnr", "1", "2") == ("rechnungsnr",)
    assert keys("Order ID", "A1", "A1") == ("id",)
    assert keys("id", "1", "1") == ("row_number",)
    assert keys("paid", "1", "2") == ("id",)


def test_names_of_columns_are_made_of_headers_and_each_is_its_own() -> None:
    found = tabular("t", [(2, {"Unit price (€)": "1", "unitPrice": "2", "": "3", "Größe": "4"})])
    assert list(found.names.values()) == ["unit_price", "unit_price_2", "column_3", "größe"]
    assert [one.content["label"] for one in found.columns[1:]] == [
        *("Unit price (€)", "Unit price", "", "Größe")
    ]


def test_a_file_without_rows_is_an_error() -> None:
    with pytest.raises(ConfigError, match="the file has no rows"):
        tabular("t", [])
