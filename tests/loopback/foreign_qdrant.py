"""A Qdrant server on 127.0.0.1 with collections of another program: the REST calls that only read,
over the official client's own engine (its local mode)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from qdrant_client import QdrantClient, models

from tests.loopback.server import Answer, Json, Loopback, Received, running


class ForeignQdrant(Loopback):
    """`client` makes and fills the collections, as the other program does."""

    def __init__(self, key: str = "") -> None:
        super().__init__()
        self.key = key
        self.client = QdrantClient(":memory:")
        self._lock = threading.Lock()

    def written(self) -> list[str]:
        """The requests that are no reads."""
        reads = ("/points/query/batch", "/points/scroll", "/points/count", "/facet")
        paths = [(each.method, each.path.partition("?")[0]) for each in self.requests]
        return [
            f"{method} {path}"
            for method, path in paths
            if method != "GET" and not path.endswith(reads)
        ]

    def answer(self, received: Received) -> Answer:
        if self.key and received.headers.get("api-key") != self.key:
            return Json({"status": {"error": "Must provide an API key"}, "time": 0.0}, 401)
        parts = [unquote(part) for part in received.path.partition("?")[0].strip("/").split("/")]
        with self._lock:
            found = self._do(received.method, parts, received.json if received.body else {})
        if isinstance(found, str):
            return Json({"status": {"error": found}, "time": 0.0}, 404)
        return Json({"result": found, "status": "ok", "time": 0.0})

    def _do(self, method: str, parts: list[str], body: Any) -> Any:
        if parts == ["collections"]:
            return self.client.get_collections().model_dump(mode="json")
        name = parts[1]
        if not self.client.collection_exists(name):
            return f"Not found: Collection `{name}` doesn't exist!"
        wanted = models.Filter(**body["filter"]) if body.get("filter") else None
        match parts[2:]:
            case [] if method == "GET":
                return self.client.get_collection(name).model_dump(mode="json")
            case ["points", "query", "batch"]:
                requests = [models.QueryRequest(**one) for one in body["searches"]]
                found = self.client.query_batch_points(name, requests)
                return [each.model_dump(mode="json") for each in found]
            case ["points", "scroll"]:
                page, after = self.client.scroll(
                    name,
                    wanted,
                    limit=body["limit"],
                    offset=body.get("offset"),
                    with_vectors=body.get("with_vector", False),
                )
                points = [record.model_dump(mode="json") for record in page]
                return {"points": points, "next_page_offset": after}
            case ["points", "count"]:
                return self.client.count(name, wanted).model_dump(mode="json")
            case ["facet"]:
                counted = self.client.facet(name, body["key"], wanted, limit=body["limit"])
                return counted.model_dump(mode="json")
        return f"no such call: {method} {'/'.join(parts)}"


@contextmanager
def foreign_qdrant(*, key: str = "") -> Iterator[ForeignQdrant]:
    server = ForeignQdrant(key)
    with running(server) as served:
        yield served
