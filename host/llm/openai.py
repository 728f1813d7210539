"""Any OpenAI-compatible endpoint, through the `openai` SDK.

Owns the wire: what is asked, how the stream is read, and what each failure means. `_speaking_to` is
the one place where the SDK's errors become ours. The SDK is imported when the first call is made;
it takes most of a second.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from pydantic import ValidationError

from groundhook.host.core.errors import (
    HostError,
    ModelError,
    ModelGarbled,
    ModelNotConfigured,
    ModelRefused,
    ModelStalled,
    ModelTruncated,
    ModelUnreachable,
)
from groundhook.host.core.ports import Delta, ModelCall
from groundhook.host.core.types.base import dotted, problems
from groundhook.host.core.types.specs import ConnectorSpec
from groundhook.host.core.types.turn import Message
from groundhook.host.llm.chunks import Reader

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI, AsyncStream

OPENAI = "https://api.openai.com/v1"
AFTERWORD = 1.0  # seconds that an endpoint gets to count tokens after the last word
NO_KEY = "none"  # sent to endpoints that ask for none; the SDK insists on something


class OpenAIConnector:
    """One model at one endpoint. Each answer has a client of its own, closed when the answer is
    left."""

    def __init__(self, spec: ConnectorSpec) -> None:
        self._spec = spec
        self._name = spec.id or spec.label or "openai"
        self._usage_refused = False
        self._tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        """Raises ModelNotConfigured when model or key is missing, else ModelError as the answer
        goes wrong."""
        self._check()
        async with aclosing(self._deltas(call)) as deltas:
            yield deltas

    async def _deltas(self, call: ModelCall) -> AsyncGenerator[Delta]:
        with _speaking_to(self._name, self._spec) as answer:
            async with self._client() as client, await self._open(client, call) as stream:
                reader = Reader()
                async for chunk in stream:
                    for delta in reader.read(chunk):
                        answer.begun = True
                        yield delta
                    if reader.whole:
                        await _afterword(stream, reader)
                        break
                content_type = stream.response.headers.get("content-type", "")
            if not reader.whole:
                raise _not_whole(self._name, reader.begun, content_type)
            yield reader.finished()

    async def _open(self, client: AsyncOpenAI, call: ModelCall) -> AsyncStream[object]:
        """Ask; once more without the count of tokens when the endpoint does not know that
        option."""
        import openai

        body = request(call, self._spec)
        if not self._usage_refused:
            try:
                return await _create(client, {**body, "stream_options": {"include_usage": True}})
            except (openai.BadRequestError, openai.UnprocessableEntityError) as exc:
                if (
                    "stream_options" not in f"{exc.message} {exc.body}"
                    and "include_usage" not in f"{exc.message} {exc.body}"
                ):
                    raise
            self._usage_refused = True
        return await _create(client, body)

    def _client(self) -> AsyncOpenAI:
        import httpx2
        import openai

        options = self._spec.options
        if self._tls is None:
            self._tls = httpx2.create_ssl_context()  # 30 ms, so once for all answers
        return openai.AsyncOpenAI(
            api_key=_key(self._spec) or NO_KEY,
            base_url=options.host or OPENAI,
            timeout=options.timeout,
            max_retries=options.retries,
            default_headers=dict(options.headers),
            http_client=openai.DefaultAsyncHttpxClient(verify=self._tls),
        )

    def _check(self) -> None:
        file = f"connectors/{self._name}.conn.yao"
        if not self._spec.options.model:
            raise ModelNotConfigured(
                f"connector {self._name!r} names no model", hint=f"set options.model in {file}"
            )
        if not _key(self._spec) and needs_key(self._spec.options.host):
            raise ModelNotConfigured(
                f"connector {self._name!r} has no key",
                hint=(
                    f'set options.key in {file}, such as "$ENV.OPENAI_API_KEY", and that variable'
                    f' ("{NO_KEY}": it needs none)'
                ),
            )


# ------------------------------------------------------------------------------------ what is asked


def request(call: ModelCall, spec: ConnectorSpec) -> dict[str, Any]:
    """The body of a call: only what was said; the call outranks the connector's file. A bound of 0
    tokens stands for the model's own and is not sent: endpoints refuse it, or say nothing."""
    options = spec.options
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [_wire(message) for message in call.messages],
        "stream": True,
    }
    if call.tools:
        body["tools"] = [dict(tool) for tool in call.tools]
    if call.max_tokens is None and call.max_completion_tokens is None:
        bounds = {
            "max_tokens": options.max_tokens,
            "max_completion_tokens": options.max_completion_tokens,
        }
    else:
        bounds = {
            "max_tokens": call.max_tokens,
            "max_completion_tokens": call.max_completion_tokens,
        }
    if bounds["max_completion_tokens"] and call.max_tokens is None:
        del bounds["max_tokens"]  # endpoints refuse both at once
    said = {
        "temperature": call.temperature if call.temperature is not None else options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        **{name: bound or None for name, bound in bounds.items()},
    }
    return (
        body
        | {name: value for name, value in said.items() if value is not None}
        | dict(options.body)
    )


def needs_key(host: str) -> bool:
    """Whether an endpoint can be expected to ask for a key: those on this machine or in a private
    network do not."""
    name = (urlsplit(host).hostname or "") if host else "api.openai.com"
    try:
        return not ipaddress.ip_address(name).is_private
    except ValueError:
        return "." in name and not name.endswith((".local", ".localhost", ".internal", ".lan"))


