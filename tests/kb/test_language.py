"""Scripts and languages: what a collection is analysed in, and when a question's words may
match."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.language.scripts import normalise
from groundhook.handlers.kb.language import language_of, language_of_question


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "The chain is oiled after every ride in the rain, and that is all there is to it.",
            "english",
        ),
        ("Die Kette wird nach jeder Fahrt im Regen geölt, und das ist auch schon alles.", "german"),
        (
            "La chaîne est huilée après chaque sortie sous la pluie, et c'est tout ce qu'il y a.",
            "french",
        ),
        ("Цепь смазывают после каждой поездки под дождём.", "russian"),
        ("את השרשרת משמנים אחרי כל רכיבה בגשם", "hebrew"),
        ("يتم تزييت السلسلة بعد كل رحلة في المطر", "arabic"),
        ("每次雨天骑行后都要给链条上油。", "chinese"),
        ("자전거 체인은 비 오는 날마다 기름칠합니다.", "korean"),
        ("雨の日に乗ったあとはチェーンに油をさす。", "japanese"),
        ("xq zzt vrrm klp 12", "plain"),
        ("12 + 30 = 42", "plain"),
        ("", "plain"),
    ],
)
def test_a_language_is_recognised(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How do I add documents?", "english"),
        ("How do I find the best pizza in Rome?", "english"),
        ("What did he do?", "english"),
        ("What year did it die?", "english"),
        ("Reset the password", "english"),
        ("Como posso instalar isto?", "portuguese"),
        ("O que é um gancho?", "portuguese"),
        ("Wie viele Bälle hat er gefangen?", "german"),
        ("Wo unterrichtete dieser Lehrer?", "german"),
        ("¿Cuántas naciones hay en total?", "spanish"),
        ("Hoe doe ik dat?", "dutch"),
    ],
)
def test_a_short_question_is_recognised_by_the_words_that_questions_have(
    question: str, language: str
) -> None:
    assert language_of_question(question) == language


@given(st.text())
def test_normalising_twice_changes_nothing_and_leaves_no_nul(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert "\0" not in once
    assert unicodedata.is_normalized("NFKC", once)
