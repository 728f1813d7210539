"""What is read of a ranking model's answer, and the order of all pages together."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.toolkits.documents.builtin import joint_cosines, readable, word_shares
from groundhook.toolkits.documents.ranking import (
    JudgedSummary,
    RankCandidate,
    at_least,
    joined,
    read_answer,
)
from groundhook.toolkits.documents.summaries import Summary
from groundhook.toolkits.documents.xml import results_xml

IDS: list[int | str] = [11, 12, 13, "a-14"]
SENT = [
    RankCandidate(id=id, title=str(id), preview="", page=1, place=place)
    for place, id in enumerate(IDS)
]


def read(text: str) -> list[tuple[int | str, float]]:
    return [(one.candidate.id, one.score) for one in read_answer(text, SENT).ranked]


@pytest.mark.parametrize(
    ("numbers", "scores"),
    [
        ((95, 1, 40), [0.95, 0.01, 0.4]),
        ((95.5, 0, 1), [0.955, 0.0, 0.01]),
        ((1, 0, 1), [1.0, 0.0, 1.0]),
        ((90, 0.4, 1), [0.9, 0.4, 1.0]),
    ],
)
def test_a_one_among_percentages_is_one_percent_and_not_the_whole(
    numbers: tuple[float, ...], scores: list[float]
) -> None:
    answer = [{"id": id, "score": number} for id, number in zip(IDS, numbers, strict=False)]
    assert [score for _, score in read(json.dumps(answer))] == pytest.approx(scores)


@pytest.mark.parametrize(
    "answer",
    [
        '{"documents": [{"id": 12, "relevanceScore": 0.9}, {"id": "11", "relevanceScore": 0.4}]}',
        '[{"id": 12, "relevanceScore": 0.9}, {"id": 11, "relevanceScore": 0.4}]',
        'Sure [1]! Here:\n```json\n{"documents": [{"id": 12, "score": 0.9}, {"id": 11, "score": 0.4}]}\n```',
        '{"rankedDocuments": [{"documentId": 12.0, "relevance": "90%"}, {"id": 11, "score": "0.4"}]}',
        '{"documents": [{"id": 12, "relevanceScore": 90}, {"id": 11, "relevanceScore": 0.4}]}',
        '{"documents": [{"id": 12, "relevanceScore": 0.9}, {"id": 12, "relevanceScore": 0.1},'
        ' {"id": 99, "relevanceScore": 1}, {"id": 11, "relevanceScore": 0.4}]}',
        '{"thoughts": ["x"], "documents": [{"id": 12, "relevanceScore": 0.9}, null, 7.5, true,'
        ' {"id": 11, "relevanceScore": 0.4}]}',
    ],
)
def test_every_shape_of_an_answer_is_read_and_nothing_is_taken_that_was_not_sent(
    answer: str,
) -> None:
    assert read(answer) == [(12, 0.9), (11, 0.4)]


def test_bare_ids_get_falling_scores() -> None:
    assert read('[12, "a-14", 11]') == [(12, 1.0), ("a-14", 0.75), (11, 0.5)]


@pytest.mark.parametrize(
    "score", ["NaN", "-1", "1e9", "1" + "0" * 400, '"high"', "null", "Infinity", "true"]
)
def test_a_score_that_cannot_be_used_is_replaced_by_the_place(score: str) -> None:
    assert read(f'{{"documents": [{{"id": 13, "relevanceScore": {score}}}]}}') == [(13, 1.0)]


@pytest.mark.parametrize(
    "answer",
    [
        *("", "The best is 12.", "{", '{"documents": [{"id": 99}]}', "[99]", "[[[[", '{"a": 1}'),
        "[" + '{"id": ' * 800 + "12" + "}" * 800 + "]",
    ],
)
def test_an_answer_that_names_nothing_that_was_sent_is_not_usable(answer: str) -> None:
    assert not read_answer(answer, SENT).usable


def test_an_empty_list_means_that_nothing_is_relevant() -> None:
    assert read_answer('{"documents": []}', SENT).usable
    assert read('{"documents": []}') == []


def test_invented_ids_are_counted() -> None:
    assert read_answer("[98, 12, 99]", SENT).invented == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 20) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "documents", "score", "x"]), inner, max_size=4)
    ),
)


@given(JSON, st.text(max_size=20))
def test_whatever_a_model_answers_ids_were_sent_once_and_scores_are_between_0_and_1(
    value: object, prose: str
) -> None:
    ranked = read_answer(prose + json.dumps(value), SENT).ranked
    keys = [one.candidate.key for one in ranked]
    assert len(keys) == len(set(keys))
    assert set(keys) <= {candidate.key for candidate in SENT}
    assert all(0 <= one.score <= 1 for one in ranked)


def test_a_document_on_two_pages_keeps_its_best_score() -> None:
    first = [JudgedSummary(SENT[0], 0.5), JudgedSummary(SENT[1], 0.4)]
    again = RankCandidate(id="11", title=None, preview="", page=2, place=0)
    second = [JudgedSummary(again, 0.9), JudgedSummary(SENT[2], 0.4)]
    best = joined([first, second], 3)
    assert [(one.candidate.key, one.score) for one in best] == [
        ("11", 0.9),
        ("12", 0.4),
        ("13", 0.4),
    ]


def test_the_least_relevance_is_kept_and_what_is_below_is_not() -> None:
    ranked = [
        JudgedSummary(SENT[0], 0.3),
        JudgedSummary(SENT[1], 0.2999),
        JudgedSummary(SENT[2], 0.8),
    ]
    assert [one.candidate.id for one in at_least(ranked, 0.3, 10)] == [13, 11]


def test_a_rare_word_of_the_question_counts_and_one_that_all_texts_have_does_not() -> None:
    shares = word_shares("the lift", ["the lift is old", "the roof", "the snow", "the rent"])
    assert shares[0] == 1.0
    assert max(shares[1:]) < 0.2


def test_a_word_that_no_text_has_counts_so_that_a_stop_word_alone_is_little() -> None:
    texts = ["the lift is old", "a roof", "some snow", "rents"]
    assert word_shares("the winner of a cup", texts)[0] < 0.3


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("offer-for_roof-house-4.pdf", "offer for roof house 4"),
        ("Offer for roof-house 4.2", "Offer for roof-house 4.2"),
        ("loan", "loan"),
        (".-.", ".-."),
        ("", ""),
    ],
)
def test_the_name_of_a_file_is_read_as_words_and_another_title_as_it_is(
    title: str, words: str
) -> None:
    assert readable(title) == words


def test_a_document_whose_title_fits_too_is_nearer_than_one_whose_text_fits_alone() -> None:
    question, other = [1.0, 0.0], [0.0, 1.0]
    both, text_alone = joint_cosines(question, [question, question], [question, other])
    assert both > text_alone
    assert joint_cosines(question, [question], [question]) == [1.0]


@given(st.text(), st.lists(st.tuples(st.text(), st.text() | st.none(), st.floats(0, 1))))
def test_the_xml_parses_and_has_the_documents_whatever_their_titles(
    query: str, documents: list[tuple[str, str | None, float]]
) -> None:
    root = ElementTree.fromstring(results_xml(query, documents, ["Page 2 <is> missing"]))
    assert [child.tag for child in root] == ["query", "totalDocuments", "documentIds", "notice"]
    assert root.findtext("totalDocuments") == str(len(documents))
    found = root.findall("documentIds/document")
    assert len(found) == len(documents)
    assert all([part.tag for part in one] == ["id", "title", "relevanceScore"] for one in found)


def test_titles_and_contents_are_taken_in_their_order_and_blank_ones_skipped() -> None:
    summary = Summary.model_validate(
        {"id": 2**60, "title": " ", "summaryTitle": "S", "content": "c", "parseContent": "p\x00q"}
    )
    assert (summary.id, summary.title) == (str(2**60), "S")
    assert summary.preview(500) == "p q"


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301\u0323",
        "\u0915\u093f",
        "\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "\U0001f44d\U0001f3fd",
        "\u1112\u1161\u11ab",
    ],
)
def test_a_preview_ends_before_a_character_that_would_be_cut_in_two(character: str) -> None:
    for most in range(50, 56):
        summary = Summary.model_validate({"id": 1, "content": "x" + character * 60})
        cut = summary.preview(most)
        assert most - len(character) < len(cut) <= most
        assert cut == "x" + character * (len(cut) // len(character))


@given(st.text(max_size=80), st.integers(50, 60))
def test_a_preview_is_never_longer_than_allowed(text: str, most: int) -> None:
    summary = Summary.model_validate({"id": 1, "content": text})
    assert len(summary.preview(most)) <= most
