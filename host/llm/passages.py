"""Passages: the sentences around a quoted one that belong to it and read as one text. Owns the
quotations; `host.llm.extract` decides which sentence to quote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from groundhook.core.language.terms import terms
from groundhook.host.llm.candidates import Candidate
from groundhook.host.llm.lists import (
    MOST_ROWS,
    adjoin,
    announced,
    announcement,
    goes_on,
    is_part_of_list,
    lines,
    siblings,
    whole_entries,
)
from groundhook.host.llm.questions import QuestionPart
from groundhook.host.llm.sentences import Sentence
from groundhook.host.llm.shape import dangling, fragment, points_elsewhere

MOST_SENTENCES = 3  # of a passage that is not a list
MOST_LENGTH = 600  # characters of a passage: beyond them it does not grow
CUT = "…"  # the last entry of a longer list
LEAST_ROW = 0.8  # share of the score of its table's best row that another row needs
MOST_TITLE = 8  # words of a list entry's first sentence that is the title of what follows
GROWS = 0.5  # a neighbour with this share of the best sentence's score joins it
GOES_ON = 0.25  # the same for the next sentence of its paragraph


@dataclass(frozen=True)
class Quote:
    """A passage of the answer: consecutive sentences of one item, from `opens` to `closes`.
    `entries` are the list entries or table rows that it introduces or consists of. `code`: the
    entries are code, or the text when there are no entries."""

    item: int
    place: int
    end: int
    opens: Sentence
    closes: Sentence
    text: str
    score: float
    entries: tuple[str, ...] = ()
    code: bool = False

    @property
    def whole(self) -> str:
        return " ".join([self.text, *self.entries])


def passage(
    at: int,
    scores: Mapping[int, float],
    part: QuestionPart,
    found: Sequence[Candidate],
    chosen: Sequence[Quote],
) -> Quote:
    """Return the sentence as it is quoted: with its neighbours or, for a table row or a list entry,
    with the introducing sentence or the column names and the other rows that score about as
    high."""
    rows = announced(at, found)
    if rows and found[rows[0]].sentence.columns and fragment(found[at].text):
        # The column names are a better introduction than a fragment such as "and these:".
        at = max(rows, key=lambda row: scores[row])
    if rows and found[at].sentence.kind == "entry":
        return _quote(at, at, rows, scores[at], found)
    above = announcement(at, found)
    listed = found[at].sentence.kind == "entry" and is_part_of_list(at, found)
    if found[at].sentence.kind in ("row", "code") or above is not None or listed:
        return _quote_entry(at, above, scores, found)
    first, last = _grow(at, scores, found, [quote.whole for quote in chosen])
    rows = announced(last, found) if last == at or part.value else []
    rows = rows or _example(last, scores, scores[at], found)
    return _quote(first, last, rows, scores[at], found)


def _quote_entry(
    at: int, above: int | None, scores: Mapping[int, float], found: Sequence[Candidate]
) -> Quote:
    """Return a row, an entry or code as it is quoted. `above` is the sentence that introduces
    it."""
    columns = found[at].sentence.columns
    if found[at].sentence.kind == "entry":  # a list is quoted whole, and in its order
        rows = whole_entries(siblings(at, found), found)
        first = rows[0] if above is None else above
        quote = _quote(first, first, rows, scores[at], found)
        return quote if above is not None else replace(quote, text="")
    least = LEAST_ROW * scores[at] if columns else 0.0
    best = sorted(
        [row for row in siblings(at, found) if scores[row] >= least],
        key=lambda row: (row != at, -scores[row], row),
    )
    rows = sorted(best[:MOST_ROWS])
    if above is not None and not (columns and fragment(found[above].text)):
        return _quote(above, above, rows, scores[at], found)
    if columns:
        return replace(_quote(rows[0], rows[0], rows, scores[at], found), text=columns)
    return _quote(at, at, [], scores[at], found)


def _quote(
    first: int, last: int, rows: Sequence[int], score: float, found: Sequence[Candidate]
) -> Quote:
    text = " ".join(candidate.text for candidate in found[first : last + 1])
    start, end = found[first], found[rows[-1] if rows else last]
    shown = lines(rows, found)
    if rows and end.sentence.kind == "entry" and goes_on(rows, found):
        shown += (CUT,)
    return Quote(
        start.item,
        start.place,
        end.place,
        start.sentence,
        end.sentence,
        text,
        score,
        shown,
        code=end.sentence.kind == "code",
    )


def _example(
    last: int, scores: Mapping[int, float], best: float, found: Sequence[Candidate]
) -> list[int]:
    """Return the code right below a passage, if it is the end of its paragraph and the code is
    about the question too."""
    below = last + 1
    if below == len(found) or found[below].sentence.kind != "code":
        return []
    one, other = found[last], found[below]
    near_enough = adjoin(one, other) and one.sentence.block != other.sentence.block
    return [below] if near_enough and scores[below] >= GOES_ON * best else []


def _grow(
    at: int, scores: Mapping[int, float], found: Sequence[Candidate], quoted: Sequence[str]
) -> tuple[int, int]:
    """Return the first and the last sentence of the passage around one: preceding sentences that it
    refers to, and neighbours that answer too or belong to its paragraph."""
    first = last = at

    def joins(one: int, other: int) -> bool:
        if (
            not 0 <= other < len(found)
            or last - first + 1 >= MOST_SENTENCES
            or any(found[other].text in text for text in quoted)
        ):
            return False
        length = sum(len(found[place].text) for place in range(first, last + 1))
        together = _are_neighbours(found[one], found[other]) or (
            one < other and _is_title(one, found)
        )
        return together and length + len(found[other].text) <= MOST_LENGTH

    def answers_too(other: int, share: float) -> bool:
        return scores[other] >= scores[at] * share and not found[other].text.endswith((":", "："))

    def depends(place: int) -> bool:
        return dangling(found[place].text) or found[place].continues

    while depends(first) and joins(first, first - 1):
        first -= 1
    while joins(last, last + 1):
        near = found[last].sentence.block == found[last + 1].sentence.block
        if (
            not answers_too(last + 1, GOES_ON if near else GROWS)
            and not dangling(found[last + 1].text)
            and not _is_title(last, found)
        ):
            break
        last += 1
    while joins(first, first - 1) and (answers_too(first - 1, GROWS) or depends(first)):
        first -= 1
    return first, last


def _is_title(at: int, found: Sequence[Candidate]) -> bool:
    """Return whether a sentence is the title of the prose after it: a question, or a short first
    sentence of a list entry ("4. How long it takes.")."""
    if at + 1 == len(found) or not adjoin(found[at], found[at + 1]):
        return False
    one, other = found[at].sentence, found[at + 1].sentence
    if other.kind != "prose" and one.block != other.block:
        return False
    if one.text.endswith(("?", "？", "؟")):
        return not other.text.endswith(("?", "？", "؟"))
    before = found[at - 1]
    leads = at == 0 or (before.item, before.sentence.block) != (found[at].item, one.block)
    return one.kind == "entry" and leads and len(one.text.split()) <= MOST_TITLE


def _are_neighbours(one: Candidate, other: Candidate) -> bool:
    """Return whether two sentences read as one text: neighbours under one heading, in paragraphs or
    in entries."""
    a, b = one.sentence, other.sentence
    if not adjoin(one, other):
        return False
    if "row" in (a.kind, b.kind) or "code" in (a.kind, b.kind) or points_elsewhere(b.text):
        return False
    return a.block == b.block or a.kind == b.kind == "prose"


def is_quoted_table(candidate: Candidate, chosen: Sequence[Quote]) -> bool:
    """Return whether a candidate is a row of a table of which other rows are quoted."""
    row = candidate.sentence
    return row.kind == "row" and any(
        quote.item == candidate.item
        and quote.closes.kind == "row"
        and (quote.closes.heading, quote.closes.columns) == (row.heading, row.columns)
        for quote in chosen
    )


def repeats(quote: Quote, other: Quote) -> bool:
    """Return whether one of two quotations has little content that the other lacks."""
    if quote.whole in other.whole or other.whole in quote.whole:
        return True
    mine, theirs = set(terms(quote.whole)), set(terms(other.whole))
    # Tables differ in few words, so for them only the new quotation counts.
    smaller = len(mine) if quote.entries else min(len(mine), len(theirs))
    return smaller > 0 and len(mine & theirs) / smaller >= 0.8
