"""Which field has a value: values of several fields, of no field, and pieces of lists."""

from __future__ import annotations

import pytest

from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.vocabulary import vocabulary
from tests.db.questions.models import (
    LANGUAGES,
    NOW,
    conditions,
    offers,
    read,
    readings,
)

BOTH = "languages like Hebrew and languages like French"
CITY = {"Haifa": 8, "Mountain View": 6}
COUNTED = {
    "doctor": {"city": CITY, "meal": {"Mountain View": 1, "Curry": 9}},
    "river": {"name": {"Ohio": 1, "Colorado": 1}, "state": {"Ohio": 3, "Colorado": 5}},
    "parcel": {"origin": {"Oslo": 9, "Rome": 2}, "destination": {"Oslo": 1, "Rome": 7}},
}


@pytest.mark.parametrize(
    ("model", "question", "found", "other"),
    [
        ("doctor", "Mountain View doctors", "city = Mountain View", "meal"),
        ("doctor", "doctors in Mountain View", "city = Mountain View", "meal"),
        ("river", "Ohio rivers", "state = Ohio", "name"),
        ("river", "rivers in Ohio", "state = Ohio", "name"),
        ("river", "how long is the Ohio?", "name = Ohio", "state"),
        ("river", "how long is the Colorado river", "name = Colorado", "state"),
        ("river", "how long are the Colorado rivers", "state = Colorado", "name"),
        ("parcel", "parcels Oslo", "(origin = Oslo or destination = Oslo)", "destination"),
    ],
)
def test_a_value_of_two_fields_is_placed_and_both_are_reported(
    model: str, question: str, found: str, other: str
) -> None:
    (reading,) = read_question(question, offers(COUNTED, model), vocabulary("en"), NOW)
    assert (conditions(reading), reading.not_understood) == (found, ())
    assert other in " ".join(reading.notes)


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("parcel", "parcels from Oslo to Rome", "origin = Oslo and destination = Rome"),
        ("doctor", "doctors whose favourite meal is Mountain View", "meal = Mountain View"),
    ],
)
def test_a_value_whose_field_is_named_is_not_reported(
    model: str, question: str, found: str
) -> None:
    (reading,) = read_question(question, offers(COUNTED, model), vocabulary("en"), NOW)
    assert (conditions(reading), reading.not_understood, reading.notes) == (found, (), ())


@pytest.mark.parametrize(
    ("model", "question", "word"),
    [
        ("town", "which state is Dallas in?", "Dallas"),
        ("town", "in which state is Dallas", "Dallas"),
        ("doctor", "doctors in Atlantis", "Atlantis"),
        ("book", "history books by Tolstoy", "Tolstoy"),
    ],
)
def test_a_value_that_no_field_has_is_reported_and_no_filter(
    model: str, question: str, word: str
) -> None:
    reading = read(question, model)
    assert word in reading.not_understood
    assert word not in conditions(reading)


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("doctor", "Hebrew doctors", "languages like Hebrew"),
        (
            "doctor",
            "doctors who speak Hebrew and French",
            "languages like Hebrew and languages like French",
        ),
        (
            "doctor",
            "doctors who speak Hebrew or French",
            "(languages like Hebrew or languages like French)",
        ),
        ("doctor", "doctors whose languages include French", "languages like French"),
        (
            "doctor",
            "doctors whose languages do not include French",
            "languages match none ['French']",
        ),
        ("doctor", "Cardiology doctors", 'skills like "Cardiology"'),
        ("doctor", "doctors with speciality Pediatrics", 'skills like "Pediatrics"'),
        ("doctor", "doctors without Cardiology", "skills match none ['\"Cardiology\"']"),
        ("book", "rare history books", 'tags like "rare" and genre = history'),
        ("doctor", "doctors who can speak both Hebrew and French", BOTH),
    ],
)
def test_a_list_contains_its_pieces(model: str, question: str, found: str) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


