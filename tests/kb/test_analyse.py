"""The analyser: tokens that fit the script, codes kept whole, and the same vectors for the same
text."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.handlers.kb.analyse import Analyser, SparseVector
from groundhook.handlers.kb.language import analysed


def score(question: SparseVector, passage: SparseVector) -> float:
    weights = dict(zip(passage.indices, passage.values, strict=True))
    return sum(weight * weights.get(index, 0.0) for index, weight in zip(*question, strict=True))


def matches(language: str, question: str, passage: str) -> bool:
    analyser = Analyser(language)
    return score(analyser.question(question), analyser.document(passage)) > 0


@pytest.mark.parametrize("language", sorted(analysed()))
def test_every_language_that_may_be_declared_has_an_analyser(language: str) -> None:
    assert Analyser(language).document("pear 梨 αβγ").indices


@pytest.mark.parametrize(
    ("language", "question", "passage"),
    [
        ("english", "oiling chains", "Oil the chain."),
        ("german", "Kette geölt", "Die Ketten werden geölten Rädern angepasst"),
        ("greek", "οι αλυσίδες", "η αλυσίδα"),
        ("polish", "łańcuchy", "łańcuchów"),
        ("hindi", "लड़के", "लड़कों"),
        ("hebrew", "שרשרת", "בשרשראות"),
        ("arabic", "سلسلة", "والسلاسل سلسلتها"),
        ("chinese", "链条", "每次骑行后都要给链条上油"),
        ("japanese", "チェーン", "自転車のチェーンに油をさす"),
        ("thai", "ภาษาไทย", "เขาพูดภาษาไทยได้"),
        ("korean", "자전거", "자전거를 탄다"),
    ],
)
def test_a_word_is_found_in_another_form_or_without_spaces(
    language: str, question: str, passage: str
) -> None:
    assert matches(language, question, passage)


SPELLINGS = [
    ("QR-20-7", "QR\u201120\u20117"),
    ("QR-20-7", "QR\u201320\u20137"),
    ("QR-20-7", "QR\u221220\u22127"),
    ("1250000", "1,250,000"),
    ("1250000", "1.250.000"),
    ("1250000", "1\u202f250\u202f000"),
    ("1250000", "1 250 000"),
    ("1250000", "1'250'000"),
    ("2022", "٢٠٢٢"),
    ("2022", "२०२२"),
    ("krankenversicherung", "kranken\u00adversicherung"),
    ("versicherung", "versi\u200bcherung"),
    ("Lukasz", "Łukasz"),
    ("Soren", "Søren"),
    ("Dang", "Đặng"),
    ("Aegir", "Ægir"),
    ("Thor", "Þór"),
    ("Isik", "Işık"),
    ("Strasse", "Straße"),
    ("max_retry_count", "max\\_retry\\_count"),
]


@pytest.mark.parametrize("language", ["english", "german", "arabic", "plain"])
@pytest.mark.parametrize(("typed", "written"), SPELLINGS)
def test_one_spelling_has_the_tokens_of_another(typed: str, written: str, language: str) -> None:
    analyser = Analyser(language)
    assert analyser.indices(typed) <= analyser.indices(written)
    assert analyser.indices(typed) <= set(analyser.question(written).indices)


@pytest.mark.parametrize(
    "text", ["12,500,000", "1250,000", "1,250,00", "100 200 300 400 500 600 700"]
)
def test_other_numbers_are_not_the_number_without_separators(text: str) -> None:
    assert "1250000" not in Analyser("english").tokens(text)
    assert "12500" not in Analyser("english").tokens(text)


def test_a_question_has_the_tokens_of_passages_that_an_earlier_version_stored() -> None:
    stored = {crc32(token.encode()) & ~3 for token in ("łukasz", "đang")}
    assert stored <= set(Analyser("english").question("Łukasz Đặng").indices)
    assert not stored & Analyser("english").indices("Łukasz Đặng")


@pytest.mark.parametrize("language", ["english", "hebrew", "chinese", "plain"])
@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("AB-1234/x", "1234"),
        ("search.kb.threshold", "threshold"),
        ("max_kb", "max"),
        ("IL-6", "il"),
        ("C++", "c"),
        ("C#", "c"),
        ("v1.2.3", "v"),
        ("x@b.org", "org"),
    ],
)
def test_a_code_is_a_token_whole_and_so_are_its_parts(language: str, code: str, part: str) -> None:
    assert {code.lower(), part} <= set(Analyser(language).tokens(f"Order {code} now."))


def test_letters_and_digits_are_found_written_together_or_apart() -> None:
    analyser = Analyser("english")
    assert {"rtx4090", "rtx", "4090"} <= set(analyser.tokens("RTX4090"))
    assert matches("english", "rtx 4090", "An RTX4090 is needed")


def test_mixed_text_is_cut_span_by_span() -> None:
    tokens = Analyser("chinese").tokens("黑豹队的Short先生在NFL打了300场比赛running")
    assert {"黑豹", "豹队", "short", "nfl", "300", "比赛", "run"} <= set(tokens)
    assert "run" in Analyser("hebrew").tokens("מערכת running של רכבת")


def test_characters_match_in_pairs_and_not_one_by_one() -> None:
    assert matches("chinese", "链条", "链条要上油")
    assert not matches("chinese", "链条", "链子和油条")


def test_a_hebrew_acronym_is_one_word_with_or_without_its_quote() -> None:
    assert matches("hebrew", "צה״ל", 'דובר צה"ל')
    assert Analyser("hebrew").tokens('צה"ל')[0] == Analyser("hebrew").tokens("צהל")[0]


@pytest.mark.parametrize(
    ("one", "other"), [("café", "cafe"), ("ＡＢＣ", "abc"), ("كِتَاب", "كتاب"), ("אָלֶף", "אלף")]
)
def test_accents_points_and_wide_letters_do_not_keep_words_apart(one: str, other: str) -> None:
    language = "hebrew" if "ל" in one else "arabic" if "ت" in one else "english"
    assert Analyser(language).tokens(one) == Analyser(language).tokens(other)


def test_a_plain_collection_is_not_stemmed() -> None:
    assert Analyser("plain").tokens("running chains") == ["running", "chains"]


@given(st.text(), st.sampled_from(sorted(analysed())))
@example("a mark without its letter: \u093c", "english")
def test_a_vector_is_sorted_positive_and_always_the_same(text: str, language: str) -> None:
    document, question = Analyser(language).document(text), Analyser(language).question(text)
    assert document == Analyser(language).document(text)
    assert document.indices == sorted(set(document.indices))
    assert question.indices == sorted({*document.indices, *question.indices})
    assert all(0 < value < 2 for value in [*document.values, *question.values])
    assert all(0 <= index < 1 << 32 for index in document.indices)


@given(st.text())
def test_a_word_is_found_after_any_character(text: str) -> None:
    assert "e" in Analyser("plain").tokens(text + " é")


def test_a_repeated_word_weighs_more_and_less_in_a_longer_passage() -> None:
    analyser = Analyser("english")
    question = analyser.question("chain")
    once, twice = analyser.document("a chain of oil"), analyser.document("chain chain oil")
    long = analyser.document("a chain of oil" + " x" * 99)
    assert score(question, twice) > score(question, once) > score(question, long)


def test_a_word_without_end_takes_no_longer_than_many_words() -> None:
    """Looking for a digit anew from each of its letters takes half an hour."""
    assert len(Analyser("english").question("x" * 500_000).indices) == 1
