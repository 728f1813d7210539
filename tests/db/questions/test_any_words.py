"""Properties of every reading, whatever the words: sound, the same again, no word lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.db.query.linter import lint
from groundhook.handlers.db.question.languages import AUTO
from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import languages
from tests.db.questions.shop import SHOP, readings
from tests.db.questions.shop_questions import BUILT, ORDERED, PLACED, TRAPS

WORDS = sorted(
    {
        word
        for questions in (PLACED, ORDERED, BUILT, TRAPS)
        for question in questions
        for word in question.split()
    }
)


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_in_any_order_give_a_sound_query_and_the_same_one_again(words: list[str]) -> None:
    question = " ".join(words) or "x"
    first = readings(question)
    assert first == readings(question)
    for reading in first:
        assert lint(reading.dsl, SHOP) == []


@given(st.text(max_size=60), st.sampled_from([AUTO, *languages()]))
def test_any_text_can_be_read_in_any_language(text: str, language: str) -> None:
    for reading in readings(text or "x", language=language):
        assert lint(reading.dsl, SHOP) == []


@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from([*WORDS, "zebra", "x-9", "!"]), max_size=10).map(" ".join),
    )
)
def test_every_word_of_a_question_is_either_placed_or_reported(question: str) -> None:
    for reading in readings(question, language="en"):
        words = [*reading.understood, *reading.not_understood]
        pieces = [
            letter for token in tokens_of(question) for letter in token.text if letter.isalnum()
        ]
        assert sorted(letter for word in words for letter in word if letter.isalnum()) == sorted(
            pieces
        )
