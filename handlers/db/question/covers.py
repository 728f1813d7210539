"""The account of a question's words: every way in which clauses cover all of them, and the clauses
that cover most of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.conditions import conditions
from groundhook.handlers.db.question.parts import parts
from groundhook.handlers.db.question.relations import nouns_of_verb, related
from groundhook.handlers.db.question.times import QUARTERS

MOST_COVERS = 3000
# The price of a word that no clause has, of one that names something, and of a clause.
SKIPPED, SKIPPED_NAME, CLAUSE = 1.0, 2.0, 0.01


def clauses_at(here: Here, i: int) -> Sequence[Clause]:
    """Return all clauses that begin at a position, the longest first."""
    found = [*here.once(conditions, i), *here.once(related, i), *here.once(parts, i)]
    found = [
        clause for clause in found if clause.end > i and (clause.wheres or clause.kind not in "cz")
    ]
    return sorted(dict.fromkeys(found), key=lambda clause: -clause.end)


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


def strange_words(here: Here, known: frozenset[str]) -> list[int]:
    """Return the positions of words that no clause can have, since neither the language nor the
    model has them: a quick look, for databases of many models. `known` are the model's words."""
    question = here.question
    if any(question.is_(i, "starts_with") for i in range(len(question))):
        return []  # any word may follow
    dates = question.words.file.dates
    spoken, said = question.words.spoken, (*QUARTERS, *dates.decades, *dates.ordinals)
    return [
        i
        for i, token in enumerate(question.tokens)
        if token.kind == "word" and len(token.norm) > 1 and token.norm not in spoken
        if token.norm not in said
        and known.isdisjoint((token.norm, *question.stems(i, i + 1), *nouns_of_verb(question, i)))
    ]


def _skipping(here: Here, i: int, names: Collection[str]) -> float:
    """Return the price of a token that no clause has."""
    if here.question.tokens[i].kind == "mark":
        return 0.0
    return SKIPPED_NAME if here.question.stems(i, i + 1)[0] in names else SKIPPED


def least_price(here: Here, strange: Sequence[int], names: Collection[str]) -> float:
    """Return what the words that no clause can have cost at least."""
    return sum(_skipping(here, i, names) for i in strange)


def best_partial(here: Here, names: Collection[str] = ()) -> tuple[float, list[Clause], list[int]]:
    """Return the price of the clauses that leave fewest words unread, these clauses, and the
    positions of the words that are left. A word that is in `names`, of any model, counts twice."""
    length = len(here.question)
    best: list[tuple[float, list[Clause], list[int]]] = [(0.0, [], [])] * (length + 1)
    for i in range(length - 1, -1, -1):
        price, clauses, left = best[i + 1]
        skipped = _skipping(here, i, names)
        best[i] = (price + skipped, clauses, [i, *left] if skipped else left)
        for clause in clauses_at(here, i):
            price, clauses, left = best[clause.end]
            if price + CLAUSE < best[i][0]:
                best[i] = (price + CLAUSE, [clause, *clauses], left)
    return best[0]
