"""Selects passages from a search's hits: a limited number of each document, different ones, or
each with its neighbours. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

from groundhook.handlers.kb.store.port import Hit


def limit_per_document(hits: Sequence[Hit], most: int) -> list[Hit]:
    """The hits in their order, at most `most` of each document."""
    seen = Counter[str]()
    selected = []
    for hit in hits:
        seen[hit.document] += 1
        if seen[hit.document] <= most:
            selected.append(hit)
    return selected


def select_diverse(
    hits: Sequence[Hit],
    scores: Sequence[float],
    limit: int,
    diversity: float,
    similarity: Callable[[float], float],
) -> list[Hit]:
    """At most `limit` hits by maximal marginal relevance (Carbonell and Goldstein, 1998): each step
    takes the hit with the best (1 - `diversity`) × score - `diversity` × greatest similarity to a
    hit already taken. Equal ones keep their order. Hits must have their vectors; `scores` are on
    the scale of `similarity`."""
    if not hits:
        return []
    import numpy  # takes 100 ms, and few searches need it

    vectors = numpy.stack([numpy.frombuffer(hit.vector, dtype="<f4") for hit in hits])
    nearest = numpy.zeros(len(hits))
    relevance = numpy.array(scores) * (1 - diversity)
    left = numpy.ones(len(hits), dtype=bool)
    chosen: list[Hit] = []
    for _ in range(min(limit, len(hits))):
        worth = numpy.where(left, relevance - diversity * nearest, -numpy.inf)
        best = int(numpy.argmax(worth))
        chosen.append(hits[best])
        left[best] = False
        cosines = numpy.clip(vectors @ vectors[best], -1.0, 1.0)
        nearest = numpy.maximum(nearest, [similarity(float(cosine)) for cosine in cosines])
    return chosen


def run_around(hit: Hit, there: Mapping[int, Hit], taken: Collection[int], reach: int) -> list[Hit]:
    """The passage with up to `reach` passages before and after it. `there` has the document's
    passages by ordinal; the run ends at a gap or at one that is `taken`. The passage alone when the
    document has changed meanwhile."""
    own = there.get(hit.ordinal)
    if own is None or own.passage != hit.passage:
        return [hit]
    run = [own]
    for step in (-1, 1):
        for ordinal in range(hit.ordinal + step, hit.ordinal + step * (reach + 1), step):
            if ordinal not in there or ordinal in taken:
                break
            run.insert(0 if step < 0 else len(run), there[ordinal])
    return run


def join_passages(passages: Sequence[Hit]) -> str:
    """Join consecutive passages of one document to its text from the first's start to the last's
    end, after the repeated table header that the first may begin with. Exact where passages have
    the blanks before them; for others only the number is known, and they become line feeds, or one
    line feed and indentation."""
    text = passages[0].content if passages else ""
    for before, hit in pairwise(passages):
        size = hit.end - hit.start
        if not 0 < size <= len(hit.content):  # not a range of a text
            text += f"\n\n{hit.content}"
            continue
        own = hit.content[len(hit.content) - size :]
        missing = hit.start - before.end
        text += own[-missing:] if missing < 0 else _blanks(hit.gap, missing) + own
    return text


def _blanks(gap: str, size: int) -> str:
    if len(gap) == size:
        return gap
    return "\n" * size if size < 4 else "\n".ljust(size)
