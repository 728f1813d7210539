"""The certainty of a turn, from that of its searches and from what its answer cites. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from groundhook.core.types.search import Certainty, SearchResult

# The best first. A source that does not judge is better than one that found nothing to answer.
ORDER: tuple[Certainty | None, ...] = ("sure", "partial", None, "none")


def best(given: Sequence[Certainty | None]) -> Certainty | None:
    """Return the best of several certainties, of which there is at least one."""
    return min(given, key=ORDER.index)


def certainty_of_turn(
    searches: Sequence[SearchResult], cited: Collection[str], *, elsewhere: bool = False
) -> Certainty | None:
    """Return the certainty of the best search whose items an answer cites, by their keys; `none`
    if it cites nothing although sources were asked. None without a search, and if what it cites was
    found `elsewhere`: by tools, or in an earlier turn."""
    used = [
        search.certainty for search in searches if any(item.key in cited for item in search.items)
    ]
    if used:
        return best(used)
    return "none" if searches and not elsewhere else None
