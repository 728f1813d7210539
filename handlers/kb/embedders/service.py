"""Embedding models over a network: the part that all services share.

`ServiceEmbedder` divides texts into requests that the service accepts, sends a few of them
concurrently, retries temporary failures, keeps a deadline for the whole, and turns every failure
into one error that names the service. A `Service` makes one request and raises
`EmbeddingRequestFailed`; it does not retry.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio

from groundhook.core.concealed import shortened
from groundhook.core.errors import (
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.handlers.kb.embed import CurveSource, embedding_tokens
from groundhook.handlers.kb.embedders.curve import Curve

InputKind = Literal["query", "document"]
Vectors = list[list[float]]

AT_ONCE = 4  # concurrent requests of one call
# seconds between attempts, unless the service sends a number
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 16.0
_MAY_RECOVER = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, kw_only=True)
class EmbedderAccess:
    """The address, key and timeouts of a service. `name` is its name in the app, `variable` the
    environment variable of its key, `place` the setting with its options."""

    name: str
    host: str
    key: str = field(default="", repr=False)
    variable: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    needs_key: bool = True
    query_s: float = 6.0  # for a question, with all attempts
    batch_s: float = 120.0  # for one request of documents, with all attempts
    retries: int = 3

    @property
    def place(self) -> str:
        return f"embedders.{self.name}"


@dataclass(frozen=True, kw_only=True)
class EmbeddingLimits:
    """The limits of a request. A text longer than `text_bytes` is cut, since the service would
    refuse it."""

    texts: int
    tokens: int
    text_bytes: int


class EmbeddingRequestFailed(Exception):
    """A request that failed: the status (0: no response), the reason of the service, and how long
    it asks to wait."""

    def __init__(self, status: int, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.wait_s = wait_s


class Service(Protocol):
    """One model at one service. Raises RequestFailed, and SourceMalformed for an invalid answer.
    `in_context`: the texts of one call are the passages of one document, and each vector depends on
    its neighbours."""

    @property
    def in_context(self) -> bool: ...

    async def embed(
        self, texts: Sequence[str], kind: InputKind, timeout_s: float, /
    ) -> Vectors: ...

    async def aclose(self) -> None: ...


class ServiceEmbedder:
    """An `Embedder` over a `Service`. Raises SourceNotConfigured without a key, SourceRefused,
    SourceRateLimited, SourceTimeout, SourceMalformed, and SourceError when the service fails or
    cannot be reached."""

    def __init__(
        self,
        service: Service,
        access: EmbedderAccess,
        limits: EmbeddingLimits,
        *,
        model: str,
        dimensions: int,
        curve: Curve,
    ) -> None:
        self.provider = access.name
        self.model = model
        self.dimensions = dimensions
        self.in_context = service.in_context
        self._service = service
        self._access = access
        self._limits = limits
        self._curve = curve

    async def embed_query(self, text: str, /) -> list[float]:
        return (await self.embed_queries([text]))[0]

    async def embed_queries(self, texts: Sequence[str], /) -> Vectors:
        return await self._embed(texts, "query", self._access.query_s)

    async def embed_documents(self, texts: Sequence[str], /) -> Vectors:
        return await self._embed(texts, "document", self._access.batch_s)

    async def _embed(self, texts: Sequence[str], kind: InputKind, budget_s: float) -> Vectors:
        batches = list(make_batches(texts, self._limits))
        done: dict[int, Vectors] = {}
        waiting = iter(range(len(batches)))

        async def embed_next() -> None:
            for index in waiting:
                done[index] = await self._request(batches[index], kind, budget_s)

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                for _ in range(min(AT_ONCE, len(batches))):
                    tasks.start_soon(embed_next)
        return [vector for index in range(len(batches)) for vector in done[index]]

    def similarity(self, cosine: float, /) -> float:
        return self._curve.similarity(cosine)

    @property
    def curve_source(self) -> CurveSource:
        return self._curve.source

    def count_tokens(self, text: str, /) -> int:
        return embedding_tokens(text)

    async def aclose(self) -> None:
        await self._service.aclose()

    async def _request(self, texts: Sequence[str], kind: InputKind, budget_s: float) -> Vectors:
        """Send a request; retry until it succeeds, fails permanently, or the time is up."""
        if self._access.needs_key and not self._access.key:
            raise missing_key_error(self._access)
        sendable_texts = [shorten_text(text, self._limits.text_bytes) for text in texts]
        last: EmbeddingRequestFailed | None = None
        try:
            with anyio.fail_after(budget_s) as scope:
                for attempt in range(self._access.retries + 1):
                    try:
                        return self._check(
                            await self._service.embed(sendable_texts, kind, budget_s),
                            len(sendable_texts),
                        )
                    except EmbeddingRequestFailed as exc:
                        last = exc
                        wait_s = _wait(exc, attempt)
                        late = anyio.current_time() + wait_s >= scope.deadline
                        if (
                            attempt == self._access.retries
                            or late
                            or (exc.status and exc.status not in _MAY_RECOVER)
                        ):
                            raise source_error(exc, self._access) from exc
                        await anyio.sleep(wait_s)
        except TimeoutError as exc:
            # The last failure is more helpful than a timeout.
            if last is not None:
                raise source_error(last, self._access) from exc
            setting = "query_timeout_ms" if kind == "query" else "timeout_ms"
            raise SourceTimeout(
                f"the embedding service {self._access.name!r} did not answer within {budget_s:g} s",
                hint=f"{self._access.place}.{setting} in agent/agent.yml sets the limit",
            ) from exc
        raise AssertionError("every attempt returns or raises")

    def _check(self, vectors: Vectors, expected: int) -> Vectors:
        """Check that there is a vector of the right dimensions for each text; return them with unit
        length. Raises SourceMalformed."""
        if len(vectors) != expected:
            raise malformed_error(self._access, f"{len(vectors)} vectors for {expected} texts")
        return [self._normalise(vector) for vector in vectors]

    def _normalise(self, vector: list[float]) -> list[float]:
        if len(vector) != self.dimensions:
            raise SourceMalformed(
                f"the embedding service {self._access.name!r} sends vectors of {len(vector)}"
                f" dimensions for {self.model!r}, and the collection is declared with"
                f" {self.dimensions}",
                hint=(
                    f"set embedding.dimensions: {len(vector)} in its .kb.yao, or a size that the"
                    " model supports"
                ),
            )
        length = math.sqrt(math.fsum(value * value for value in vector))
        if not math.isfinite(length) or length == 0.0:
            raise malformed_error(self._access, "a vector that has no direction")
        return [value / length for value in vector]


# ----------------------------------------------------------------------------------------- requests


def make_batches(texts: Sequence[str], limits: EmbeddingLimits) -> Iterator[Sequence[str]]:
    """Yield the texts in order, in batches for one request each. A single text may exceed the limit
    of tokens."""
    start = tokens = 0
    for index, text in enumerate(texts):
        more = embedding_tokens(text[: limits.text_bytes])
        if index > start and (index - start >= limits.texts or tokens + more > limits.tokens):
            yield texts[start:index]
            start, tokens = index, 0
        tokens += more
    if start < len(texts):
        yield texts[start:]


def shorten_text(text: str, most_bytes: int) -> str:
    """Return the text as a service accepts it: at most `most_bytes`, complete characters, not
    empty."""
    kept = text.encode(errors="replace")[:most_bytes].decode(errors="ignore")
    return kept if kept.strip() else "-"


# ------------------------------------------------------------------------------------------- errors


def missing_key_error(access: EmbedderAccess) -> SourceNotConfigured:
    return SourceNotConfigured(
        f"the embedding service {access.name!r} has no key",
        hint=(
            f"set {access.variable}, or {access.place}.key in agent/agent.yml"
            if access.variable
            else f"set {access.place}.key"
        ),
    )


def malformed_error(access: EmbedderAccess, what: str) -> SourceMalformed:
    return SourceMalformed(
        f"the embedding service {access.name!r} answered with {what}",
        hint=f"{access.place}.host is the base URL of its API",
    )


def source_error(failure: EmbeddingRequestFailed, access: EmbedderAccess) -> SourceError:
    """Return the error for a failed request."""
    who = f"the embedding service {access.name!r}"
    reason = f": {failure.reason}" if failure.reason else ""
    if failure.status == 0:
        return SourceError(
            f"{who} cannot be reached at {access.host}{reason}",
            hint=f"{access.place}.host is its address",
        )
    if failure.status in (401, 403):
        hint = (
            f"check {access.variable or f'{access.place}.key'}"
            if access.key
            else f"no key is set; see {access.place}.key"
        )
        return SourceRefused(f"{who} refused the key ({failure.status}){reason}", hint=hint)
    if failure.status == 429:
        wait = f"; it asks to wait {failure.wait_s:g} s" if failure.wait_s else ""
        return SourceRateLimited(
            f"{who} has had too many requests (429){reason}{wait}", hint="try again later"
        )
    if failure.status == 404:
        return SourceRefused(
            f"{who} found no such model or path (404){reason}",
            hint=f"check embedding.model and {access.place}.host",
        )
    if 400 <= failure.status < 500:
        return SourceRefused(f"{who} refused the request ({failure.status}){reason}")
    return SourceError(f"{who} failed ({failure.status}){reason}")


def _wait(failure: EmbeddingRequestFailed, attempt: int) -> float:
    if failure.wait_s is not None:
        return failure.wait_s
    longest: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**attempt)
    # Jitter: requests refused together must not return together.
    return longest * random.uniform(0.7, 1.0)


def one_line(text: object) -> str:
    """Return text of a service on one line, short enough for a message."""
    return shortened(str(text or ""), 300)


@contextmanager
def translate_malformed(access: EmbedderAccess) -> Iterator[None]:
    """Raise SourceMalformed for errors while an answer is read."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise malformed_error(access, "something of another shape than documented") from exc
