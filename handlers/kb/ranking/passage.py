"""Selects the part of a long chunk that answers a question: consecutive whole sentences. Pure and
deterministic.

A chunk is split into `units`. A list, a table or a block of code is kept whole where it fits, with
the sentence that introduces it, and a heading is kept with what follows it. Every run of units that
fits is scored by the question's words in it, and the best run is taken. A word weighs its weight in
the collection's analyser times its rarity among the units of all chunks found, and saturates as in
BM25. The words of the run's best unit count twice, and the beginning of a chunk gets a bonus
because it introduces the subject. The run then takes in the unit that follows it, so that it does
not end right before the answer, and never ends in a label.

A chunk with too few of the question's words stays whole: it was found by its meaning, and this
module cannot know which sentence matched. `bench.passages` measures the results.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, groupby

from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.ranking.units import REMEMBERED, RULE, Unit, labels, units

SATURATION = 0.9  # k of BM25
OF_BEST = 1.0  # weight of the run's best unit, added to the score of the run
# Both are shares of the total weight of the question's words that occur in any chunk found.
LEAD = 0.3  # bonus of a run at the beginning of a chunk
LEAST_SHARE = 0.25  # a run with no more than this is not selected: the chunk stays whole
# A chunk is not cut up to this multiple of `most`, and a part may grow to it.
SPARE = 1.25
REPEATED = 256  # questions whose parts are cached: pages, facets and retries ask one again

# By hashes, so that no text is kept.
_repeated: OrderedDict[tuple[object, ...], tuple[PassagePart | None, ...]] = OrderedDict()


@dataclass(frozen=True)
class PassagePart:
    """Characters `start` to `end` of a chunk: its units `first` to `last`, counted from 1, of `of`
    units."""

    start: int
    end: int
    first: int
    last: int
    of: int

    def text(self, content: str) -> str:
        """Return the text of the part. A part that begins in the middle of a table has the table's
        header before it."""
        return _header(content, units(content), self.first - 1) + content[self.start : self.end]


def parts(
    contents: Sequence[str], question: str, language: str, most: int
) -> tuple[PassagePart | None, ...]:
    """Return for each chunk the part that answers the question: about `most` tokens as
    `embedding_tokens` counts them, and at most `SPARE` times as many unless a single unit, a label
    with what it announces, or a table's header with its first row is longer. None means the whole
    chunk: it is hardly longer, or has too few of the question's words."""
    if max(map(embedding_tokens, contents), default=0) <= SPARE * most:
        return (None,) * len(contents)
    key = (hash(question), language, most, *map(hash, contents))
    found = _repeated.get(key)
    if found is None:
        found = _repeated[key] = _select(contents, question, language, most)
        if len(_repeated) > REPEATED:
            _repeated.popitem(last=False)
    return found


def _select(
    contents: Sequence[str], question: str, language: str, most: int
) -> tuple[PassagePart | None, ...]:
    analyser = Analyser(language)
    question_terms = analyser.question(question)
    wanted = dict(zip(question_terms.indices, question_terms.values, strict=True))
    among = frozenset(wanted)
    words = [[among & unit for unit in _unit_tokens(content, language)] for content in contents]
    seen = Counter(chain.from_iterable(chain.from_iterable(words)))
    number = sum(map(len, words))
    worth = {
        word: wanted[word] * math.log(1 + (number - count + 0.5) / (count + 0.5))
        for word, count in seen.items()
    }
    return tuple(
        [_part(content, own, worth, most) for content, own in zip(contents, words, strict=True)]
    )


@lru_cache(maxsize=REMEMBERED)
def _unit_tokens(content: str, language: str) -> tuple[frozenset[int], ...]:
    """Return the tokens of each unit of a chunk."""
    analyser = Analyser(language)
    return tuple([analyser.indices(content[unit.start : unit.end]) for unit in units(content)])


def _part(
    content: str, words: Sequence[frozenset[int]], worth: Mapping[int, float], most: int
) -> PassagePart | None:
    if embedding_tokens(content) <= SPARE * most or not any(words):
        return None
    all = units(content)
    every = math.fsum(worth.values())
    best = _best(_runs(content, most), words, worth, LEAD * every)
    first, last = _complete(content, best, most, matching=bool(words[best[1]]))
    had = {word for unit in words[first : last + 1] for word in unit}
    if (first, last) == (0, len(all) - 1) or math.fsum(
        worth[word] for word in had
    ) <= LEAST_SHARE * every:
        return None
    return PassagePart(all[first].start, all[last].end, first + 1, last + 1, len(all))


# --------------------------------------------------------------------------------------------- runs


