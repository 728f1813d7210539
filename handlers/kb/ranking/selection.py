"""Which of the passages found are handed over: few of one document, and few that say the same.
Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

from groundhook.handlers.kb.store import Hit


def grouped(hits: Sequence[Hit], most: int) -> list[Hit]:
    """The hits in their order, at most `most` of each document."""
    seen = Counter[str]()
    kept = []
    for hit in hits:
        seen[hit.document] += 1
        if seen[hit.document] <= most:
            kept.append(hit)
    return kept


def diverse(
    hits: Sequence[Hit],
    scores: Sequence[float],
    limit: int,
    diversity: float,
    similarity: Callable[[float], float],
) -> list[Hit]:
    """At most `limit` hits by maximal marginal relevance (Carbonell and Goldstein, 1998): each time
    the one whose score, less its greatest similarity to one that is chosen, is best, with weights
    of 1 - `diversity` and `diversity`. Equal ones keep their order. The hits bring their vectors;
    `scores` are on the scale of `similarity`."""
    if not hits:
        return []
    import numpy  # 100 ms, and few searches ask for this

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
    """The passage with those of `there`, by ordinal, that stand up to `reach` before and after it,
    as far as they follow one another and are not `taken`. The passage alone, when the document has
    changed meanwhile."""
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


def joined(passages: Sequence[Hit]) -> str:
    """Passages of one document that follow one another, as the document's text from the first's
    start to the last's end; before it the table's header where the first begins with that of a
    table that goes on. Exact where passages know the blanks before them; of others their number is
    known, and they are taken for line feeds, or for one and indentation."""
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
