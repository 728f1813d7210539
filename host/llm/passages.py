"""Passages: the sentences around a quoted one that belong to it and read as one text. Owns the
candidates and the quotations made of them; `host.llm.extract` decides which sentence to quote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from groundhook.core.language.terms import terms
from groundhook.core.types.search import Item
from groundhook.host.llm.questions import QuestionPart
from groundhook.host.llm.sentences import Sentence, sentences
from groundhook.host.llm.shape import STOPS, dangling, fragment, only_points, points_elsewhere

MOST_SENTENCES = 3  # of a passage that is not a list
MOST_LENGTH = 600  # characters of a passage: beyond them it does not grow
MOST_ROWS = 10  # of a table
MOST_ENTRIES = 20  # of a list, which is quoted whole
CUT = "…"  # the last entry of a longer list
LEAST_ROW = 0.8  # share of the score of its table's best row that another row needs
MOST_TITLE = 8  # words of a list entry's first sentence that is the title of what follows
GROWS = 0.5  # a neighbour with this share of the best sentence's score joins it
GOES_ON = 0.25  # the same for the next sentence of its paragraph

_LAST_RUN = re.compile(r"(.*?)(?<![A-Za-z0-9])([A-Za-z0-9]++)([^A-Za-z0-9]*+)", re.S)


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be quoted: the index of its item in the references, and its place in the
    item."""

    item: int
    place: int
    sentence: Sentence

    @property
    def text(self) -> str:
        return self.sentence.text

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))


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


def candidates(references: Sequence[Item]) -> list[Candidate]:
    """Return every sentence of the references that may be quoted. Database rows have none. A
    sentence with text that looks like a citation marker is omitted, since it would read as a
    citation of another source; so is the title of an item, which the answer shows above its
    sentences, if there are others."""
    marker = _marker_pattern(references)
    found: list[Candidate] = []
    for index, item in enumerate(references):
        if item.type == "db":
            continue
        mine = [
            Candidate(index, place, sentence)
            for place, sentence in enumerate(sentences(item.content))
            if marker is None or not marker.search(f"{sentence.columns} {sentence.text}")
        ]
        title = _normalize(item.title)
        found += [each for each in mine if _normalize(each.text) != title] or mine
    # What only points elsewhere answers nothing itself.
    return [each for each in found if not only_points(each.text)]


def _normalize(text: str) -> str:
    return " ".join(text.split()).rstrip(".:").casefold()


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
    above = _announcement(at, found)
    listed = found[at].sentence.kind == "entry" and _is_part_of_list(at, found)
    if found[at].sentence.kind in ("row", "code") or above is not None or listed:
        return _quote_entry(at, above, scores, found)
    first, last = _grow(at, scores, found, [quote.whole for quote in chosen])
    rows = announced(last, found) if last == at or part.value else []
    return _quote(first, last, rows, scores[at], found)


