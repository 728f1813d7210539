"""Endpoints of OpenAI's API: assistants as models, and chat completions. Open WebUI's tasks are
answered without a turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from groundhook.core.errors import HostError, NotSupported, UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.server_settings import CitationStyle, ServerSettings
from groundhook.core.types.base import Few, Value
from groundhook.core.types.connector_spec import EXTRACTIVE
from groundhook.core.types.turn import Message, TurnOptions, connector_ids
from groundhook.host.config.package import Package
from groundhook.host.config.tree import PACKAGES
from groundhook.host.output.dialects.openai_chat import OpenAIChat, completion
from groundhook.host.output.dialects.openwebui import Task, answer_task, task_named, task_of
from groundhook.host.server import request_body
from groundhook.host.server.api.contract import read_contract, unchecked_of
from groundhook.host.server.api.conversation import ReadConversation
from groundhook.host.server.api.meta import assistant_info
from groundhook.host.server.api.turns import Start, begin, stream, turn_headers
from groundhook.host.server.identity.caller import Caller
from groundhook.host.server.problems import Refused, WrongRequest, failure_status
from groundhook.host.server.request_body import AskedData, AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.running import ServerTurn
from groundhook.host.server.turns.sse import SSE, FoldWriter, folded

IGNORED = "x-groundhook-ignored"
CERTAINTY = "x-groundhook-certainty"
LONGEST_HEADER = 1000
SYSTEM = ("system", "developer")
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class StreamOptions(Value):
    """`stream_options`."""

    include_usage: bool = False


class Extension(Value):
    """The object `groundhook`, which SDKs send by `extra_body`."""

    search: bool | None = Field(default=None, description=request_body.SEARCH)
    citations: CitationStyle | None = Field(
        default=None, description="`numbers`, `links`, `markers` or `none`: how they are shown"
    )
    events: Literal["openwebui", "none"] | None = Field(
        default=None, description="Whether Open WebUI's events are sent with the text"
    )
    chat_id: str = Field(default="", max_length=200, description="`ctx.chat_id` of hooks")
    data: AskedData = Field(default=AskedData(), description=request_body.DATA)


class ChatRequest(Value):
    """The keys of a chat completion that are read."""

    model: str = Field(
        default="", max_length=1000, description="Id of an assistant; empty: `uses.default`"
    )
    messages: Few[tuple[dict[str, Any], ...]] = Field(description="The conversation")
    stream: bool | None = Field(default=False, description="In chunks, as they are written")
    stream_options: StreamOptions | None = Field(
        default=None, description='`{"include_usage": true}`: the last chunk has the usage'
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    user: str | None = Field(default=None, description="The user, for keys with `acts_for`")
    safety_identifier: str | None = Field(default=None, description="Used if `user` is not set")
    metadata: dict[str, Any] | None = Field(default=None, description="`ctx.metadata` of hooks")
    n: int | None = Field(default=1, description="Only 1")
    modalities: Few[tuple[Any, ...]] | None = Field(default=None, description='Only `["text"]`')
    audio: Any = Field(default=None, description="Refused: answers are text")
    functions: Any = Field(default=None, description="Refused: `tools` are the form of today")
    function_call: Any = Field(default=None, description="Refused: as `functions`")
    stop: Any = Field(default=None, description="Texts that end the answer, at most 16")
    response_format: Any = Field(
        default=None,
        description="`json_object`, or `json_schema` with a schema: the answer is JSON, checked and"
        " repaired once",
    )
    tools: Few[tuple[Any, ...]] | None = Field(
        default=None, description="Functions of the client, beside the assistant's own"
    )
    tool_choice: Any = Field(default=None, description="`auto`, `none`, `required` or a function")
    groundhook: Extension = Field(default=Extension(), description="`Extension`")


async def models(call: Call) -> Response:
    """Return the assistants as models."""
    listed = [_model(call, id) for id in call.serving.offered(call.caller)]
    return JSONResponse({"object": "list", "data": listed})


async def model(call: Call) -> Response:
    """Return one assistant as a model."""
    id = call.request.path_params["model"]
    if not id:  # `/v1/models/`, which some clients write
        return await models(call)
    offered_package(call, call.caller, id)
    return JSONResponse(_model(call, id))


def _model(call: Call, id: str) -> dict[str, Any]:
    info = assistant_info(call, id)
    return {
        "id": id,
        "object": "model",
        "created": _changed_at(call, id),
        "owned_by": "groundhook",
        "name": info.name or id,
        "description": info.description,
    }


def _changed_at(call: Call, id: str) -> int:
    """Return when the files of an assistant were last changed, in seconds; 0 if they are gone."""
    try:
        package = call.serving.host.app.package(id)
        files = (package.folder / name for name in PACKAGES)
        return int(max((file.stat().st_mtime for file in files if file.is_file()), default=0))
    except (HostError, OSError):  # broken, or removed a moment ago
        return 0


def offered_package(call: Call, caller: Caller, id: str) -> Package:
    """Return an assistant that the caller may use. Raises UnknownName, ConfigError; Refused
    with the one that was meant, where a client puts a prefix before its id (`openai/docs`)."""
    try:
        return call.serving.package(caller, id)
    except UnknownName:
        meant = id.rpartition("/")[2] or id
        if meant != id and meant in call.serving.offered(caller):
            raise Refused(
                "unknown_name", f"there is no assistant {id[:80]!r}: did you mean {meant!r}?"
            ) from None
        raise


def named_model(call: Call, caller: Caller, id: str) -> str:
    """Return the assistant that `model` names, or else the app's default. Raises WrongRequest."""
    try:
        return call.serving.assistant_for(caller, id)
    except UsageError as exc:
        raise WrongRequest(f"model: {exc.message}") from None


