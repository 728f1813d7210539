"""The names under which products read a step of a trace: those of OpenTelemetry's GenAI
conventions, of OpenInference (Phoenix), and the own ones of Langfuse and LangSmith. Pure.

Where two products read one name, the value is of the form that both show. Langfuse and LangSmith
take `input.value` and `output.value` before any messages, so those of a model have all messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from groundhook.core.ports import Finished, ToolDelta
from groundhook.core.trace import Traced
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Message

Attribute = str | bool | int | float | Sequence[str]
Attributes = dict[str, Attribute]
Redact = Callable[[Any], Any]  # of `Redaction.value`

LONGEST = 16_000  # characters of one text
MOST_CHARACTERS = 48_000  # of the messages of one request; the newest are kept
MOST_DOCUMENTS = 50
CUT = " [cut]"  # at the end of a text that goes on

# Kind of each step: (GenAI operation, OpenInference kind, LangSmith kind). Others are chains.
KINDS: Mapping[str, tuple[str, str, str]] = {
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
    "attached_search": ("retrieval", "RETRIEVER", "retriever"),
    "db_query": ("retrieval", "RETRIEVER", "retriever"),
    "documents": ("retrieval", "RETRIEVER", "retriever"),
    "embedding": ("embeddings", "EMBEDDING", "embedding"),
    "rerank": ("rerank", "RERANKER", "chain"),
    "rank": ("rerank", "RERANKER", "chain"),
}
_CHAIN = ("", "CHAIN", "chain")


class _Answer(Protocol):
    """The answer of a model, as far as it has arrived (`host.turn.draft`)."""

    @property
    def text(self) -> str: ...
    @property
    def calls(self) -> Sequence[ToolDelta]: ...
    @property
    def finished(self) -> Finished | None: ...


def kind_attributes(type: str) -> Attributes:
    """Return the kind of a step."""
    operation, openinference, langsmith = KINDS.get(type, _CHAIN)
    return {
        "openinference.span.kind": openinference,
        "langsmith.span.kind": langsmith,
        **({"gen_ai.operation.name": operation} if operation else {}),
    }


def model_attributes(noted: Mapping[str, Any]) -> Attributes:
    """Return what a model's step has without any content: provider, model as the app's files name
    them, and tokens."""
    found: Attributes = {}
    if provider := noted.get("provider"):
        for name in ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"):
            found[name] = provider
    if model := noted.get("model"):
        for name in ("gen_ai.request.model", "llm.model_name"):
            found[name] = model
    answer: _Answer | None = noted.get("answer")
    if answer is not None and answer.finished is not None:
        found |= token_attributes(answer.finished.usage.model_dump())
    return found


def token_attributes(data: Mapping[str, Any]) -> Attributes:
    """Return the numbers of tokens under their names."""
    names = {
        "prompt_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        "completion_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
        "total_tokens": ("gen_ai.usage.total_tokens", "llm.token_count.total"),
    }
    return {
        attribute: data[name]
        for name, attributes in names.items()
        if isinstance(data.get(name), int) and data[name]  # 0: the service did not count
        for attribute in attributes
    }


def owner_attributes(traced: Traced, id: Callable[[str], str]) -> Attributes:
    """Return the conversation and the person that every step belongs to. `id` redacts theirs."""
    found: Attributes = {}
    if traced.session:
        for name in ("session.id", "gen_ai.conversation.id", "langsmith.metadata.session_id"):
            found[name] = id(traced.session)
    if traced.user:
        for name in ("user.id", "langsmith.metadata.user_id"):
            found[name] = id(traced.user)
    return found


def content_attributes(
    type: str, label: str, noted: Mapping[str, Any], redact: Redact
) -> Attributes:
    """Return the texts of a step: what went in and what came out, redacted and cut."""
    found: Attributes = {}
    if type == "turn":
        for name in ("gen_ai.agent.name", "langfuse.trace.name", "langsmith.trace.name"):
            found[name] = redact(label)
    if tool := noted.get("tool"):
        found["gen_ai.tool.name"] = found["tool.name"] = redact(tool)
    if call_id := noted.get("call_id"):
        found["gen_ai.tool.call.id"] = redact(call_id)
    if "messages" in noted:
        return found | _of_model(noted["messages"], noted.get("answer"), redact)
    if "input" in noted:
        given = redact(bounded(noted["input"]))
        found |= _value("input", given)
        if tool:
            found["gen_ai.tool.call.arguments"] = found["tool.parameters"] = _json(given)
        if "documents" in noted:
            found["gen_ai.retrieval.query.text"] = text_of(given)
    if "documents" in noted:
        return found | _of_documents(noted["documents"][:MOST_DOCUMENTS], redact)
    if noted.get("output") is not None:
        given = redact(bounded(noted["output"]))
        found |= _value("output", given)
        if tool:
            found["gen_ai.tool.call.result"] = text_of(given)
    return found


# ------------------------------------------------------------------------------------------- models


def _of_model(messages: Sequence[Message], answer: _Answer | None, redact: Redact) -> Attributes:
    asked = [_wire(message, redact) for message in _newest(messages)]
    found = _messages("input", asked, finish="")
    if answer is None:
        return found
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]
    reply = Message(role="assistant", content=answer.text, tool_calls=calls or None)
    reason = answer.finished.finish_reason if answer.finished else ""
    found |= _messages("output", [_wire(reply, redact)], finish=reason or "error")
    if answer.finished is not None:
        found["gen_ai.response.finish_reasons"] = [reason]
        if answer.finished.model:
            found["gen_ai.response.model"] = redact(answer.finished.model)
    return found


def _newest(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the system message and the newest others, within MOST_CHARACTERS."""
    kept: list[Message] = []
    left = MOST_CHARACTERS
    for message in reversed(messages):
        left -= min(LONGEST, 64 + len(message.text))
        if left < 0:
            break
        kept.append(message)
    if messages and messages[0].role == "system" and messages[0] not in kept[-1:]:
        kept.append(messages[0])
    return kept[::-1]


