"""The account of a question's words: every way in which clauses cover all of them, and the clauses
that cover most of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.conditions import conditions
from groundhook.handlers.db.question.parts import parts
from groundhook.handlers.db.question.relations import related

MOST_COVERS = 3000
SKIPPED, CLAUSE = 1.0, 0.01  # the price of a word that no clause has, and of a clause


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


def best_partial(here: Here) -> tuple[float, list[Clause], list[int]]:
    """Return the price of the clauses that leave fewest words unread, these clauses, and the
    positions of the words that are left."""
    length = len(here.question)
    best: list[tuple[float, list[Clause], list[int]]] = [(0.0, [], [])] * (length + 1)
    for i in range(length - 1, -1, -1):
        price, clauses, left = best[i + 1]
        mark = here.question.tokens[i].kind == "mark"
        best[i] = (price + (0.0 if mark else SKIPPED), clauses, left if mark else [i, *left])
        for clause in clauses_at(here, i):
            price, clauses, left = best[clause.end]
            if price + CLAUSE < best[i][0]:
                best[i] = (price + CLAUSE, [clause, *clauses], left)
    return best[0]
