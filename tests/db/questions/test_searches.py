"""Questions to a database with rows: lists, values beyond the sample, words that no record has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.ports import Scope, SourceResult
from groundhook.core.settings import SearchSettings, UsesSettings
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import Database, open_database
from tests.db.conftest import Fresh
from tests.db.questions.models import NOW, choice, column

COLUMNS = [
    column("id", "ID"),
    column("title", label="Title"),
    choice("genre", "Genre", "fiction", "history"),
    column("tags", "json", "Tags", nullable=True),
]
ROWS: list[dict[str, Any]] = [
    {"id": 1, "title": "Salt Roads", "genre": "history", "tags": ["rare", "illustrated"]},
    {"id": 2, "title": "Red Harbour", "genre": "history", "tags": ["rarely lent"]},
    {"id": 3, "title": "Low Tide", "genre": "fiction", "tags": ["rare", "červená"]},
    {"id": 4, "title": "High Tide", "genre": "fiction", "tags": None},
]
BOOK = ModelSpec.model_validate(
    {"id": "book", "table": {"name": "book"}, "columns": COLUMNS, "values": ROWS}
)


@asynccontextmanager
async def loaded(folder: Path | str, *models: ModelSpec) -> AsyncIterator[Database]:
    specs = {model.id: model for model in models}
    url = folder if isinstance(folder, str) else f"sqlite:///{folder}/rows.db"
    async with open_database(url, 20_000, specs) as database:
        await database.load()
        yield database


async def search(database: Database, question: str, model: str) -> tuple[SourceResult, list[str]]:
    warnings: list[str] = []

    async def warn(code: str, message: str) -> None:
        warnings.append(message)

    scope = Scope(
        identity=Identity(),
        assistant_id="test",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: NOW,
        warn=warn,
    )
    request = SearchRequest(type="db", query=question, models=(model,))
    return await database.search(request, scope), warnings


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("rare books", {1, 3}),
        ("rare history books", {1}),
        ("books that are rare and illustrated", {1}),
        ("illustrated or rare books", {1, 3}),
        ("books that are not rare", {2, 4}),
    ],
)
async def test_a_json_list_contains_the_value(tmp_path: Path, question: str, ids: set[int]) -> None:
    async with loaded(tmp_path, BOOK) as database:
        found, warnings = await search(database, question, "book")
    assert ({item.record_id for item in found.items}, warnings) == (ids, [])


async def test_a_json_list_is_read_on_every_engine(fresh_database: Fresh) -> None:
    async with loaded(await fresh_database(), BOOK) as database:
        rare, _ = await search(database, "rare books", "book")
        red, warnings = await search(database, "books with tag červená", "book")
        other, _ = await search(database, "books that are not červená", "book")
    assert {item.record_id for item in rare.items} == {1, 3}
    assert ({item.record_id for item in red.items}, warnings) == ({3}, [])
    assert {item.record_id for item in other.items} == {1, 2, 4}


@pytest.mark.parametrize(
    ("question", "number"),
    [("how many splendid history books are there?", 2), ("how many splendid rare books?", 2)],
)
async def test_a_count_is_not_emptied_by_a_word_that_no_record_has(
    tmp_path: Path, question: str, number: int
) -> None:
    async with loaded(tmp_path, BOOK) as database:
        found, warnings = await search(database, question, "book")
    assert [item.data for item in found.items] == [{"count": number}]
    assert any("'splendid'" in warning for warning in warnings)


async def test_figures_of_groups_are_not_emptied_by_a_word_that_no_record_has(
    tmp_path: Path,
) -> None:
    async with loaded(tmp_path, BOOK) as database:
        found, warnings = await search(database, "number of splendid books per genre", "book")
    counts = {(item.data or {})["genre"]: (item.data or {})["count"] for item in found.items}
    assert counts == {"fiction": 2, "history": 2}
    assert any("'splendid'" in warning for warning in warnings)


async def test_records_are_not_emptied_by_a_word_that_no_record_has(tmp_path: Path) -> None:
    async with loaded(tmp_path, BOOK) as database:
        found, warnings = await search(database, "splendid history books", "book")
    assert {item.record_id for item in found.items} == {1, 2}
    assert all(item.score < 0.5 for item in found.items)
    assert any("'splendid'" in warning for warning in warnings)
    assert any("no record has the words" in warning for warning in warnings)


async def test_a_question_of_hundreds_of_unknown_words_is_answered_with_a_warning(
    tmp_path: Path,
) -> None:
    unknown = " ".join(f"zq{number:03}x" for number in range(1000))
    async with loaded(tmp_path, BOOK) as database:
        found, warnings = await search(database, f"history books {unknown}", "book")
    assert {item.record_id for item in found.items} == {1, 2}
    assert any("150 words" in warning for warning in warnings)


async def test_more_values_than_a_query_takes_are_answered_with_a_warning(tmp_path: Path) -> None:
    names = ("code", "replaces", "fits")
    part = ModelSpec.model_validate(
        {
            "id": "part",
            "table": {"name": "part"},
            "columns": [column("id", "ID"), *(column(name) for name in names)],
            "values": [{"id": i, **dict.fromkeys(names, f"A{i}x")} for i in range(1, 91)],
        }
    )
    asked = " ".join(f"A{i}x" for i in range(1, 91))
    async with loaded(tmp_path, part) as database:
        _, warnings = await search(database, f"parts {asked}", "part")
    assert any("'A90x'" in warning and "omitted" in warning for warning in warnings)


async def test_every_value_of_an_indexed_column_is_known(tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"Kontor {number:05}"} for number in range(1, 6001)]
    rows.append({"id": 6001, "name": "Zuckerhut"})
    columns = [column("id", "ID"), column("name", label="Name", index=True)]
    model = ModelSpec.model_validate(
        {"id": "shop", "table": {"name": "shop"}, "columns": columns, "values": rows}
    )
    async with loaded(tmp_path, model) as database:
        found, warnings = await search(database, "shops called zuckerhut", "shop")
        one, _ = await search(database, "Zuckerhut", "shop")
    assert [item.record_id for item in found.items] == [6001]
    assert [item.record_id for item in one.items] == [6001]
    assert (one.dsl or {})["wheres"][0]["op"] == "="
    assert warnings == []
