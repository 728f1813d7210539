"""Sends traces to an OTLP endpoint: one span for each step, with the attributes of OpenTelemetry's
GenAI conventions, of OpenInference and of LangSmith. The only module that uses OpenTelemetry's SDK.

Spans wait in a bounded queue, which a thread of the SDK sends; a turn never waits for it. Spans
beyond its size are dropped. Without `content` a span has no texts: no questions, answers, labels or
errors.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode

from groundhook.core.app_settings import TraceExportSettings
from groundhook.core.types.events import TraceNode

QUEUE = 2048  # spans that wait
LONGEST_CLOSE_S = 2.0
LANGSMITH = "https://api.smith.langchain.com"
PATHS = {"otlp": "/v1/traces", "langsmith": "/otel/v1/traces"}

# Kind of each step: (GenAI operation, OpenInference kind, LangSmith kind). Others are chains.
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "turn": ("invoke_agent", "AGENT", "chain"),
    "agent": ("invoke_agent", "AGENT", "chain"),
    "llm": ("chat", "LLM", "llm"),
    "model": ("chat", "LLM", "llm"),
    "tool": ("execute_tool", "TOOL", "tool"),
    "mcp": ("execute_tool", "TOOL", "tool"),
    "search": ("retrieval", "RETRIEVER", "retriever"),
    "web_search": ("retrieval", "RETRIEVER", "retriever"),
    "vector_search": ("retrieval", "RETRIEVER", "retriever"),
    "graph_search": ("retrieval", "RETRIEVER", "retriever"),
    "db_query": ("retrieval", "RETRIEVER", "retriever"),
    "documents": ("retrieval", "RETRIEVER", "retriever"),
    "embedding": ("embeddings", "EMBEDDING", "embedding"),
    "rerank": ("rerank", "RERANKER", "chain"),
    "rank": ("rerank", "RERANKER", "chain"),
}
_CHAIN = ("", "CHAIN", "chain")
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
_TOKENS = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "completion_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
}


class TraceExport:
    """The export of an open host. Calling it with a turn's id returns a function that records its
    steps."""

    def __init__(
        self, settings: TraceExportSettings, environment: Mapping[str, str], *, service: str
    ) -> None:
        self._content = settings.content
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}))
        exporter: SpanExporter = OTLPSpanExporter(
            endpoint=endpoint_of(settings, environment), headers=headers_of(settings, environment)
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=QUEUE))
        self._tracer = self._provider.get_tracer("groundhook")

    def __call__(self, turn_id: str, /) -> Callable[[TraceNode], None]:
        """Return a function that takes every change of a node of this turn. It does not block."""
        spans: dict[str, Span] = {}

        def changed(node: TraceNode) -> None:
            span = spans.get(node.id)
            if span is None:
                span = spans[node.id] = self._begin(turn_id, node, spans.get(node.parent))
            if node.status != "running":
                self._end(span, node)
                del spans[node.id]

        return changed

    def close(self) -> None:
        """Send the waiting spans, for at most two seconds. Blocks."""
        # With its own default the SDK waits half a minute for an endpoint that does not answer.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(LONGEST_CLOSE_S)

    def _begin(self, turn_id: str, node: TraceNode, parent: Span | None) -> Span:
        operation, openinference, langsmith = _KINDS.get(node.type, _CHAIN)
        context = None if parent is None else trace.set_span_in_context(parent)
        span = self._tracer.start_span(
            f"{node.type} {node.label}".strip()
            if self._content
            else node.type
            if _is_own(node)
            else "step",
            context=context,
            start_time=time.time_ns(),
            attributes={
                "groundhook.turn_id": turn_id,
                "openinference.span.kind": openinference,
                "langsmith.span.kind": langsmith,
                **({"gen_ai.operation.name": operation} if operation else {}),
            },
        )
        assert isinstance(span, Span)
        return span

    def _end(self, span: Span, node: TraceNode) -> None:
        # Hooks choose the names of steps and details, which may contain texts: without `content`
        # only the host's own are sent.
        for name, value in node.data.items() if self._content or _is_own(node) else ():
            number = isinstance(value, bool | int | float)
            for attribute in _TOKENS.get(name, ()) if number else ():
                span.set_attribute(attribute, value)
            if number:
                span.set_attribute(f"groundhook.{name}", value)
            elif self._content:
                span.set_attribute(f"groundhook.{name}", _convert_to_text(value))
        if self._content and node.type in ("llm", "model") and "model" in node.data:
            span.set_attribute("gen_ai.response.model", str(node.data["model"]))
        if node.status == "failed":
            reason = str(node.data.get("error", "")) if self._content else None
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end()


def endpoint_of(settings: TraceExportSettings, environment: Mapping[str, str]) -> str:
    """Return the whole address that traces are sent to."""
    base = settings.url
    if settings.type == "langsmith":
        base = base or environment.get("LANGSMITH_ENDPOINT", LANGSMITH)
    path = PATHS[settings.type]
    base = base.rstrip("/")
    return base if base.endswith("/v1/traces") else f"{base}{path}"


def headers_of(settings: TraceExportSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request; LangSmith's key and project come from its variables."""
    headers = dict(settings.headers)
    if settings.type == "langsmith":
        headers.setdefault("x-api-key", environment.get("LANGSMITH_API_KEY", ""))
        if project := environment.get("LANGSMITH_PROJECT"):
            headers.setdefault("Langsmith-Project", project)
    return headers


def _is_own(node: TraceNode) -> bool:
    return node.type in _KINDS or node.type in _OTHERS


def _convert_to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
