"""What a trial moved in the ranking of sources, and the factor that moved it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FACTORS = ("score", "weight", "rerank")


def moves(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    dropped_before: Sequence[Mapping[str, Any]] = (),
    dropped_after: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return for each entry of the ranking `after`, and then for those that are gone, {citation_id,
    title, move, why}. `move` is the number of places up, or `new` or `gone`; `why` has the factors
    of its rank that differ, or why it was dropped. The entries are those of the trace (`merge`)."""
    places = {each["citation_id"]: n for n, each in enumerate(before)}
    old = {each["citation_id"]: each for each in (*dropped_before, *before)}
    found = [_move(n, each, places, old) for n, each in enumerate(after)]
    kept = {each["citation_id"] for each in after}
    reasons = {each["citation_id"]: str(each.get("dropped", "")) for each in dropped_after}
    gone = [
        {**_named(each), "move": "gone", "why": reasons.get(each["citation_id"], "not found")}
        for each in before
        if each["citation_id"] not in kept
    ]
    return found + gone


def _move(
    place: int,
    entry: Mapping[str, Any],
    places: Mapping[str, int],
    old: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    id = entry["citation_id"]
    if id not in places:
        why = str(old[id].get("dropped", "")) if id in old else "not found before"
        return {**_named(entry), "move": "new", "why": why}
    changed = [
        f"{name} {old[id][name]:g} → {entry[name]:g}"
        for name in FACTORS
        if name in entry and name in old[id] and entry[name] != old[id][name]
    ]
    return {**_named(entry), "move": places[id] - place, "why": ", ".join(changed)}


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"citation_id": entry["citation_id"], "title": entry.get("title", "")}
