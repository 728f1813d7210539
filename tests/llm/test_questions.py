"""A question is read for its parts and for the shape of its answer; what fits nothing is one part
that asks for prose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.language.terms import terms
from groundhook.host.llm.questions import MOST_PARTS, parts


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "What is a hook and how is it kept from harming the host?",
            ["What is a hook", "how is it kept from harming the host"],
        ),
        ("Do I need Node, and are types checked?", ["Do I need Node", "are types checked"]),
        ("How are bread and butter made?", ["How are bread and butter made"]),
        (
            "Was ist ein Haken und wie wird er begrenzt?",
            ["Was ist ein Haken", "wie wird er begrenzt"],
        ),
        ("Well? When does the museum open?", ["When does the museum open"]),
        ("Why?", ["Why?"]),
        (
            "Where is the museum? When does the museum open?",
            ["Where is the museum", "When does the museum open"],
        ),
    ],
)
def test_a_question_has_the_parts_that_a_reader_hears(question: str, texts: list[str]) -> None:
    assert [part.text for part in parts(question)] == texts


def test_a_part_that_points_back_is_about_what_the_first_part_is_about() -> None:
    first, second = parts("What is a hook and how is it kept from harming the host?")
    assert first.subject == set(terms("hook"))
    assert second.wanted >= set(terms("hook harming host"))
    assert not second.subject


@pytest.mark.parametrize(
    ("question", "subject", "how"),
    [
        ("How do hooks work?", "hooks", False),
        ("What does the indexer do?", "indexer", False),
        ("Wie funktioniert ein Haken?", "Haken", False),
        ("¿Cómo funcionan los ganchos?", "ganchos", True),
        ("How do I start work?", "", True),
        ("Wie starte ich einen Lauf?", "", True),
        ("איך עובד המנוע?", "המנוע", True),
    ],
)
def test_how_something_works_is_about_it_and_how_something_is_done_is_said(
    question: str, subject: str, how: bool
) -> None:
    (part,) = parts(question)
    assert (part.subject, part.how) == (frozenset(terms(subject)), how)


@pytest.mark.parametrize(
    ("question", "number", "value"),
    [
        ("How long may a job run?", True, False),
        ("What is the default of the limit?", False, True),
        ("Which layers are there?", False, True),
        ("What can the function return?", False, True),
        ("What happens when a search fails?", False, False),
        ("How is a document cut?", False, False),
        ("When did it open?", True, False),
    ],
)
def test_a_question_wants_a_number_a_value_or_prose(
    question: str, number: bool, value: bool
) -> None:
    (part,) = parts(question)
    assert (part.number, part.value) == (number, value)


@given(st.text(max_size=200))
def test_any_text_has_at_least_one_part_and_no_more_than_a_few(question: str) -> None:
    assert 1 <= len(parts(question)) <= MOST_PARTS