def _quote_entry(
    at: int, above: int | None, scores: Mapping[int, float], found: Sequence[Candidate]
) -> Quote:
    """Return a row, an entry or code as it is quoted. `above` is the sentence that introduces
    it."""
    columns = found[at].sentence.columns
    if found[at].sentence.kind == "entry":  # a list is quoted whole, and in its order
        rows = _whole_entries(_siblings(at, found), found)
        first = rows[0] if above is None else above
        quote = _quote(first, first, rows, scores[at], found)
        return quote if above is not None else replace(quote, text="")
    least = LEAST_ROW * scores[at] if columns else 0.0
    best = sorted(
        [row for row in _siblings(at, found) if scores[row] >= least],
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
    lines = _lines(rows, found)
    if rows and end.sentence.kind == "entry" and _siblings(rows[-1], found)[-1] > rows[-1]:
        lines += (CUT,)
    return Quote(
        start.item,
        start.place,
        end.place,
        start.sentence,
        end.sentence,
        text,
        score,
        lines,
        code=end.sentence.kind == "code",
    )


def _lines(places: Sequence[int], found: Sequence[Candidate]) -> tuple[str, ...]:
    """Return rows and entries as text; the sentences of one entry are joined."""
    together = groupby(places, key=lambda place: found[place].sentence.block)
    return tuple(" ".join(found[place].text for place in line) for _, line in together)


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

    while dangling(found[first].text) and joins(first, first - 1):
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
    while joins(first, first - 1) and (
        answers_too(first - 1, GROWS) or dangling(found[first].text)
    ):
        first -= 1
    return first, last


def _is_title(at: int, found: Sequence[Candidate]) -> bool:
    """Return whether a sentence is the title of the prose after it: a question, or a short first
    sentence of a list entry ("4. How long it takes.")."""
    if at + 1 == len(found) or not _adjoin(found[at], found[at + 1]):
        return False
    one, other = found[at].sentence, found[at + 1].sentence
    if other.kind != "prose" and one.block != other.block:
        return False
    if one.text.endswith(("?", "？", "؟")):
        return not other.text.endswith(("?", "？", "؟"))
    before = found[at - 1]
    leads = at == 0 or (before.item, before.sentence.block) != (found[at].item, one.block)
    return one.kind == "entry" and leads and len(one.text.split()) <= MOST_TITLE


def _adjoin(one: Candidate, other: Candidate) -> bool:
    """Return whether two sentences of one item follow each other with nothing in between."""
    return (
        one.item == other.item
        and abs(one.place - other.place) == 1
        and near(one.sentence, other.sentence)
    )


def near(one: Sentence, other: Sentence) -> bool:
    """Return whether nothing is between two neighbours of a text, such as a heading or text that is
    never quoted."""
    return one.heading == other.heading and abs(one.block - other.block) <= 1


def _are_neighbours(one: Candidate, other: Candidate) -> bool:
    """Return whether two sentences read as one text: neighbours under one heading, in paragraphs or
    in entries."""
    a, b = one.sentence, other.sentence
    if not _adjoin(one, other):
        return False
    if "row" in (a.kind, b.kind) or "code" in (a.kind, b.kind) or points_elsewhere(b.text):
        return False
    return a.block == b.block or a.kind == b.kind == "prose"


def announced(at: int, found: Sequence[Candidate]) -> list[int]:
    """Return the entries, rows or code, all of one kind, after a sentence that ends in a colon. A
    list entry introduces only code."""
    if (
        found[at].sentence.kind not in ("prose", "entry")
        or not found[at].text.endswith((":", "："))
        or at + 1 == len(found)
    ):
        return []
    candidate, first = found[at], found[at + 1]
    next_to = first.item == candidate.item and first.sentence.block - candidate.sentence.block in (
        0,
        1,
    )
    listed = first.sentence.kind == "code" or (
        first.sentence.kind != "prose" and candidate.sentence.kind == "prose"
    )
    if not (next_to and listed):
        return []
    below = _siblings(at + 1, found)
    is_list = first.sentence.kind == "entry"
    return _whole_entries(below, found) if is_list else below[:MOST_ROWS]


def _whole_entries(places: Sequence[int], found: Sequence[Candidate]) -> list[int]:
    """Return the first entries of a list with all of their sentences."""
    blocks = list(dict.fromkeys(found[place].sentence.block for place in places))[:MOST_ENTRIES]
    return [place for place in places if found[place].sentence.block in blocks]


def _is_part_of_list(at: int, found: Sequence[Candidate]) -> bool:
    """Return whether an entry is less than a sentence and belongs to a list, so that it says
    something only together with the others."""
    entry = found[at]
    stops = entry.text.rstrip("\"'”’)*_`]").endswith(STOPS)
    return not stops and len(_siblings(at, found)) > 1


def _siblings(at: int, found: Sequence[Candidate]) -> list[int]:
    """Return the rows or entries of the same list or table, this one included."""
    first = last = at

    def follows(one: int, other: int) -> bool:
        before, after = found[one], found[other]
        next_to = before.item == after.item and after.sentence.block - before.sentence.block in (
            0,
            1,
        )
        return next_to and (before.sentence.kind, before.sentence.columns) == (
            after.sentence.kind,
            after.sentence.columns,
        )

    while first > 0 and follows(first - 1, first):
        first -= 1
    while last + 1 < len(found) and follows(last, last + 1):
        last += 1
    return list(range(first, last + 1))


def _announcement(row: int, found: Sequence[Candidate]) -> int | None:
    """Return the sentence that introduces a row or an entry."""
    if found[row].sentence.kind == "prose":
        return None
    above = _siblings(row, found)[0] - 1
    return above if above >= 0 and row in announced(above, found) else None


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


def _marker_pattern(references: Sequence[Item]) -> re.Pattern[str] | None:
    """Return the pattern of citation markers, from one of the references: the id is the last run of
    letters and digits."""
    for item in references:
        found = _LAST_RUN.fullmatch(item.citation_id)
        if found and (found[1] or found[3]):
            return re.compile(re.escape(found[1]) + r"[A-Za-z0-9]+" + re.escape(found[3]))
    return None
