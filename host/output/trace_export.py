"""Sends traces to an OTLP endpoint: one span for each step, with the attributes that products read
(`trace_names`). The only module that uses OpenTelemetry's SDK.

Spans wait in a bounded queue, which a thread of the SDK sends; a turn never waits for it. Spans
beyond its size are dropped. Without `content` a span has no texts but the names of models: no
questions, answers, labels, errors or people. With it, they are redacted first.
"""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode

from groundhook.core.app_settings import TraceExportSettings
from groundhook.core.trace import ExportStep, Traced
from groundhook.core.types.events import TraceNode
from groundhook.host.output.redaction import Redaction
from groundhook.host.output.trace_names import (
    KINDS,
    Attributes,
    bounded,
    content_attributes,
    kind_attributes,
    model_attributes,
    owner_attributes,
    text_of,
    token_attributes,
)

QUEUE = 2048  # spans that wait
LONGEST_CLOSE_S = 2.0


@dataclass(frozen=True, kw_only=True)
class _Service:
    """How a service receives traces: the variables that may hold its address, the address without
    them, the path there, and the headers by the environment."""

    address: Sequence[str] = ()
    default: str = ""
    path: str = "/v1/traces"
    headers: Callable[[Mapping[str, str]], dict[str, str]] = lambda _: {}


def _langsmith_headers(environment: Mapping[str, str]) -> dict[str, str]:
    project = environment.get("LANGSMITH_PROJECT")
    key = environment.get("LANGSMITH_API_KEY", "")
    return {"x-api-key": key, **({"Langsmith-Project": project} if project else {})}


def _langfuse_headers(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    pair = ":".join(environment.get(name, "") for name in names)
    return {
        "Authorization": f"Basic {b64encode(pair.encode()).decode()}",
        "x-langfuse-ingestion-version": "4",  # shows spans at once, not minutes later
    }


def _phoenix_headers(environment: Mapping[str, str]) -> dict[str, str]:
    key = environment.get("PHOENIX_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


SERVICES: Mapping[str, _Service] = {
    "otlp": _Service(),
    "langsmith": _Service(
        address=["LANGSMITH_ENDPOINT"],
        default="https://api.smith.langchain.com",
        path="/otel/v1/traces",
        headers=_langsmith_headers,
    ),
    "langfuse": _Service(
        address=["LANGFUSE_BASE_URL", "LANGFUSE_HOST"],
        default="https://cloud.langfuse.com",
        path="/api/public/otel/v1/traces",
        headers=_langfuse_headers,
    ),
    "phoenix": _Service(
        address=["PHOENIX_COLLECTOR_ENDPOINT"],
        default="http://localhost:6006",
        headers=_phoenix_headers,
    ),
}

# The host's other steps. All other types are named by hooks.
_OTHERS = frozenset(
    [
        "choose",
        "context",
        "coverage",
        "delegate",
        "dsl_build",
        "embedding_engine",
        "answer",
        "fetch",
        "hook",
        "http",
        "keywords",
        "memory_fetch",
        "merge",
        "model_try",
        "plan",
        "query_generation",
        "rerank_model",
        "rewrite",
        "summaries_page",
        "summary",
        "tools",
        "user_data",
        "split",
        "turns_beside",
        "vector_cache",
        "verify",
        "window",
    ]
)


class TraceExport:
    """The export of an open host. Calling it with a turn returns a function that records its
    steps."""

    def __init__(
        self, settings: TraceExportSettings, environment: Mapping[str, str], *, service: str
    ) -> None:
        self._content = settings.content
        self._redaction = Redaction(settings.redact)
        resource = {"service.name": service}
        if project := environment.get("PHOENIX_PROJECT_NAME"):
            resource["openinference.project.name"] = project
        self._provider = TracerProvider(
            resource=Resource.create(resource),
            # The default would keep 128: each message of a request takes two.
            span_limits=SpanLimits(max_span_attributes=2000),
        )
        exporter: SpanExporter = OTLPSpanExporter(
            endpoint=endpoint_of(settings, environment), headers=headers_of(settings, environment)
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=QUEUE))
        self._tracer = self._provider.get_tracer("groundhook")

    def __call__(self, traced: Traced, /) -> ExportStep:
        """Return a function that takes every change of a step of this turn or tool call. It does
        not block."""
        spans: dict[str, Span] = {}
        always: Attributes = {"groundhook.turn_id": traced.turn_id}
        if self._content:
            always |= owner_attributes(traced, self._redaction.id)

        def changed(node: TraceNode, noted: Mapping[str, Any]) -> None:
            span = spans.get(node.id)
            if span is None:
                span = spans[node.id] = self._begin(node, spans.get(node.parent), always)
            if node.status != "running":
                self._end(span, node, noted)
                del spans[node.id]

        return changed

    def close(self) -> None:
        """Send the waiting spans, for at most two seconds. Blocks."""
        # With its own default the SDK waits half a minute for an endpoint that does not answer.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(LONGEST_CLOSE_S)

    def _begin(self, node: TraceNode, parent: Span | None, always: Attributes) -> Span:
        name = node.type if _is_own(node) else "step"
        if self._content:
            label = "" if node.label == node.type else node.label
            name = self._redaction.text(f"{node.type} {label}".strip())
        span = self._tracer.start_span(
            name,
            context=None if parent is None else trace.set_span_in_context(parent),
            start_time=time.time_ns(),
            attributes={**always, **kind_attributes(node.type)},
        )
        assert isinstance(span, Span)
        return span

    def _end(self, span: Span, node: TraceNode, noted: Mapping[str, Any]) -> None:
        # Hooks choose the names of steps and details, which may contain texts: without `content`
        # only the host's own are sent.
        redact, field = self._redaction.value, self._redaction.field
        if self._content or _is_own(node):
            span.set_attributes({**token_attributes(node.data), **model_attributes(noted)})
            if model := noted.get("model"):
                span.update_name(f"{node.type} {model}")
            for name, value in node.data.items():
                if isinstance(value, bool | int | float):
                    span.set_attribute(f"groundhook.{name}", value)
                elif self._content:
                    span.set_attribute(f"groundhook.{name}", text_of(field(name, bounded(value))))
        if self._content:
            span.set_attributes(content_attributes(node.type, node.label, noted, redact))
        if node.status == "failed":
            reason = redact(str(node.data.get("error", ""))) if self._content else None
            span.set_status(Status(StatusCode.ERROR, reason))
        else:
            span.set_status(StatusCode.OK)  # Phoenix shows "Unset" without it
        span.end()


def endpoint_of(settings: TraceExportSettings, environment: Mapping[str, str]) -> str:
    """Return the whole address that traces are sent to."""
    service = SERVICES[settings.type]
    named = (environment[name] for name in service.address if environment.get(name))
    base = (settings.url or next(named, service.default)).rstrip("/")
    return base if base.endswith("/v1/traces") else f"{base}{service.path}"


def headers_of(settings: TraceExportSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request: those of the settings, and the service's own, whose keys
    come from its variables."""
    return {**SERVICES[settings.type].headers(environment), **settings.headers}


def _is_own(node: TraceNode) -> bool:
    return node.type in KINDS or node.type in _OTHERS
