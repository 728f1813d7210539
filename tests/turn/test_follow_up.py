"""Follow-ups become questions that stand alone; other questions stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.host.turn.follow_up import LONGEST, MOST_CARRIED, stand_alone

CHAIN = "Which oil does a bicycle chain need?"


@pytest.mark.parametrize(
    ("before", "question", "carried"),
    [
        (CHAIN, "And how do I lubricate it?", "bicycle"),
        (CHAIN, "Why?", "chain"),
        (CHAIN, "How often is it cleaned?", "chain"),
        ("Wie werden Dokumente zerlegt?", "Und wie groß sind sie?", "Dokumente"),
        ("Comment ajouter des documents ?", "Où sont-ils conservés ?", "documents"),
        ("¿Cómo se añaden documentos?", "¿Cómo puedo borrarlos?", "documentos"),
        ("איך מוסיפים מסמכים?", "ואיך מוחקים אותם?", "מסמכים"),
        ("كيف أضيف مستندات؟", "وكيف أحذفها؟", "مستندات"),
        ("如何添加文档?", "怎么删除它们?", "添加文档"),
        ("如何添加文档?", "PDF呢?", "添加文档"),
    ],
)
def test_a_follow_up_carries_over_what_the_question_before_is_about(
    before: str, question: str, carried: str
) -> None:
    found = stand_alone(question, [before])
    assert found.question == " ".join([question.rstrip("?？؟ "), *found.carried])
    assert carried in found.carried
    assert found.reason


@pytest.mark.parametrize(
    "question",
    [
        "Who approves it?",
        "How do I delete one?",
        "Does that apply to part-time employees?",
        "What if the printer jams in the middle of it?",
        "Gilt das auch in der Probezeit?",
        "Wie wird das geprüft?",
        "Qui les approuve ?",
        "Comment les supprimer ?",
        "Comment l'installer ?",
        "¿Quién la aprueba?",
        "¿Cómo los borro?",
    ],
)
def test_a_pronoun_that_is_an_article_elsewhere_refers_to_the_question_before(
    question: str,
) -> None:
    assert "chain" in stand_alone(question, [CHAIN]).carried


@pytest.mark.parametrize(
    "question",
    [
        "Is it possible to add PDF files?",
        "Are there limits for web searches?",
        "When a hook fails, does it end the turn?",
        "How do tenants keep their documents apart?",
        "Gibt es eine Grenze für Hooks?",
        "Wie lange behält ein Hook seine Werte?",
        "Y a-t-il une limite pour les hooks ?",
        "¿Es posible añadir archivos PDF?",
        "מה זה hook?",
        "ما هو المتجه؟",
        "什么是向量数据库?",
        "yes",
        "Ok, thanks!",
        "Gilt das neue Gesetz?",
        "Was kostet das Buch?",
        "Comment les documents sont-ils découpés ?",
        "¿Cómo la empresa guarda facturas?",
        "Who may search a collection?",
    ],
)
def test_a_question_that_only_looks_like_a_follow_up_stays_as_it_is(question: str) -> None:
    assert stand_alone(question, [CHAIN], ["Oils"]).question == question


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        (
            "How many customers live in Hamburg?",
            "And in Berlin?",
            "How many customers live in Berlin?",
        ),
        ("What are the ten cheapest pens of 2023?", "And 2024?", "… of 2024?"),
        (
            "How long is green tea brewed?",
            "And black tea?",
            "How long is black tea brewed?",
        ),
        ("Tea?", "And fresh black tea?", "fresh black tea?"),
        (
            "Which oil does the chain need?",
            "What about the bicycle chain?",
            "Which oil does the bicycle chain need?",
        ),
        ("Wie viele Kunden wohnen in Bonn?", "Und in Köln?", "Wie viele Kunden wohnen in Köln?"),
    ],
)
def test_a_phrase_that_varies_the_question_takes_the_place_of_what_it_varies(
    before: str, question: str, searched: str
) -> None:
    found = stand_alone(question, [before]).question
    assert found.endswith(searched.removeprefix("…"))


def test_a_chain_of_follow_ups_keeps_its_subject() -> None:
    found = stand_alone("And why?", [CHAIN, "How often is it cleaned?", "And in winter?"])
    assert "chain" in found.carried


def test_a_phrase_between_two_questions_does_not_hide_the_subject() -> None:
    found = stand_alone("And how is it changed?", [CHAIN, "Recommended viscosity?"], ["SAE grades"])
    assert {"viscosity", "chain", "SAE"} <= set(found.carried)


@pytest.mark.parametrize(
    ("before", "carried"),
    [
        ("How do I write hooks in TypeScript?", ("hooks", "TypeScript")),
        ("How does a web search work?", ("web", "search")),
        ("Wie füge ich Dokumente zu einer Wissensbasis hinzu?", ("Dokumente", "Wissensbasis")),
        ("Comment ajouter des documents ?", ("documents",)),
        ("What is the limit?", ("limit",)),
    ],
)
def test_nouns_are_carried_over_and_verbs_are_not(before: str, carried: tuple[str, ...]) -> None:
    assert stand_alone("Why?", [before]).carried == carried


def test_a_new_subject_ends_what_was_carried_over() -> None:
    found = stand_alone("Where are they kept?", [CHAIN, "How are invoices numbered?"])
    assert "invoices" in found.carried
    assert "chain" not in found.carried


def test_titles_that_were_cited_are_carried_over_where_the_questions_have_no_words() -> None:
    assert "Lubrication" in stand_alone("Why?", ["And?"], ["Lubrication"]).carried


texts = st.text(max_size=250)


@given(texts)
def test_the_first_question_of_a_conversation_never_changes(question: str) -> None:
    assert stand_alone(question, []).question == question


@given(texts, st.lists(texts, max_size=8), st.lists(texts, max_size=3))
def test_what_is_carried_over_is_bounded_and_the_words_of_the_user_stay(
    question: str, earlier: list[str], titles: list[str]
) -> None:
    found = stand_alone(question, earlier, titles)
    assert len(found.carried) <= MOST_CARRIED
    assert (found.question == question) == (not found.reason)
    if len(question) > LONGEST:
        assert found.question == question
    assert len(found.question) <= len(question) + 3000


def test_of_the_questions_of_the_bench_that_stand_alone_three_in_a_hundred_may_change() -> None:
    folder = Path(__file__).parents[2] / "bench/conversations"
    questions = (folder / "independent.txt").read_text(encoding="utf-8").splitlines()
    changed = [one for one in questions if stand_alone(one, [CHAIN]).question != one]
    assert len(changed) <= 0.03 * len(questions)


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        ("how many orders last month", "and in september?", "how many orders in september"),
        ("how many orders in september?", "and last month?", "how many orders last month?"),
        ("how many orders in Berlin last month?", "and this year?", "… in Berlin this year?"),
        ("orders in 2025", "And 2026?", "orders in 2026"),
        ("orders in September", "and in Berlin?", "orders in September in Berlin"),
        ("Wie viele Käufe gab es letzten Monat?", "Und im Mai?", "Wie viele Käufe gab es im Mai?"),
        ("Combien de ventes le mois dernier ?", "Et en mai ?", "Combien de ventes en mai ?"),
        ("¿Cuántos pedidos hubo el mes pasado?", "¿Y en mayo?", "¿Cuántos pedidos hubo en mayo?"),
    ],
)
def test_a_time_takes_the_place_of_the_time_before(
    before: str, question: str, searched: str
) -> None:
    assert stand_alone(question, [before]).question.endswith(searched.removeprefix("…"))


def test_the_words_of_a_conversation_do_not_pile_up() -> None:
    earlier = ["What is a hook?", "Does it have a memory?", "And who may change its files?"]
    assert set(stand_alone("How long may it run?", earlier).carried) == {"files", "hook"}


def test_a_question_about_the_program_itself_carries_nothing_over() -> None:
    question = "Can I run it on Windows?"
    assert stand_alone(question, ["how many orders last month", "and in Berlin?"]).question == (
        question
    )
