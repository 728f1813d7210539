"""A Qdrant server on 127.0.0.1, as far as Groundhook speaks to one: its REST calls over shards of
the embedded engine, so that what is found is what Qdrant finds. It keeps its collections in a
folder and may be stopped and started again over it.

`fails(ending, *answers)` lets the next requests to paths that end so be answered otherwise;
`fails_after` any one to come.
"""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import qdrant_edge as engine

from tests.loopback.server import Answer, Json, Loopback, Received, Reply, running

_SCHEMAS: Mapping[str, Callable[[], Any]] = {
    "keyword": engine.KeywordIndexParams,
    "bool": engine.BoolIndexParams,
    "integer": engine.IntegerIndexParams,
    "float": engine.FloatIndexParams,
    "datetime": engine.DatetimeIndexParams,
    "text": engine.TextIndexParams,
}


class Failed(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Qdrant(Loopback):
    def __init__(self, folder: Path, *, key: str = "") -> None:
        super().__init__()
        self.key = key
        self.grpc_port = 0  # of its other door, see `qdrant_grpc`, while that is open
        self.made: dict[str, Any] = {}  # what each collection was created with
        self._folder = folder
        self._shards: dict[str, engine.EdgeShard] = {}
        self._failing: list[tuple[str, Answer]] = []
        self._failing_at: tuple[int, Answer] | None = None
        self._losing: tuple[str, str, int, Reply] | None = None
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.is_dir():
                self._shards[unquote(path.name)] = engine.EdgeShard.load(str(path))
        saved = folder / "aliases.json"
        self.aliases: dict[str, str] = json.loads(saved.read_text()) if saved.exists() else {}

    def stop(self) -> None:
        for shard in self._shards.values():
            shard.close()
        self._shards.clear()

    def fails(self, ending: str, *answers: Answer) -> None:
        self._failing += [(ending, answer) for answer in answers]

    def fails_after(self, requests: int, answer: Answer) -> None:
        """The request after so many more is answered otherwise."""
        self._failing_at = (len(self.requests) + requests + 1, answer)

    def loses(self, method: str, ending: str, after: int, answer: Reply) -> None:
        """The request of that kind after so many more is done, and answered otherwise."""
        self._losing = (method, ending, after, answer)

    def paths(self) -> list[str]:
        return [
            f"{received.method} {received.path.partition('?')[0]}" for received in self.requests
        ]

    def answer(self, received: Received) -> Answer:
        path = received.path.partition("?")[0]
        if self._failing_at is not None and len(self.requests) == self._failing_at[0]:
            return self._failing_at[1]
        for planned in self._failing:
            if path.endswith(planned[0]):
                self._failing.remove(planned)
                return planned[1]
        if self.key and received.headers.get("api-key") != self.key:
            return Json({"status": {"error": "Must provide an API key"}, "time": 0.0}, 401)
        try:
            with self._lock:
                result = self._do(
                    received.method,
                    [unquote(part) for part in path.strip("/").split("/")],
                    received,
                )
        except Failed as exc:
            return Json({"status": {"error": str(exc)}, "time": 0.0}, exc.status)
        return self._lost(received.method, path) or Json(
            {"result": result, "status": "ok", "time": 0.0}
        )

    def _lost(self, method: str, path: str) -> Reply | None:
        if self._losing is None or self._losing[0] != method or not path.endswith(self._losing[1]):
            return None
        method, ending, after, answer = self._losing
        self._losing = (method, ending, after - 1, answer) if after else None
        return None if after else answer

    def _do(self, method: str, parts: list[str], received: Received) -> Any:
        body = json.loads(received.body) if received.body else {}
        match method, parts:
            case "GET", ["collections"]:
                return {"collections": [{"name": name} for name in sorted(self._shards)]}
            case "GET", ["aliases"]:
                return {
                    "aliases": [
                        {"alias_name": alias, "collection_name": name}
                        for alias, name in self.aliases.items()
                    ]
                }
            case "POST", ["collections", "aliases"]:
                return self._alias(body["actions"])
            case "PUT", ["collections", name]:
                return self._create(name, body)
            case "DELETE", ["collections", name]:
                return self._drop(name)
            case "DELETE", ["collections", name, "index", field]:
                return self._update(
                    self._shard(name), engine.UpdateOperation.delete_field_index(field)
                )
            case "PUT", ["collections", name, "index"]:
                return self._index(self._shard(name), body)
            case "POST", ["collections", name, "facet"]:
                wanted = made_filter(body.get("filter"))
                request = engine.FacetRequest(
                    body["key"], body.get("limit", 10), body.get("exact", False), wanted
                )
                return {
                    "hits": [
                        {"value": hit.value, "count": hit.count}
                        for hit in self._shard(name).facet(request).hits
                    ]
                }
            case _, ["collections", name, "points", *rest]:
                return self._points(self._shard(name), method, "/".join(rest), body)
        raise Failed(404, f"no such call: {method} {'/'.join(parts)}")

    # ---- collections

    def _shard(self, name: str) -> engine.EdgeShard:
        found = self._shards.get(self.aliases.get(name, name))
        if found is None:
            raise Failed(404, f"Not found: Collection `{name}` doesn't exist!")
        return found

    def _create(self, name: str, body: Any) -> bool:
        if name in self._shards or name in self.aliases:
            raise Failed(409, f"Wrong input: Collection `{name}` already exists!")
        vectors = {
            key: engine.EdgeVectorParams(one["size"], engine.Distance.Cosine)
            for key, one in body["vectors"].items()
        }
        sparse = {
            key: engine.EdgeSparseVectorParams(
                (one.get("index") or {}).get("full_scan_threshold"), modifier=engine.Modifier.Idf
            )
            for key, one in body["sparse_vectors"].items()
        }
        path = self._folder / name
        path.mkdir()
        self._shards[name] = engine.EdgeShard.create(
            str(path), engine.EdgeConfig(vectors=vectors, sparse_vectors=sparse)
        )
        self.made[name] = body
        return True

    def _drop(self, name: str) -> bool:
        if name not in self._shards:
            return False
        self._shards.pop(name).close()
        shutil.rmtree(self._folder / name)
        self._save({alias: behind for alias, behind in self.aliases.items() if behind != name})
        return True

    def _alias(self, actions: list[Any]) -> bool:
        aliases = dict(self.aliases)
        for action in actions:
            if "delete_alias" in action:
                if aliases.pop(action["delete_alias"]["alias_name"], None) is None:
                    raise Failed(
                        404,
                        f"Not found: Alias {action['delete_alias']['alias_name']} does not exists!",
                    )
            else:
                made = action["create_alias"]
                if made["collection_name"] not in self._shards:
                    raise Failed(
                        404, f"Not found: Collection `{made['collection_name']}` doesn't exist!"
                    )
                aliases[made["alias_name"]] = made["collection_name"]
        self._save(aliases)
        return True

    def _save(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        (self._folder / "aliases.json").write_text(json.dumps(aliases))

    def _index(self, shard: engine.EdgeShard, body: Any) -> Any:
        schema = body["field_schema"]
        kind = schema if isinstance(schema, str) else schema["type"]
        options = (
            {}
            if isinstance(schema, str)
            else {key: value for key, value in schema.items() if key != "type"}
        )
        shard.update(
            engine.UpdateOperation.create_field_index(body["field_name"], _SCHEMAS[kind](**options))
        )
        return _DONE

    # ---- points

    def _points(self, shard: engine.EdgeShard, method: str, call: str, body: Any) -> Any:
        match method, call:
            case "PUT", "":
                points = [
                    engine.Point(one["id"], _vectors(one["vector"]), one.get("payload"))
                    for one in body["points"]
                ]
                return self._update(shard, engine.UpdateOperation.upsert_points(points))
            case "POST", "delete":
                if "filter" in body:
                    return self._update(
                        shard,
                        engine.UpdateOperation.delete_points_by_filter(made_filter(body["filter"])),
                    )
                return self._update(shard, engine.UpdateOperation.delete_points(body["points"]))
            case "POST", "payload":
                operation = engine.UpdateOperation.set_payload_by_filter(
                    made_filter(body["filter"]), body["payload"]
                )
                return self._update(shard, operation)
            case "POST", "batch":
                return [
                    self._points(shard, "POST", "payload", one["set_payload"])
                    for one in body["operations"]
                ]
            case "POST", "":
                records = shard.retrieve(
                    body["ids"], body.get("with_payload", True), body.get("with_vector", False)
                )
                return [_record(record) for record in records]
            case "POST", "scroll":
                return self._scroll(shard, body)
            case "POST", "query/batch":
                requests = [engine.QueryRequest(**_query(one)) for one in body["searches"]]
                return [
                    {"points": [_record(point) for point in self._query(shard, request)]}
                    for request in requests
                ]
            case "POST", "count":
                return {
                    "count": shard.count(engine.CountRequest(True, made_filter(body.get("filter"))))
                }
        raise Failed(404, f"no such call: {method} points/{call}")

    def _query(
        self, shard: engine.EdgeShard, request: engine.QueryRequest
    ) -> list[engine.ScoredPoint]:
        try:
            return shard.query(request)
        except Exception as exc:
            if type(exc) is not Exception:
                raise
            raise Failed(400, f"Wrong input: {exc}") from exc

    def _update(self, shard: engine.EdgeShard, operation: Any) -> Any:
        try:
            shard.update(operation)
        except Exception as exc:
            if type(exc) is not Exception:
                raise
            raise Failed(400, f"Wrong input: {exc}") from exc
        return _DONE

    def _scroll(self, shard: engine.EdgeShard, body: Any) -> Any:
        page, after = shard.scroll(
            engine.ScrollRequest(
                offset=body.get("offset"),
                limit=body.get("limit", 10),
                filter=made_filter(body.get("filter")),
                with_payload=body.get("with_payload", True),
                with_vector=body.get("with_vector", False),
            )
        )
        return {
            "points": [_record(record) for record in page],
            "next_page_offset": None if after is None else str(after),
        }


_DONE = {"operation_id": 0, "status": "completed"}


def _vectors(vectors: Any) -> dict[str, Any]:
    return {name: _vector(one) for name, one in vectors.items()}


def _vector(one: Any) -> Any:
    return engine.SparseVector(one["indices"], one["values"]) if isinstance(one, dict) else one


def _record(record: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": str(record.id), "payload": record.payload}
    if record.vector is not None:
        shown["vector"] = {
            name: {"indices": list(one.indices), "values": list(one.values)}
            if isinstance(one, engine.SparseVector)
            else one
            for name, one in record.vector.items()
        }
    if isinstance(record, engine.ScoredPoint):
        shown |= {"version": record.version, "score": record.score}
    return shown


def _query(body: Any) -> dict[str, Any]:
    made = {
        "limit": body.get("limit", 10),
        "filter": made_filter(body.get("filter")),
        "params": _params(body.get("params")),
    }
    query = body["query"]
    if isinstance(query, dict) and "nearest" in query:
        query = query["nearest"]
    made["query"] = engine.Query.Nearest(_vector(query), using=body["using"])
    if "score_threshold" in body:
        made["score_threshold"] = body["score_threshold"]
    if "with_payload" in body:
        made["with_payload"] = body["with_payload"]
    if "with_vector" in body:
        made["with_vector"] = body["with_vector"]
    prefetch = body.get("prefetch")
    if prefetch:
        many = prefetch if isinstance(prefetch, list) else [prefetch]
        made["prefetches"] = [engine.Prefetch(**_query(one)) for one in many]
    return made


def _params(body: Any) -> engine.SearchParams | None:
    if not body:
        return None
    idf = body.get("idf")
    corpus = engine.IdfParams(corpus=made_filter(idf["corpus"])) if idf else None
    return engine.SearchParams(
        idf=corpus, exact=body.get("exact", False), hnsw_ef=body.get("hnsw_ef")
    )


def made_filter(body: Any) -> Any:
    """A filter of the REST interface as the engine's."""
    if not body:
        return None
    clauses: dict[str, Any] = {}
    for clause in ("must", "should", "must_not"):
        conditions = body.get(clause)
        if conditions:
            many = conditions if isinstance(conditions, list) else [conditions]
            clauses[clause] = [_condition(one) for one in many]
    return engine.Filter(**clauses)


def _condition(body: Any) -> Any:
    if "has_id" in body:
        return engine.HasIdCondition(set(body["has_id"]))
    if "is_empty" in body:
        return engine.IsEmptyCondition(body["is_empty"]["key"])
    if "is_null" in body:
        return engine.IsNullCondition(body["is_null"]["key"])
    if "key" not in body:
        return made_filter(body)
    if "range" in body:
        bounds = {name: value for name, value in body["range"].items() if value is not None}
        text = any(isinstance(value, str) for value in bounds.values())
        made = engine.RangeDateTime(**bounds) if text else engine.RangeFloat(**bounds)
        return engine.FieldCondition(body["key"], range=made)
    match = body["match"]
    kinds: dict[str, Any] = {
        "value": engine.MatchValue,
        "any": engine.MatchAny,
        "except": engine.MatchExcept,
        "text": engine.MatchText,
    }
    [(kind, value)] = match.items()
    return engine.FieldCondition(body["key"], match=kinds[kind](value))


@contextmanager
def qdrant(
    folder: Path, *, key: str = "", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Qdrant]:
    """A server over a folder, on a port of its own or on the one named."""
    server = Qdrant(folder, key=key)
    server.port, server.tls = port, tls
    try:
        with running(server) as served:
            yield served
    finally:
        server.stop()
