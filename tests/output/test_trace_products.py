"""A turn with a search and a tool, as LangSmith, Langfuse and Phoenix show it: a collector on this
machine receives the spans and reads them by the tables of names in each product's documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from groundhook.core.app_settings import TraceExportSettings
from groundhook.host.output.redaction import Redaction
from groundhook.host.output.trace_export import endpoint_of, headers_of
from tests.conftest import MakeApp
from tests.loopback.server import Loopback
from tests.parts.exported_traces import CHAT, attributes, collecting, exported, of_kind, sent


@pytest.fixture
def server() -> Iterator[Loopback]:
    with collecting() as made:
        yield made


def nested(found: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """A list that OpenInference flattens: `<prefix>.<n>.<name>`."""
    entries: dict[int, dict[str, Any]] = {}
    for name, value in found.items():
        if name.startswith(f"{prefix}."):
            number, _, rest = name.removeprefix(f"{prefix}.").partition(".")
            entries.setdefault(int(number), {})[rest] = value
    return [entries[number] for number in sorted(entries)]


def parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


# ---------------------------------------------------------------------------------------- LangSmith


def langsmith(found: Mapping[str, Any]) -> dict[str, Any]:
    """A run, by "Supported OpenTelemetry attribute and event mapping": inputs and outputs are those
    of OpenInference or the messages of GenAI, which must not differ."""
    run: dict[str, Any] = {
        "name": found.get("langsmith.trace.name"),
        "run_type": found["langsmith.span.kind"],
        "inputs": parsed(found.get("input.value")),
        "outputs": parsed(found.get("output.value")),
        "metadata": {
            name.removeprefix("langsmith.metadata."): value
            for name, value in found.items()
            if name.startswith("langsmith.metadata.")
        },
        "invocation_params": {"model": found.get("gen_ai.request.model")},
        "usage_metadata": {
            side: found.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output", "total")
        },
    }
    run["metadata"]["ls_provider"] = found.get("gen_ai.system")
    run["metadata"]["ls_model_name"] = found.get("llm.model_name")
    documents = nested(found, "retrieval.documents")
    if documents:
        assert [each["document.content"] for each in documents] == [
            each["page_content"] for each in run["outputs"]["documents"]
        ]
    if "gen_ai.input.messages" in found:
        roles = [each["role"] for each in json.loads(found["gen_ai.input.messages"])]
        assert roles == [each["role"] for each in run["inputs"]["messages"]]
    return run


async def test_langsmith_shows_threads_runs_messages_documents_and_tools(
    server: Loopback, make_app: MakeApp
) -> None:
    spans = await exported(make_app, server, content=True)
    [root] = [langsmith(each) for each in of_kind(spans, "AGENT")]
    assert (root["name"], root["run_type"]) == ("hotel", "chain")
    assert root["inputs"].startswith("When is the pool open?")
    assert root["outputs"] == "It opens at nine."
    # A thread is made of runs with the same `session_id` in their metadata.
    assert {langsmith(attributes(span))["metadata"]["session_id"] for span in spans} == {
        "inn/chat-7"
    }
    assert root["metadata"]["user_id"] == "inn/anna"
    first, second = (langsmith(each) for each in of_kind(spans, "LLM"))
    assert first["run_type"] == "llm"
    assert first["metadata"]["ls_provider"] == "openai"
    assert first["metadata"]["ls_model_name"] == first["invocation_params"]["model"] == "test-model"
    [reply] = first["outputs"]["messages"]
    called = reply["tool_calls"][0]["function"]
    assert (called["name"], json.loads(called["arguments"])["number"]) == ("look", 12)
    assert [each["role"] for each in second["inputs"]["messages"]][-2:] == ["assistant", "tool"]
    assert second["outputs"]["messages"] == [{"role": "assistant", "content": "It opens at nine."}]
    assert second["usage_metadata"] == {"input": 7, "output": 3, "total": 10}
    [search] = [langsmith(each) for each in of_kind(spans, "RETRIEVER")]
    assert search["run_type"] == "retriever"
    [document] = search["outputs"]["documents"]
    assert (document["page_content"], document["metadata"]["id"]) == ("Open at nine.", "pool.md")
    [tool] = [langsmith(each) for each in of_kind(spans, "TOOL")]
    assert (tool["run_type"], tool["inputs"]["number"]) == ("tool", 12)
    assert tool["outputs"]["free"] is True


# ----------------------------------------------------------------------------------------- Langfuse


def langfuse(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An observation, by "Property mapping" and the precedence of its server: own names, then
    `input.value` and `output.value` together, then the messages of GenAI."""
    own = {side: found.get(f"langfuse.observation.{side}") for side in ("input", "output")}
    values = {side: found.get(f"{side}.value") for side in ("input", "output")}
    messages = {side: found.get(f"gen_ai.{side}.messages") for side in ("input", "output")}
    shown = next((each for each in (own, values, messages) if any(each.values())), own)
    kinds = {"LLM": "GENERATION", "CHAIN": "CHAIN", "AGENT": "AGENT", "TOOL": "TOOL"}
    kinds |= {"RETRIEVER": "RETRIEVER", "EMBEDDING": "EMBEDDING"}
    return {
        "type": kinds.get(found["openinference.span.kind"], "SPAN"),
        "name": found.get("gen_ai.tool.name", name),
        "traceName": found.get("langfuse.trace.name"),
        "sessionId": found.get("langfuse.session.id", found.get("session.id")),
        "userId": found.get("langfuse.user.id", found.get("user.id")),
        "model": found.get("gen_ai.response.model") or found.get("gen_ai.request.model"),
        "usageDetails": {
            name.removeprefix("gen_ai.usage."): value
            for name, value in found.items()
            if name.startswith("gen_ai.usage.")
        },
        **{side: parsed(value) for side, value in shown.items()},
    }


