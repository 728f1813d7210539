"""The gRPC calls of the loopback Qdrant server, as far as Groundhook makes them.

Each call is answered like the REST call of the same meaning, by the same `answer`: a scripted
failure applies here too, with the code that Qdrant uses for it, and the requests list the call by
its REST path. Calls need the key as over REST, except for the health check.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import grpc as rpc
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]
from qdrant_client import grpc, models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc, grpc_to_payload
from qdrant_client.grpc import collections_service_pb2, points_service_pb2, qdrant_pb2

from tests.loopback.qdrant import Qdrant
from tests.loopback.server import Hang, Received, Reply

Rest = tuple[str, str, Any]  # method, path, body

_CODES = {
    400: rpc.StatusCode.INVALID_ARGUMENT,
    401: rpc.StatusCode.UNAUTHENTICATED,
    403: rpc.StatusCode.PERMISSION_DENIED,
    404: rpc.StatusCode.NOT_FOUND,
    409: rpc.StatusCode.ALREADY_EXISTS,
    429: rpc.StatusCode.RESOURCE_EXHAUSTED,
    500: rpc.StatusCode.INTERNAL,
    503: rpc.StatusCode.UNAVAILABLE,
}
_SERVICES = {
    **points_service_pb2.DESCRIPTOR.services_by_name,
    **collections_service_pb2.DESCRIPTOR.services_by_name,
    **qdrant_pb2.DESCRIPTOR.services_by_name,
}


class _Door(rpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, server: Qdrant) -> None:
        self._server = server
        self.closing = threading.Event()

    def service(self, details: Any) -> Any:
        call = details.method.removeprefix("/qdrant.")
        if call == "Qdrant/HealthCheck":
            return _handler(
                call,
                lambda request, context: grpc.HealthCheckReply(title="qdrant", version="1.20.0"),
            )
        if call not in _CALLS:
            return None
        to_rest, to_reply = _CALLS[call]

        def serve(request: Any, context: Any) -> Any:
            method, path, body = to_rest(request)
            return to_reply(
                self._answer(
                    Received(method, path, dict(details.invocation_metadata), _json(body)), context
                )
            )

        return _handler(call, serve)

    def _answer(self, received: Received, context: Any) -> Any:
        self._server.requests.append(received)
        answer = self._server.answer(received)
        if isinstance(answer, Hang):
            left = threading.Event()
            context.add_callback(left.set)
            while not (left.wait(0.05) or self.closing.is_set()):
                pass
            received.left.set()
            context.abort(rpc.StatusCode.CANCELLED, "the client left")
        if not isinstance(answer, Reply):
            context.abort(rpc.StatusCode.UNAVAILABLE, "Socket closed")
            raise AssertionError("it raises")
        if answer.content_type != "application/json":
            context.abort(rpc.StatusCode.UNKNOWN, "Stream removed")
        body = json.loads(answer.body)
        if answer.status != 200:
            more = [
                (name.replace("_", "-").lower(), value) for name, value in answer.headers.items()
            ]
            context.set_trailing_metadata(more)
            context.abort(_CODES[answer.status], body["status"]["error"])
        return body["result"]


def _handler(call: str, serve: Callable[[Any, Any], Any]) -> Any:
    service, _, name = call.partition("/")
    described = _SERVICES[service].methods_by_name[name]
    return rpc.unary_unary_rpc_method_handler(
        serve,
        request_deserializer=GetMessageClass(described.input_type).FromString,
        response_serializer=GetMessageClass(described.output_type).SerializeToString,
    )


def _json(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


@contextmanager
def grpc_door(
    server: Qdrant, *, port: int = 0, tls: tuple[bytes, bytes] | None = None
) -> Iterator[int]:
    """Opens it on a port of its own, which is given, or on the one named. `tls`: private key and
    certificates, PEM."""
    door = _Door(server)
    # Reusing a port would let two tests' servers share it.
    serving = rpc.server(
        ThreadPoolExecutor(16, "grpc-door"), handlers=[door], options=[("grpc.so_reuseport", 0)]
    )
    if tls is None:
        bound = serving.add_insecure_port(f"127.0.0.1:{port}")
    else:
        bound = serving.add_secure_port(f"127.0.0.1:{port}", rpc.ssl_server_credentials([tls]))
    serving.start()
    server.grpc_port = bound
    try:
        yield bound
    finally:
        server.grpc_port = 0
        door.closing.set()
        serving.stop(None).wait()


# ---- from gRPC to REST


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="json", exclude_none=True)


def _under(request: Any, rest: str) -> str:
    return f"/collections/{quote(request.collection_name, safe='')}{rest}"


def _filter(request: Any) -> dict[str, Any]:
    return (
        {"filter": _dumped(GrpcToRest.convert_filter(request.filter))}
        if request.HasField("filter")
        else {}
    )


def _selected(request: Any) -> dict[str, Any]:
    """`with_payload`, `with_vector`."""
    return {
        "with_payload": GrpcToRest.convert_with_payload_selector(request.with_payload),
        "with_vector": GrpcToRest.convert_with_vectors_selector(request.with_vectors),
    }


def _create(request: Any) -> Rest:
    vectors: Any = GrpcToRest.convert_vectors_config(request.vectors_config)
    sparse = GrpcToRest.convert_sparse_vector_config(request.sparse_vectors_config)
    body = {
        "vectors": {name: _dumped(one) for name, one in vectors.items()},
        "sparse_vectors": {name: _dumped(one) for name, one in sparse.items()},
        "shard_number": request.shard_number,
        "replication_factor": request.replication_factor,
    }
    if request.HasField("quantization_config"):
        body["quantization_config"] = _dumped(
            GrpcToRest.convert_quantization_config(request.quantization_config)
        )
    return "PUT", _under(request, ""), body


def _index(request: Any) -> Rest:
    if request.HasField("field_index_params"):
        schema = _dumped(GrpcToRest.convert_payload_schema_params(request.field_index_params))
    else:
        schema = grpc.FieldType.Name(request.field_type).removeprefix("FieldType").lower()
    return (
        "PUT",
        _under(request, "/index?wait=true"),
        {"field_name": request.field_name, "field_schema": schema},
    )


def _upsert(request: Any) -> Rest:
    points = []
    for point in request.points:
        vectors: Any = GrpcToRest.convert_vectors(point.vectors)
        named = {
            name: one if isinstance(one, list) else _dumped(one) for name, one in vectors.items()
        }
        points.append(
            {
                "id": GrpcToRest.convert_point_id(point.id),
                "vector": named,
                "payload": grpc_to_payload(point.payload),
            }
        )
    return "PUT", _under(request, "/points?wait=true"), {"points": points}


def _scroll(request: Any) -> Rest:
    after = (
        {"offset": GrpcToRest.convert_point_id(request.offset)}
        if request.HasField("offset")
        else {}
    )
    return (
        "POST",
        _under(request, "/points/scroll"),
        {"limit": request.limit, **after, **_selected(request), **_filter(request)},
    )


def _facet(request: Any) -> Rest:
    body = {"key": request.key, "limit": request.limit, "exact": request.exact, **_filter(request)}
    return "POST", _under(request, "/facet"), body


def _delete(request: Any) -> Rest:
    return (
        "POST",
        _under(request, "/points/delete?wait=true"),
        _dumped(GrpcToRest.convert_points_selector(request.points)),
    )


def _set(request: Any) -> Rest:
    selected = _dumped(GrpcToRest.convert_points_selector(request.points_selector))
    return (
        "POST",
        _under(request, "/points/payload?wait=true"),
        {"payload": grpc_to_payload(request.payload), **selected},
    )


def _updates(request: Any) -> Rest:
    operations = []
    for one in request.operations:
        selected = _dumped(GrpcToRest.convert_points_selector(one.set_payload.points_selector))
        operations.append(
            {"set_payload": {"payload": grpc_to_payload(one.set_payload.payload), **selected}}
        )
    return "POST", _under(request, "/points/batch?wait=true"), {"operations": operations}


def _get(request: Any) -> Rest:
    return (
        "POST",
        _under(request, "/points"),
        {"ids": [GrpcToRest.convert_point_id(id) for id in request.ids], **_selected(request)},
    )


def _batch(request: Any) -> Rest:
    searches = [_dumped(GrpcToRest.convert_query_points(one)) for one in request.query_points]
    return "POST", _under(request, "/points/query/batch"), {"searches": searches}


def _aliases(request: Any) -> Rest:
    actions = [_dumped(GrpcToRest.convert_alias_operations(action)) for action in request.actions]
    return "POST", "/collections/aliases", {"actions": actions}


# ---- from REST to gRPC


def _record(raw: Any) -> Any:
    return RestToGrpc.convert_record(models.Record(**{**raw, "payload": raw["payload"] or {}}))


def _scored(raw: Any) -> Any:
    return RestToGrpc.convert_scored_point(models.ScoredPoint(**raw))


def _done(_result: Any) -> Any:
    return grpc.PointsOperationResponse(
        result=grpc.UpdateResult(operation_id=0, status=grpc.UpdateStatus.Completed)
    )


def _yes(result: Any) -> Any:
    return grpc.CollectionOperationResponse(result=result)


def _scrolled(result: Any) -> Any:
    after = result["next_page_offset"]
    next = (
        {} if after is None else {"next_page_offset": RestToGrpc.convert_extended_point_id(after)}
    )
    return grpc.ScrollResponse(result=[_record(one) for one in result["points"]], **next)


def _counted(result: Any) -> Any:
    return grpc.FacetResponse(
        hits=[
            RestToGrpc.convert_facet_value_hit(models.FacetValueHit(**hit))
            for hit in result["hits"]
        ]
    )


def _answers(result: Any) -> Any:
    return grpc.QueryBatchResponse(
        result=[
            grpc.BatchResult(result=[_scored(point) for point in one["points"]]) for one in result
        ]
    )


def _listed(result: Any) -> Any:
    return grpc.ListCollectionsResponse(
        collections=[grpc.CollectionDescription(**one) for one in result["collections"]]
    )


_CALLS: dict[str, tuple[Callable[[Any], Rest], Callable[[Any], Any]]] = {
    "Collections/List": (lambda request: ("GET", "/collections", None), _listed),
    "Collections/ListAliases": (
        lambda request: ("GET", "/aliases", None),
        lambda result: grpc.ListAliasesResponse(
            aliases=[grpc.AliasDescription(**one) for one in result["aliases"]]
        ),
    ),
    "Collections/UpdateAliases": (_aliases, _yes),
    "Collections/Create": (_create, _yes),
    "Collections/Delete": (lambda request: ("DELETE", _under(request, ""), None), _yes),
    "Points/Delete": (_delete, _done),
    "Points/CreateFieldIndex": (_index, _done),
    "Points/DeleteFieldIndex": (
        lambda request: ("DELETE", _under(request, f"/index/{request.field_name}"), None),
        _done,
    ),
    "Points/Upsert": (_upsert, _done),
    "Points/SetPayload": (_set, _done),
    "Points/UpdateBatch": (
        _updates,
        lambda result: grpc.UpdateBatchResponse(result=[_done(one).result for one in result]),
    ),
    "Points/Get": (_get, lambda result: grpc.GetResponse(result=[_record(one) for one in result])),
    "Points/Scroll": (_scroll, _scrolled),
    "Points/QueryBatch": (_batch, _answers),
    "Points/Count": (
        lambda request: ("POST", _under(request, "/points/count"), _filter(request)),
        lambda result: grpc.CountResponse(result=grpc.CountResult(**result)),
    ),
    "Points/Facet": (_facet, _counted),
}
