"""Questions over tables as other people make them: keys of several columns, names in two parts,
abbreviations, and the same column in two tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop

PLAYER = {"player": {"type": "hasOne", "model": "people", "key": "playerID", "foreign": "playerID"}}


def model(id: str, name: str, columns: dict[str, str], key: str, *rows: Any, **more: Any) -> Any:
    listed = [
        {"name": each, "type": type, "primary": each in key.split(), "nullable": each not in key}
        for each, type in columns.items()
    ]
    values = [dict(zip(columns, row, strict=True)) for row in rows]
    whole = {"id": id, "name": name, "table": {"name": f"made_{id}"}, "columns": listed}
    return ModelSpec.model_validate({**whole, "values": values, **more})


SEASON = {"playerID": "string", "yearID": "integer", "G": "integer", "HR": "integer"}
MODELS = {
    "people": model(
        "people",
        "People",
        {"playerID": "string", "nameFirst": "string", "nameLast": "string", "weight": "integer"},
        "playerID",
        ("r1", "Babe", "Ruth", 215),
        ("p1", "Robert", "Person", 190),
        title="{nameFirst} {nameLast}",
    ),
    "salaries": model(
        "salaries",
        "Salaries",
        {"playerID": "string", "yearID": "integer", "salary": "integer"},
        "playerID yearID",
        ("r1", 1927, 70000),
        ("r1", 1930, 80000),
        ("p1", 1930, 10000),
        relations=PLAYER,
    ),
    "batting": model(
        "batting", "Batting", SEASON, "playerID yearID", ("r1", 1927, 151, 60), relations=PLAYER
    ),
    "pitching": model(
        "pitching", "Pitching", SEASON, "playerID yearID", ("r1", 1927, 1, 2), relations=PLAYER
    ),
}


@pytest.fixture
async def league(tmp_path: Path) -> AsyncIterator[Shop]:
    url = f"sqlite:///{tmp_path}/league.sqlite"
    async with open_database(url, 60_000, MODELS) as database:
        await database.load()
        yield Shop(database, url)


READ = {
    "salaries in 1930": "Salaries where Yearid = 1930",
    "average salary by year": "average Salary for each Yearid",
    "salaries of Babe Ruth": "Salaries where Player › Namefirst = Babe and Player › Namelast = Ruth",
    "how heavy is Babe Ruth": "Weight of People where Namefirst = Babe and Namelast = Ruth",
    "the heaviest person": "People, by Weight, highest first, the first",
    "how many people are in each weight": "number of People records for each Weight",
}


async def test_names_in_two_parts_and_the_columns_of_a_key_are_asked_for(league: Shop) -> None:
    for question, read_as in READ.items():
        account = (await league.search(question, *MODELS)).account
        assert (account.certainty, account.read_as) == ("sure", read_as), account.explanation


async def test_the_same_reading_of_two_tables_says_of_which_and_can_be_chosen(
    league: Shop,
) -> None:
    asked = await league.search("total HR of Babe Ruth", *MODELS)
    sentences = [each.read_as for each in asked.account.readings]
    assert [text.rpartition(" ")[2] for text in sentences] == ["(Batting)", "(Pitching)"]
    for sentence, homers in zip(sentences, (60, 2), strict=True):
        [item] = (await league.search(sentence, *MODELS)).items
        assert list((item.data or {}).values()) == [homers]


FILMS = model(
    "films",
    "Movies",
    {"id": "ID", "title": "string", "genre": "string", "language": "string", "director": "string"},
    "id",
    (1, "Amour", "Drama;Romance", "French", "Haneke"),
    (2, "Babel", "Drama;Musical", "English, French, Japanese Sign Language (old)", "Inarritu"),
    (3, "Carmen", "Music;Drama", "English, French", "Saura"),
    (4, "Dune", "Musical;Music", "English", "Villeneuve"),
)
FOUND = {
    "French movies": ("Movies where Language contains French", [1, 2, 3]),
    "music movies": ("Movies where Genre contains Music", [3, 4]),
    "movies by Haneke": ("Movies where Director = Haneke", [1]),
}


async def test_lists_in_a_column_are_compared_by_element_however_long_some_are(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/films.sqlite"
    async with open_database(url, 60_000, {"films": FILMS}) as database:
        await database.load()
        for question, (read_as, ids) in FOUND.items():
            found = await Shop(database, url).search(question, "films")
            assert (found.account.certainty, found.account.read_as) == ("sure", read_as)
            assert sorted(item.record_id for item in found.items) == ids


async def test_an_average_of_records_that_are_sums_of_money_is_that_of_their_only_number(
    league: Shop,
) -> None:
    for question, figure in (("average salary", 53333), ("total salaries", 160000)):
        found = await league.search(question, *MODELS)
        assert found.account.certainty == "sure", found.account.explanation
        assert [int(value) for value in (found.items[0].data or {}).values()] == [figure]


async def test_a_decline_is_about_the_table_that_the_question_names(league: Shop) -> None:
    for question, said in (
        ("highest salary in Boston", "Understood: greatest Salary."),
        ("people over 250 pounds in Boston", "Not understood: “in Boston”."),
    ):
        account = (await league.search(question, *MODELS)).account
        assert account.certainty == "none"
        assert said in account.explanation
        assert "Near" not in account.explanation
        assert " G " not in account.explanation
