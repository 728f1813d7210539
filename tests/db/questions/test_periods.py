"""Rolling periods in all their wordings, seasons and parts of a year, times of day, and the date
that a verb names."""

from __future__ import annotations

import pytest

from groundhook.handlers.db.question.reading import Reading
from tests.db.questions.models import conditions, read, readings


@pytest.mark.parametrize(
    ("period", "first_day"),
    [
        ("in the past 3 weeks", "2026-10-22"),
        ("within the last fortnight", "2026-10-29"),
        ("in the past couple of weeks", "2026-10-29"),
        ("over the previous 6 months", "2026-05-12"),
        ("in these last 10 days", "2026-11-02"),
        ("during the last two years", "2024-11-12"),
        ("the past year", "2025-11-12"),
        ("this past month", "2026-10-12"),
        ("past 30 days", "2026-10-13"),
        ("in the trailing 12 months", "2025-11-12"),
        ("in the preceding 4 weeks", "2026-10-15"),
        ("in the last half year", "2026-05-12"),
        ("over the last 3 months or so", "2026-08-12"),
        ("the most recent week", "2026-11-05"),
        ("over the most recent 6 weeks", "2026-10-01"),
    ],
)
def test_a_rolling_period_ends_today(period: str, first_day: str) -> None:
    reading = read(f"books sold {period}", "book")
    assert conditions(reading) == f"sold_on >= {first_day} and sold_on < 2026-11-13"
    assert (reading.not_understood, reading.notes) == ((), ())


def test_hours_are_counted_back_from_now() -> None:
    found = "sent_at >= 2026-11-11 10:00:00 and sent_at < 2026-11-13 00:00:00"
    assert conditions(read("parcels sent in the past 24h", "parcel")) == found


@pytest.mark.parametrize("period", ["in the past weeks", "in recent weeks", "in the last few days"])
def test_a_period_of_unknown_length_is_reported(period: str) -> None:
    reading = read(f"books sold {period}", "book")
    assert conditions(reading) == ""
    assert reading.not_understood


@pytest.mark.parametrize(
    ("model", "question", "found"),
    [
        ("doctor", "doctors since 2015", "hired_on >= 2015-01-01"),
        ("doctor", "doctors employed since 2015", "hired_on >= 2015-01-01"),
        ("doctor", "doctors born before 1980", "born_on < 1980-01-01"),
        ("doctor", "doctors whose license expires before 2027", "license_expires < 2027-01-01"),
        (
            "doctor",
            "doctors whose license expires before the end of the year",
            "license_expires < 2027-01-01",
        ),
        ("doctor", "doctors registered before 2019", "hired_on < 2019-01-01"),
        ("parcel", "parcels received since March", "delivered_at >= 2026-03-01 00:00:00"),
        ("parcel", "parcels dispatched since March", "sent_at >= 2026-03-01 00:00:00"),
        ("book", "books printed after 2010", "published >= 2011"),
        ("book", "books that came out after 2010", "published >= 2011"),
    ],
)
def test_a_time_is_that_of_the_field_that_the_verb_names(
    model: str, question: str, found: str
) -> None:
    reading = read(question, model)
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize(
    ("model", "question"),
    [
        ("doctor", "doctors promoted in 2019"),
        ("doctor", "doctors who graduated last year"),
        ("doctor", "doctors who died in 2015"),
        ("parcel", "parcels lost yesterday"),
        ("parcel", "parcels repacked between March and May"),
        ("book", "books published in summer 2020"),
        ("book", "books I read in 2019"),
        ("book", "books borrowed more than 3 weeks ago"),
    ],
)
def test_the_time_of_an_unknown_verb_is_reported_and_no_filter(model: str, question: str) -> None:
    reading = read(question, model)
    assert conditions(reading) == ""
    assert question.split()[-1] in " ".join(reading.not_understood)


@pytest.mark.parametrize(
    ("question", "order"), [("newest doctor", "hired_on"), ("youngest doctor", "born_on")]
)
def test_persons_are_new_by_the_day_they_joined_and_young_by_their_birth(
    question: str, order: str
) -> None:
    assert [(one.field, one.order) for one in read(question, "doctor").dsl.orders] == [
        (order, "desc")
    ]


@pytest.mark.parametrize(
    ("language", "time", "first", "end"),
    [
        ("en", "in autumn 2025", "2025-09-01", "2025-12-01"),
        ("en", "last summer", "2026-06-01", "2026-09-01"),
        ("en", "last autumn", "2025-09-01", "2025-12-01"),  # this one is not over
        ("en", "this winter", "2026-12-01", "2027-03-01"),
        ("en", "next spring", "2027-03-01", "2027-06-01"),
        ("en", "in the winter of 2024/25", "2024-12-01", "2025-03-01"),
        ("en", "in the third quarter of 2025", "2025-07-01", "2025-10-01"),
        ("en", "in the first half of 2026", "2026-01-01", "2026-07-01"),
        ("en", "in H2 2025", "2025-07-01", "2026-01-01"),
        ("en", "in the 2nd quarter", "2026-04-01", "2026-07-01"),
        ("de", "im Sommer 2025", "2025-06-01", "2025-09-01"),
        ("de", "im dritten Quartal 2025", "2025-07-01", "2025-10-01"),
        ("he", "בקיץ שעבר", "2026-06-01", "2026-09-01"),
        ("he", "ברבעון השלישי של 2025", "2025-07-01", "2025-10-01"),
    ],
)
def test_a_season_or_a_part_of_a_year_is_its_months(
    language: str, time: str, first: str, end: str
) -> None:
    (reading,) = readings(f"Sold {time}", "book", language=language)
    assert conditions(reading) == f"sold_on >= {first} and sold_on < {end}"
    assert reading.not_understood == ()