def _best(
    runs: Sequence[tuple[int, int]],
    words: Sequence[frozenset[int]],
    worth: Mapping[int, float],
    lead: float,
) -> tuple[int, int]:
    """Return the best of runs whose beginnings and ends rise: the score of a run is that of its
    words, of its best unit, and a `lead` at the beginning. Of equal ones the best is the one whose
    best unit is nearest to its middle."""
    alone = [math.fsum(map(worth.__getitem__, unit)) if unit else 0.0 for unit in words]
    counts = dict.fromkeys(worth, 0)
    begin = end = 0  # the units that are counted
    score = 0.0
    values = []
    for first, last in runs:
        for unit in words[end : last + 1]:
            for word in unit:
                counts[word] += 1
                score += worth[word] * _gain(counts[word])
        for unit in words[begin:first]:
            for word in unit:
                score -= worth[word] * _gain(counts[word])
                counts[word] -= 1
        begin, end = first, last + 1
        highest = max(alone[begin:end])
        value = score + OF_BEST * highest + (0.0 if first else lead)
        middle = abs(2 * alone.index(highest, begin) - first - last) if highest else 0
        values.append((round(value, 6), -middle))
    return runs[values.index(max(values))]


@cache
def _gain(count: int) -> float:
    """Return what the last of `count` occurrences of a word adds."""
    return _saturate(count) - _saturate(count - 1)


def _saturate(count: int) -> float:
    return count * (SATURATION + 1) / (count + SATURATION)


@lru_cache(maxsize=REMEMBERED)
def _runs(content: str, most: int) -> tuple[tuple[int, int], ...]:
    """Return the first and the last unit of each longest run that fits; a segment that is too long
    is a run by itself."""
    all = units(content)
    segments = _segments(content, most)
    runs: list[tuple[int, int]] = []
    reached, end = -1, 0
    for begin, (first, _) in enumerate(segments):
        room = most - embedding_tokens(_header(content, all, first))
        end = max(begin, end)
        while end > begin and _tokens(content, all, first, segments[end][1]) > room:
            end -= 1
        while (
            end + 1 < len(segments) and _tokens(content, all, first, segments[end + 1][1]) <= room
        ):
            end += 1
        if end > reached:
            runs.append((first, segments[end][1]))
        reached = max(reached, end)
    return tuple(runs)


def _complete(content: str, run: tuple[int, int], most: int, *, matching: bool) -> tuple[int, int]:
    """The run with the segment that follows it, since the answer often follows the sentence that
    has the question's words. It may grow to `SPARE` times `most`. A label at its end brings what it
    announces: where that does not fit, the run loses its beginning if the label is `matching`, and
    else the label."""
    all, is_label = units(content), labels(content)
    segments = _segments(content, most)
    begin = bisect_left(segments, (run[0], 0))
    end = stop = bisect_left(segments, (run[1] + 1, 0)) - 1
    if stop + 1 < len(segments):
        stop += 1
    while stop + 1 < len(segments) and is_label[segments[stop][1]]:
        stop += 1

    def fits() -> bool:
        first, last = segments[begin][0], segments[stop][1]
        header = embedding_tokens(_header(content, all, first))
        return header + _tokens(content, all, first, last) <= SPARE * most

    if not fits() and not (matching and is_label[run[1]]):
        stop = end
    while begin < end < stop and not fits():
        begin += 1
    first, last = segments[begin][0], segments[stop][1]
    while last > first and is_label[last]:
        last -= 1
    # Of nothing but labels the part goes on to what they announce.
    return first, next((at for at in range(last, len(all)) if not is_label[at]), last)


@lru_cache(maxsize=REMEMBERED)
def _segments(content: str, most: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last unit of each part that a run never splits: a list, a table or code
    that fits, with the sentence that introduces it; otherwise each unit."""
    all = units(content)
    segments: list[tuple[int, int]] = []
    for _, block in groupby(range(len(all)), key=lambda at: all[at].block):
        places = list(block)
        first, last = places[0], places[-1]
        if all[first].kind == "text":
            segments += [(place, place) for place in places]
            continue
        if _tokens(content, all, first, last) > most:
            # a table's header stays with its first row
            head = 1 if len(places) > 1 and all[first].kind == "row" else 0
            segments += [(first, places[head]), *((place, place) for place in places[head + 1 :])]
            continue
        before = segments[-1] if segments else None
        if before and labels(content)[before[1]] and _tokens(content, all, before[0], last) <= most:
            segments[-1] = (before[0], last)
        else:
            segments.append((first, last))
    return tuple(segments)


def _tokens(content: str, all: Sequence[Unit], first: int, last: int) -> int:
    if content.isascii():  # without copying: a chunk's runs are measured many times
        return -(-(all[last].end - all[first].start) // 4)
    return embedding_tokens(content[all[first].start : all[last].end])


def _header(content: str, all: Sequence[Unit], first: int) -> str:
    """Return the table's header if a run begins in the middle of a table; else ""."""
    unit = all[first]
    if unit.kind != "row" or first == 0 or all[first - 1].block != unit.block:
        return ""
    top = next(other for other in all if other.block == unit.block)
    header = content[top.body : top.end]
    return f"{header}\n" if RULE.match(header.rpartition("\n")[2]) and "\n" in header else ""
