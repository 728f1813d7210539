"""Lists, tables and code among the sentences that may be quoted: which entries, rows or code belong
together, and which sentence introduces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile

from groundhook.host.llm.candidates import Candidate
from groundhook.host.llm.sentences import Sentence
from groundhook.host.llm.shape import STOPS

MOST_ROWS = 10  # of a table
MOST_ENTRIES = 20  # of a list, which is quoted whole
INDENT = "  "


def adjoin(one: Candidate, other: Candidate) -> bool:
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


def announced(at: int, found: Sequence[Candidate]) -> list[int]:
    """Return the entries, rows or code, all of one kind, after a sentence that ends in a colon. A
    list entry introduces only code and a list in the list."""
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
    nested = first.sentence.depth > candidate.sentence.depth > 0
    listed = first.sentence.kind == "code" or (
        first.sentence.kind != "prose" and (candidate.sentence.kind == "prose" or nested)
    )
    if not (next_to and listed):
        return []
    # Not by `siblings`: each entry of a long list would read all of it.
    below = _nested(at, found) if nested else siblings(at + 1, found)
    is_list = first.sentence.kind == "entry"
    return whole_entries(below, found) if is_list else below[:MOST_ROWS]


def _nested(at: int, found: Sequence[Candidate]) -> list[int]:
    """Return the entries of the list that is in an entry."""
    depth = found[at].sentence.depth

    def is_inside(place: int) -> bool:
        before, one = found[place - 1], found[place]
        adjoins = one.item == before.item and one.sentence.block - before.sentence.block in (0, 1)
        return adjoins and one.sentence.depth > depth

    return list(takewhile(is_inside, range(at + 1, len(found))))


def whole_entries(places: Sequence[int], found: Sequence[Candidate]) -> list[int]:
    """Return the first entries of a list with all of their sentences."""
    blocks = list(dict.fromkeys(found[place].sentence.block for place in places))[:MOST_ENTRIES]
    return [place for place in places if found[place].sentence.block in blocks]


def is_part_of_list(at: int, found: Sequence[Candidate]) -> bool:
    """Return whether an entry is less than a sentence and belongs to a list, so that it says
    something only together with the others."""
    entry = found[at]
    stops = entry.text.rstrip("\"'”’)*_`]").endswith(STOPS)
    return not stops and len(siblings(at, found)) > 1


def siblings(at: int, found: Sequence[Candidate]) -> list[int]:
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


def announcement(row: int, found: Sequence[Candidate]) -> int | None:
    """Return the sentence that introduces a row, an entry or code: for code, also the last sentence
    of the paragraph above it; for an entry in a list in a list, the entry that it is in."""
    sentence = found[row].sentence
    if sentence.kind == "prose":
        return None
    first = siblings(row, found)[0]
    outer = (
        at for at in range(row - 1, first - 1, -1) if found[at].sentence.depth < sentence.depth
    )
    above = next(outer, first - 1)
    if above < 0:
        return None
    if sentence.kind == "code" and above == row - 1 and _leads_to_code(above, found):
        return above
    return above if row in announced(above, found) else None


def _leads_to_code(at: int, found: Sequence[Candidate]) -> bool:
    return found[at].sentence.kind == "prose" and adjoin(found[at], found[at + 1])


def goes_on(rows: Sequence[int], found: Sequence[Candidate]) -> bool:
    """Return whether a list has more entries than these."""
    after = rows[-1] + 1
    return (
        siblings(rows[-1], found)[-1] >= after
        and found[after].sentence.depth >= found[rows[0]].sentence.depth
    )


def lines(places: Sequence[int], found: Sequence[Candidate]) -> tuple[str, ...]:
    """Return rows and entries as text; the sentences of one entry are joined. An entry of a list
    in a list begins with two blanks for each level."""
    least = min((found[place].sentence.depth for place in places), default=0)
    together = groupby(places, key=lambda place: found[place].sentence.block)
    blocks = [[found[place] for place in line] for _, line in together]
    return tuple(
        INDENT * (block[0].sentence.depth - least) + " ".join(each.text for each in block)
        for block in blocks
    )