def _key(spec: ConnectorSpec) -> str:
    """The key, or "" when it is a variable that is not set."""
    key = spec.options.key.strip()
    return "" if key.startswith("$ENV.") else key


def _wire(message: Message) -> dict[str, Any]:
    """A message without the parts that only the host understands."""
    wire = message.wire()
    content = wire.get("content")
    if isinstance(content, list):
        wire["content"] = [part for part in content if part.get("type") != "data"]
    return wire


async def _afterword(stream: AsyncStream[object], reader: Reader) -> None:
    """Read on for the count of tokens, which comes behind the reason; the answer is whole whether
    it comes or not."""
    with anyio.move_on_after(AFTERWORD), suppress(StopAsyncIteration, *_failures()):
        while not reader.counted:
            for _ in reader.read(await anext(stream)):
                pass


async def _create(client: AsyncOpenAI, body: Mapping[str, Any]) -> AsyncStream[object]:
    """Chunks as they come: the SDK's own models would let any shape pass."""
    import openai

    return await client.post(
        "/chat/completions",
        body=dict(body),
        cast_to=object,
        stream=True,
        stream_cls=openai.AsyncStream[object],
    )


# ---------------------------------------------------------------------------------- what goes wrong


class _Answer:
    """Whether something of the answer had arrived, for the wording of its failure."""

    begun = False


def _failures() -> tuple[type[Exception], ...]:
    import httpx2
    import openai

    return (
        openai.OpenAIError,
        httpx2.HTTPError,
        httpx2.StreamError,
        json.JSONDecodeError,
        UnicodeDecodeError,
        ValidationError,
    )


@contextmanager
def _speaking_to(name: str, spec: ConnectorSpec) -> Iterator[_Answer]:
    """Raises ModelError for everything the SDK and its transport raise."""
    import openai

    answer = _Answer()
    try:
        yield answer
    except HostError:
        raise
    except _failures() as exc:
        if isinstance(exc, openai.APITimeoutError):
            raise ModelStalled(
                f"model {name!r} sent nothing for {spec.options.timeout:g} s",
                hint="options.timeout of the connector sets how long",
            ) from exc
        if isinstance(exc, openai.APIStatusError):
            raise _refused(name, exc, keyless=not _key(spec)) from exc
        if isinstance(exc, ValidationError):
            path, message = problems(exc)[0]
            raise ModelGarbled(
                f"model {name!r} sent a chunk of a wrong shape: {dotted(path)}: {message}"
            ) from exc
        if isinstance(
            exc, (json.JSONDecodeError, UnicodeDecodeError, openai.APIResponseValidationError)
        ):
            raise ModelGarbled(
                f"model {name!r} sent something that is not JSON: {_reason(exc)}"
            ) from exc
        if isinstance(exc, openai.APIError) and not isinstance(exc, openai.APIConnectionError):
            raise ModelError(f"model {name!r} reported an error: {exc.message}") from exc
        if answer.begun:
            raise ModelTruncated(
                f"the connection to model {name!r} broke before the answer was whole:"
                f" {_reason(exc)}"
            ) from exc
        raise ModelUnreachable(
            f"model {name!r} cannot be reached at {spec.options.host or OPENAI}: {_reason(exc)}",
            hint="options.host of the connector is its address",
        ) from exc


def _refused(name: str, exc: Any, *, keyless: bool) -> ModelError:
    """An answer with a status other than 2xx; `exc` is an openai.APIStatusError."""
    status: int = exc.status_code
    said = _said(exc)
    if status in (401, 403):
        hint = (
            "no key is set; see options.key of the connector"
            if keyless
            else "check options.key of the connector"
        )
        return ModelRefused(f"model {name!r} refused the key ({status}){said}", hint=hint)
    if status == 429:
        return ModelRefused(
            f"model {name!r} refused for now: rate limit or quota (429){said}",
            hint="try again later",
        )
    if status == 404:
        return ModelRefused(
            f"model {name!r} was not found (404){said}",
            hint="check options.model and options.host of the connector",
        )
    if status >= 500:
        return ModelError(f"model {name!r} failed ({status}){said}")
    return ModelRefused(f"model {name!r} refused the request ({status}){said}")


def _said(exc: Any) -> str:
    """What the endpoint itself said, in one line."""
    body = exc.body
    if isinstance(body, Mapping):
        text = str(body.get("message") or body.get("detail") or "")
    else:
        text = body if isinstance(body, str) and not body.lstrip().startswith("<") else ""
    text = " ".join(text.split())
    return f": {text[:300]}" if text else ""


def _reason(exc: BaseException) -> str:
    """The innermost cause that says something: the SDK's own message is "Connection error."."""
    seen: Sequence[str] = []
    current: BaseException | None = exc
    while current is not None:
        if str(current):
            seen = [*seen, str(current)]
        current = current.__cause__ or current.__context__
    return " ".join(seen[-1].split())[:200] if seen else exc.__class__.__name__


def _not_whole(name: str, begun: bool, content_type: str) -> ModelError:
    if not begun and "text/event-stream" not in content_type:
        kind = content_type.partition(";")[0] or "something without a type"
        return ModelGarbled(
            f"model {name!r} answered with {kind} instead of a stream of events",
            hint=(
                "options.host of the connector must be the base URL of an OpenAI-compatible"
                " endpoint, often ending in /v1"
            ),
        )
    return ModelTruncated(
        f"the answer of model {name!r} ended before it was whole (no finish_reason)"
    )
