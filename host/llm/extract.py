"""Chooses the passages of the references that answer a question, without a language model. Pure.

Candidates are the sentences of the references. They are scored for each part of the question by the
words they share with it (weighted by rarity among the candidates) and by their item, which the
search found by meaning too. The best one is quoted with the sentences that belong to it
(`host.llm.passages`), then the next best one with new content.

    score = (0.2 + 0.8 · words) · shape · (1 + item) / 2 · (1 + 0.3 · heading) / (1 + 0.1 · rank)

`words` is the share of the question's terms in the sentence, each weighted by its rarity (a term
only in the heading, title or column names counts half). `item` is the item's score × weight divided
by that of the best item, and `rank` its index. `heading` is how far the heading alone matches the
question. `shape` prefers text that reads well alone and fits the question: prose before rows and
fragments, rows for values, numbers for "how many", definitions for "what is".

Sentences are not embedded: with the similarity of the likeliest ones, 34 of the 50 questions of
`bench.answers` are answered, without it 35, and embedding them takes half of the turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from groundhook.core.language.terms import terms
from groundhook.core.types.search import Item
from groundhook.host.llm.candidates import Candidate
from groundhook.host.llm.lists import announced
from groundhook.host.llm.passages import Quote, is_quoted_table, passage, repeats
from groundhook.host.llm.questions import QuestionPart, vague_terms
from groundhook.host.llm.shape import LEVEL, shape

MOST_PASSAGES = 3
MOST_PASSAGES_UNSURE = 2  # when they are only near
LEAST_OF_BEST = 0.6  # a passage needs at least this share of the best score
CARRIES = 0.75  # share of the best passage's words of the question that another document needs
AROUND = 0.5  # weight of a term that is only in the heading, title or names of columns
AROUND_CODE = 0.9  # the same for code, whose heading says what it does
VAGUE = 0.3  # weight of a word such as "work" or "use"
OF_ITEM = 0.5
OF_WORDS = 0.8  # the rest is the same for every sentence
OF_HEADING = 0.3  # added for a heading that is the question
OF_RANK = 0.1
BROKEN = 0.5  # factor of text that begins in the middle of a sentence


def words(
    part: QuestionPart, found: Sequence[Candidate], references: Sequence[Item]
) -> list[float]:
    """Return for each candidate the share (0-1) of the question's words that it contains; rare
    words weigh more."""
    wanted = part.wanted
    if not wanted:
        return [0.0] * len(found)
    bodies = [candidate.terms for candidate in found]
    rarity = _rarity(wanted, bodies)
    whole = sum(rarity.values())
    scores: list[float] = []
    for candidate, body in zip(found, bodies, strict=True):
        sentence = candidate.sentence
        around = (
            set(terms(f"{references[candidate.item].title} {sentence.heading} {sentence.columns}"))
            & wanted - body
        )
        have = sum(rarity[term] for term in body & wanted) + sum(
            rarity[term] for term in around
        ) * (AROUND_CODE if sentence.kind == "code" else AROUND)
        scores.append(min(1.0, have / whole))
    return scores


def _rarity(wanted: frozenset[str], bodies: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each term among the candidates, as in BM25, and
    less for terms that say nothing of the subject."""
    seen = Counter(term for body in bodies for term in body & wanted)
    return {
        term: math.log(1 + (len(bodies) - seen[term] + 0.5) / (seen[term] + 0.5))
        * (VAGUE if term in vague_terms() else 1.0)
        for term in wanted
    }


# ------------------------------------------------------------------------------------------- choice


