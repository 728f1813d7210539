"""Reads the messages of a request of OpenAI's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.errors import NotSupported, UsageError
from groundhook.core.types.attached import data_url
from groundhook.core.types.turn import Message
from groundhook.host.output.dialects.literal import without_citations
from groundhook.host.output.dialects.openwebui import question_and_documents, without_attached
from groundhook.host.server import request_body
from groundhook.host.server.problems import WrongRequest

_READ = ("role", "content", "tool_calls", "tool_call_id")


@dataclass
class ReadConversation:
    """The messages that are read so far with their paths in the request, the paths of what is
    ignored, and the ids of calls of the client's tools whose results have not come."""

    messages: list[Message] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    hears: bool = False  # whether a model of the assistant reads audio
    result_key: str = "tool_call_id"  # the key of a result in the request
    _open: dict[str, str] = field(default_factory=dict)  # paths of calls by id

    @staticmethod
    def of(
        given: Sequence[Mapping[str, Any]],
        system: str,
        *,
        hears: bool = False,
        openwebui: bool = False,
        items: Sequence[Sequence[str]] = (),
        result_key: str = "tool_call_id",
    ) -> ReadConversation:
        """Return the conversation of a request. A client's system message becomes the user's,
        unless the settings allow it, because it would outrank the assistant's prompts. Audio is
        refused unless a model `hears` it. Of `openwebui` the list of attached files is omitted,
        and its documents are a file. `items` are the paths of the parts of the request of which
        each message was made: its own, and those of its calls. Raises UsageError, NotSupported."""
        made = ReadConversation(hears=hears, result_key=result_key)
        for n, each in enumerate(given):
            paths = items[n] if items else (f"messages[{n}]",)
            made._add(_of_openwebui(each) if openwebui else each, paths, system)
        made._require_results()
        return made

    def _add(self, each: Mapping[str, Any], paths: Sequence[str], system: str) -> None:
        where = paths[0]
        role, content = each.get("role"), each.get("content")
        fields: dict[str, Any] = {"role": role, "content": content}
        if role != "tool":
            self._require_results()
        if role in ("system", "developer"):
            if system == "drop":
                self.ignored.append(where)
                return
            fields["role"] = system
        elif role == "tool":
            fields["tool_call_id"] = self._result_of(each, where)
        elif role == "assistant":
            calls = self._calls_of(each, paths)
            if not calls and not content:
                self.ignored.append(where)
                return
            # Models imitate the numbers that they read in earlier answers.
            shown = without_citations(content or "")
            fields |= {"content": shown, "tool_calls": calls or None}
        elif role != "user":
            raise UsageError(f"{where}.role: should be 'system', 'user', 'assistant' or 'tool'")
        if fields["content"] is None:
            raise WrongRequest(f"{where}.content: should be text or a list of parts")
        if not self.hears:
            _refuse_audio(fields["content"], where)
        message, _ = request_body.validate_body(Message, fields, where)
        self.ignored += [f"{where}.{key}" for key in each if key not in _READ]
        self.messages.append(message)
        self.paths.append(where)

    def _calls_of(self, each: Mapping[str, Any], paths: Sequence[str]) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        where, *items = paths
        given = each.get("tool_calls") or []
        if not isinstance(given, list):
            raise WrongRequest(f"{where}.tool_calls: should be a list")
        for n, call in enumerate(given):
            path = items[n] if n < len(items) else f"{where}.tool_calls[{n}]"
            function = call.get("function") if isinstance(call, Mapping) else None
            id = call.get("id") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping) or not isinstance(id, str) or not id:
                raise WrongRequest(f"{path}: should have an id and a function")
            name, arguments = function.get("name"), function.get("arguments", "{}")
            if not isinstance(name, str) or not isinstance(arguments, str):
                raise WrongRequest(f"{path}.function: should have a name and arguments as text")
            if id in self._open:
                raise WrongRequest(f"{path}: another call has its id")
            self._open[id] = path
            called = {"name": name, "arguments": arguments}
            made.append({"id": id, "type": "function", "function": called})
        return made

    def _result_of(self, each: Mapping[str, Any], where: str) -> str:
        id = each.get("tool_call_id")
        if not isinstance(id, str) or self._open.pop(id, None) is None:
            raise WrongRequest(
                f"{where}.{self.result_key}: the answer before it has no call of this id without a"
                " result"
            )
        return id

    def _require_results(self) -> None:
        if self._open:
            path = next(iter(self._open.values()))
            result = "a message of the role 'tool'"
            if self.result_key == "call_id":
                result = "an item 'function_call_output'"
            raise WrongRequest(f"{path}: its result does not follow, {result}")


def _of_openwebui(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message of Open WebUI without its list of attached files, and with the documents
    that it writes around a question as a file beside it."""
    content: Any = message.get("content")
    if message.get("role") != "user":
        return message
    # Beside pictures its texts are in the first part.
    first, *rest = content if isinstance(content, list) and content else [content]
    text = first.get("text") if isinstance(first, Mapping) else first
    if not isinstance(text, str):
        return message
    question, documents = question_and_documents(without_attached(text))
    if not documents and isinstance(first, str):
        return {**message, "content": question}
    parts: list[Any] = [{"type": "text", "text": question}] if question else []
    if documents:
        url = data_url(documents.encode(errors="replace"), "text/plain")
        parts.append({"type": "file", "file": {"filename": "documents.txt", "file_data": url}})
    return {**message, "content": [*parts, *rest]}


def _refuse_audio(content: Any, where: str) -> None:
    for n, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, Mapping) and part.get("type") == "input_audio":
            raise NotSupported(
                f"{where}.content[{n}].type: no model of this assistant reads 'input_audio'; it"
                " reads 'text', 'file' and 'image_url'"
            )
