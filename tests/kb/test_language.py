"""Scripts and languages: what a collection is analysed in, and when a question's words may
match."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.language import (
    language_of,
    main_script,
    normalised,
    scripts,
    words_can_match,
)


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
        ("雨の日に乗ったあとはチェーンに油をさす。", "japanese"),
        ("xq zzt vrrm klp 12", "plain"),
        ("12 + 30 = 42", "plain"),
        ("", "plain"),
    ],
)
def test_a_language_is_recognised(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.text())
def test_normalising_twice_changes_nothing_and_leaves_no_nul(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert "\0" not in once
    assert unicodedata.is_normalized("NFKC", once)


@given(st.text())
def test_a_question_fits_a_collection_of_its_own_text(text: str) -> None:
    assert words_can_match(text, scripts(text))


def test_a_question_in_a_script_that_a_collection_only_mentions_does_not_fit() -> None:
    hebrew = scripts("את השרשרת משמנים אחרי כל רכיבה בגשם כך כתוב במדריך של Acme")
    assert main_script(hebrew) == "hebrew"
    assert not words_can_match("How is the chain oiled?", hebrew)
    assert words_can_match("איך משמנים שרשרת של Acme?", hebrew)
    assert words_can_match("E4012", scripts("E4012"))
    assert words_can_match("4012", hebrew)