def unread_limits(call: Call, assistant_id: str, wanted: Value) -> list[str]:
    """Return the keys of a request that limit the tokens of an answer, where the assistant has no
    language model, which would count them."""
    given = [key for key in LIMITS if getattr(wanted, key, None) is not None]
    host = call.serving.host
    names = connector_ids(host.settings(assistant_id).connector) if given else ()
    for name in names:
        with suppress(HostError):  # a wrong file is reported when the connector is used
            if host.app.connector(host.app.connector_id(assistant_id, name)).type != EXTRACTIVE:
                return []
    return given


async def chat_completions(call: Call) -> ASGIApp:
    """Run a turn as a chat completion."""
    settings = call.serving.settings
    wanted, unknown = request_body.validate_body(ChatRequest, await call.json())
    _refuse_other_forms(wanted)
    caller = call.serving.sign_in.acting(call.caller, wanted.user or wanted.safety_identifier or "")
    call = replace(call, caller=caller)
    named = named_model(call, caller, wanted.model)
    wanted = wanted.model_copy(update={"model": named})
    package = offered_package(call, caller, named)
    contract = await read_contract(
        tools=wanted.tools,
        choice=wanted.tool_choice,
        stop=wanted.stop,
        form=wanted.response_format,
        form_path="response_format",
    )
    hears = _hears(call, package.id)
    read = ReadConversation.of(
        wanted.messages, settings.openai.system, hears=hears, openwebui=_is_openwebui(call)
    )
    unchecked = await unchecked_of(contract, "response_format")
    limits = unread_limits(call, package.id, wanted)
    ignored = [*(key.path for key in unknown), *limits, *read.ignored, *unchecked]
    headers = {IGNORED: ignored_header(ignored)} if ignored else {}
    messages = request_body.check_lengths(read.messages, settings.limits)
    if (task := _task(call, wanted)) is not None:
        text = await _task_text(call, caller, task, messages, package.name)
        return _whole_task(wanted, text, headers)
    messages = request_body.with_sources(messages, wanted.groundhook.data.sources)
    options = _options(call, wanted, settings)
    start = Start(
        caller=caller,
        assistant_id=wanted.model,
        messages=messages,
        options=options,
        contract=contract,
        linger_s=0,
    )
    call.admit_stream()  # before the turn begins
    running = await begin(call.serving, start)
    fold = replace(_fold(call, wanted, running, settings), is_json=bool(contract.reply))
    headers |= turn_headers(call, running)
    if wanted.stream:
        return stream(call, running, 0, FoldWriter(fold, call.audience()), SSE, headers)
    return await _completion(call, running, fold, headers)


def _refuse_other_forms(wanted: ChatRequest) -> None:
    """Raise NotSupported for an answer of another form than one text."""
    if wanted.n not in (None, 1):
        raise NotSupported("n: one answer is given, no other number of them")
    if wanted.audio is not None or any(each != "text" for each in wanted.modalities or ()):
        raise NotSupported(f"{'modalities' if wanted.modalities else 'audio'}: answers are text")
    if wanted.functions is not None:
        raise NotSupported("functions: not offered; send them as `tools`")
    if wanted.function_call is not None:
        raise NotSupported("function_call: not offered; send `tools` and `tool_choice`")


