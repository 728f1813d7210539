"""A turn with a search and a tool whose trace is exported to a collector on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from pydantic import BaseModel

from groundhook import Identity, open_host
from groundhook.core.types.tools import Tool
from groundhook.host.output import trace_export
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Loopback, Reply, Sse, serving

QUESTION = "When is the pool open? Write to anna@example.com, password: hunter22"
CHAT = "chat-7"
KEY = "opensesame-7741"  # which the user types as well


class Room(BaseModel):
    number: int
    pin: str


def look(room: Room) -> dict[str, Any]:
    return {"room": room.number, "free": True, "door_code": "4711"}


@contextmanager
def collecting() -> Iterator[Loopback]:
    """A collector that is also the model: it calls a tool, and then answers."""
    # A busy machine takes longer to send the spans at the end than the product waits for.
    with serving() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_export, "LONGEST_CLOSE_S", 60.0)
        made.on("/v1/traces", Reply(b"", content_type="application/x-protobuf"))
        call = {"name": "look", "arguments": '{"number": 12, "pin": "9999"}'}
        called = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": call}]})
        made.on(
            "/v1/chat/completions",
            Sse([called, chunk(finish="tool_calls"), "[DONE]"]),
            Sse(answer("It opens ", "at nine.")),
        )
        yield made


async def exported(
    make_app: MakeApp, server: Loopback, tenant: str = "inn", **export: Any
) -> list[Any]:
    """The spans of a turn with a search and a tool, in the order of their beginnings."""
    settings = {"type": "otlp", "url": server.url, "headers": {"x-key": "$ENV.KEY"}, **export}
    connector = {"model": "test-model", "host": f"{server.url}/v1", "key": "sk-test", "retries": 0}
    package = {"name": "A", "connector": "gpt", "kb": {"collections": ["docs"]}}
    app: Path = make_app(
        {
            "agent/agent.yml": json.dumps({"trace": {"export": settings}}),
            "assistants/hotel/package.yao": json.dumps({**package, "search": {"kb": True}}),
            "kb/docs.kb.yao": '{"name": "Docs"}',
            "connectors/gpt.conn.yao": json.dumps({"type": "openai", "options": connector}),
        }
    )
    found = canned_item("k1", document_id="pool.md", title="Pool", content="Open at nine.")
    tool = Tool(name="look", description="Look at a room", arguments=Room, run=look)
    with anyio.fail_after(60):
        async with (
            open_host(
                app, environment={"KEY": KEY}, sources={"kb": CannedSource({"*": [found]})},
                tools=[tool],
            ) as host,
            host.stream(
                "hotel",
                f"{QUESTION} {KEY}",
                identity=Identity(user_id="anna", tenant_id=tenant),
                options={"chat_id": CHAT},
            ) as events,
        ):  # fmt: skip
            types = [event.type async for event in events]
    assert "error" not in types
    spans = [
        span
        for received in server.requests
        if received.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(received.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    return sorted(spans, key=lambda span: span.start_time_unix_nano)


def plain(value: AnyValue) -> Any:
    kind = str(value.WhichOneof("value"))
    if kind == "array_value":
        return [plain(each) for each in value.array_value.values]
    return getattr(value, kind)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: plain(each.value) for each in span.attributes}


def of_kind(spans: Sequence[Any], kind: str) -> list[dict[str, Any]]:
    return [each for span in spans if (each := attributes(span))["openinference.span.kind"] == kind]


def sent(server: Loopback) -> bytes:
    return b"".join(each.body for each in server.requests if each.path == "/v1/traces")