def choose(
    parts: Sequence[QuestionPart],
    found: Sequence[Candidate],
    lexical: Sequence[Sequence[float]],
    references: Sequence[Item],
    *,
    direct: bool = True,
) -> list[Quote]:
    """Return the best passages, best first, among them the best for each part of the question,
    without repetitions. `lexical` has the `words` of every part. `direct`: they are likely to
    answer; else fewer are returned."""
    every = [
        _scores(part, found, own, references) for part, own in zip(parts, lexical, strict=True)
    ]
    most = max(len(parts), MOST_PASSAGES if direct else MOST_PASSAGES_UNSURE)
    chosen: list[Quote] = []
    bodies = [candidate.terms for candidate in found]
    for part, scores in zip(parts, every, strict=True):
        _add(chosen, len(chosen) + 1, 0.0, part, scores, found)
    for part, scores in zip(parts, every, strict=True):
        _add(chosen, most, LEAST_OF_BEST * max(scores.values(), default=0.0), part, scores, found)
    if not direct or len(parts) > 1:
        return chosen
    shares = [
        _share(quote, parts[0], _rarity(parts[0].wanted, bodies), references) for quote in chosen
    ]
    documents = [_document(references[quote.item]) for quote in chosen]
    return [
        quote
        for quote, share, document in zip(chosen, shares, documents, strict=True)
        if document == documents[0] or share >= CARRIES * shares[0]
    ]


def _document(item: Item) -> str:
    return item.document_id or item.url or item.title


def _share(
    quote: Quote, part: QuestionPart, rarity: Mapping[str, float], references: Sequence[Item]
) -> float:
    """Return how much of the question's words a quotation and the headings above it have."""
    above = f"{references[quote.item].title} {quote.opens.heading} {quote.closes.heading}"
    return sum(rarity[term] for term in part.wanted.intersection(terms(f"{above} {quote.whole}")))


def _add(
    chosen: list[Quote],
    most: int,
    least: float,
    part: QuestionPart,
    scores: Mapping[int, float],
    found: Sequence[Candidate],
) -> None:
    """Add the best passages by `scores` until there are `most`."""
    for at in sorted(scores, key=lambda at: (-scores[at], found[at].item, found[at].place)):
        if len(chosen) >= most or scores[at] <= 0.0 or scores[at] < least:
            return
        if any(found[at].text in quote.whole for quote in chosen):
            continue
        if least and is_quoted_table(found[at], chosen):
            continue  # a row that was not good enough to be quoted with the best one of its table
        quote = passage(at, scores, part, found, chosen)
        if not any(repeats(quote, other) for other in chosen):
            chosen.append(quote)


def _scores(
    part: QuestionPart,
    found: Sequence[Candidate],
    lexical: Sequence[float],
    references: Sequence[Item],
) -> dict[int, float]:
    best = max((item.score * item.weight for item in references), default=0.0) or 1.0
    rarity = _rarity(part.wanted, [candidate.terms for candidate in found])
    scores: dict[int, float] = {}
    for at in range(len(found)):
        candidate = found[at]
        item = references[candidate.item]
        base = 1 - OF_WORDS + OF_WORDS * lexical[at]
        if candidate.continues and not candidate.place:
            base *= BROKEN
        if not any(lexical):
            base = 1 / (1 + candidate.place)  # no word in common: the first sentences
        rank = 1 / (1 + OF_RANK * candidate.item)
        fits = shape(
            candidate.sentence,
            part,
            item.title,
            announces=bool(announced(at, found)),
            leads=_is_leading(at, found),
        )
        scores[at] = (
            base
            * fits
            * rank
            * _heading_factor(candidate, item, rarity)
            * (1 - OF_ITEM + OF_ITEM * item.score * item.weight / best)
        )
    return scores


def _heading_factor(candidate: Candidate, item: Item, rarity: Mapping[str, float]) -> float:
    """Return 1 to 1 + OF_HEADING, by how far the heading matches the question."""
    heading = set(terms(candidate.sentence.heading or LEVEL.split(item.title)[-1]))
    shared = [rarity[term] for term in heading if term in rarity]
    whole = sum(rarity.values())
    return (
        1 + OF_HEADING * (len(shared) / len(heading) * sum(shared) / whole) ** 0.5
        if shared
        else 1.0
    )


def _is_leading(at: int, found: Sequence[Candidate]) -> bool:
    """Return whether a candidate is the first sentence below its heading, or of its item."""
    before, candidate = found[at - 1], found[at]
    return (
        at == 0
        or before.item != candidate.item
        or before.sentence.heading != candidate.sentence.heading
    )
