"""Questions that a language model reads: what it is sent, which of its answers count, and what the
result says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook.core.errors import ModelUnreachable
from groundhook.core.ports import SourceResult
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop
from tests.parts.asked_model import BY, AskedModel, ask

ALL = ("artist", "album", "track", "employee")
HARD = "which band has recorded the heaviest stuff over the years"
COUNT = {"function": "count", "field": "*", "as": "figure"}


def query(model: str, **more: Any) -> dict[str, Any]:
    return {"query": {"model": model, **more}, "unused": []}


def where(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def titles(found: SourceResult) -> list[str]:
    data = [item.data or {} for item in found.items]
    return [each.get("Title") or each["Name"] for each in data]


METAL = query("album", wheres=[where("genre", "=", "Metal")])


# ------------------------------------------------------------------------------------------ who reads


async def test_a_question_that_is_read_surely_costs_no_call(records: Shop) -> None:
    model = AskedModel([METAL])
    found = await ask(records, model, "albums by Iron Maiden", *ALL)
    assert found.account.certainty == "sure"
    assert found.account.read_by == "builtin"
    assert model.calls == []


async def test_a_question_that_is_not_read_surely_is_read_by_the_model(records: Shop) -> None:
    model = AskedModel([METAL])
    found = await ask(records, model, "which records are heavy Metal stuff", *ALL)
    assert sorted(titles(found)) == ["Black Album", "Iron Maiden", "Powerslave"]
    assert found.account.read_by == BY
    assert found.account.certainty == "sure"
    assert found.account.read_as == "Album where Genre = Metal"


async def test_the_named_model_reads_every_question(records: Shop) -> None:
    model = AskedModel([METAL])
    found = await ask(records, model, "Metal albums", *ALL, by=BY)
    assert len(found.items) == 3
    assert len(model.calls) == 1


async def test_builtin_asks_no_model(records: Shop) -> None:
    model = AskedModel([METAL])
    found = await ask(records, model, HARD, *ALL, by="builtin")
    assert found.account.certainty == "none"
    assert model.calls == []


async def test_the_callers_conditions_are_added_to_the_models_query(records: Shop) -> None:
    model = AskedModel([METAL])
    own = [where("released", "<", "1984-01-01")]
    found = await ask(records, model, "which are heavy Metal stuff", "album", wheres=own)
    assert titles(found) == ["Iron Maiden"]


# --------------------------------------------------------------------------------------- the request


async def test_the_request_shows_the_tables_with_examples_of_their_values(records: Shop) -> None:
    model = AskedModel([METAL])
    await ask(records, model, "heavy Metal stuff longer than 20 minutes", *ALL)
    assert 'album ("Album", 4 rows, searched)' in model.system
    assert 'genre (text; such as "Metal", "Rock")' in model.system
    assert "released (date; such as " in model.system
    assert "planned (integer; planned tracks; such as 8" in model.system
    assert "relations: artist → one artist; tracks → many track" in model.system
    assert 'album: genre = "Metal"' in model.user
    assert "NOW: Thursday 2026-11-12 10:00" in model.user
    assert model.user.endswith("QUESTION: heavy Metal stuff longer than 20 minutes")


async def test_the_request_has_worked_examples_of_the_very_tables(records: Shop) -> None:
    model = AskedModel([METAL])
    await ask(records, model, "heavy Metal stuff", *ALL)
    worked = model.system.partition("EXAMPLES\n")[2].splitlines()
    answers = [json.loads(line.partition(": ")[2]) for line in worked if line.startswith("Answer")]
    assert len(answers) == 6
    assert answers[-1] == {"cannot": "the tables have nothing about the weather"}
    for answer in answers[:-1]:
        again = AskedModel([answer])
        found = await ask(records, again, HARD, *ALL, by=BY)
        assert found.account.read_as, answer


async def test_the_system_message_is_the_same_for_every_question(records: Shop) -> None:
    first, second = AskedModel([METAL]), AskedModel([METAL])
    await ask(records, first, "heavy Metal stuff", *ALL)
    await ask(records, second, "what did Nancy say about the Rock thing", *ALL)
    assert first.system == second.system


async def test_the_schema_of_the_answer_has_each_tables_own_fields(records: Shop) -> None:
    model = AskedModel([METAL])
    await ask(records, model, "heavy Metal stuff", "album", "track")
    [schema] = [reply.schema for reply in model.replies]
    forms = {
        each["properties"]["model"]["enum"][0]: json.dumps(each)
        for each in schema["$defs"]["query"]["anyOf"]
    }
    assert set(forms) == {"album", "track"}
    assert '"artist.country"' in forms["album"]
    assert '"Milliseconds"' not in forms["album"].partition('"wheres"')[0]


# ------------------------------------------------------------------------------------- the corrections


async def test_an_invented_field_is_named_in_the_correction(records: Shop) -> None:
    wrong = query("album", wheres=[where("heaviness", ">", 5)])
    model = AskedModel([wrong, METAL])
    found = await ask(records, model, "which are heavy Metal stuff", "album")
    assert len(found.items) == 3
    assert "has no field 'heaviness'" in model.problem()


async def test_after_two_corrections_the_decline_of_the_reader_stays(records: Shop) -> None:
    model = AskedModel([query("album", wheres=[where("heaviness", ">", 5)])])
    found = await ask(records, model, "which are heavy Metal stuff", "album")
    assert len(model.calls) == 3
    assert (found.items, found.account.certainty) == ((), "none")
    assert found.account.read_by == "builtin"
    [(code, message)] = records.warnings
    assert code == "delegate"
    assert "has no field 'heaviness'" in message


async def test_a_value_is_spelled_as_the_table_has_it(records: Shop) -> None:
    model = AskedModel([query("employee", wheres=[where("LastName", "=", "goncalves")])])
    found = await ask(records, model, "is Goncalves that guy from accounting", "employee", by=BY)
    assert len(found.items) == 1
    assert "Gonçalves" in found.account.read_as


async def test_an_unknown_value_is_corrected_once_with_near_ones(records: Shop) -> None:
    wrong = query("artist", wheres=[where("Name", "=", "Metalica")])
    right = query("artist", wheres=[where("Name", "=", "Metallica")])
    model = AskedModel([wrong, right])
    found = await ask(records, model, "stuff about Metalica", "artist", by=BY)
    assert titles(found) == ["Metallica"]
    assert "no Artist has Name = 'Metalica' (near: 'Metallica')" in model.problem()


async def test_a_value_that_stays_unknown_is_declined_with_near_ones(records: Shop) -> None:
    wrong = query("artist", wheres=[where("Name", "=", "Metalica")], aggregates=[COUNT])
    model = AskedModel([wrong])
    found = await ask(records, model, "how much stuff about Metalica", "artist", by=BY)
    assert (found.items, found.account.certainty) == ((), "none")
    assert found.account.unread == ("Metalica",)
    assert "“Metallica”" in found.account.explanation


async def test_a_sum_of_nothing_is_no_figure(records: Shop) -> None:
    total = {"function": "sum", "field": "price", "as": "figure"}
    model = AskedModel([query("track", wheres=[where("price", ">", 100)], aggregates=[total])])
    found = await ask(records, model, "sum of all that is over 100", "track", by=BY)
    assert (found.items, found.account.certainty) == ((), "none")
    assert "Nothing was found" in found.account.explanation


@pytest.mark.parametrize(
    ("question", "lacking", "whole"),
    [
        (
            "albums not of Metal, thanks mate",
            [where("genre", "=", "Metal")],
            [where("genre", "!=", "Metal")],
        ),
        ("stuff planned for more than 8 songs", [], [where("planned", ">", 8)]),
        (
            "stuff planned for more than 8 songs",
            [where("planned", "=", 8)],
            [where("planned", ">", 8)],
        ),
        (
            "heavy records before 1984",
            [],
            [where("released", "<", "1984-01-01")],
        ),
        (
            "heavy records before 1984",
            [where("released", ">", "1984-01-01")],
            [where("released", "<", "1984-01-01")],
        ),
        ("heavy Metal records", [], [where("genre", "=", "Metal")]),
        (
            "heavy Metal or Rock records",
            [where("genre", "=", "Metal"), where("genre", "=", "Rock")],
            [where("genre", "in", ["Metal", "Rock"])],
        ),
        (
            'what is this "Powerslave" thing',
            [],
            [where("Title", "=", "Powerslave")],
        ),
    ],
)
async def test_a_condition_without_a_part_in_the_query_is_the_problem_of_the_correction(
    records: Shop, question: str, lacking: list[Any], whole: list[Any]
) -> None:
    model = AskedModel([query("album", wheres=lacking), query("album", wheres=whole)])
    found = await ask(records, model, question, "album", by=BY)
    assert len(model.calls) == 2, model.calls
    assert "no part of the query expresses" in model.problem()
    assert found.account.certainty == "sure", found.account


async def test_what_stays_without_a_part_is_unread_and_the_answer_partial(records: Shop) -> None:
    model = AskedModel([METAL])
    found = await ask(records, model, "heavy Metal records from before 1984", "album", by=BY)
    assert len(model.calls) == 3
    assert found.account.certainty == "partial"
    assert found.account.unread == ("before 1984",)
    assert len(found.items) == 3


async def test_words_that_the_model_left_out_are_unread_without_a_correction(
    records: Shop,
) -> None:
    answer = {"query": METAL["query"], "unused": ["before 1984", "the"]}
    model = AskedModel([answer])
    found = await ask(records, model, "the heavy Metal records from before 1984", "album", by=BY)
    assert len(model.calls) == 1
    assert found.account.certainty == "partial"
    assert "before 1984" in found.account.unread
    assert "the" not in found.account.unread


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "tracks longer than 20 minutes please mate",
            query("track", wheres=[where("Milliseconds", ">", 1_200_000)]),
        ),
        (
            "songs that cost over 0.99 bucks, mate",
            query("track", wheres=[where("price", ">", 0.99)]),
        ),
        (
            "stuff by Metalica",
            query("album", wheres=[where("artist.Name", "=", "Metallica")]),
        ),
        ("who is over 60", query("employee", wheres=[where("born", "<", "1966-11-12")])),
        (
            "folks hired in the last 3 years or so",
            query("employee", wheres=[where("hired_on", ">=", "2023-11-12")]),
        ),
        (
            "folks hired in May 2020",
            query("employee", wheres=[where("hired_on", "between", ["2020-05-01", "2020-05-31"])]),
        ),
        (
            "top 2 of the employees by age",
            query("employee", orders=[{"field": "born", "order": "asc"}], limit=2),
        ),
        (
            "bands with more than 1 album out",
            query("artist", wheres=[{"related": "albums", "count": {">": 1}}]),
        ),
        (
            "the second longest song ever",
            query(
                "track",
                orders=[{"field": "Milliseconds", "order": "desc"}],
                limit=1,
                offset=1,
            ),
        ),
        (
            "songs longer than average",
            query(
                "track",
                wheres=[
                    {
                        "field": "Milliseconds",
                        "op": ">",
                        "other": {"function": "avg", "field": "Milliseconds"},
                    }
                ],
            ),
        ),
        (
            "how many of the staff never got a phone",
            query("employee", wheres=[where("phone", "null", None)], aggregates=[COUNT]),
        ),
        ("albums by AC/DC, I guess", query("album", wheres=[where("artist.Name", "=", "AC/DC")])),
    ],
)
async def test_a_right_query_needs_no_correction(
    records: Shop, question: str, answer: dict[str, Any]
) -> None:
    model = AskedModel([answer])
    await ask(records, model, question, *ALL, by=BY)
    assert len(model.calls) == 1, model.problem()


# ------------------------------------------------------------------------------------ other answers


async def test_a_refusal_is_told_with_its_reason(records: Shop) -> None:
    model = AskedModel([{"cannot": "The tables have no\nreviews."}])
    found = await ask(records, model, HARD, *ALL)
    assert (found.items, found.account.certainty) == ((), "none")
    assert found.account.explanation == "The tables have no reviews."
    assert found.account.read_by == BY


async def test_two_readings_are_a_question_back_with_their_counts(records: Shop) -> None:
    readings = [
        {"model": "album", "wheres": [where("Title", "=", "Iron Maiden")]},
        {"model": "album", "wheres": [where("artist.Name", "=", "Iron Maiden")]},
    ]
    model = AskedModel([{"ask": "The album or the band?", "readings": readings}])
    found = await ask(records, model, "the Iron Maiden thing", "album", "artist", by=BY)
    assert (found.items, found.account.certainty) == ((), "none")
    assert [each.total for each in found.account.readings] == [1, 2]
    assert found.account.readings[0].read_as == "Album where Title = Iron Maiden"
    assert found.account.explanation.startswith("The album or the band?")


async def test_a_question_back_without_readings_is_told(records: Shop) -> None:
    model = AskedModel([{"ask": "Which year do you mean?"}])
    found = await ask(records, model, HARD, *ALL)
    assert found.account.explanation == "Which year do you mean?"
    assert found.account.certainty == "none"


@pytest.mark.parametrize(
    "answer",
    [
        "I would look at the genre, honestly.",
        "{}",
        query("salary"),
        query("album", wheres=[where("artist.label.name", "=", "x")]),
        query("album", wheres=[where("genre", "=", "Metal")] * 1000),
        query("album", wheres=[where("released", ">", "yesterday-ish")]),
        query("album", wheres="genre = 'Metal'; DROP TABLE record_album"),
        {"readings": [{"model": "album"}] * 50},
        ModelUnreachable("nobody there"),
    ],
    ids=[
        *("prose", "empty", "invented-table", "invented-relation", "thousand-conditions"),
        *("no-date", "sql", "many-readings", "down"),
    ],
)
async def test_a_model_that_fails_leaves_the_decline_with_a_warning(
    records: Shop, answer: Any
) -> None:
    model = AskedModel([answer])
    found = await ask(records, model, HARD, *ALL)
    assert (found.items, found.account.certainty) == ((), "none")
    assert found.account.read_by == "builtin"
    assert found.account.explanation
    assert len(records.warnings) == 1, records.warnings


async def test_a_model_that_does_not_answer_in_time_leaves_the_decline(records: Shop) -> None:
    model = AskedModel([METAL], before=anyio.sleep_forever)
    with anyio.fail_after(60):
        found = await ask(records, model, HARD, *ALL, timeout_ms=50)
    assert found.account.certainty == "none"
    assert "no answer within 50 ms" in records.warnings[0][1]


async def test_a_model_has_a_part_of_the_time_that_the_search_has_left(records: Shop) -> None:
    left: list[float] = []

    async def measure() -> None:
        left.append(anyio.current_effective_deadline() - anyio.current_time())

    with anyio.fail_after(100):
        await ask(records, AskedModel([METAL], before=measure), HARD, *ALL, timeout_ms=3_600_000)
    assert 0 < left[0] <= 70


async def test_a_correction_that_fails_leaves_the_answer_before_it(records: Shop) -> None:
    model = AskedModel([METAL, ModelUnreachable("gone")])
    found = await ask(records, model, "heavy Metal records from before 1984", "album")
    assert len(found.items) == 3
    assert found.account.certainty == "partial"


async def test_the_same_question_in_the_same_minute_is_asked_once(records: Shop) -> None:
    model = AskedModel([METAL])
    for _ in range(2):
        found = await ask(records, model, "which are heavy Metal stuff", "album")
        assert len(found.items) == 3
    assert len(model.calls) == 1


# ------------------------------------------------------------------------------------ large schemas


def _wide(id: str, columns: int, **values: Any) -> ModelSpec:
    """A model with so many number columns, and one of text."""
    numbers = [
        {"name": f"measure_{n}", "type": "integer", "nullable": True} for n in range(columns)
    ]
    return ModelSpec.model_validate(
        {
            "id": id,
            "name": id.replace("_", " ").capitalize(),
            "table": {"name": f"wide_{id}"},
            "columns": [
                {"name": "id", "type": "ID"},
                {"name": "name", "type": "string", "nullable": True, "comment": "x" * 100},
                *numbers,
            ],
            "values": [{"id": 1, "name": f"Thing of {id}", **values}],
        }
    )


async def test_of_a_thousand_columns_those_that_are_named_are_shown(tmp_path: Path) -> None:
    models = {"sensor": _wide("sensor", 1000, measure_777=5)}
    async with open_database(f"sqlite:///{tmp_path}/w.db", 60_000, models) as database:
        await database.load()
        answer = query("sensor", wheres=[where("measure_777", ">", 4)])
        model = AskedModel([answer])
        asked = "is measure 777 anywhere over 4, buddy"
        found = await ask(Shop(database, ""), model, asked, "sensor", by=BY)
    assert len(found.items) == 1
    assert "measure_777 (integer" in model.system
    assert "more fields, which the question does not name" in model.system
    assert len(model.system) < 10_000
    assert len(model.calls) == 1
    assert len(json.dumps(model.replies[0].schema)) < 20_000


async def test_of_many_tables_those_that_are_named_are_shown(tmp_path: Path) -> None:
    models = {f"depot_{n}": _wide(f"depot_{n}", 3) for n in range(20)}
    async with open_database(f"sqlite:///{tmp_path}/m.db", 60_000, models) as database:
        await database.load()
        model = AskedModel([query("depot_12")])
        asked = "what about depot 12 then, buddy"
        found = await ask(Shop(database, ""), model, asked, *models, by=BY)
    assert [item.title for item in found.items] == ["Thing of depot_12"]
    assert 'depot_12 ("Depot 12"' in model.system
    assert model.system.count("measure_0 (") <= 8
    assert len(model.system) < 20_000
    assert len(model.calls) == 1
