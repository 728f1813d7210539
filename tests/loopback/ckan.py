"""A CKAN portal on 127.0.0.1: `package_search` with q, fq, sort, start and rows as the service
answers it, and the ways in which portals misbehave."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback.server import Answer, Json, Loopback, Received, running

SEARCH = "/api/3/action/package_search"
_RANGE = re.compile(r"metadata_modified:\[(\S+) TO \*\]")
_FIELDS = ("id", "name", "metadata_modified")


class Ckan(Loopback):
    """The portal. `packages` are what it has, by id. `most_rows` caps a page, as portals do; a page
    without a sort is ordered by the latest change, as CKAN's default is. `refuses` are fields that
    it cannot sort by, `ignores_sort`: it takes no notice of any. `drops_filter`: a proxy removes
    `fq`; `answers_filter_with` that number of packages, whatever the filter. `miscounts` is added
    to every count. `faults` are answered first, one after the other; `touched` is called with the
    number of pages before each page is read."""

    def __init__(self) -> None:
        super().__init__()
        self.packages: dict[str, dict[str, Any]] = {}
        self.most_rows = 1000
        self.key = ""
        self.refuses: set[str] = set()
        self.ignores_sort = False
        self.drops_filter = False
        self.answers_filter_with: int | None = None
        self.miscounts = 0
        self.faults: list[Answer] = []
        self.fault_from_page = 0
        self.touched: Callable[[int], object] = lambda _: None
        self.pages = 0

    def add(self, package: Mapping[str, Any]) -> None:
        self.packages[package["id"]] = dict(package)

    @property
    def searches(self) -> list[dict[str, str]]:
        """The queries of the searches that arrived, in order."""
        return [
            _query(received) for received in self.requests if urlsplit(received.path).path == SEARCH
        ]

    def answer(self, received: Received) -> Answer:
        if urlsplit(received.path).path != SEARCH:
            return Json({"detail": "Not found"}, 404)
        query = _query(received)
        rows = min(int(query.get("rows", "10")), self.most_rows)
        if rows > 1:
            self.pages += 1
            self.touched(self.pages)
        if self.faults and (self.pages > self.fault_from_page or not self.fault_from_page):
            return self.faults.pop(0)
        if self.key and received.headers.get("authorization") != self.key:
            return _error("Authorization Error", "Access denied", 403)
        field, _, direction = query.get("sort", "").partition(" ")
        if field in self.refuses or (field and field not in _FIELDS):
            return _error("Search Query Error", f"Cannot sort on field {field}", 409)
        found = list(self._filtered(query.get("fq", "")))
        if self.ignores_sort or not field:
            found.sort(key=lambda package: (package["metadata_modified"], package["id"]))
            found.reverse()
        else:
            found.sort(key=lambda package: package[field], reverse=direction == "desc")
        start = int(query.get("start", "0"))
        total = len(found) + self.miscounts
        if query.get("fq") and self.answers_filter_with is not None:
            found, total = [], self.answers_filter_with
        page = found[start : start + rows]
        return Json(
            {
                "help": f"{self.url}/api/3/action/help_show?name=package_search",
                "success": True,
                "result": {
                    "count": total,
                    "facets": {},
                    "results": page,
                    "sort": query.get("sort", "score desc, metadata_modified desc"),
                    "search_facets": {},
                },
            }
        )

    def _filtered(self, fq: str) -> Iterator[dict[str, Any]]:
        match = None if self.drops_filter else _RANGE.search(fq)
        since = match[1].rstrip("Z") if match else ""
        for package in list(self.packages.values()):
            if package["metadata_modified"] >= since:
                yield package


def _query(received: Received) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(received.path).query).items()}


def _error(kind: str, message: str, status: int) -> Answer:
    body = {"help": "…", "success": False, "error": {"__type": kind, "message": message}}
    return Json(body, status)


def package(number: int, **more: Any) -> dict[str, Any]:
    """A small package in CKAN's shape, with a CSV file and a PDF."""
    id = f"{number:08x}-0000-4000-8000-{number:012x}"
    minute, second = divmod(number, 60)
    return {
        "id": id,
        "name": f"dataset-{number}",
        "title": f"Dataset {number}",
        "notes": f"Figures of series {number}.",
        "state": "active",
        "private": False,
        "metadata_modified": f"2026-01-01T{minute // 60 % 24:02}:{minute % 60:02}:{second:02}.000000",
        "organization": {"id": "o1", "name": "statistics", "title": "Office of Statistics"},
        "tags": [{"name": "figures", "display_name": "figures"}],
        "resources": [
            {
                "id": f"{id}-r{n}",
                "name": f"File {n} of {number}",
                "description": "",
                "format": format,
                "url": f"https://files.example.org/{number}/{n}.{format.lower()}",
            }
            for n, format in enumerate(("CSV", "PDF"))
        ],
        **more,
    }


@contextmanager
def ckan(number: int = 0) -> Iterator[Ckan]:
    """A portal with so many packages."""
    portal = Ckan()
    for each in range(number):
        portal.add(package(each))
    with running(portal) as server:
        yield server
