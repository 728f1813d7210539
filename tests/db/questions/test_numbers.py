"""Units, adjectives, verbs and ages around a number."""

from __future__ import annotations

import pytest

from tests.db.questions.models import conditions, read


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("river", "rivers longer than 1000 km", "length > 1000"),
        ("river", "rivers over 600 miles", "length > 965.6064"),
        ("river", "rivers under 100 km in length", "length < 100"),
        ("river", "rivers at least 500 metres wide", "width >= 500"),
        ("river", "rivers wider than 0.2 km", "width > 200"),
        ("lake", "lakes bigger than 500 square kilometres", "area > 500"),
        ("lake", "lakes smaller than 50,000 hectares", "area < 500"),
        ("doctor", "doctors taller than 180 cm", "height > 180"),
        ("doctor", "doctors over 1.8 m tall", "height > 180"),
        ("parcel", "parcels over 500 g", "weight > 0.5"),
        ("parcel", "parcels lighter than 1 kilo", "weight < 1"),
        ("parcel", "parcels in transit for more than 2 days", "transit > 48"),
        ("parcel", "parcels with transit time over 24 hours", "transit > 24"),
        ("book", "books heavier than half a kilo", "weight > 500"),
        ("book", "books over 500 pages long", "pages > 500"),
        ("parcel", "5 kg parcels", "weight = 5"),
        ("book", "books with pages under 30 euros", "price < 30"),
        ("book", "books with over 300 pages under 20 euros", "pages > 300 and price < 20"),
        ("state", "states with more than a million people", "population > 1000000"),
        ("book", "books more expensive than 30", "price > 30"),
        ("state", "states with more than 5 million people", "population > 5000000"),
    ],
)
def test_a_number_is_compared_in_the_unit_of_its_field(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("parcel", "parcels that weigh more than 5", "weight > 5"),
        ("parcel", "parcels weighing between 2 and 4 kg", "weight between [2, 4]"),
        ("doctor", "doctors earning over 100000", "salary > 100000"),
        ("doctor", "doctors making less than 80,000 a year", "salary < 80000"),
        ("doctor", "doctors who earn 90000 or more", "salary >= 90000"),
        ("doctor", "doctors with 10 years experience", "experience = 10"),
        ("doctor", "doctors with more than 10 years of experience", "experience > 10"),
    ],
)
def test_a_number_is_of_the_field_that_its_verb_or_noun_names(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("doctors over 60", "born_on <= 1965-11-12"),
        ("doctors aged over 60", "born_on <= 1965-11-12"),
        ("doctors under the age of 40", "born_on > 1986-11-12"),
        ("doctors older than 50", "born_on <= 1975-11-12"),
        ("doctors no older than 40", "born_on > 1985-11-12"),
        ("doctors not younger than 40", "born_on <= 1986-11-12"),
        ("doctors aged 40", "born_on > 1985-11-12 and born_on <= 1986-11-12"),
        ("40-year-old doctors", "born_on > 1985-11-12 and born_on <= 1986-11-12"),
        ("doctors who are 35", "born_on > 1990-11-12 and born_on <= 1991-11-12"),
        ("doctors 30 to 40 years old", "born_on > 1985-11-12 and born_on <= 1996-11-12"),
        ("doctors aged between 30 and 40", "born_on > 1985-11-12 and born_on <= 1996-11-12"),
    ],
)
def test_an_age_is_a_condition_on_the_date_of_birth(question: str, found: str) -> None:
    reading = read(question, "doctor")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("doctor", "how tall is Omar Haddad?", "name = Omar Haddad"),
        ("doctor", "how old is Dana Levi", "name = Dana Levi"),
        ("doctor", "how much does Dana Levi earn", "name = Dana Levi"),
        ("parcel", "how heavy is P-100", "code = P-100"),
        ("state", "how big is Texas", "name = Texas"),
        ("state", "how many people live in Texas", "name = Texas"),
        ("book", "how many pages does Good Omens have", "title = Good Omens"),
    ],
)
def test_a_question_for_a_number_that_records_have_returns_the_record(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood, reading.dsl.aggregates) == (found, (), ())
