"""The search of one collection for those who keep it: what a question finds and what not, and why,
with the scores of each passage by meaning and by words apart. Everything is of the caller's
tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response

from groundhook.core.types.base import Value
from groundhook.core.types.search import Item
from groundhook.core.types.standings import Standing, Standings
from groundhook.host.server import request_body
from groundhook.host.server.api.knowledge import json_answer, spec_of, tenant_of
from groundhook.host.server.problems import Refused
from groundhook.host.server.serving import Call

MOST_SEARCHED = 200  # passages that are looked through for an expected document
MOST_LEFT_OUT = 10  # passages that are shown although they were not found

_Cut = Literal["", "threshold", "limit"]


class KnowledgeSearch(Value):
    """A question to one collection."""

    query: str = Field(min_length=1, max_length=4000, description="The question")
    limit: int = Field(default=10, ge=1, le=100, description="Most passages")
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Least similarity; default: that of the app"
    )
    expect: str = Field(
        default="", max_length=1000, description="Id of a document: why is it not found?"
    )


async def search(call: Call) -> Response:
    """Return the passages that a question finds, those that come next, and why an expected document
    is not among the first."""
    id = call.request.path_params["collection"]
    tenant = tenant_of(call, id)
    wanted = request_body.validate_strictly(KnowledgeSearch, await call.json())
    await call.serving.limits.count("turns", call.caller.owner)
    host = call.serving.host
    standings = await host.kb.standings(
        id, wanted.query, tenant, page=wanted.limit, most=MOST_SEARCHED
    )
    least = _threshold(call, id, wanted, standings)
    found, certainty = await _find(call, id, wanted, least)
    reasons = _Reasons({item.key for item in found}, standings, least, wanted.limit)
    expected = reasons.best_of(wanted.expect)
    why = ""
    if wanted.expect and all(item.document_id != wanted.expect for item in found):
        known = expected or await host.kb.existing_ids(id, [wanted.expect], tenant=tenant or "")
        why = reasons.why_not(expected) if known else "it is not in this collection"
    return json_answer(
        {
            "passages": [reasons.found_row(item) for item in found],
            "left_out": [reasons.row(each) for each in reasons.left_out()[:MOST_LEFT_OUT]],
            "certainty": certainty,
            "threshold": least,
            "by_words": standings.by_words,
            "expected": reasons.row(expected) if expected else None,
            "why": why,
        }
    )


def _threshold(call: Call, collection: str, wanted: KnowledgeSearch, standings: Standings) -> float:
    """Return the threshold that a search of the collection has."""
    if standings.guessed:
        return 0.0
    usual = call.serving.host.settings().search.kb.threshold
    given = (wanted.threshold, spec_of(call, collection).threshold, usual)
    return next(value for value in given if value is not None)


async def _find(
    call: Call, collection: str, wanted: KnowledgeSearch, threshold: float
) -> tuple[Sequence[Item], str | None]:
    """Return passages, best first, and how certain the search is. Raises Refused for a search that
    fails."""
    request = {
        "type": "kb",
        "query": wanted.query,
        "collections": [collection],
        "limit": wanted.limit,
        "threshold": threshold,
    }
    result = await call.serving.host.search(request, identity=call.caller.identity)
    if result.error is not None:
        raise Refused("storage", "the search failed", hint="the log of the server has the reason")
    return result.items, result.certainty


@dataclass(frozen=True)
class _Reasons:
    """Why passages were not found by a search with a threshold and a limit. `found` are the keys of
    those that were."""

    found: set[str]
    standings: Standings
    threshold: float
    limit: int

    def left_out(self) -> list[Standing]:
        """Return the passages that were not found, in their order."""
        return [each for each in self.standings.passages if each.key not in self.found]

    def best_of(self, document: str) -> Standing | None:
        """Return the best passage of a document, found or not."""
        return next((each for each in self.standings.passages if each.document == document), None)

    def found_row(self, item: Item) -> Mapping[str, Any]:
        """Return a passage that was found, with its scores."""
        extent = item.extent
        standing = (each for each in self.standings.passages if each.key == item.key)
        return {
            "document": item.document_id,
            "title": item.title,
            "content": item.content,
            "score": item.score,
            "start": extent.start if extent else None,
            "end": extent.end if extent else None,
            **_scores(next(standing, None)),
        }

    def row(self, passage: Standing) -> Mapping[str, Any]:
        """Return a passage with its scores and with what left it out."""
        return {
            "document": passage.document,
            "title": passage.title,
            "content": passage.content,
            "start": passage.start,
            "end": passage.end,
            **_scores(passage),
            "cut": self._cut(passage),
        }

    def why_not(self, best: Standing | None) -> str:
        """Return why a document was not found, given its best passage. That another tenant has it
        is not said."""
        if best is None:
            return (
                f"it is not among the first {len(self.standings.passages)} passages, whatever their"
                " similarity"
            )
        if self._cut(best) == "threshold":
            return (
                f"below the threshold {self.threshold:.2f}: its best passage has {best.meaning:.2f}"
            )
        return f"its best passage has place {best.place}, and {self.limit} are shown"

    def _cut(self, passage: Standing) -> _Cut:
        if passage.key in self.found:
            return ""
        return "threshold" if passage.meaning < self.threshold else "limit"


def _scores(passage: Standing | None) -> Mapping[str, Any]:
    """Return the scores of a passage; none for one that only a graph leads to."""
    names = ("place", "meaning", "meaning_place", "words", "words_place")
    return {name: getattr(passage, name, None) for name in names}
