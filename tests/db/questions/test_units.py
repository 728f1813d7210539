"""Numbers with units: converted to the unit of their field, and reported where it has no such unit."""

from __future__ import annotations

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Offer
from groundhook.handlers.db.question.reading import read_question
from tests.db.questions.models import LEXICONS, NOW, conditions, read


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("parcel", "parcels with a weight over 100 pounds", "weight > 45.3592"),
        ("parcel", "parcels weighing more than 20 lbs", "weight > 9.07184"),
        ("parcel", "parcels heavier than 10 stone", "weight > 63.5029"),
        ("parcel", "parcels under 20 pounds", "cost < 20"),
        ("parcel", "parcels that cost over 20 pounds", "cost > 20"),
        ("book", "books heavier than 10 ounces", "weight > 283.495"),
        ("river", "rivers longer than 100 miles", "length > 160.9344"),
        ("river", "rivers over 100 yards wide", "width > 91.44"),
        ("doctor", "doctors taller than 6 feet", "height > 182.88"),
        ("doctor", "doctors with a height of 70 inches or more", "height >= 177.8"),
        ("lake", "lakes larger than 5000 acres", "area > 20.2343"),
        ("lake", "lakes between 10 and 20 square miles", "area between [25.89988, 51.79976]"),
        (
            "parcel",
            "parcels with a transit time of at least one and a half hours",
            "transit >= 1.5",
        ),
        ("parcel", "parcels with a transit time over two and a half days", "transit > 60"),
        ("parcel", "parcels with a transit time of at most 90 minutes", "transit <= 1.5"),
    ],
)
def test_a_unit_is_converted_to_that_of_the_field(model: str, question: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("model", "question", "unit"),
    [
        ("parcel", "parcels with a weight over 100 euros", "euros"),
        ("parcel", "parcels with a transit time over 5 kg", "kg"),
        ("parcel", "parcels with a cost over 5 km", "km"),
        ("book", "books with a price under 3 inches", "inches"),
        ("book", "books with over 5 litres", "litres"),
        ("doctor", "doctors with a height over 60 kg", "kg"),
        ("doctor", "doctors with a salary over 60 m", "60"),
        ("river", "rivers with a length of 5 tons", "tons"),
    ],
)
def test_a_unit_of_another_kind_is_reported_and_no_condition(
    model: str, question: str, unit: str
) -> None:
    reading = read(question, model)
    assert conditions(reading) == ""
    assert unit in reading.not_understood


def test_a_field_without_a_unit_takes_the_number_with_a_note() -> None:
    columns = [{"name": "id", "type": "ID"}, {"name": "weight", "type": "decimal"}]
    crate = ModelSpec.model_validate(
        {"id": "crate", "table": {"name": "crate"}, "columns": columns}
    )
    offer = Offer(Schemas({"crate": crate})["crate"], {})
    question = "crates over 5 kg"
    (reading,) = read_question(question, [offer], words_for("en", question), NOW, LEXICONS)
    assert conditions(reading) == "weight > 5"
    assert reading.notes == ("the unit of 'weight' is not known: 'over 5 kg' was read without one",)


@pytest.mark.parametrize(
    "question",
    ["doctors over 50", "doctors over 50 who earn less than 60000", "doctors under 100"],
)
def test_a_number_of_persons_that_may_be_an_age_is_no_salary(question: str) -> None:
    assert "salary > 50" not in conditions(read(question, "doctor"))
    assert "salary < 100" not in conditions(read(question, "doctor"))
