"""Passages are judged by their company: it moves the foremost among themselves, and the same way
every time."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.analyse import Analyser, Sparse
from groundhook.handlers.kb.ranking.company import Portraits, judged, portraits
from groundhook.handlers.kb.ranking.fusion import ordered
from groundhook.handlers.kb.store import POOL

ANALYSER = Analyser("english", 40)
WORDS = ["tide", "moon", "water", "harbour", "salt", "wind", "sail", "anchor"]
WORTH = st.dictionaries(st.integers(0, 300), st.floats(-3, 9), max_size=2 * POOL)


def turned(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def stored(*passages: tuple[int, float, str]) -> dict[int, tuple[list[float], Sparse]]:
    return {id: (turned(angle), ANALYSER.document(text)) for id, angle, text in passages}


def in_company(
    worth: dict[int, float],
    stored: dict[int, tuple[list[float], Sparse]],
    question: str,
    weight: float,
) -> list[int]:
    order = ordered(worth)
    return judged(
        order, worth, Portraits().of(order[:POOL], stored), ANALYSER.question(question), weight
    )


def any_passages(ids: dict[int, float]) -> dict[int, tuple[list[float], Sparse]]:
    return stored(*((id, id / 7, f"{WORDS[id % 8]} {WORDS[id % 5]} {id % 3}") for id in ids))


@given(WORTH, st.floats(0, 1))
def test_every_passage_is_there_once_and_only_the_foremost_move(
    worth: dict[int, float], weight: float
) -> None:
    order = in_company(worth, any_passages(worth), "tide water", weight)
    assert sorted(order) == sorted(worth)
    assert order[POOL:] == ordered(worth)[POOL:]
    assert (
        in_company(dict(reversed(worth.items())), any_passages(worth), "tide water", weight)
        == order
    )


@given(WORTH)
def test_words_that_count_nothing_move_nobody(worth: dict[int, float]) -> None:
    rounded = {id: round(each, 3) for id, each in worth.items()}
    assert in_company(rounded, any_passages(worth), "tide water", 0.0) == ordered(rounded)


@given(WORTH)
def test_who_is_gone_meanwhile_keeps_a_place_behind_those_that_were_looked_at(
    worth: dict[int, float],
) -> None:
    there = {id: both for id, both in any_passages(worth).items() if id % 4}
    assert sorted(in_company(worth, there, "tide water", 1.0)) == sorted(worth)


def test_of_two_that_are_as_good_the_one_near_the_best_comes_first() -> None:
    worth = {1: 2.0, 2: 2.0} | dict.fromkeys(range(10, 30), 4.0) | dict.fromkeys(range(30, 70), 0.0)
    near_the_best = [(id, 0.1 + id / 1000, "wool") for id in range(10, 30)]
    far_away = [(id, 1.2 + id / 1000, "wool") for id in range(30, 70)]
    order = in_company(
        worth, stored((1, 1.25, "wool"), (2, 0.12, "wool"), *near_the_best, *far_away), "tide", 1.0
    )
    assert order.index(2) < order.index(1)


def test_of_two_that_are_as_good_the_one_that_says_what_many_say_that_match_comes_first() -> None:
    worth = dict.fromkeys(range(70), 1.0)
    lonely, many = (0, 0.0, "tide anchor"), [(id, 0.0, "tide moon water") for id in range(1, 12)]
    others = [(id, 0.0, f"wool silk{id % 7} linen{id % 5}") for id in range(12, 70)]
    order = in_company(worth, stored(lonely, *many, *others), "tide", 1.0)
    assert order[:12] == [*range(1, 12), 0]


def test_judging_in_several_threads_at_once_is_as_one_after_the_other() -> None:
    worths = [{id: (id * step) % 97 / 20 for id in range(60 + step)} for step in range(1, 13)]
    alone = [in_company(worth, any_passages(worth), "tide water", 1.0) for worth in worths]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            assert [
                *threads.map(
                    lambda worth: in_company(worth, any_passages(worth), "tide water", 1.0), worths
                )
            ] == alone


def test_portraits_that_were_not_looked_at_for_longest_are_forgotten() -> None:
    kept = Portraits(most=2)
    assert kept.missing(["a", "b", "c"]) == ["a", "b", "c"]
    both = turned(0.0), ANALYSER.document("tide")
    assert None not in kept.of(["a", "b", "c"], dict.fromkeys(["a", "b", "c"], both))
    assert kept.missing(["a", "b", "c"]) == ["a"]


def test_a_portrait_has_whole_words_and_no_runs_of_letters() -> None:
    hebrew = Analyser("hebrew", 40)
    texts = ["", "מים ומלח", "...", "tide", "מים", ""]
    made = portraits([([1.0], hebrew.document(text)) for text in texts])
    assert [len(each.words) // 8 for each in made] == [0, 2, 0, 1, 1, 0]
    assert made[4].words[:4] in made[1].words


def test_passages_without_words_are_judged_by_their_meaning() -> None:
    worth = {id: 1.0 - id / 9 for id in range(9)}
    for question in ("tide", ""):
        assert in_company(
            worth, stored(*((id, 0.1, "...") for id in worth)), question, 1.0
        ) == list(range(9))
