"""Reads the JSON body of a request: its conversation and options of a turn. Sizes and depth are
checked before anything is validated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import anyio
from pydantic import Field, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from groundhook.core.json_text import (
    MOST_VALUES,
    NestedTooDeeply,
    NotJson,
    TooManyValues,
    count_brackets,
    has_more_values,
    read_json,
)
from groundhook.core.server_settings import LimitSettings, ServerSettings
from groundhook.core.types.base import (
    Few,
    UnknownKey,
    Value,
    dotted,
    first_problem,
    validate_known,
    well_formed,
)
from groundhook.core.types.serialisation import is_language_tag, no_language_tag
from groundhook.core.types.turn import (
    Client,
    ConnectorNames,
    DataSource,
    Message,
    TurnOptions,
    connector_ids,
    is_media,
)
from groundhook.host.output.dialects.literal import without_citations
from groundhook.host.server.problems import Refused, WrongRequest

_Model = TypeVar("_Model", bound=Value)

DEEPEST = 60
MOST_SOURCES = 20
MOST_IMAGES = 64  # of a body that is larger than `body_kb`
MOST_DESCRIPTION = 4096  # bytes of an image or a file beside its content
METADATA_KB = 16
HEADER_LENGTH = 1000  # of Referer and Accept for hooks
# Descriptions of keys that several bodies have.
SEARCH = "Force a search, or forbid it"
OPTIONS = "`AskOptions`"
DATA = "`AskedData`"
LEAVING = "`stop` or `continue`: what becomes of the turn when its reader leaves"
_ENCODED = b";base64,"
_JSON_TYPE = re.compile(r"application/(?:[\w.-]+\+)?json\s*(?:;\s*charset=\"?utf-8\"?\s*)?", re.I)


class RerankChoice(Value):
    """Reranking of a request."""

    top_k: int | None = Field(default=None, ge=1, le=1000)


class AskOptions(Value):
    """Options of a turn that a client may choose."""

    connector: ConnectorNames | None = Field(
        default=None, description="A language model of `server.allow.connectors`"
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="That of the model")
    max_tokens: int | None = Field(default=None, ge=0, description="Longest answer of the model")
    rerank: RerankChoice | None = Field(
        default=None, description='`{"top_k": 5}`: results that reach the model'
    )
    locale: str = Field(default="", max_length=60, description="Language of the user: en, pt-BR")
    theme: str = Field(default="", max_length=60, description="`ctx.theme` of hooks")
    route: str = Field(default="", max_length=500, description="`ctx.route` of hooks")
    metadata: dict[str, Any] = Field(default={}, description="`ctx.metadata` of hooks, ≤ 16 kB")


class TrialOptions(AskOptions):
    """Options of a turn without a chat."""

    trial: dict[str, Any] = Field(
        default={},
        description="Keys of package.yao, and prompts, for this turn alone; scope `author`",
    )


class AskedData(Value):
    """The sources that the user refers to."""

    sources: Few[tuple[DataSource, ...]] = Field(
        default=(),
        max_length=MOST_SOURCES,
        description="Collections, documents, models to search:"
        ' `{"type": "kb_collection", "name": "docs"}`, `{"type": "model", "name": "product"}`',
    )


class TurnRequest(Value):
    """A turn without a chat; its `options` may have a `trial`, with the scope `author`."""

    assistant: str = Field(
        default="", max_length=1000, description="Id of the assistant; empty: `uses.default`"
    )
    text: str | None = Field(default=None, description="The question, instead of `messages`")
    messages: Few[tuple[Message, ...]] | None = Field(
        default=None, description="The conversation: roles `user` and `assistant`"
    )
    search: bool | None = Field(default=None, description=SEARCH)
    options: TrialOptions = Field(default=TrialOptions(), description=OPTIONS)
    data: AskedData = Field(default=AskedData(), description=DATA)
    leaving: Literal["stop", "continue"] = Field(default="stop", description=LEAVING)


async def read_body(request: Request, limits: LimitSettings) -> bytes:
    """Return the bytes of the body. Raises Refused if it is too large, arrives too slowly or is not
    JSON."""
    own = limits.body_kb * 1024
    # Base64 is a third longer than what it encodes.
    most = own + round(limits.images_mb * 4 / 3 * 1024 * 1024)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused("wrong_type", "compressed bodies are not accepted")
    # Pages of other sites may send a form with this server's cookie, but no JSON.
    if not _JSON_TYPE.fullmatch(request.headers.get("content-type", "").strip()):
        raise Refused("wrong_type", "the content type must be application/json")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large_error(limits)
    body = bytearray()
    with anyio.move_on_after(limits.body_s) as slow:
        try:
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise _too_large_error(limits)
        except ClientDisconnect:
            raise Refused("usage", "the client left before it had sent its body") from None
    if slow.cancelled_caught:
        raise Refused("usage", f"the body took longer than {limits.body_s:g} s", headers=_CLOSE)
    if len(body) > own and len(body) - _count_encoded(body) > own:
        raise _too_large_error(limits)
    return bytes(body)


def _count_encoded(body: bytes | bytearray) -> int:
    """Return the bytes of the images and files in a body: of at most MOST_IMAGES strings after
    `;base64,`. Nothing in them is parsed, so they may be larger than the rest."""
    total = end = 0
    for _ in range(MOST_IMAGES):
        start = body.find(_ENCODED, end)
        end = body.find(b'"', start) if start >= 0 else -1
        if end < 0:
            break
        total += end - start
    return total


# The rest of the body is not read, so no other request can follow on the connection.
_CLOSE = {"connection": "close"}


def _too_large_error(limits: LimitSettings) -> Refused:
    return Refused(
        "too_large",
        f"a body has at most {limits.body_kb} kB (server.limits.body_kb) beside images and files,"
        f" and these at most {limits.images_mb:g} MB together (images_mb)",
        headers=_CLOSE,
    )


def parse_json(body: bytes) -> Any:
    """Parse a body as JSON. Raises UsageError."""
    try:
        value = read_json(body, deepest=DEEPEST, repeats=False)
    except NestedTooDeeply:
        raise WrongRequest(f"the body is nested too deeply: at most {DEEPEST} levels") from None
    except TooManyValues:
        raise _too_many_error() from None
    except NotJson as exc:
        raise WrongRequest(f"the body is not JSON: {_shorten(str(exc))}") from None
    if has_more_values(value):
        raise _too_many_error()
    return well_formed(value)


def check_values(body: bytes) -> None:
    """Raise UsageError for a JSON body with too many values. Its reader refuses what is no JSON."""
    try:
        count_brackets(body.decode())
        value = from_json(body)
    except TooManyValues:
        raise _too_many_error() from None
    except ValueError:
        return
    if has_more_values(value):
        raise _too_many_error()


def _too_many_error() -> WrongRequest:
    return WrongRequest(f"the body has too many values: at most {MOST_VALUES} are read")


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def validate_body(
    model: type[_Model], value: Any, place: str = ""
) -> tuple[_Model, list[UnknownKey]]:
    """Validate a body, or its part at `place`, as a model; return it and the keys that nothing
    reads. Raises UsageError."""
    if not isinstance(value, Mapping):
        raise WrongRequest("the body must be a JSON object")
    try:
        return validate_known(model, value)
    except ValidationError as exc:
        path, message = first_problem(exc, value)
        where = dotted((place, *path) if place else path)
        raise WrongRequest(
            f"{where}: {_shorten(message)}" if where else _shorten(message)
        ) from None


def validate_strictly(model: type[_Model], value: Any) -> _Model:
    """Validate a body as a model. Raises UsageError, also for a key that nothing reads."""
    made, unknown = validate_body(model, value)
    if unknown:
        raise WrongRequest(f"{unknown[0].path}: unknown key", hint=unknown[0].hint)
    return made


def read_conversation(wanted: TurnRequest, settings: ServerSettings) -> tuple[Message, ...]:
    """Return the messages of a request for a turn. Raises UsageError."""
    if (wanted.text is None) == (wanted.messages is None):
        raise WrongRequest("give `text` or `messages`")
    given = wanted.messages
    if given is None:
        given = (Message(role="user", content=wanted.text),)
    made: list[Message] = []
    for n, message in enumerate(given):
        if message.role not in ("user", "assistant"):
            raise WrongRequest(f"messages[{n}].role: should be 'user' or 'assistant'")
        if message.tool_calls or message.tool_call_id:
            raise WrongRequest(f"messages[{n}]: tool calls are not accepted")
        if message.__pydantic_extra__:
            raise WrongRequest(
                f"messages[{n}].{next(iter(message.__pydantic_extra__))}: unknown key"
            )
        if message.role == "assistant":  # models imitate the numbers that they read
            shown = without_citations(message.content)
            message = message.model_copy(update={"content": shown})
        made.append(message)
    return with_sources(check_lengths(made, settings.limits), wanted.data.sources)


def check_lengths(
    messages: Sequence[Message],
    limits: LimitSettings,
    name: str = "messages",
    paths: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the messages. `name` is the key of the request that has them, `paths` where each is in
    it. Raises UsageError if there are none, too many, or too long ones."""
    if not messages:
        raise WrongRequest(f"{name}: should have at least one entry")
    if len(messages) > limits.messages:
        raise WrongRequest(f"{name}: at most {limits.messages} are accepted")
    size = sum(map(_count_text, messages))
    if size > limits.message_kb * 1024:
        raise WrongRequest(
            f"{name}: at most {limits.message_kb} kB of text together are accepted"
            " (server.limits.message_kb)"
        )
    for n, message in enumerate(messages):
        where = paths[n] if paths else f"{name}[{n}]"
        _check_media(message, where, limits)
        _check_parts(message, where)
    return tuple(messages)


