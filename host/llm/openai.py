"""The connector for OpenAI-compatible endpoints, through the `openai` SDK.

Owns the call: its tries, its deadlines, how the stream is read, and what each failure means.
`_translate_errors` is the one place where the SDK's errors become those of the host. The SDK is
imported with the first call, by a thread, since that takes most of a second.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from groundhook.core.concealed import shortened
from groundhook.core.error_bodies import UNCOMPRESSED, Shorten, shorten, shorten_error
from groundhook.core.errors import (
    HostError,
    ModelError,
    ModelGarbled,
    ModelNotConfigured,
    ModelTruncated,
    ModelUnreachable,
)
from groundhook.core.extras import extra, import_aside
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import Delta, ModelCall, TextDelta
from groundhook.core.trace import span
from groundhook.core.types.base import dotted, validation_problems
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.host.llm.chunks import ChunkReader, ReportedError
from groundhook.host.llm.parts import notices
from groundhook.host.llm.refusals import is_overflow, overflow, refusal, words
from groundhook.host.llm.request import OPENAI, extras, needs_key, reads, request
from groundhook.host.llm.streams import END, BegunAnswer, begin_answer, next_event
from groundhook.host.llm.tries import with_tries
from groundhook.host.llm.windows import may_report, reported_window

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI, AsyncStream

COUNTING = 1.0  # seconds that an endpoint gets to send the token count after its last token
WINDOW_S = 2.0  # longest wait for what the endpoint reports about its model
WINDOW_AGAIN_S = 600.0  # between two requests: the server may have been restarted
MOST_REPORTED = 2 << 20  # bytes; the longest lists of models have a third
NO_KEY = "none"  # sent to endpoints that require none; the SDK does not accept an empty key

# Words in a refusal that show which option the endpoint does not accept.
_REFUSED_BY = {
    "stream_options": ("stream_options", "include_usage"),
    "response_format": ("response_format", "json_schema", "json_object", "schema", "grammar"),
    "temperature": ("temperature",),  # of models that have one fixed value
}


class OpenAIConnector:
    """One model at one endpoint. Each answer has a client of its own, which is closed with the
    answer."""

    def __init__(self, spec: ConnectorSpec) -> None:
        self._spec = spec
        self._name = spec.id or spec.label or "openai"
        self._refused: set[str] = set()  # options that later requests omit
        self._tls: ssl.SSLContext | None = None
        self._window = 0
        self._window_until = 0.0  # when to request it again, on the monotonic clock

    @property
    def window(self) -> int | None:
        """Tokens of the model's window, as the endpoint reports it; 0: not reported; None: not
        known yet."""
        options = self._spec.options
        if options.context_tokens or not may_report(options.host):
            return options.context_tokens
        return self._window if time.monotonic() < self._window_until else None

    async def learn_window(self) -> None:
        """Ask the endpoint for the model's window. Raises nothing."""
        with span("window", self._name) as node:
            try:
                await import_aside("openai")
                async with self._client(partial(shorten, most=MOST_REPORTED)) as client:
                    with anyio.move_on_after(WINDOW_S):
                        self._window = await self._reported_window(client)
                        node.data["context_tokens"] = self._window
            except HostError as exc:
                node.fail(str(exc))
            if not node.data:
                node.fail(f"no answer within {WINDOW_S:g} s")
        # Also after a failure, so that not every turn waits for an endpoint that does not answer.
        self._window_until = time.monotonic() + WINDOW_AGAIN_S

    async def _reported_window(self, client: AsyncOpenAI) -> int:
        async def fetch(url: str, body: Mapping[str, Any] | None) -> Any:
            import httpx2

            with _translate_errors(self._name, self._spec, begun=False):
                if body is None:
                    answer = await client.get(url, cast_to=httpx2.Response)
                else:
                    answer = await client.post(url, body=body, cast_to=httpx2.Response)
                return read_json(answer.content)

        return await reported_window(fetch, self._spec.options.host, self._spec.options.model)

    def reads(self, part: Mapping[str, Any], /) -> bool:
        """Return whether the model reads a part of a message."""
        return reads(part, self._spec)

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        """Yield the deltas of an answer. Raises ModelNotConfigured when model or key is missing,
        and ModelError when the answer fails."""
        self._check()
        async with aclosing(self._deltas(call)) as deltas:
            yield deltas

    async def _deltas(self, call: ModelCall) -> AsyncGenerator[Delta]:
        await import_aside("openai")
        async with self._client() as client:
            attempt = partial(self._begin, client, call)
            begun = await with_tries(self._spec.options.retries + 1, attempt)
            stream, reader, ended = begun.stream, begun.reader, begun.ended
            async with stream:
                for notice in notices(call.messages, self._name, self.reads):
                    yield notice
                if self._spec.options.begins_thinking:
                    yield TextDelta("<think>")  # which the template has, and not the answer
                for delta in begun.deltas:
                    yield delta
                with _translate_errors(self._name, self._spec, begun=True):
                    while not (ended or reader.complete):
                        chunk = await next_event(self._spec, stream)
                        ended = chunk is END
                        for delta in () if ended else reader.read(chunk):
                            yield delta
                    if reader.complete:
                        await _read_token_count(stream, reader)
                if stream.is_done:
                    reader.end()
            if not reader.complete:
                content_type = stream.response.headers.get("content-type", "")
                raise _incomplete_error(self._name, reader.begun, content_type)
            yield reader.finished()

    async def _begin(self, client: AsyncOpenAI, call: ModelCall) -> BegunAnswer[ChunkReader]:
        hint = "; a model on a processor needs longer for a long prompt"
        with _translate_errors(self._name, self._spec, begun=False):
            return await begin_answer(
                self._spec, partial(self._open, client, call), ChunkReader(), hint
            )

    async def _open(self, client: AsyncOpenAI, call: ModelCall) -> AsyncStream[object]:
        """Send the request and return the stream. If the endpoint refuses an extra, the request is
        sent again without it; if that is accepted, later requests omit it as well."""
        import openai

        body = request(call, self._spec)
        wanted = extras(call)
        if "temperature" in body:
            wanted["temperature"] = body.pop("temperature")
        omitted, passing = set(self._refused), set[str]()
        while True:
            more = {
                name: value
                for name, value in wanted.items()
                # `options.body` of the connector outranks these.
                if name not in omitted and name not in body
            }
            try:
                stream = await _create(client, {**body, **more})
            except (openai.BadRequestError, openai.UnprocessableEntityError) as exc:
                text = f"{exc.message} {exc.body}"
                named = {name for name in more if any(word in text for word in _REFUSED_BY[name])}
                if not named or is_overflow(text):
                    raise
                omitted |= named
                if "invalid schema" in text.casefold():  # of this call, not of every one
                    passing |= named
            else:
                # Only now: the words may have been about something else, such as a tool's schema.
                self._refused |= omitted - passing
                return stream

    def _client(self, hook: Shorten = shorten_error) -> AsyncOpenAI:
        import httpx2

        with extra("openai", f"connector {self._name!r}", ModelNotConfigured):
            import openai

        options = self._spec.options
        if self._tls is None:
            self._tls = httpx2.create_ssl_context()  # 30 ms, so once for all answers
        return openai.AsyncOpenAI(
            api_key=_key(self._spec) or NO_KEY,
            base_url=options.host or OPENAI,
            # This class retries and sets the deadlines itself: the retries of the SDK would not
            # appear in the trace.
            timeout=httpx2.Timeout(options.timeout, read=None, pool=None),
            max_retries=0,
            default_headers={**UNCOMPRESSED, **options.headers},
            http_client=openai.DefaultAsyncHttpxClient(
                verify=self._tls, event_hooks={"response": [hook]}
            ),
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


def _key(spec: ConnectorSpec) -> str:
    """Return the key; "" when it is an environment variable that is not set."""
    key = spec.options.key.strip()
    return "" if key.startswith("$ENV.") else key


async def _read_token_count(stream: AsyncStream[object], reader: ChunkReader) -> None:
    """Read on for the token count, which follows the finish_reason. The answer is complete with or
    without it."""
    with anyio.move_on_after(COUNTING), suppress(StopAsyncIteration, *_failures()):
        while not reader.counted:
            for _ in reader.read(await anext(stream)):
                pass


async def _create(client: AsyncOpenAI, body: Mapping[str, Any]) -> AsyncStream[object]:
    """Return the stream of raw chunks: the SDK's own models accept any shape."""
    from groundhook.host.llm.openai_events import EventStream

    return await client.post(
        "/chat/completions", body=dict(body), cast_to=object, stream=True, stream_cls=EventStream
    )


# ------------------------------------------------------------------------------------------ errors


def _failures() -> tuple[type[Exception], ...]:
    import httpx2
    import openai

    return (
        openai.OpenAIError,
        httpx2.HTTPError,
        httpx2.StreamError,
        NotJson,
        UnicodeDecodeError,
        ValidationError,
        ReportedError,
    )


@contextmanager
def _translate_errors(name: str, spec: ConnectorSpec, *, begun: bool) -> Iterator[None]:
    """Translate every error of the SDK and its transport into a ModelError. `begun`: part of the
    answer has arrived."""
    import httpx2
    import openai

    try:
        yield
    except HostError:
        raise
    except _failures() as exc:
        if isinstance(exc, openai.APIStatusError):
            headers = exc.response.headers
            raise refusal(name, exc.status_code, exc.body, headers, keyless=not _key(spec)) from exc
        if isinstance(exc, ValidationError):
            path, message = validation_problems(exc)[0]
            raise ModelGarbled(
                f"model {name!r} sent a chunk of a wrong shape: {dotted(path)}: {message}"
            ) from exc
        if isinstance(exc, (NotJson, UnicodeDecodeError, openai.APIResponseValidationError)):
            raise ModelGarbled(
                f"model {name!r} sent a chunk that is not JSON: {_reason(exc)}"
            ) from exc
        if isinstance(exc, (openai.APIError, ReportedError)) and not isinstance(
            exc, openai.APIConnectionError
        ):
            raise _reported_error(name, exc) from exc
        if begun:
            raise ModelTruncated(
                f"the connection to model {name!r} broke before the answer was complete:"
                f" {_reason(exc)}"
            ) from exc
        where, why, hint = spec.options.host or OPENAI, _reason(exc), "options.host"
        if isinstance(exc.__cause__, httpx2.ConnectTimeout):
            why, hint = f"no connection within {spec.options.timeout:g} s", "options.timeout"
        error = ModelUnreachable(
            f"model {name!r} cannot be reached at {where}: {why}",
            hint=f"check {hint} of the connector",
        )
        error.again = True
        raise error from exc


def _reported_error(name: str, exc: Exception) -> ModelError:
    """Return the error that the endpoint reports in its answer, whose status is 200."""
    body = getattr(exc, "body", None)
    # The SDK replaces a message that is not in an object by words of its own.
    reported = words(body) or shortened(str(exc), 300)
    if is_overflow(f"{reported} {body}"):
        return overflow(name, f": {reported}")
    return ModelError(f"model {name!r} reported an error: {reported}")


def _reason(exc: BaseException) -> str:
    """Return the message of the innermost cause: the SDK's own is only "Connection error."."""
    seen: Sequence[str] = []
    current: BaseException | None = exc
    while current is not None:
        if str(current):
            seen = [*seen, str(current)]
        current = current.__cause__ or current.__context__
    return shortened(seen[-1], 200) if seen else exc.__class__.__name__


def _incomplete_error(name: str, begun: bool, content_type: str) -> ModelError:
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
        f"the answer of model {name!r} ended before it was complete (no finish_reason)"
    )
