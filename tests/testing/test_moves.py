"""What a trial moved in a ranking, and why."""

from __future__ import annotations

from typing import Any

from groundhook.host.testing.moves import moves


def entry(id: str, **factors: Any) -> dict[str, Any]:
    return {
        "citation_id": id,
        "title": id.upper(),
        "score": 0.8,
        "weight": 0.6,
        "rerank": 1.0,
        **factors,
    }


def test_places_up_and_down_have_the_factor_that_moved_them() -> None:
    found = moves([entry("a"), entry("b")], [entry("b", weight=0.8), entry("a", rerank=0.5)])
    assert found == [
        {"citation_id": "b", "title": "B", "move": 1, "why": "weight 0.6 → 0.8"},
        {"citation_id": "a", "title": "A", "move": -1, "why": "rerank 1 → 0.5"},
    ]


def test_new_and_gone_entries_have_the_reason() -> None:
    beyond = {"dropped": "beyond the best 1"}
    assert moves([entry("a")], [entry("b"), entry("c")], [entry("b", **beyond)], []) == [
        {"citation_id": "b", "title": "B", "move": "new", "why": "beyond the best 1"},
        {"citation_id": "c", "title": "C", "move": "new", "why": "not found before"},
        {"citation_id": "a", "title": "A", "move": "gone", "why": "not found"},
    ]
    (_, gone) = moves([entry("a"), entry("b")], [entry("b")], [], [entry("a", **beyond)])
    assert gone == {"citation_id": "a", "title": "A", "move": "gone", "why": "beyond the best 1"}
