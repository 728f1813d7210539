"""What questions are read as, and what they find: a record shop through a real database."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.conftest import Shop
from tests.db.questions.conftest import MODELS

EVERY = tuple(MODELS)


ANSWERED = [
    ("list all albums by Iron Maiden", [1, 2]),
    ("albums by the artist Metallica", [3]),
    ("metal albums", [1, 2, 3]),
    ("albums released before 1985", [1, 2, 4]),
    ("albums that were not released in the 1980s", [3, 4]),
    ("which tracks are longer than 20 minutes?", [2]),
    ("tracks longer than 1200000 ms", [2]),
    ("tracks under 4 minutes", [1]),
    ("tracks on the album Powerslave", [2]),
    ("tracks that cost between 1 and 2 dollars", [2]),
    ("whats the longest track", [2]),
    ("the cheapest track", [1, 3]),
    ("the most expensive track", [2]),
    ("artists without albums", [4]),
    ("employees in the IT department", [1, 3]),
    ("employees in IT or OR", [1, 3, 4]),
    ("employees named April", [1]),
    ("employees older than 65", [2]),
    ("employees without a phone", [2, 3]),
    ("employees hired in 2021", [2, 3]),
    ("employees hired since June 2021", [3, 4]),
    ("the two youngest employees", [1, 4]),
    ("who is the manager of Nancy Edwards", [4]),
    ("artists from IT", [4]),
    ("artists not from the US", [2, 3, 4]),
    ("albums by AC/DC", [4]),
    ("artists with more than one album", [2]),
    ("artists with fewer than 2 albums", [1, 3, 4]),
    ("artists who never had an album", [4]),
    ("artists from IT that have never recorded an album", [4]),
    ("albums that were tracked", [1, 2, 3]),
    ("albums that were never tracked", [4]),
    ("how much is Rime?", [2]),
    ("what does Rime cost?", [2]),
    ("how much does Sandman cost", [3]),
    ("was kostet Prowler?", [1]),
    ("employees of Rojas", [4]),
]


@pytest.mark.parametrize(("question", "found"), ANSWERED)
async def test_a_question_finds_exactly_what_it_asks_for(
    records: Shop, question: str, found: list[int]
) -> None:
    result = await records.search(question, *EVERY)
    assert result.account.certainty == "sure", result.account.explanation
    assert sorted(item.record_id for item in result.items) == found


@pytest.mark.parametrize(
    ("question", "figures"),
    [
        ("how many albums does Iron Maiden have", [(2,)]),
        ("how many employees are called Luis Goncalves", [(1,)]),
        ("average price of tracks", [(1.3233,)]),
        ("average track price", [(1.3233,)]),
        ("how many albums per genre", [("Metal", 3), ("Rock", 1)]),
        ("which genre has the most albums", [("Metal", 3)]),
        ("number of different genres", [(2,)]),
        ("metal albums per year", [(1980, 1), (1984, 1), (1991, 1)]),
        ("wie viele Alben pro Jahr", [(1978, 1), (1980, 1), (1984, 1), (1991, 1)]),
        ("כמה אלבומים לפי שנה", [(1978, 1), (1980, 1), (1984, 1), (1991, 1)]),
        ("how many albums were released in 2020", [(0,)]),
        ("how many artists never had an album", [(1,)]),
        ("genres with more than 2 albums", [("Metal", 3)]),
        ("which genres have fewer than 2 albums", [("Rock", 1)]),
        ("genres with more than one album released before 1985", [("Metal", 2)]),
    ],
)
async def test_a_figure_is_computed_of_what_it_asks_for(
    records: Shop, question: str, figures: list[tuple[object, ...]]
) -> None:
    result = await records.search(question, *EVERY)
    assert result.account.certainty == "sure", result.account.explanation
    rounded = [
        tuple(round(v, 4) if isinstance(v, float) else v for v in (item.data or {}).values())
        for item in result.items
    ]
    assert rounded == figures


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("purple albums", "purple"),
        ("how many employees are inactive", "inactive"),
        ("albums in Atlantis", "Atlantis"),
        ("how many albums compared with last year", "compared"),
        ("who reports to Nancy Edwards", "reports"),
        ("tracks longer than the average", "longer"),
        ("highest track in the world", "world"),
        ("second longest track", "second"),
        ("albums by Metalica and Pink Floyd", "Floyd"),
        ("only metal albums", "only"),
        ("albums per year in Atlantis", "Atlantis"),
        ("albums not per year", "not"),
        ("albums never filmed", "filmed"),
        ("how much is the ocean", "ocean"),
    ],
)
async def test_what_is_not_understood_is_refused_and_named(
    records: Shop, question: str, unread: str
) -> None:
    result = await records.search(question, *EVERY)
    assert (result.items, result.total, result.account.certainty) == ((), 0, "none")
    assert unread in " ".join(result.account.unread)
    assert result.account.explanation


@pytest.mark.parametrize(
    "question",
    [
        "artists who never had an album from Berlin",
        "artists that have never recorded a metal album",
        "average price per year",
        "how much tracks",
        "albums that were never tracked in 1984",
        "what does the album cost",
    ],
)
async def test_a_form_that_may_mean_several_things_is_declined(
    records: Shop, question: str
) -> None:
    result = await records.search(question, *EVERY)
    assert (result.items, result.account.certainty) == ((), "none")


async def test_readings_with_different_results_are_both_named_and_none_is_chosen(
    records: Shop,
) -> None:
    result = await records.search("Iron Maiden", *EVERY)
    assert (result.items, result.account.certainty) == ((), "none")
    assert {(each.read_as, each.total) for each in result.account.readings} == {
        ("Album where Title = Iron Maiden", 1),
        ("Artist where Name = Iron Maiden", 1),
    }


async def test_a_bound_that_several_numbers_may_have_is_read_of_each(records: Shop) -> None:
    result = await records.search("tracks under 300000", *EVERY)
    assert (result.items, result.account.certainty) == ((), "none")
    assert {(each.read_as, each.total) for each in result.account.readings} == {
        ("Track where Milliseconds < 300000", 1),
        ("Track where Price < 300000", 3),
    }


async def test_the_sentence_of_a_reading_chooses_it_for_whom_it_was_named_to(
    records: Shop,
) -> None:
    ann, bob = Identity(user_id="ann"), Identity(user_id="bob")
    asked = await records.search("albums with more than 8 tracks", *EVERY, identity=ann)
    counted, planned = sorted(each.read_as for each in asked.account.readings)[::-1]
    for sentence, total in ((counted, 0), (planned, 2)):
        chosen = await records.search(f" {sentence}\n", *EVERY, identity=ann)
        assert (chosen.account.certainty, chosen.account.read_as) == ("sure", sentence)
        assert chosen.total == total
    other = await records.search(counted, *EVERY, identity=bob)
    assert (other.items, other.account.read_as) == ((), "")
    # A model that is not searched stays out of it.
    without = await records.search(planned, "artist", identity=ann)
    assert (without.items, without.account.certainty) == ((), "none")


async def test_a_number_of_related_records_that_a_field_may_have_is_read_both_ways(
    records: Shop,
) -> None:
    result = await records.search("albums with more than 8 tracks", *EVERY)
    assert (result.items, result.account.certainty) == ((), "none")
    assert {(each.read_as, each.total) for each in result.account.readings} == {
        ("Album where number of tracks > 8", 0),
        ("Album where Planned > 8", 2),
    }


async def test_a_near_value_is_taken_for_a_list_and_said_but_never_for_a_figure(
    records: Shop,
) -> None:
    listed = await records.search("albums by Metalica", *EVERY)
    assert [item.record_id for item in listed.items] == [3]
    assert listed.account.certainty == "partial"
    assert "Metallica" in listed.account.explanation

    counted = await records.search("how many albums by Metalica", *EVERY)
    assert (counted.items, counted.account.certainty) == ((), "none")
    assert "Metallica" in counted.account.explanation


async def test_what_the_question_assumes_and_is_not_there_is_said(records: Shop) -> None:
    result = await records.search("oldest album released in 2020", *EVERY)
    assert (result.items, result.account.certainty) == ((), "none")
    assert "Released ≥ 2020-01-01" in result.account.explanation


async def test_words_that_no_data_answer_make_an_answer_partial(records: Shop) -> None:
    result = await records.search("metal albums currently", *EVERY)
    assert result.account.certainty == "partial"
    assert result.account.unread == ("currently",)
    assert result.total == 3


@pytest.mark.parametrize(
    ("question", "by"),
    [
        ("yearly number of albums", "year"),
        ("number of albums monthly", "month"),
        ("how many albums per weekday", "weekday"),
        ("number of metal albums by day of the week", "weekday"),
        ("Anzahl der Alben monatlich", "month"),
        ("Anzahl der Alben pro Wochentag", "weekday"),
        ("כמה אלבומים לפי יום בשבוע", "weekday"),
        ("כמה אלבומים לכל יום בשבוע", "weekday"),
        ("how many albums are monthly", None),
        ("annual albums", None),
    ],
)
async def test_a_word_for_each_part_of_a_date_groups_figures(
    records: Shop, question: str, by: str | None
) -> None:
    found = await records.search(question, *EVERY)
    groups = found.dsl["groups"] if found.dsl else []
    assert [group["by"] for group in groups] == ([by] if by else [])
    assert found.account.certainty == ("sure" if by else "none")


@pytest.mark.parametrize(
    ("language", "asked"),
    [("en", "albums from {day}"), ("de", "Alben von {day}"), ("he", "אלבומים מ{day}")],
)
async def test_the_days_of_the_week_are_read_and_written_in_each_language(
    records: Shop, language: str, asked: str
) -> None:
    for number, day in enumerate(vocabulary(language).file.days_of_week):
        found = await records.search(asked.format(day=day), *EVERY)
        [read] = re.findall(r"≥ (\d{4}-\d\d-\d\d)", found.account.read_as)
        assert datetime.fromisoformat(read).weekday() == number, day


async def test_figures_by_day_of_the_week_are_written_in_hebrew(records: Shop) -> None:
    found = await records.search("כמה אלבומים לפי יום בשבוע", *EVERY)
    days = [item.content.splitlines()[0] for item in found.items]
    assert days == ["Released (יום בשבוע): יום שני", "Released (יום בשבוע): יום שישי"]


async def test_a_caller_who_wants_one_record_gets_one_of_those_that_are_equal(
    records: Shop,
) -> None:
    found = await records.search("the cheapest track", "track", limit=1)
    assert [item.record_id for item in found.items] == [1]


async def test_none_in_a_month_of_no_year_is_no_answer(records: Shop) -> None:
    guessed = await records.search("how many albums were released in April", *EVERY)
    assert (guessed.account.certainty, guessed.items) == ("none", ())
    assert "names no year" in guessed.account.explanation
    told = await records.search("how many albums were released in April 2019", *EVERY)
    assert told.account.certainty == "sure"


@pytest.mark.parametrize(
    ("question", "year"),
    [
        ("how many visits are there in march", 2027),
        ("how many visits did we have in march?", 2026),
        ("which visits were in march", 2026),
        ("wie viele Visits hatten wir im März", 2026),
        ("כמה Visits היו לנו במרץ", 2026),
    ],
)
async def test_a_question_about_what_was_is_about_the_last_such_month(
    tmp_path: Path, question: str, year: int
) -> None:
    columns = [{"name": "id", "type": "ID"}, {"name": "starts", "type": "date"}]
    values = [{"starts": f"{2026 + (at > 2)}-03-0{at}"} for at in range(1, 4)]
    spec = {"id": "visit", "name": "Visits", "table": {"name": "visit"}, "columns": columns}
    model = ModelSpec.model_validate({**spec, "values": values})
    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with open_database(url, 60_000, {"visit": model}) as database:
        await database.load()
        result = await Shop(database, url).search(question, "visit")  # in November 2026
    assert result.account.certainty == "sure", result.account.explanation
    assert f"{year}-03-01" in result.account.read_as


def _visits() -> dict[str, ModelSpec]:
    """Visits of patients to doctors: one cancelled in October 2026, a no-show in September."""
    name = [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}]
    visit = [
        {"name": "id", "type": "ID"},
        {"name": "doctor_id", "type": "integer"},
        {"name": "patient_id", "type": "integer"},
        {"name": "day", "type": "date"},
        {"name": "status", "type": "enum", "option": ["cancelled", "no-show"]},
    ]
    of = {"type": "hasMany", "model": "visit", "foreign": "id"}
    to = {"type": "hasOne", "key": "id"}
    specs: list[dict[str, Any]] = [
        {
            "id": "doctor",
            "columns": name,
            "values": [{"name": "Berg"}],
            "relations": {"visits": {**of, "key": "doctor_id"}},
        },
        {
            "id": "patient",
            "columns": name,
            "values": [{"name": "Silva"}],
            "relations": {"visits": {**of, "key": "patient_id"}},
        },
        {
            "id": "visit",
            "columns": visit,
            "values": [
                {"doctor_id": 1, "patient_id": 1, "day": "2026-10-05", "status": "cancelled"},
                {"doctor_id": 1, "patient_id": 1, "day": "2026-09-01", "status": "no-show"},
            ],
            "relations": {
                "doctor": {**to, "model": "doctor", "foreign": "doctor_id"},
                "patient": {**to, "model": "patient", "foreign": "patient_id"},
            },
        },
    ]
    return {
        each["id"]: ModelSpec.model_validate(
            {"name": each["id"].title(), "table": {"name": each["id"]}, **each}
        )
        for each in specs
    }


@pytest.fixture
async def visits(tmp_path: Path) -> AsyncIterator[Shop]:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with open_database(url, 60_000, _visits()) as database:
        await database.load()
        yield Shop(database, url)


async def test_who_lists_the_persons_of_records_and_is_not_sure_which_of_them_is_meant(
    visits: Shop,
) -> None:
    result = await visits.search("who cancelled in October", "visit")
    assert result.account.certainty == "partial"
    assert [(one.data or {})["patient.name"] for one in result.items] == ["Silva"]
    assert [(one.data or {})["doctor.name"] for one in result.items] == ["Berg"]


@pytest.mark.parametrize("day", ["on 5 October", "yesterday"])
async def test_who_of_several_kinds_of_persons_is_asked_back_whether_or_not_there_are_any(
    visits: Shop, day: str
) -> None:
    result = await visits.search(f"who had a visit {day}", "doctor", "patient", "visit")
    assert (result.account.certainty, result.items) == ("none", ())
    told = " ".join(each.read_as for each in result.account.readings)
    assert "Doctor" in told
    assert "Patient" in told


async def test_a_last_name_that_two_kinds_of_persons_have_is_read_of_each(tmp_path: Path) -> None:
    models, url = _visits(), f"sqlite:///{tmp_path / 'x.db'}"
    for id, names in (("doctor", ["Ann Young"]), ("patient", ["Bob Young", "Eve Silva"])):
        columns = [{"name": name, "type": "string"} for name in ("first_name", "last_name")]
        rows = [dict(zip(("first_name", "last_name"), each.split(), strict=True)) for each in names]
        changed = {"columns": [{"name": "id", "type": "ID"}, *columns], "values": rows}
        models[id] = ModelSpec.model_validate({**models[id].model_dump(by_alias=True), **changed})
    third = {"doctor_id": 1, "patient_id": 2, "day": "2026-11-01", "status": "no-show"}
    visit = models["visit"]
    models["visit"] = visit.model_copy(update={"values": (*visit.values, third)})
    async with open_database(url, 60_000, models) as database:
        await database.load()
        shop = Shop(database, url)
        asked = await shop.search("visits of Young", "visit")
        counted = await shop.search("how many visits does Young have", "visit")
    assert (asked.account.certainty, asked.items) == ("none", ())
    assert {(each.read_as, each.total) for each in asked.account.readings} == {
        ("Visit where Doctor › Last name = Young", 3),
        ("Visit where Patient › Last name = Young", 2),
    }
    assert counted.account.certainty == "none"


async def test_a_time_may_stand_before_the_records_and_an_option_for_them(visits: Shop) -> None:
    listed = await visits.search("last month's visits", "visit")
    assert (listed.account.certainty, [one.record_id for one in listed.items]) == ("sure", [1])
    counted = await visits.search("how many no-shows", "visit")
    assert counted.account.read_as == "number of Visit records where Status = no-show"
    assert [list((one.data or {}).values()) for one in counted.items] == [[1]]


async def test_a_decline_says_what_was_understood_in_the_language_of_the_question(
    records: Shop,
) -> None:
    result = await records.search("Alben mit Gesang", "album")
    assert "Nicht verstanden" in result.account.explanation


async def test_known_words_that_mean_nothing_together_are_answered_with_what_most_of_them_mean(
    records: Shop,
) -> None:
    result = await records.search("sum of planned per year", "album")
    assert result.account.certainty == "none"
    assert "Understood: sum of Planned." in result.account.explanation


PUT_IN = ["purple", "not", "second", "in Atlantis", "compared with last year"]


@pytest.mark.parametrize("put_in", PUT_IN)
async def test_a_word_or_clause_that_nobody_knows_never_leaves_the_answer_as_it_was(
    records: Shop, put_in: str, full: bool
) -> None:
    same = []
    # Without --full, each is put into a third of the questions.
    for question, _ in ANSWERED if full else ANSWERED[PUT_IN.index(put_in) % 3 :: 3]:
        words = question.rstrip("?").split()
        places = (len(words),) if " " in put_in else (1, len(words) - 1)
        before = await records.search(question, *EVERY)
        for place in places:
            changed = " ".join([*words[:place], put_in, *words[place:]])
            after = await records.search(changed, *EVERY)
            if after.account.certainty == "sure" and after.dsl == before.dsl:
                same.append(changed)
    assert same == []


@pytest.mark.parametrize(
    ("text", "cut"),
    [("tea " * 150 + "?!?", False), ("tea " * 150 + "?! tea", True), ("tea " * 2000, True)],
)
def test_of_a_long_question_no_more_words_are_read_than_count(text: str, cut: bool) -> None:
    read = TokenizedQuestion.of(text, vocabulary("en"), datetime(2026, 1, 2, tzinfo=UTC))
    assert (len(read), read.cut) == (150, cut)
    assert len(tokens_of(text)) < 155
