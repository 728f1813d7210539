"""Traces sent to an OTLP endpoint on this machine."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from groundhook import ConfigError, open_host
from groundhook.core.app_settings import TraceExportSettings
from groundhook.core.trace import Traced
from groundhook.core.types.events import TraceNode
from groundhook.host.output import trace_export
from groundhook.host.output.trace_export import TraceExport, endpoint_of, headers_of
from groundhook.host.server.process import write_logs
from tests.conftest import MakeApp
from tests.loopback.server import Hang, Json, Loopback, Reply, serving

PATH = "/v1/traces"
SECRET = "zebras in the attic"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    # A busy machine takes longer to send the spans at the end than the product waits for.
    monkeypatch.setattr(trace_export, "LONGEST_CLOSE_S", 60.0)
    with serving() as made:
        made.on(PATH, Reply(b"", content_type="application/x-protobuf"))
        yield made


def app(make_app: MakeApp, url: str, **keys: Any) -> Path:
    export = {"type": "otlp", "url": url, "headers": {"x-key": "$ENV.KEY"}, **keys}
    return make_app(
        {
            "agent/agent.yml": json.dumps({"trace": {"export": export}}),
            "assistants/a/package.yao": '{"name": "A", "connector": "says"}',
            "connectors/says.conn.yao": (
                '{"type": "scripted", "options": {"script": [{"text": "No.", "times": 0}]}}'
            ),
        }
    )


async def turn(folder: Path) -> None:
    async with (
        open_host(folder, environment={"KEY": "sesame"}) as host,
        host.stream("a", SECRET) as events,
    ):
        async for _ in events:
            pass


def spans(server: Loopback) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for received in server.requests:
        request = ExportTraceServiceRequest.FromString(received.body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                found |= {span.name.partition(" ")[0]: span for span in scope.spans}
    return found


def attributes(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


async def test_each_step_is_a_span_under_its_parent_with_the_attributes_of_three_conventions(
    server: Loopback, make_app: MakeApp
) -> None:
    await turn(app(make_app, server.url))
    found = spans(server)
    assert {"turn", "model"} <= set(found)
    assert found["turn"].parent_span_id == b""
    assert found["model"].trace_id == found["turn"].trace_id
    assert attributes(found["model"])["gen_ai.operation.name"] == "chat"
    assert attributes(found["model"])["openinference.span.kind"] == "LLM"
    assert attributes(found["model"])["langsmith.span.kind"] == "llm"
    assert server.requests[0].headers["x-key"] == "sesame"


async def test_no_text_is_sent_unless_content_is_switched_on(
    server: Loopback, make_app: MakeApp
) -> None:
    await turn(app(make_app, server.url))
    assert not any(SECRET.encode() in received.body for received in server.requests)


async def test_with_content_labels_and_details_are_sent(
    server: Loopback, make_app: MakeApp
) -> None:
    await turn(app(make_app, server.url, content=True))
    names = {span.name for span in spans(server).values()}
    assert "turn a" in names


def test_every_step_of_the_host_keeps_its_name_without_content(server: Loopback) -> None:
    root = Path(__file__).parents[2]
    files = [
        file
        for part in ("core", "host", "handlers", "toolkits")
        for file in (root / part).rglob("*.py")
    ]
    steps = {
        name
        for file in files
        for name in re.findall(r'\bspan\(\s*"(\w+)"', file.read_text(encoding="utf-8"))
    }
    steps.remove("log")  # of hooks
    assert len(steps) > 20
    export = TraceExport(TraceExportSettings(type="otlp", url=server.url), {}, service="test")
    record = export(Traced(turn_id="turn-1"))
    for name in steps:
        record(TraceNode(id=name, type=name, status="completed"), {})
    export.close()
    assert spans(server).keys() == steps


@pytest.mark.parametrize("fault", [Hang(), Json({}, 500), Json({}, 401)])
async def test_an_endpoint_that_fails_costs_no_turn_anything(
    server: Loopback, make_app: MakeApp, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_export, "LONGEST_CLOSE_S", 0.05)
    server.on(PATH, fault)
    with anyio.fail_after(60):
        await turn(app(make_app, server.url))


@pytest.fixture
def logs_put_back() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("groundhook", "uvicorn.error", "opentelemetry")]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


async def test_a_key_that_the_endpoint_refuses_is_in_the_log_of_the_server(
    server: Loopback,
    make_app: MakeApp,
    capsys: pytest.CaptureFixture[str],
    logs_put_back: None,
) -> None:
    write_logs(debug=False)
    server.on(PATH, Json({}, 401))
    with anyio.fail_after(60):
        await turn(app(make_app, server.url))
    assert "batch code: 401, reason: Unauthorized" in capsys.readouterr().err


async def test_an_address_is_needed(make_app: MakeApp) -> None:
    with pytest.raises(ConfigError, match="set url"):
        await turn(app(make_app, ""))


def test_langsmith_is_reached_by_its_variables() -> None:
    settings = TraceExportSettings(type="langsmith")
    variables = {"LANGSMITH_API_KEY": "k", "LANGSMITH_PROJECT": "p"}
    assert endpoint_of(settings, variables) == "https://api.smith.langchain.com/otel/v1/traces"
    assert headers_of(settings, variables) == {"x-api-key": "k", "Langsmith-Project": "p"}
    own = {"LANGSMITH_ENDPOINT": "https://smith.example"}
    assert endpoint_of(settings, own) == "https://smith.example/otel/v1/traces"
