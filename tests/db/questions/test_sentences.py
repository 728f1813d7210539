"""What readers are told about a query, in the language of their question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.query.dsl import parse
from groundhook.handlers.db.question.languages import language_of
from groundhook.handlers.db.question.sentence import Teller
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.conftest import Shop

Row = dict[str, Any]


def model(id: str, name: str, **labels: str) -> ModelSpec:
    """A table of invoices: their country, when they were paid, and their total."""
    types = {"country": "string", "paid": "date", "total": "double"}
    columns = [
        {"name": column, "type": type, "label": labels[column], "nullable": True}
        for column, type in types.items()
    ]
    values = [
        {"id": 1, "country": "Norwegen", "paid": "2026-01-05", "total": 10},
        {"id": 2, "country": "Norwegen", "paid": "2026-01-12", "total": 20},
        {"id": 3, "country": "Peru", "paid": "2026-01-06", "total": 30},
        {"id": 4, "country": None, "paid": None, "total": 5},
    ]
    whole = {"id": id, "name": name, "table": {"name": id}, "values": values}
    return ModelSpec.model_validate({**whole, "columns": [{"name": "id", "type": "ID"}, *columns]})


MODELS = {
    "rechnung": model("rechnung", "Rechnung", country="Land", paid="Zahltag", total="Betrag"),
    "heshbonit": model("heshbonit", "חשבוניות", country="מדינה", paid="תאריך תשלום", total="סכום"),
}
ENGLISH = {"bill": model("bill", "Bill", country="Country", paid="Paid", total="Total")}
COUNT, LATEST = {"function": "count"}, {"function": "max", "field": "paid"}
PERU = {"field": "country", "value": "Peru"}

SENTENCES: list[tuple[Row, str, str, str]] = [
    (
        {"aggregates": [COUNT], "groups": ["country"], "wheres": [PERU]},
        "number of Bill records where Country = Peru for each Country",
        "Anzahl der Einträge in Rechnung, wobei gilt: Land = Peru, je Land",
        "מספר הרשומות של חשבוניות כאשר מדינה = Peru לכל מדינה",
    ),
    (
        {"aggregates": [LATEST, {"function": "min", "field": "total"}]},
        "latest Paid and least Total",
        "spätester Wert von Zahltag und kleinster Wert von Betrag",
        "הערך המאוחר ביותר של תאריך תשלום וגם הערך הקטן ביותר של סכום",
    ),
    (
        {"aggregates": [{**COUNT, "field": "country", "distinct": True}]},
        "number of different Country",
        "Anzahl verschiedener Werte von Land",
        "מספר הערכים השונים של מדינה",
    ),
    (
        {"aggregates": [{**COUNT, "field": "country"}]},
        "number of Bill records with Country",
        "Anzahl der Einträge in Rechnung mit Wert in Land",
        "מספר הרשומות של חשבוניות עם ערך ב-מדינה",
    ),
    (
        {"orders": [{"field": "paid", "order": "desc"}], "limit": 1},
        "Bill, by Paid, latest first, the first",
        "Rechnung, nach Zahltag, späteste zuerst, der erste Eintrag",
        "חשבוניות, לפי תאריך תשלום, מהמאוחר למוקדם, הרשומה הראשונה",
    ),
    (
        {
            "aggregates": [COUNT],
            "groups": ["country"],
            "orders": [{"field": "country", "order": "asc"}],
            "limit": 2,
            "ties": True,
        },
        "number of Bill records for each Country, by Country, from A to Z, the first 2,"
        " with all that are equal",
        "Anzahl der Einträge in Rechnung, je Land, nach Land, von A bis Z, die ersten 2,"
        " mit allen, die gleichauf liegen",
        "מספר הרשומות של חשבוניות לכל מדינה, לפי מדינה, בסדר אלפביתי עולה, 2 הרשומות הראשונות,"
        " כולל כל השוות להן",
    ),
    (
        {
            "wheres": [
                {"field": "country", "op": "null"},
                {"field": "country", "op": "like", "value": "N%"},
            ]
        },
        "Bill where Country is empty and Country begins with N",
        "Rechnung, wobei gilt: Land ist leer und Land beginnt mit N",
        "חשבוניות כאשר הערך של מדינה ריק וגם הערך של מדינה מתחיל ב-N",
    ),
]


@pytest.mark.parametrize(("query", "english", "german", "hebrew"), SENTENCES)
def test_a_query_is_told_in_each_language(
    query: Row, english: str, german: str, hebrew: str
) -> None:
    schemas = Schemas({**MODELS, **ENGLISH})
    for language, id, sentence in (
        ("en", "bill", english),
        ("de", "rechnung", german),
        ("he", "heshbonit", hebrew),
    ):
        teller = Teller(schemas, vocabulary(language))
        assert teller.sentence(parse({"model": id, **query})) == sentence


@pytest.fixture
async def invoices(tmp_path: Path) -> AsyncIterator[Shop]:
    url = f"sqlite:///{tmp_path / 'invoices.db'}"
    async with open_database(url, 60_000, MODELS) as database:
        await database.load()
        yield Shop(database, url)


async def test_a_table_of_figures_is_in_the_language_of_the_question(invoices: Shop) -> None:
    found = await invoices.search("Wie viele Rechnungen gibt es je Land?", "rechnung")
    rows = [item.row for item in found.items if item.row]
    assert rows[0].table.columns == ("Land", "Anzahl der Einträge in Rechnung")
    assert {row.cells for row in rows} == {
        ("Norwegen", "2"),
        ("Peru", "1"),
        ("keine Angabe", "1"),
    }
    assert found.items[0].title == "Land: Norwegen, Anzahl der Einträge in Rechnung: 2"


async def test_a_table_of_figures_in_hebrew_has_hebrew_columns(invoices: Shop) -> None:
    found = await invoices.search("כמה חשבוניות לכל מדינה", "heshbonit")
    rows = [item.row for item in found.items if item.row]
    assert rows[0].table.columns == ("מדינה", "מספר הרשומות של חשבוניות")
    assert {row.cells for row in rows} == {("Norwegen", "2"), ("Peru", "1"), ("אין", "1")}


async def test_words_of_a_question_stand_in_the_quotes_of_its_language(invoices: Shop) -> None:
    german = await invoices.search("Rechnungen mit Gesang", "rechnung")
    assert "Nicht verstanden: „" in german.account.explanation
    hebrew = await invoices.search("חשבוניות סגולות", "heshbonit")
    assert "לא הובן: ״סגולות״." in hebrew.account.explanation


async def test_a_question_of_names_alone_has_the_language_of_the_models(invoices: Shop) -> None:
    schemas = Schemas(MODELS)
    assert language_of("Rechnungen Norwegen") == "en"  # as many words of each language: none
    assert language_of("Rechnungen Norwegen", (), [schemas["rechnung"]]) == "de"
    assert language_of("bills Norwegen", (), [Schemas(ENGLISH)["bill"]]) == "en"
    found = await invoices.search("Rechnungen Norwegen", "rechnung")
    assert [item.record_id for item in found.items] == [1, 2]
    assert found.account.read_as == "Rechnung, wobei gilt: Land = Norwegen"


async def test_columns_of_an_export_are_those_of_the_configured_language(invoices: Shop) -> None:
    query = {"model": "rechnung", "aggregates": [COUNT], "groups": ["country"]}
    exported = await invoices.database.export(query, 10, invoices.scope())
    assert exported.columns == ("Land", "Number of Rechnung records")