def _wire(message: Message, redact: Redact) -> dict[str, Any]:
    """Return a message in the form of OpenAI's API, with a word in the place of each image and
    file."""
    others = [
        f"[{part.get('type')}]"
        for part in (() if isinstance(message.content, str) else message.content or ())
        if part.get("type") != "text"
    ]
    text = redact(_cut(message.text))
    wire: dict[str, Any] = {"role": message.role, "content": "\n".join([text, *others]).strip()}
    if message.tool_call_id:
        wire["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": str(call.get("id", "")),
                "type": "function",
                "function": {
                    "name": str(called.get("name", "")),
                    "arguments": redact(_cut(str(called.get("arguments", "")))),
                },
            }
            for call in message.tool_calls
            for called in [call.get("function") or {}]
        ]
    return wire


def _messages(side: str, wires: Sequence[Mapping[str, Any]], *, finish: str) -> Attributes:
    """Return messages under the names of both conventions; `finish` is the reason of an answer."""
    ending = {"finish_reason": finish} if finish else {}
    parts = [{"role": wire["role"], "parts": _parts(wire), **ending} for wire in wires]
    found: Attributes = {
        f"gen_ai.{side}.messages": _json(parts),
        **_value(side, {"messages": list(wires)}),
    }
    for number, wire in enumerate(wires):
        place = f"llm.{side}_messages.{number}.message"
        found[f"{place}.role"] = wire["role"]
        found[f"{place}.content"] = wire["content"]
        if "tool_call_id" in wire:
            found[f"{place}.tool_call_id"] = wire["tool_call_id"]
        for index, call in enumerate(wire.get("tool_calls", ())):
            called = f"{place}.tool_calls.{index}.tool_call"
            found[f"{called}.id"] = call["id"]
            found[f"{called}.function.name"] = call["function"]["name"]
            found[f"{called}.function.arguments"] = call["function"]["arguments"]
    return found


def _parts(wire: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message in the form of the GenAI conventions."""
    if "tool_call_id" in wire:
        return [
            {
                "type": "tool_call_response",
                "id": wire["tool_call_id"],
                "response": wire["content"],
            }
        ]
    text = [{"type": "text", "content": wire["content"]}] if wire["content"] else []
    return text + [
        {
            "type": "tool_call",
            "id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in wire.get("tool_calls", ())
    ]


# ---------------------------------------------------------------------------------------- documents


def _of_documents(items: Sequence[Item], redact: Redact) -> Attributes:
    # LangSmith shows the output of a retriever in this form, as `outputs.documents`.
    shown = [
        {
            "page_content": redact(_cut(item.content)),
            "metadata": redact(
                {
                    name: value
                    for name, value in (
                        ("id", _id(item)),
                        ("title", item.title),
                        ("url", item.url),
                        ("score", item.score),
                        ("type", item.type),
                    )
                    if value
                }
            ),
            "type": "Document",
        }
        for item in items
    ]
    found = _value("output", {"documents": shown})
    found["gen_ai.retrieval.documents"] = _json(
        [{"id": redact(_id(item)), "score": item.score} for item in items]
    )
    for number, (item, document) in enumerate(zip(items, shown, strict=True)):
        place = f"retrieval.documents.{number}.document"
        found[f"{place}.id"] = redact(_id(item))
        found[f"{place}.content"] = document["page_content"]
        found[f"{place}.score"] = item.score
        found[f"{place}.metadata"] = _json(document["metadata"])
    return found


def _id(item: Item) -> str:
    return item.document_id or item.url or item.key or item.citation_id


# -------------------------------------------------------------------------------------------- texts


def _value(side: str, value: Any) -> Attributes:
    text = text_of(value)
    whole = not isinstance(value, str) and not text.endswith(CUT)
    return {
        f"{side}.value": text,
        f"{side}.mime_type": "application/json" if whole else "text/plain",
    }


def text_of(value: Any) -> str:
    """Return a value as text, of at most 2 * MOST_CHARACTERS."""
    return _cut(value) if isinstance(value, str) else _cut(_json(value), 2 * MOST_CHARACTERS)


def bounded(value: Any, left: list[int] | None = None) -> Any:
    """Return JSON whose texts are cut, and have at most MOST_CHARACTERS together."""
    left = [MOST_CHARACTERS] if left is None else left
    if isinstance(value, str):
        cut = _cut(value, max(0, min(LONGEST, left[0])))
        left[0] -= len(cut)
        return cut
    left[0] -= 8  # of a number, a comma, a bracket
    if isinstance(value, Mapping):
        return {
            bounded(str(name), left): bounded(each, left)
            for name, each in value.items()
            if left[0] > 0
        }
    if isinstance(value, list | tuple):
        return [bounded(each, left) for each in value if left[0] > 0]
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[:longest] + CUT
