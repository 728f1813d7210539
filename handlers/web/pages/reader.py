"""What is done with a fetched page in a process of its own (`core.readers.pool`): its passage for a
question, and the rules of its site's robots.txt.

Choice of the part of a page that answers a question, by the question's words alone, since it
must be fast. Pure.

A page is split into passages of whole lines. A passage scores the sum over the question's terms of
idf · tf/(tf + 1). The idf is computed over the page's own passages (Robertson and Spärck Jones'
weights, as in BM25), so that words on every line count little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.handlers.web.pages import extract

SIZE = 1200  # characters of a passage; the best one is returned with neighbours up to twice that
MAX_LINE = 600  # characters; longer lines are split

_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def best_passage(text: str, query: str) -> str:
    """Return at most 2 · SIZE characters of the text around its best passage for the query; "" if
    no passage has one of the query's words."""
    passages = split_passages(text)
    wanted = terms(query)
    counted = [Counter(terms(passage)) for passage in passages]
    values = [_score(wanted, counts, counted) for counts in counted]
    best = max(range(len(passages)), key=lambda at: values[at], default=0)
    if not passages or values[best] <= 0:
        return ""
    first = last = best
    while True:
        near = [at for at in (first - 1, last + 1) if 0 <= at < len(passages)]
        near = [
            at
            for at in near
            if sum(map(len, passages[min(at, first) : max(at, last) + 1])) <= 2 * SIZE
        ]
        if not near:
            return "\n".join(passages[first : last + 1])
        at = max(near, key=lambda at: values[at])
        first, last = min(at, first), max(at, last)


def split_passages(text: str) -> list[str]:
    """Split a text into passages of at most SIZE characters: whole lines, and pieces of lines
    beyond MAX_LINE."""
    passages: list[str] = []
    for line in text.split("\n"):
        for piece in _pieces(line.strip()):
            if passages and len(passages[-1]) + len(piece) < SIZE:
                passages[-1] += f"\n{piece}"
            else:
                passages.append(piece)
    return passages


def terms(text: str) -> list[str]:
    """Return the words of a text, casefolded and without endings, and pairs of ideographs, which
    are written without spaces between words."""
    result: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _IDEOGRAPHS.fullmatch(word):
            result += [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
        else:
            result.append(word[: max(4, len(word) - 2)] if word.isalpha() else word)
    return result


def _score(wanted: Sequence[str], counts: Counter[str], passages: Sequence[Counter[str]]) -> float:
    """Return the score of a passage with the term counts `counts` among the `passages` of the
    page."""
    value = 0.0
    for term in set(wanted):
        if counts[term]:
            having = sum(1 for other in passages if other[term])
            value += (
                math.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
                * counts[term]
                / (counts[term] + 1)
            )
    return value


def _pieces(line: str) -> list[str]:
    """Split a line beyond MAX_LINE into pieces, at spaces where possible."""
    pieces: list[str] = []
    while len(line) > MAX_LINE:
        at = line.rfind(" ", MAX_LINE // 2, MAX_LINE)
        at = at if at > 0 else MAX_LINE
        pieces.append(line[:at].strip())
        line = line[at:].strip()
    return [*pieces, line] if line else pieces


warm = extract.warm


def read_page(body: bytes, media_type: str, charset: str, query: str | None) -> dict[str, Any]:
    """Return {title, passage, published, characters} of a page; the passage is the whole text if
    `query` is None. Raises IngestError for a page that cannot be read."""
    page = extract.extract_page(body, media_type, charset)
    passage = page.text if query is None else best_passage(page.text, query)
    return {
        "title": page.title,
        "passage": passage,
        "published": page.published,
        "characters": len(page.text),
    }


def is_allowed(rules: str, agent: str, url: str) -> bool:
    """Return whether a robots.txt allows a page."""
    with extra("web", "reading pages", IngestError):
        from protego import Protego

    return bool(Protego.parse(rules).can_fetch(url, agent))
