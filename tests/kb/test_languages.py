"""Languages side by side in one collection: sums that documents add to and take from, and cosines
that are comparable between languages."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from groundhook.handlers.kb.balance import Balance, add_sums, format_sums, parse_sums, sum_vectors
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import VectorQuestion

ENGLISH = [[1.0, 0.1 * n, 0.0] for n in range(12)]
HEBREW = [[0.2, 0.1 * n, 1.0] for n in range(8)]
SUMS = sum_vectors([*(("english", one) for one in ENGLISH), *(("hebrew", one) for one in HEBREW)])
QUESTION = VectorQuestion(vector=pack_vector([1.0, 0.5, 0.1]), text="", limit=5)


def cosine(one: list[float], other: list[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)


def test_sums_are_subtracted_exactly_as_they_were_added() -> None:
    kept = parse_sums(format_sums(SUMS))
    assert add_sums(add_sums({}, kept), kept, -1) == {}
    both = add_sums(kept, kept)
    assert both["hebrew"].passages == 16
    assert add_sums(both, kept, -1)["hebrew"].total == pytest.approx(kept["hebrew"].total)


def test_a_language_of_few_passages_counts_as_the_main_one_in_a_large_collection() -> None:
    many = add_sums(SUMS, sum_vectors([("hebrew", [0.0, 0.0, 1.0])] * 61))
    few = add_sums(many, sum_vectors([("german", [0.0, 1.0, 0.0])] * 4))
    assert Balance(few).languages == ("hebrew", "english")
    assert Balance(few).share("german") == pytest.approx(4 / 85)


def test_in_a_small_collection_a_single_passage_is_a_language_and_keeps_its_subject() -> None:
    alone = [0.1, 0.9, 0.9]
    english = [("english", one) for one in ENGLISH]
    balance = Balance(sum_vectors([*english, ("german", alone)]))
    assert balance.languages == ("english", "german")
    near, far = (
        Scale.of(VectorQuestion(vector=pack_vector(vector), text="", limit=5), balance)
        for vector in ([0.0, 0.9, 0.9], [1.0, 0.0, 0.0])
    )
    assert near.similarity(1, cosine([0.0, 0.9, 0.9], alone)) > far.similarity(
        1, cosine([1.0, 0.0, 0.0], alone)
    )


def test_passages_in_another_language_are_lifted_and_the_nearest_language_stays() -> None:
    scale = Scale.of(QUESTION, Balance(SUMS))
    assert scale.shifts[0] == pytest.approx(0)
    assert scale.shifts[1] > 0.2


def test_in_a_collection_of_one_language_nothing_changes() -> None:
    scale = Scale.of(QUESTION, Balance(sum_vectors([("english", one) for one in ENGLISH])))
    assert [scale.similarity(0, value) for value in (0.3, 0.9)] == [0.3, 0.9]


def test_a_question_without_its_language_ranks_anew_and_similarities_keep_their_scale() -> None:
    whole, neutral = [1.0, 0.5, 0.1], [0.6, 0.5, 0.0]
    question = replace(QUESTION, neutral_vector=pack_vector(neutral))
    scale = Scale.of(question, Balance(sum_vectors([("english", one) for one in ENGLISH])))
    similar = [scale.similarity(0, cosine(neutral, one)) for one in ENGLISH]
    assert math.fsum(similar) == pytest.approx(
        math.fsum(cosine(whole, one) for one in ENGLISH), abs=1e-5
    )


def test_languages_that_are_not_known_change_nothing() -> None:
    scale = Scale.of(replace(QUESTION, neutral_vector=pack_vector([0.6, 0.5, 0.0])), None)
    assert list(scale.vector) == pytest.approx([1.0, 0.5, 0.1])
    assert scale.similarity(0, 0.4) == 0.4