async def test_langfuse_shows_sessions_users_generations_retrievals_and_tools(
    server: Loopback, make_app: MakeApp
) -> None:
    spans = await exported(make_app, server, content=True)
    seen = [langfuse(attributes(span), span.name) for span in spans]
    assert {(each["sessionId"], each["userId"]) for each in seen} == {("inn/chat-7", "inn/anna")}
    [root] = [each for each in seen if each["type"] == "AGENT"]
    assert root["traceName"] == "hotel"
    assert root["output"] == "It opens at nine."
    first, second = (each for each in seen if each["type"] == "GENERATION")
    assert first["input"]["messages"][-1]["role"] == "user"
    assert first["output"]["messages"][0]["tool_calls"][0]["id"] == "c1"
    assert (second["model"], second["usageDetails"]) == (
        "test-model",
        {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    )
    [search] = [each for each in seen if each["type"] == "RETRIEVER"]
    assert search["input"].startswith("When is the pool open?")
    assert search["output"]["documents"][0]["page_content"] == "Open at nine."
    [tool] = [each for each in seen if each["type"] == "TOOL"]
    assert (tool["name"], tool["input"]["number"], tool["output"]["room"]) == ("look", 12, 12)


# ------------------------------------------------------------------------------------------ Phoenix


async def test_phoenix_shows_sessions_messages_documents_and_tools_of_openinference(
    server: Loopback, make_app: MakeApp
) -> None:
    spans = await exported(make_app, server, content=True)
    assert {attributes(span)["session.id"] for span in spans} == {"inn/chat-7"}
    assert {attributes(span)["user.id"] for span in spans} == {"inn/anna"}
    [root] = of_kind(spans, "AGENT")
    assert (root["output.value"], root["output.mime_type"]) == ("It opens at nine.", "text/plain")
    assert {span.status.code for span in spans} == {Status.STATUS_CODE_OK}
    assert [span.name for span in spans].count("model test-model") == 2
    first, second = of_kind(spans, "LLM")
    assert (first["llm.model_name"], first["llm.provider"], first["llm.system"]) == (
        "test-model",
        "openai",
        "openai",
    )
    [reply] = nested(first, "llm.output_messages")
    assert reply["message.tool_calls.0.tool_call.function.name"] == "look"
    *_, result = nested(second, "llm.input_messages")
    assert (result["message.role"], result["message.tool_call_id"]) == ("tool", "c1")
    [reply] = nested(second, "llm.output_messages")
    assert (reply["message.role"], reply["message.content"]) == ("assistant", "It opens at nine.")
    assert second["llm.token_count.prompt"] == 7
    assert second["llm.token_count.completion"] == 3
    assert second["llm.token_count.total"] == 10
    [search] = of_kind(spans, "RETRIEVER")
    [document] = nested(search, "retrieval.documents")
    assert document["document.id"] == "pool.md"
    assert document["document.content"] == "Open at nine."
    assert document["document.score"] == 0.5
    assert json.loads(document["document.metadata"])["title"] == "Pool"
    [tool] = of_kind(spans, "TOOL")
    assert (tool["tool.name"], json.loads(tool["tool.parameters"])["number"]) == ("look", 12)


# -------------------------------------------------------------------------------- what is not sent


async def test_without_content_models_and_tokens_are_sent_and_no_text_and_no_person(
    server: Loopback, make_app: MakeApp
) -> None:
    spans = await exported(make_app, server)
    for text in ("pool", "nine", "anna", CHAT, "look", "hotel"):
        assert text.encode() not in sent(server)
    _, second = of_kind(spans, "LLM")
    assert second["gen_ai.request.model"] == second["llm.model_name"] == "test-model"
    assert second["gen_ai.provider.name"] == "openai"
    assert second["gen_ai.usage.input_tokens"] == 7


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mail a.b+c@mail.example.com now", "mail [email] now"),
        ('{"api_key": "two words", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
        ('{"cookie": 12345678}', '{"cookie": "[redacted]"}'),
        ("?access_token=abc&page=2", "?access_token=[redacted]&page=2"),
        ("Authorization: Basic dTpw, x", "Authorization: [redacted], x"),
        ("use sk-proj-abcdef0123456789 here", "use [key] here"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln", "[key]"),
        ("https://me:pw@db.example/x", "https://[redacted]@db.example/x"),
        ("max_tokens: 5, the secretary", "max_tokens: 5, the secretary"),
        ("see docs/a_b.md@v1", "see docs/a_b.md@v1"),
    ],
)
def test_texts_lose_addresses_keys_and_named_secrets(text: str, redacted: str) -> None:
    assert Redaction().text(text) == redacted


def test_an_id_that_is_an_address_of_e_mail_gets_a_name_that_stays_the_same() -> None:
    redaction = Redaction()
    assert redaction.id("inn/anna") == "inn/anna"
    hidden = redaction.id("anna@example.com")
    assert "anna" not in hidden
    assert hidden == redaction.id("anna@example.com") != redaction.id("ben@example.com")


def test_langfuse_and_phoenix_are_reached_by_their_variables() -> None:
    langfuse = TraceExportSettings(type="langfuse")
    variables = {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    base = "https://cloud.langfuse.com/api/public/otel/v1/traces"
    assert endpoint_of(langfuse, variables) == base
    assert headers_of(langfuse, variables)["Authorization"] == "Basic cGs6c2s="
    own = {"LANGFUSE_BASE_URL": "http://localhost:3000"}
    assert endpoint_of(langfuse, own) == "http://localhost:3000/api/public/otel/v1/traces"
    phoenix = TraceExportSettings(type="phoenix")
    assert endpoint_of(phoenix, {}) == "http://localhost:6006/v1/traces"
    assert headers_of(phoenix, {}) == {}
    assert headers_of(phoenix, {"PHOENIX_API_KEY": "k"}) == {"Authorization": "Bearer k"}
