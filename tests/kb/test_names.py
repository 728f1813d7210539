"""The name of a product leaves a question about its documentation."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.ranking.names import (
    is_capitalised,
    is_everywhere,
    possible_names,
    without_names,
)
from tests.kb.conftest import Opens, search, spec


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("How do I upload a file with Quickfile?", "How do I upload a file?"),
        ("Does quickfile read PDF files?", "Does read PDF files?"),
        ("Quickfile: upload a file", "upload a file"),
        ("Wie lade ich mit Quickfile eine Datei hoch?", "Wie lade ich eine Datei hoch?"),
        ("如何在 Quickfile 中上传文件？", "如何 上传文件？"),
        ("Quickfileで後処理を使うには", "後処理を使うには"),
        ("What is Quickfile?", "What is Quickfile?"),
        ("Where is quickfile-cli or docs/quickfile?", "Where is quickfile-cli or docs/quickfile?"),
    ],
)
def test_a_name_leaves_with_its_preposition_unless_nothing_would_be_left(
    question: str, rest: str
) -> None:
    assert without_names(question, ["Quickfile"]) == rest


@given(st.text(max_size=200))
def test_any_question_stays_without_names_and_keeps_words_with_them(question: str) -> None:
    assert without_names(question, []) == question
    left = without_names(question, possible_names(question))
    assert left == question or len(left) < len(question)


def test_a_name_is_everywhere_and_capitalised_inside_sentences() -> None:
    assert is_everywhere(30, 100, 9, 10)
    assert not is_everywhere(30, 100, 7, 10)  # a part of a mixed collection
    assert not is_everywhere(15, 100, 10, 10)
    assert is_everywhere(45, 100, 3, 4)
    assert not is_everywhere(30, 100, 4, 4)
    assert is_capitalised("quickfile", ["It is done with Quickfile. Run `quickfile` for it."])
    assert not is_capitalised("passages", ["Passages are found. The passages are cited."])


async def test_a_question_with_the_name_finds_what_the_one_without_finds(opens: Opens) -> None:
    subjects = ["uploads", "downloads", "passwords", "invoices", "holidays", "parcels"]
    feed = [
        {"id": each, "text": f"This page of Quickfile is about {each}. They are kept for a year."}
        for each in subjects
    ]
    async with opens(spec("docs")) as kb:
        await kb.add("docs", feed=BytesIO(json.dumps(feed).encode()))
        named = await search(kb, "How are passwords kept in Quickfile?")
        plain = await search(kb, "How are passwords kept?")
        subject = await search(kb, "Which page is about passwords?")
        await kb.add(
            "docs",
            feed=BytesIO(
                json.dumps(
                    [{"id": f"other{n}", "text": f"Another text, number {n}."} for n in range(30)]
                ).encode()
            ),
        )
        mixed = await search(kb, "How are passwords kept in Quickfile?")
    assert named.account.read_as == plain.account.read_as == "How are passwords kept?"
    assert [item.document_id for item in named.items] == [item.document_id for item in plain.items]
    assert subject.account.read_as == "Which page is about passwords?"
    assert mixed.account.read_as == "How are passwords kept in Quickfile?"
