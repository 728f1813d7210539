"""How far a search says that it answers: properties of the judgement, and searches of a real
collection."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embed import CurveSource, HashEmbedder
from groundhook.handlers.kb.embedders.curve import UNKNOWN
from groundhook.handlers.kb.ranking.certainty import First, Judgement, judge
from groundhook.handlers.kb.ranking.fusion import inverse_frequency
from groundhook.handlers.kb.store.port import SearchEvidence
from tests.kb.conftest import Opens, search, spec

PASSAGE = (
    "Invoices are sent on the first of each month and paid within thirty days. A customer who pays"
    " late is reminded twice by letter."
)
SHARES = st.floats(0.001, 0.999)


def judged(
    question: str,
    best: float = 0.8,
    tenth: float = 0.2,
    held: str = PASSAGE,
    common: float = 0.0,
    analysed: str = "english",
) -> Judgement:
    lexical = Analyser(analysed)
    tokens = lexical.indices(question)
    missing = tuple(tokens - lexical.indices(PASSAGE if analysed == "english" else held))
    rarity = {index: inverse_frequency(0 if index in missing else 1, 100) for index in tokens}
    evidence = SearchEvidence(0.0, 0.0, rarity, missing, common)
    return judge(question, First(held, held), evidence, analysed, best, tenth)


@given(SHARES, SHARES, SHARES)
def test_more_similarity_never_makes_a_search_less_certain(
    one: float, other: float, tenth: float
) -> None:
    low, high = sorted((one, other))
    asked = "When are invoices sent?"
    assert judged(asked, low, min(low, tenth)).z <= judged(asked, high, min(low, tenth)).z + 1e-9


@given(SHARES, SHARES)
def test_words_that_the_passage_has_make_a_search_more_certain(best: float, tenth: float) -> None:
    ladder = ["whales sing", "whales and invoices", "customers and invoices"]
    scores = [judged(each, best, min(best, tenth)).z for each in ladder]
    assert all(less < more for less, more in pairwise(scores))


@given(st.text(max_size=300), st.text(max_size=300), SHARES)
def test_any_text_is_judged(question: str, passage: str, best: float) -> None:
    assert judged(question, best, held=passage).certainty in ("sure", "partial", "none")


def test_the_certainty_follows_the_bars() -> None:
    assert judged("When are invoices sent to a customer?").certainty == "sure"
    assert judged("How loud do whales sing?", 0.1, 0.08).certainty == "none"
    assert judged("How loud do whales sing?", 0.8, 0.2).certainty == "partial"


def test_a_word_spelt_wrong_by_a_letter_counts_as_held() -> None:
    assert judged("When are invoises sent?").z == pytest.approx(judged("invoises sent").z)
    assert judged("invoises sent").z > judged("invaders sent").z


def test_a_word_of_many_passages_tells_nothing() -> None:
    common = inverse_frequency(20, 100)
    rare = judged("invoices for whales", common=common).z
    assert rare == judged("invoices for whales").z
    above = inverse_frequency(0, 100) + 1  # as if each were in many passages
    assert judged("invoices for customers", common=above).z == judged("", common=above).z


@pytest.mark.parametrize(
    ("question", "certainty"),
    [
        ("What is the price of invoices?", "partial"),
        ("What is the reminder's price?", "partial"),
        ("Who is the author of the letter?", "partial"),
        ("Are invoices sent to Atlantis?", "partial"),
        ("What is the month of invoices?", "sure"),
        ("What is the name of the customer?", "sure"),
        ("Are invoices sent by letter?", "sure"),
        ("How are invoices sent?", "sure"),
        ("How many days has a customer for paying invoices?", "sure"),
        ("How many letters does a customer get, who pays late?", "sure"),
    ],
)
def test_a_passage_without_the_property_that_is_asked_is_not_sure(
    question: str, certainty: str
) -> None:
    assert judged(question, 0.98, 0.02).certainty == certainty


@pytest.mark.parametrize(
    ("question", "passage", "lacks"),
    [
        ("How do invoices work?", "The clock works. It shows invoices.", "invoices"),
        ("What is an invoice?", "Any invoice may be late.", "invoice"),
        ("What does the letter do?", "It may be a letter.", "letter"),
        ("How do invoices work?", "Invoices are sent on the first.", ""),
        ("How do invoices work?", "Invoices are mailed on the first.", "invoices"),
        ("What is an invoice?", "## Invoices and letters\n\nSent on the first.", "invoice"),
        ("What is an invoice?", "## 2. Invoices\n\nSent on the first.", ""),
        ("What is the monthly invoice?", "## Invoices\n\nSent on the first monthly.", ""),
        ("What is an invoice and when is it sent?", "Any invoice may be late.", ""),
        ("How do I send an invoice?", "Any invoice may be late.", ""),
    ],
)
def test_a_passage_that_is_about_something_else_is_not_sure_where_a_thing_itself_is_asked_for(
    question: str, passage: str, lacks: str
) -> None:
    found = judged(question, 0.98, 0.02, passage)
    assert (found.certainty, found.lacks) == ("partial" if lacks else "sure", lacks)


@pytest.mark.parametrize(
    ("question", "analysed", "passage", "certainty"),
    [
        ("Was ist der Preis von Rechnungen?", "german", "Rechnungen kommen im Mai.", "partial"),
        ("Was ist der Standardport von Rechnungen?", "german", "Port der Rechnungen", "sure"),
        ("Wie hoch ist der Preis der Rechnung?", "german", "Die Rechnung ist hoch.", "partial"),
        ("Läuft die Rechnung auf Android?", "german", "Die Rechnung läuft.", "partial"),
        ("Wie viele Rechnungen gibt es?", "german", "Es gibt Rechnungen.", "partial"),
        ("Wie viele Rechnungen gibt es?", "german", "Es gibt zwölf Rechnungen.", "sure"),
        ("מה המחיר של החשבונית?", "hebrew", "החשבונית נשלחת בדואר", "partial"),
        ("מה המחיר של החשבונית?", "hebrew", "המחיר של החשבונית קבוע", "sure"),
        ("האם החשבונית נשלחת בפקס?", "hebrew", "החשבונית נשלחת בדואר", "partial"),
        ("כמה חשבוניות נשלחות?", "hebrew", "חשבוניות נשלחות בדואר", "partial"),
        ("כמה חשבוניות נשלחות?", "hebrew", "שלוש חשבוניות נשלחות בדואר", "sure"),
    ],
)
def test_properties_and_figures_are_asked_for_in_german_and_hebrew_too(
    question: str, analysed: str, passage: str, certainty: str
) -> None:
    assert judged(question, 0.995, 0.005, passage, analysed=analysed).certainty == certainty


def test_a_name_that_is_asked_for_is_another_word_than_its_common_namesake() -> None:
    question = "Are invoices sent by Windows?"
    near, answer = "Invoices are sent in time windows.", "Invoices are sent by Windows."
    assert judged(question, 0.98, 0.02, near).certainty == "partial"
    assert judged(question, 0.98, 0.02, answer).certainty == "sure"


def test_an_amount_of_money_answers_a_question_for_a_price() -> None:
    for passage in ("An invoice: 12.50 dollars", "An invoice is $12", "Invoice, 12€, by letter"):
        assert judged("What is the price of an invoice?", 0.98, 0.02, passage).certainty == "sure"
        assert judged("How much does an invoice cost?", 0.98, 0.02, passage).certainty == "sure"
    passage = "An invoice has 12 pages and no dollar sign"
    assert judged("What is the price of an invoice?", 0.98, 0.02, passage).certainty == "partial"
    assert judged("How much does an invoice cost?", 0.98, 0.02, passage).certainty == "partial"
    passage = "Eine Rechnung: 3 Euro"
    asked = "Was kostet eine Rechnung?"
    assert judged(asked, 0.98, 0.02, passage, analysed="german").certainty == "sure"
    passage = "Eine Rechnung: 3 Seiten"
    assert judged(asked, 0.98, 0.02, passage, analysed="german").certainty == "partial"


def test_a_passage_with_few_of_the_words_is_not_sure_however_near_and_far_ahead_it_is() -> None:
    passage = "Invoices are sent."
    found = judged("How do invoices affect rare whales in Antarctica?", 0.999, 0.001, passage)
    assert (found.certainty, found.lacks) == ("partial", "affect")
    assert judged("How do invoices affect whales?", 0.999, 0.001, "invoices, whales").z > 1.5


def test_a_passage_without_a_figure_is_not_sure_where_one_is_asked() -> None:
    passage = "The customer pays invoices by letter."
    assert (
        judged("How many invoices does a customer pay?", 0.98, 0.02, passage).certainty == "partial"
    )
    passage = "The customer pays twelve invoices by letter."
    assert judged("How many invoices does a customer pay?", 0.98, 0.02, passage).certainty == "sure"


def test_names_and_codes_that_no_passage_has_are_named_and_no_common_words() -> None:
    asked = "Does the invoice of Quetzalcoatl carry the code ZX-81 or a whale?"
    assert judged(asked).unread == ("Quetzalcoatl", "ZX-81")
    assert judged("Quetzalcoatl").unread == ()  # a capital that its place explains
    assert judged("如何使用 MongoDB？").unread == ("MongoDB",)


def test_across_languages_no_words_are_expected() -> None:
    asked = "Wann werden die Rechnungen an die Kunden verschickt?"
    assert judged(asked, 0.9, 0.1).z == pytest.approx(judged("متى ترسل الفواتير؟", 0.9, 0.1).z)


FEED = [
    {"id": "invoices", "text": PASSAGE},
    {"id": "parcels", "text": "Parcels leave the warehouse at noon and arrive on the next day."},
    {"id": "holidays", "text": "The office is closed on public holidays and between the years."},
]


async def test_a_search_says_how_certain_it_is_and_what_it_does_not_know(opens: Opens) -> None:
    async with opens(spec("docs")) as kb:
        await kb.add("docs", feed=BytesIO(json.dumps(FEED).encode()))
        sure = await search(kb, "invoices sent on the first of each month")
        none = await search(kb, "Which volcano did Quetzalcoatl climb?")
        cut = await search(kb, "Which volcano did Quetzalcoatl climb?", threshold=0.99)
    assert sure.account.certainty == "sure"
    assert sure.account.read_as == "invoices sent on the first of each month"
    assert none.account.certainty == cut.account.certainty == "none"
    assert none.account.unread == ("Quetzalcoatl",)
    assert not cut.items


class Foreign(HashEmbedder):
    """A model that nobody measured, whose cosines its curve misreads."""

    provider = "foreign"
    curve_source: CurveSource = "guessed"

    def similarity(self, cosine: float, /) -> float:
        return UNKNOWN.similarity(cosine - 0.9)


async def test_by_a_guessed_curve_nothing_is_omitted_sure_or_none(opens: Opens) -> None:
    declared = spec("docs", embedding=EmbeddingSpec(provider="foreign"))
    async with opens(declared, embedders={"foreign": Foreign}) as kb:
        await kb.add("docs", feed=BytesIO(json.dumps(FEED).encode()))
        found = await search(kb, "invoices sent on the first of each month", threshold=0.5)
    assert found.items[0].document_id == "invoices"
    assert found.account.certainty == "partial"