def test_a_column_in_which_two_pieces_recur_has_lists() -> None:
    known = ("Piano, Organ", "Piano", "Violin, Viola", "Cello", "Flute, Recorder", "Piano, Violin")
    samples = {"doctor": {"skills": (), "meal": known}}
    (reading,) = read_question("Violin doctors", offers(samples, "doctor"), vocabulary("en"), NOW)
    assert conditions(reading) == "meal like Violin"


def test_a_piece_within_another_is_looked_for_with_its_separators() -> None:
    known = ("Java, Python", "JavaScript", "Python, JavaScript", "Java", "Java, JavaScript")
    samples = {"doctor": {"languages": known}}
    (reading,) = read_question("Java doctors", offers(samples, "doctor"), vocabulary("en"), NOW)
    assert conditions(reading) == (
        "(languages = Java or languages like Java,% or languages like %,Java"
        " or languages like %, Java or languages like %,Java,% or languages like %, Java,%)"
    )


OTHER_VALUES = {"city": ("Haifa",), "languages": LANGUAGES, "meal": ("French", "Hebrew")}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("French-speaking doctors", "languages like French"),
        (
            "doctors who speak Hebrew but not French",
            "languages like Hebrew and languages match none ['French']",
        ),
    ],
)
def test_a_value_of_two_fields_belongs_to_that_of_its_verb(question: str, found: str) -> None:
    samples = {"doctor": OTHER_VALUES}
    (reading,) = read_question(question, offers(samples, "doctor"), vocabulary("en"), NOW)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "model", "found"),
    [
        ("area of Florida", "state", "name = Florida"),
        ("which lakes are in Florida", "lake", "state = Florida"),
        ("population of Ohio", "state", "name = Ohio"),
        ("how long is the Ohio", "river", "name = Ohio"),
    ],
)
def test_of_several_models_the_question_chooses_one(question: str, model: str, found: str) -> None:
    (reading,) = readings(question, "state", "river", "lake")
    assert (reading.dsl.model, conditions(reading), reading.not_understood) == (model, found, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("books by Sato", "author like Sato"),
        ("books by Sato or Ortiz", "(author like Sato or author like Ortiz)"),
        ("books by Ada Sato or Ortiz", "(author = Ada Sato or author like Ortiz)"),
    ],
)
def test_a_word_selects_the_field_of_a_part_of_a_name(question: str, found: str) -> None:
    reading = read(question, "book")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("question", "figures", "groups"),
    [
        ("which author wrote the most books?", ["count"], ("author",)),
        ("which language has the most books?", ["count"], ("language",)),
        ("how many pages did Ada Sato write?", ["sum_pages"], ()),
        ("how many pages does Good Omens have?", [], ()),
        ("average price per language", ["avg_price"], ("language",)),
    ],
)
def test_a_figure_is_over_records(
    question: str, figures: list[str], groups: tuple[str, ...]
) -> None:
    reading = read(question, "book")
    assert [one.called for one in reading.dsl.aggregates] == figures
    assert (reading.dsl.groups, reading.not_understood) == (groups, ())


def test_the_time_of_a_salary_is_no_group() -> None:
    reading = read("average salary of doctors per year", "doctor")
    assert [one.called for one in reading.dsl.aggregates] == ["avg_salary"]
    assert (reading.dsl.groups, reading.not_understood) == ((), ())


def test_a_count_of_records_is_a_figure() -> None:
    (reading,) = readings("how many rivers does Colorado have?", "state", "river", "lake")
    assert (reading.dsl.model, conditions(reading)) == ("river", "state = Colorado")
    assert [one.called for one in reading.dsl.aggregates] == ["count"]


def test_a_piece_of_a_list_is_not_found_within_another() -> None:
    skills = ("Java, JavaScript", "Java, Python", "Python, JavaScript", "Java", "JavaScript")
    (offer,) = offers({"doctor": {"languages": skills}}, "doctor")
    (reading,) = read_question("Java doctors", [offer], vocabulary("en"), NOW)
    alone = "languages = Java or languages like Java,% or languages like %,Java"
    among = "languages like %, Java or languages like %,Java,% or languages like %, Java,%"
    assert conditions(reading) == f"({alone} or {among})"
