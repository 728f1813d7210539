"""A summaries API on 127.0.0.1, and a language model that ranks what it is sent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback.chat import answer
from tests.loopback.server import Answer, Json, Loopback, Received, Sse, running

_SUMMARIES = re.compile(r"/protected/members/([^/]+)/summaries")
_SENT_ID = re.compile(r"^id: (.+)$", re.MULTILINE)


class Summaries(Loopback):
    """The API and the model in one server. `summaries` are those of every member. `faults` are
    answered in the place of a page, by its number, one after the other; `ranks` makes the model's
    text of the ids that it was sent; `model_faults` are answered before."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries: list[dict[str, Any]] = []
        self.key = ""
        self.faults: dict[int, list[Answer]] = {}
        self.model_faults: list[Answer] = []
        self.ranks: Callable[[Sequence[Any]], str] = lambda ids: json.dumps(
            {"documents": [{"id": id, "relevanceScore": 0.9} for id in ids]}
        )

    @property
    def pages(self) -> list[tuple[str, dict[str, str]]]:
        """The member and the query of each request for summaries."""
        found = []
        for received in list(self.requests):
            parts = urlsplit(received.path)
            if match := _SUMMARIES.fullmatch(parts.path):
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                found.append((unquote(match[1]), query))
        return found

    @property
    def prompts(self) -> list[Mapping[str, Any]]:
        """The bodies of the requests to the model."""
        return [one.json for one in list(self.requests) if one.path.endswith("/completions")]

    def answer(self, received: Received) -> Answer:
        parts = urlsplit(received.path)
        if _SUMMARIES.fullmatch(parts.path):
            return self._page(received, parse_qs(parts.query))
        if self.model_faults:
            return self.model_faults.pop(0)
        text = received.json["messages"][-1]["content"]
        ids = [json.loads(id) for id in _SENT_ID.findall(text)]
        return Sse(answer(self.ranks(ids)))

    def _page(self, received: Received, query: Mapping[str, list[str]]) -> Answer:
        if self.key and received.headers.get("x-api-key") != self.key:
            return Json({"error": "no"}, 401)
        index, size = int(query["pageIndex"][0]), int(query["pageSize"][0])
        if self.faults.get(index):
            return self.faults[index].pop(0)
        return Json(
            {
                "summaries": self.summaries[(index - 1) * size : index * size],
                "totalPages": math.ceil(len(self.summaries) / size),
                "totalRecords": len(self.summaries),
                "currentPage": index,
            }
        )


@contextmanager
def summaries() -> Iterator[Summaries]:
    """The server on a free port, on a thread of its own."""
    with running(Summaries()) as server:
        yield server
