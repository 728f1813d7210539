"""The account of a question's words: every way in which clauses cover all of them, and the clauses
that cover most of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.conditions import conditions
from groundhook.handlers.db.question.parts import parts
from groundhook.handlers.db.question.relations import related

MOST_COVERS = 3000
# The price of a word that no clause has, of one that names something, and of a clause.
SKIPPED, SKIPPED_NAME, CLAUSE = 1.0, 2.0, 0.01


def clauses_at(here: Here, i: int) -> Sequence[Clause]:
    """Return all clauses that begin at a position, the longest first."""
    found = [*here.once(conditions, i), *here.once(related, i), *here.once(_parts, i)]
    found = [
        clause for clause in found if clause.end > i and (clause.wheres or clause.kind not in "cz")
    ]
    return sorted(dict.fromkeys(found), key=lambda clause: -clause.end)


def _parts(here: Here, i: int) -> Sequence[Clause]:
    return list(parts(here, i))


def covers(here: Here) -> Iterator[tuple[Clause, ...]]:
    """Yield the sequences of clauses that have every word of the question, up to `MOST_COVERS`."""
    length = len(here.question)
    reach = _reaching(here)
    count = 0

    def extend(i: int, taken: tuple[Clause, ...]) -> Iterator[tuple[Clause, ...]]:
        nonlocal count
        if i == length:
            count += 1
            yield taken
            return
        for clause in clauses_at(here, i):
            if count >= MOST_COVERS:
                return
            if clause.end in reach:
                yield from extend(clause.end, (*taken, clause))

    if length and 0 in reach:
        yield from extend(0, ())


def _reaching(here: Here) -> set[int]:
    """Return the positions from which clauses can cover the rest."""
    length = len(here.question)
    reach = {length}
    for i in range(length - 1, -1, -1):
        if any(clause.end in reach for clause in clauses_at(here, i)):
            reach.add(i)
    return reach


def best_partial(here: Here, names: Collection[str] = ()) -> tuple[float, list[Clause], list[int]]:
    """Return the price of the clauses that leave fewest words unread, these clauses, and the
    positions of the words that are left. A word that is in `names`, of any model, counts twice."""
    length = len(here.question)
    best: list[tuple[float, list[Clause], list[int]]] = [(0.0, [], [])] * (length + 1)
    for i in range(length - 1, -1, -1):
        price, clauses, left = best[i + 1]
        mark = here.question.tokens[i].kind == "mark"
        skipped = SKIPPED_NAME if here.question.stems(i, i + 1)[0] in names else SKIPPED
        best[i] = (price + (0.0 if mark else skipped), clauses, left if mark else [i, *left])
        for clause in clauses_at(here, i):
            price, clauses, left = best[clause.end]
            if price + CLAUSE < best[i][0]:
                best[i] = (price + CLAUSE, [clause, *clauses], left)
    return best[0]