def _count_text(message: Message) -> int:
    """Return the bytes of a message without its images and files."""
    if isinstance(message.content, list):
        rest = [part for part in message.content if not is_media(part)]
        message = message.model_copy(update={"content": rest})
    return len(message.model_dump_json())


def _check_media(message: Message, where: str, limits: LimitSettings) -> None:
    most = limits.image_mb * 4 / 3 * 1024 * 1024 + MOST_DESCRIPTION
    for part in message.content if isinstance(message.content, list) else ():
        if is_media(part) and len(json.dumps(part)) > most:
            raise WrongRequest(
                f"{where}: an image or a file has at most {limits.image_mb:g} MB"
                " (server.limits.image_mb)"
            )


def _check_parts(message: Message, where: str) -> None:
    for part in message.content if isinstance(message.content, list) else ():
        data = part.get("data") if part.get("type") == "data" else None
        sources = data.get("sources") if isinstance(data, Mapping) else None
        if isinstance(sources, list) and len(sources) > MOST_SOURCES:
            raise WrongRequest(f"{where}: at most {MOST_SOURCES} sources are accepted")


def with_sources(
    messages: tuple[Message, ...], sources: Iterable[DataSource]
) -> tuple[Message, ...]:
    """Return the messages with the sources as a data part of the last user message. Raises
    UsageError without one."""
    listed = [source.model_dump() for source in sources]
    if not listed:
        return messages
    last = max((n for n, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise WrongRequest("data.sources: there is no question that refers to them")
    content = messages[last].content
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    data = {"type": "data", "data": {"sources": listed}}
    changed = messages[last].model_copy(update={"content": [*parts, data]})
    return (*messages[:last], changed, *messages[last + 1 :])


def turn_options(
    wanted: AskOptions,
    search: bool | None,
    request: Request,
    settings: ServerSettings,
    address: str,
    place: str = "options.",
) -> TurnOptions:
    """Return the options of a turn: those that the client chose, and facts about the client.
    `place` is where they are in the request. Raises UsageError."""
    given: dict[str, Any] = wanted.model_dump(exclude_unset=True, exclude={"trial"})
    if wanted.connector is not None:
        given["connector"] = _check_connector(wanted.connector, settings)
    if wanted.locale and not is_language_tag(wanted.locale):
        raise WrongRequest(f"options.locale: {no_language_tag(wanted.locale)}")
    if len(json.dumps(wanted.metadata)) > METADATA_KB * 1024:
        raise WrongRequest(f"{place}metadata: at most {METADATA_KB} kB are accepted")
    if "__disable_global_prompts" in wanted.metadata:
        raise WrongRequest(
            f"{place}metadata.__disable_global_prompts: the app's prompts hold for every client;"
            " only a hook may leave them out"
        )
    if search is not None:
        given["search"] = search
    headers = request.headers
    agent = headers.get("user-agent", "")[:HEADER_LENGTH]
    return TurnOptions(
        **given,
        referer=headers.get("referer", "")[:HEADER_LENGTH],
        accept=headers.get("accept", "")[:HEADER_LENGTH],
        client=Client(type="http", user_agent=agent, ip=address),
    )


def _check_connector(named: str | Sequence[str], settings: ServerSettings) -> Any:
    allowed = settings.allow.connectors
    for id in connector_ids(named):
        if id not in allowed:
            raise WrongRequest(
                f"options.connector: {_shorten(id)!r} is not one that clients may choose"
            )
    return named
