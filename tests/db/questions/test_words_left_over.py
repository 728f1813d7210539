"""Words of a question that became no condition, and questions that ask for nothing."""

from __future__ import annotations

from groundhook.handlers.db.query.dsl import EVERY_TEXT
from groundhook.handlers.db.query.linter import lint
from tests.db.questions.shop import SHOP, read_as, readings


def test_words_that_could_not_be_placed_are_reported_and_searched_for() -> None:
    (reading,) = readings("wireless purple headphones under $200", "product")
    assert reading.not_understood == ("wireless", "purple", "headphones")
    assert [(where.field, where.op, where.value) for where in reading.dsl.wheres] == [
        ("price", "<", 200),
        ("*", "match", ["wireless", "purple", "headphone"]),
    ]


def test_a_condition_behind_a_not_that_was_not_understood_is_taken_back() -> None:
    (reading,) = readings("products not since under $100", "product")
    assert reading.dsl.wheres == ()
    assert reading.not_understood == ("not", "since", "under", "$100")
    (reading,) = readings("not under products $100", "product")
    assert [where for where in reading.dsl.wheres if where.field != EVERY_TEXT] == []


def test_a_time_is_never_compared_with_a_number_field() -> None:
    for reading in readings("stars without yesterday", "product"):
        assert lint(reading.dsl, SHOP) == []


def test_the_best_of_what_is_no_record_is_no_limit_of_records() -> None:
    (reading,) = readings("top 3 brands", "product")
    assert (reading.dsl.limit, reading.not_understood) == (None, ("top", "3"))


def test_values_of_records_that_are_only_related_are_not_guessed_from_other_forms_of_a_word() -> (
    None
):
    (reading,) = readings("noise cancelling headphones", "product")
    assert reading.not_understood == ("noise", "cancelling", "headphones")


def test_a_negated_unknown_word_is_kept_out_of_what_is_found() -> None:
    assert read_as("headphones not waterproof", "product")[1] == [
        "* match ['headphone']",
        "* match none ['waterproof']",
    ]


def test_a_quoted_text_is_searched_for_as_it_is_and_counts_as_placed() -> None:
    assert read_as('products with "noise cancelling"') == (
        "product",
        ["* match ['noise cancelling']"],
        [],
    )


def test_a_misspelt_value_is_corrected_and_reported() -> None:
    (reading,) = readings("samsng phones")
    assert [where.value for where in reading.dsl.wheres] == ["Samsung", "Phones"]
    assert reading.notes == ("'samsng' was read as 'samsung'",)


def test_a_field_is_never_guessed_from_a_misspelt_word_that_changes_nothing() -> None:
    (reading,) = readings("statue of liberty", "product")
    assert reading.not_understood == ("statue", "liberty")


def test_a_question_that_fits_two_models_equally_searches_both() -> None:
    assert [reading.dsl.model for reading in readings("under $100")] == ["product", "order"]


def test_a_question_that_says_nothing_about_the_models_asks_for_nothing() -> None:
    assert [reading.requests_something for reading in readings("thank you")] == [
        False,
        False,
        False,
    ]
    assert [reading.requests_something for reading in readings("how many products do we have")] == [
        True
    ]
    assert all(reading.requests_something for reading in readings("show me everything"))
