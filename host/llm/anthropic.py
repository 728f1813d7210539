"""The connector for Anthropic's Messages API, through the `anthropic` SDK.

Owns the call: its tries, its deadlines, how the stream is read, and what each failure means. The
SDK is imported with the first call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from groundhook.core.concealed import shortened
from groundhook.core.error_bodies import UNCOMPRESSED, shorten_error
from groundhook.core.errors import (
    HostError,
    ModelError,
    ModelGarbled,
    ModelNotConfigured,
    ModelTruncated,
    ModelUnreachable,
)
from groundhook.core.extras import extra, import_aside
from groundhook.core.pieces import TextPieces, grown
from groundhook.core.ports import (
    Delta,
    Finished,
    ModelCall,
    ReasoningDelta,
    TextDelta,
    ToolDelta,
)
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Usage
from groundhook.host.llm.anthropic_request import Blocks, call_key, reads, request
from groundhook.host.llm.parts import notices
from groundhook.host.llm.refusals import is_overflow, overflow, refusal
from groundhook.host.llm.request import needs_key
from groundhook.host.llm.streams import END, BegunAnswer, begin_answer, next_event
from groundhook.host.llm.tries import with_tries

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

ANTHROPIC = "https://api.anthropic.com"
NO_KEY = "none"
MOST_THOUGHTS = 256  # calls of tools whose thinking is kept
REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


@dataclass
class _Reader:
    """The state of one answer: a fold from the API's events to the host's deltas."""

    complete: bool = False
    started: bool = False
    progress: str = ""
    thought: list[dict[str, TextPieces]] = field(default_factory=list)
    calls: list[dict[str, TextPieces]] = field(default_factory=list)  # {id, name, arguments}
    _places: dict[int, int] = field(default_factory=dict)  # block → index of the call
    _reason: str = ""
    _model: str = ""
    _input: int = 0
    _output: int = 0

    def read(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        kind = event["type"]
        if kind == "message_start":
            message = event["message"]
            self._model, self._input = _text(message, "model"), _input_tokens(message)
        elif kind == "content_block_start":
            self.started = True
            yield from self._start(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            yield from self._delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._reason = _text(event["delta"], "stop_reason") or self._reason
            # Of the whole message so far; some endpoints count the input only now.
            self._output = _counted(event, "output_tokens") or self._output
            self._input = _input_tokens(event) or self._input
        elif kind == "message_stop":
            self.complete = True

    def _start(self, index: int, block: Mapping[str, Any]) -> Iterator[Delta]:
        kind = block["type"]
        if kind == "tool_use":
            id, name = _text(block, "id"), _text(block, "name")
            self._places[index] = len(self.calls)
            self.calls.append({"id": (id,), "name": (name,), "arguments": ()})
            yield ToolDelta(self._places[index], id=id, name=name)
        elif kind == "thinking":
            self.thought.append({"type": ("thinking",), "thinking": (), "signature": ()})
        elif kind == "redacted_thinking":
            self.thought.append({"type": ("redacted_thinking",), "data": (_text(block, "data"),)})
        elif kind == "text" and (text := _text(block, "text")):
            yield TextDelta(text)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Delta]:
        kind = delta["type"]
        if kind == "text_delta":
            yield TextDelta(_text(delta, "text"))
        elif kind == "input_json_delta" and index in self._places:
            place, piece = self._places[index], _text(delta, "partial_json")
            _grow(self.calls[place], "arguments", piece)
            yield ToolDelta(place, arguments=piece)
        elif kind == "thinking_delta" and self.thought:
            thought = _text(delta, "thinking")
            _grow(self.thought[-1], "thinking", thought)
            yield ReasoningDelta(thought)
        elif kind == "signature_delta" and self.thought:
            _grow(self.thought[-1], "signature", _text(delta, "signature"))

    def finished(self) -> Finished:
        usage = Usage(
            prompt_tokens=self._input,
            completion_tokens=self._output,
            total_tokens=self._input + self._output,
        )
        return Finished(REASONS.get(self._reason, self._reason), model=self._model, usage=usage)


def _grow(block: dict[str, TextPieces], key: str, text: str) -> None:
    block[key] = grown(block.get(key, ()), text)


def _joined(block: Mapping[str, TextPieces]) -> dict[str, Any]:
    return {key: "".join(pieces) for key, pieces in block.items()}


def _text(values: Mapping[str, Any], key: str) -> str:
    """Return a text, "" for null or none. Raises TypeError for anything else."""
    text = values.get(key)
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{key} is no text")
    return text or ""


def _counted(values: Mapping[str, Any], *names: str) -> int:
    """Return the tokens that the usage counts under these names; endpoints omit some."""
    usage = values.get("usage") or {}
    counts = [usage.get(name) for name in names]
    return sum(max(0, count) for count in counts if isinstance(count, int))


def _input_tokens(values: Mapping[str, Any]) -> int:
    """Return the tokens of the prompt. `input_tokens` does not count those that the endpoint reads
    from its cache or writes to it."""
    return _counted(
        values, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
    )


async def _open(client: AsyncAnthropic, body: Mapping[str, Any]) -> Any:
    """Send the request and return the stream of its events as plain values."""
    from groundhook.host.llm.anthropic_events import PlainStream

    return await client.post(
        "/v1/messages",
        body={**body, "stream": True},
        cast_to=object,
        stream=True,
        stream_cls=PlainStream,
    )


class AnthropicConnector:
    """One model of Anthropic's API, or of an endpoint that speaks it. The thinking before calls of
    tools is kept: the API requires it in the next round."""

    def __init__(self, spec: ConnectorSpec) -> None:
        self._spec = spec
        self._name = spec.id or spec.label or "anthropic"
        self._thoughts: OrderedDict[str, Blocks] = OrderedDict()  # by the key of the first call

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
        await import_aside("anthropic")
        async with self._client() as client:
            attempt = partial(self._begin, client, call)
            begun = await with_tries(self._spec.options.retries + 1, attempt)
            stream, reader, ended = begun.stream, begun.reader, begun.ended
            async with stream:
                for notice in notices(call.messages, self._name, self.reads):
                    yield notice
                for delta in begun.deltas:
                    yield delta
                with self._translate_errors(begun=True):
                    while not (ended or reader.complete):
                        event = await next_event(self._spec, stream)
                        ended = event is END
                        for delta in () if ended else reader.read(event):
                            yield delta
            if not reader.complete:
                raise ModelTruncated(
                    f"the answer of model {self._name!r} ended before it was complete"
                    " (no message_stop)"
                )
            self._keep_thought(reader)
            yield reader.finished()

    def _keep_thought(self, reader: _Reader) -> None:
        if reader.calls and reader.thought:
            first = _joined(reader.calls[0])
            key = call_key({"id": first["id"], "function": first})
            self._thoughts[key] = [_joined(block) for block in reader.thought]
            while len(self._thoughts) > MOST_THOUGHTS:
                self._thoughts.popitem(last=False)

    async def _begin(self, client: AsyncAnthropic, call: ModelCall) -> BegunAnswer[_Reader]:
        body = request(call, self._spec, lambda key: self._thoughts.get(key, []))
        with self._translate_errors(begun=False):
            return await begin_answer(self._spec, partial(_open, client, body), _Reader())

    def _client(self) -> AsyncAnthropic:
        import httpx2

        with extra("anthropic", f"connector {self._name!r}", ModelNotConfigured):
            import anthropic

        options = self._spec.options
        return anthropic.AsyncAnthropic(
            api_key=self._key or NO_KEY,  # set, so that the SDK does not read the environment
            base_url=options.host or ANTHROPIC,
            timeout=httpx2.Timeout(options.timeout, read=None, pool=None),
            max_retries=0,
            default_headers={**UNCOMPRESSED, **options.headers},
            http_client=anthropic.DefaultAsyncHttpxClient(
                event_hooks={"response": [shorten_error]}
            ),
        )

    @property
    def _key(self) -> str:
        """The key; "" when it is an environment variable that is not set."""
        key = self._spec.options.key.strip()
        return "" if key.startswith("$ENV.") else key

    def _check(self) -> None:
        file = f"connectors/{self._name}.conn.yao"
        if not self._spec.options.model:
            raise ModelNotConfigured(
                f"connector {self._name!r} names no model", hint=f"set options.model in {file}"
            )
        if not self._key and needs_key(self._spec.options.host or ANTHROPIC):
            raise ModelNotConfigured(
                f"connector {self._name!r} has no key",
                hint=f'set options.key in {file}, such as "$ENV.ANTHROPIC_API_KEY"',
            )

    @contextmanager
    def _translate_errors(self, *, begun: bool) -> Iterator[None]:
        """Translate every error of the SDK and its transport into a ModelError. `begun`: part of
        the answer has arrived."""
        import anthropic
        import httpx2

        try:
            yield
        except HostError:
            raise
        except anthropic.APIStatusError as exc:
            raise self._refusal(exc) from exc
        except (anthropic.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._connection_error(exc, begun=begun) from exc
        except (
            anthropic.AnthropicError,
            ValueError,
            TypeError,
            AttributeError,
            LookupError,
            RecursionError,
        ) as exc:
            raise ModelGarbled(
                f"model {self._name!r} sent an event that the API does not have:"
                f" {shortened(str(exc), 200)}"
            ) from exc

    def _refusal(self, exc: Any) -> ModelError:
        """Return the error of a status, or of an `error` event inside a stream (status 200)."""
        body = exc.body.get("error", exc.body) if isinstance(exc.body, dict) else exc.body
        kind = body.get("type", "") if isinstance(body, dict) else ""
        if exc.status_code != 200:
            keyless = not self._key
            return refusal(self._name, exc.status_code, body, exc.response.headers, keyless=keyless)
        message = shortened(str(body.get("message", "") if isinstance(body, dict) else exc), 300)
        if is_overflow(message):
            return overflow(self._name, f": {message}")
        error = ModelError(f"model {self._name!r} reported an error: {message or kind}")
        error.again = kind in ("overloaded_error", "api_error", "rate_limit_error")
        return error

    def _connection_error(self, exc: Exception, *, begun: bool) -> ModelError:
        reason = str(exc.__cause__ or exc) or exc.__class__.__name__
        if begun:
            return ModelTruncated(
                f"the connection to model {self._name!r} broke before the answer was complete:"
                f" {reason}"
            )
        where = self._spec.options.host or ANTHROPIC
        error = ModelUnreachable(
            f"model {self._name!r} cannot be reached at {where}: {reason}",
            hint="check options.host of the connector",
        )
        error.again = True
        return error