async def _completion(
    call: Call, running: ServerTurn, fold: OpenAIChat, headers: Mapping[str, str]
) -> Response:
    if not await call.until_over(running):
        return Response(status_code=204)  # the client has left; nobody reads this
    body = completion(await folded(fold, call.audience(), running.log))
    if "error" not in body:
        if certainty := body.get("groundhook", {}).get("certainty"):  # none of a cut answer
            headers = {**headers, CERTAINTY: certainty}
        return Response(line(body), media_type="application/json", headers=headers)
    # One turn only: SDKs would try a failed one twice more.
    headers = {**headers, "x-should-retry": "false"}
    return JSONResponse(body, failure_status(body["error"]["code"]), headers)


def _fold(
    call: Call, wanted: ChatRequest, running: ServerTurn, settings: ServerSettings
) -> OpenAIChat:
    own = wanted.groundhook
    style = own.citations or call.caller.citations or settings.openai.citations
    return OpenAIChat(
        id=f"chatcmpl-{running.turn_id}",
        model=wanted.model,
        created=running.created,
        public_url=call.public_url,
        citations=style,
        events=_wants_events(call, own),
        usage=not wanted.stream
        or bool(wanted.stream_options and wanted.stream_options.include_usage),
    )


def _wants_events(call: Call, own: Extension) -> bool:
    if own.events is not None:
        return own.events == "openwebui"
    return _is_openwebui(call)


def _is_openwebui(call: Call) -> bool:
    client = call.request.headers.get("x-groundhook-client", call.caller.client)
    return client == "openwebui" or any(
        name.startswith("x-openwebui-") for name in call.request.headers
    )


def _options(call: Call, wanted: ChatRequest, settings: ServerSettings) -> TurnOptions:
    most = wanted.max_tokens if wanted.max_tokens is not None else wanted.max_completion_tokens
    chosen = AskOptions(
        **({} if wanted.temperature is None else {"temperature": wanted.temperature}),
        **({} if most is None else {"max_tokens": most}),
        **({} if wanted.metadata is None else {"metadata": wanted.metadata}),
    )
    made = request_body.turn_options(
        chosen, wanted.groundhook.search, call.request, settings, call.address, ""
    )
    chat = wanted.groundhook.chat_id or call.request.headers.get("x-openwebui-chat-id", "")
    return made.model_copy(update={"chat_id": chat[:200]}) if chat else made


def ignored_header(ignored: Sequence[str]) -> str:
    """Return the value of the header that names what is not read."""
    shown = ", ".join(name.encode("ascii", "replace").decode() for name in ignored)
    visible = "".join(sign if sign.isprintable() else "?" for sign in shown)
    return visible[:LONGEST_HEADER].strip()  # the value of a header ends in no blank


def _hears(call: Call, assistant_id: str) -> bool:
    """Return whether a model of an assistant reads audio."""
    host = call.serving.host
    for name in connector_ids(host.settings(assistant_id).connector):
        with suppress(HostError):  # a wrong file is reported when the connector is used
            if host.app.connector(host.app.connector_id(assistant_id, name)).can("audio", False):
                return True
    return False


def _task(call: Call, wanted: ChatRequest) -> Task | None:
    """Return which task of Open WebUI a request is, on any connection; None for a question."""
    header = call.request.headers.get("x-groundhook-task", "")
    # Versions that do not know a placeholder send it as it is, with every question.
    if header and "{{" not in header:
        return task_named(header)
    *before, last = wanted.messages
    if last.get("role") != "user" or any(each.get("role") not in SYSTEM for each in before):
        return None
    prompts = [str(_text_of(each) or "") for each in wanted.messages]
    # Its questions are streamed, and a person may begin one like a task.
    sure = _is_openwebui(call) and not wanted.stream
    return task_of(prompts, sure=sure)


def _text_of(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if not isinstance(content, list):
        return content
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return next((text for text in texts if text), "")


async def _task_text(
    call: Call, caller: Caller, task: Task, messages: Sequence[Message], name: str
) -> str:
    tasks = call.serving.settings.openai.tasks
    if tasks == "off":
        return answer_task(task, messages[-1].text, name)
    return await call.serving.complete(caller, tasks, messages)


def _whole_task(wanted: ChatRequest, text: str, headers: Mapping[str, str]) -> Response:
    base = {"id": "chatcmpl-task", "created": int(time.time()), "model": wanted.model}
    if wanted.stream:
        delta = {"role": "assistant", "content": text}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
        chunk = {**base, "object": "chat.completion.chunk", "choices": [choice]}
        body = f"data: {line(chunk)}\ndata: [DONE]\n\n"
        return Response(body, media_type="text/event-stream", headers=headers)
    message = {"role": "assistant", "content": text}
    whole = {
        **base,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
    return JSONResponse(whole, headers=headers)