def test_the_last_week_is_one_week_in_german() -> None:
    (reading,) = readings("Parcels sent letzte Woche", "parcel", language="de")
    assert conditions(reading) == "sent_at >= 2026-11-02 00:00:00 and sent_at < 2026-11-09 00:00:00"


def test_a_number_of_persons_with_a_salary_is_their_age_in_german() -> None:
    (reading,) = readings("Doctors unter 40", "doctor", language="de")
    assert conditions(reading) == "born_on > 1986-11-12"


def test_the_months_of_a_season_are_reported() -> None:
    (note,) = read("books sold last summer", "book").notes
    assert "2026-06 to 2026-08" in note


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("on 3 November after 6 pm", "sent_at > 2026-11-03 18:00:00"),
        ("on 3 November before 9:30", "sent_at < 2026-11-03 09:30:00"),
        ("after noon on 3 November", "sent_at > 2026-11-03 12:00:00"),
        (
            "on 3 November at 18:15",
            "sent_at >= 2026-11-03 18:15:00 and sent_at < 2026-11-03 18:16:00",
        ),
        (
            "on 3 November between 2 and 4 pm",
            "sent_at >= 2026-11-03 14:00:00 and sent_at <= 2026-11-03 16:00:00",
        ),
        (
            "on 3 November between 8 and 20 o'clock",
            "sent_at >= 2026-11-03 08:00:00 and sent_at <= 2026-11-03 20:00:00",
        ),
        (
            "on 3 November between 9 and 22:00",
            "sent_at >= 2026-11-03 09:00:00 and sent_at <= 2026-11-03 22:00:00",
        ),
        (
            "on 3 November from 9:30 to 17",
            "sent_at >= 2026-11-03 09:30:00 and sent_at <= 2026-11-03 17:00:00",
        ),
    ],
)
def test_a_time_of_day_belongs_to_its_day(time: str, found: str) -> None:
    reading = read(f"parcels sent {time}", "parcel")
    day = "sent_at >= 2026-11-03 00:00:00 and sent_at < 2026-11-04 00:00:00"
    assert (conditions(reading), reading.not_understood) == (f"{day} and {found}", ())


@pytest.mark.parametrize(
    ("model", "question"),
    [
        ("parcel", "parcels sent after 6 pm"),
        ("parcel", "parcels sent last week before noon"),
        ("book", "books sold yesterday at 18:30"),
        ("parcel", "parcels delivered between 2 and 4 pm"),
        ("parcel", "parcels that were not delivered between 2 and 4"),
    ],
)
def test_a_time_of_day_without_a_day_or_of_a_date_is_reported(model: str, question: str) -> None:
    reading: Reading = read(question, model)
    assert question.split()[-1].split(":")[0] in " ".join(reading.not_understood)
    assert "18:00" not in conditions(reading)


@pytest.mark.parametrize("time", ["after 6 pm on 3 November", "between 7 and 9 pm on 3 November"])
def test_a_time_of_day_before_its_day_is_that_of_the_field_that_the_verb_names(time: str) -> None:
    reading = read(f"parcels delivered {time}", "parcel")
    fields = {where.field for where in reading.dsl.wheres}
    assert (fields, reading.not_understood) == ({"delivered_at"}, ())


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("books published less than 5 years ago", "published >= 2021"),
        ("books published more than 10 years ago", "published < 2016"),
    ],
)
def test_a_number_of_years_ago_is_compared_with_a_year(question: str, found: str) -> None:
    reading = read(question, "book")
    assert (conditions(reading), reading.not_understood) == (found, ())


@pytest.mark.parametrize("time", ["published for two years", "not published for two years"])
def test_a_number_of_years_is_no_year(time: str) -> None:
    reading = read(f"books {time}", "book")
    assert "published" not in conditions(reading)
    assert reading.not_understood[-2:] == ("two", "years")


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("dieses Jahr", "(sold_on < 2026-01-01 or sold_on >= 2027-01-01 or sold_on null)"),
        ("seit 2024", "(sold_on < 2024-01-01 or sold_on null)"),
    ],
)
def test_a_german_not_behind_its_time_governs_the_time_too(time: str, found: str) -> None:
    (reading,) = readings(f"Books, die {time} nicht sold wurden", "book", language="de")
    assert conditions(reading) == found
