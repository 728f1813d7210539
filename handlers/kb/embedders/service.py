"""Embedding models behind a network: what every service has in common.

`ServiceEmbedder` cuts texts into requests that the service accepts, sends a few of them at once,
tries again what may be tried again, keeps to a deadline for the whole, and turns whatever goes
wrong into one error that names the service. A `Service` makes one request and says plainly how it
failed; it knows nothing of retries.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol

import anyio

from groundhook.handlers.kb.embed import estimated_tokens
from groundhook.handlers.kb.embedders.curve import Curve
from groundhook.host.core.errors import (
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.host.core.exception_groups import unwrapped

Kind = Literal["query", "document"]
Vectors = list[list[float]]

AT_ONCE = 4  # requests under way for one call
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 16.0  # seconds between tries where the service does not say
_MAY_RECOVER = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a service is and how it is asked. `name` is what the app calls it, `variable` the
    environment variable that its key is looked up in, `place` the setting that holds it
    otherwise."""

    name: str
    host: str
    key: str = field(default="", repr=False)
    variable: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    needs_key: bool = True
    query_s: float = 6.0  # for a question, with all tries
    batch_s: float = 120.0  # for one request of documents, with all tries
    retries: int = 3

    @property
    def place(self) -> str:
        return f"embedders.{self.name}"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may hold. `text_bytes`: a longer text is cut, where the service would refuse
    it."""

    texts: int
    tokens: int
    text_bytes: int


class Failed(Exception):
    """A request that failed: the status (0: no answer arrived), what the service said, and how long
    it asks to wait."""

    def __init__(self, status: int, said: str, wait_s: float | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.wait_s = wait_s


class Service(Protocol):
    """One model at one service. Raises Failed, SourceMalformed for an answer that is none.
    `in_context`: the texts of one call are the passages of one document, and each vector knows
    those around it."""

    @property
    def in_context(self) -> bool: ...

    async def embed(self, texts: Sequence[str], kind: Kind, timeout_s: float, /) -> Vectors: ...

    async def aclose(self) -> None: ...


class ServiceEmbedder:
    """An `Embedder` over a `Service`. Raises SourceNotConfigured without a key, SourceRefused,
    SourceRateLimited, SourceTimeout, SourceMalformed, and SourceError when the service fails or
    cannot be reached."""

    def __init__(
        self,
        service: Service,
        access: Access,
        limits: Limits,
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
        return (await self._request([text], "query", self._access.query_s))[0]

    async def embed_documents(self, texts: Sequence[str], /) -> Vectors:
        batches = list(batched(texts, self._limits))
        done: dict[int, Vectors] = {}
        waiting = iter(range(len(batches)))

        async def work() -> None:
            for index in waiting:
                done[index] = await self._request(batches[index], "document", self._access.batch_s)

        with unwrapped():
            async with anyio.create_task_group() as tasks:
                for _ in range(min(AT_ONCE, len(batches))):
                    tasks.start_soon(work)
        return [vector for index in range(len(batches)) for vector in done[index]]

    def similarity(self, cosine: float, /) -> float:
        return self._curve.similarity(cosine)

    def count_tokens(self, text: str, /) -> int:
        return estimated_tokens(text)

    async def aclose(self) -> None:
        await self._service.aclose()

    async def _request(self, texts: Sequence[str], kind: Kind, budget_s: float) -> Vectors:
        """One request, tried until it answers, may not be tried again, or the time is up."""
        if self._access.needs_key and not self._access.key:
            raise no_key(self._access)
        asked = [sendable(text, self._limits.text_bytes) for text in texts]
        last: Failed | None = None
        try:
            with anyio.fail_after(budget_s) as scope:
                for tried in range(self._access.retries + 1):
                    try:
                        return self._checked(
                            await self._service.embed(asked, kind, budget_s), len(asked)
                        )
                    except Failed as exc:
                        last = exc
                        wait_s = _wait(exc, tried)
                        late = anyio.current_time() + wait_s >= scope.deadline
                        if (
                            tried == self._access.retries
                            or late
                            or (exc.status and exc.status not in _MAY_RECOVER)
                        ):
                            raise meaning(exc, self._access) from exc
                        await anyio.sleep(wait_s)
        except TimeoutError as exc:
            if (
                last is not None
            ):  # the reason for trying again says more than that time ran out meanwhile
                raise meaning(last, self._access) from exc
            setting = "query_timeout_ms" if kind == "query" else "timeout_ms"
            raise SourceTimeout(
                f"the embedding service {self._access.name!r} did not answer within {budget_s:g} s",
                hint=f"{self._access.place}.{setting} in agent/agent.yml sets how long",
            ) from exc
        raise AssertionError("every try returns or raises")

    def _checked(self, vectors: Vectors, wanted: int) -> Vectors:
        """As many vectors as texts, each of the collection's length, made 1 long. Raises
        SourceMalformed."""
        if len(vectors) != wanted:
            raise malformed(self._access, f"{len(vectors)} vectors for {wanted} texts")
        return [self._normal(vector) for vector in vectors]

    def _normal(self, vector: list[float]) -> list[float]:
        if len(vector) != self.dimensions:
            raise SourceMalformed(
                f"the embedding service {self._access.name!r} sends vectors of {len(vector)}"
                f" dimensions for {self.model!r}, and the collection is declared with"
                f" {self.dimensions}",
                hint=(
                    f"say embedding.dimensions: {len(vector)} in its .kb.yao, or a size that the"
                    " model can make"
                ),
            )
        length = math.sqrt(math.fsum(value * value for value in vector))
        if not math.isfinite(length) or length == 0.0:
            raise malformed(self._access, "a vector that has no direction")
        return [value / length for value in vector]


# ------------------------------------------------------------------------------------ what is asked


def batched(texts: Sequence[str], limits: Limits) -> Iterator[Sequence[str]]:
    """The texts in their order, in runs that one request may hold; a text alone may be over the
    limit of tokens."""
    start = tokens = 0
    for index, text in enumerate(texts):
        more = estimated_tokens(text[: limits.text_bytes])
        if index > start and (index - start >= limits.texts or tokens + more > limits.tokens):
            yield texts[start:index]
            start, tokens = index, 0
        tokens += more
    if start < len(texts):
        yield texts[start:]


def sendable(text: str, most_bytes: int) -> str:
    """A text that a service takes: at most so many bytes, whole characters, and not empty."""
    kept = text.encode(errors="replace")[:most_bytes].decode(errors="ignore")
    return kept if kept.strip() else "-"


# ---------------------------------------------------------------------------------- what goes wrong


def no_key(access: Access) -> SourceNotConfigured:
    return SourceNotConfigured(
        f"the embedding service {access.name!r} has no key",
        hint=(
            f"set {access.variable}, or {access.place}.key in agent/agent.yml"
            if access.variable
            else f"set {access.place}.key"
        ),
    )


def malformed(access: Access, what: str) -> SourceMalformed:
    return SourceMalformed(
        f"the embedding service {access.name!r} answered with {what}",
        hint=f"{access.place}.host is the base URL of its API",
    )


def meaning(failed: Failed, access: Access) -> SourceError:
    """A failed request as the error that says what to do."""
    who = f"the embedding service {access.name!r}"
    said = f": {failed.said}" if failed.said else ""
    if failed.status == 0:
        return SourceError(
            f"{who} cannot be reached at {access.host}{said}",
            hint=f"{access.place}.host is its address",
        )
    if failed.status in (401, 403):
        hint = (
            f"check {access.variable or f'{access.place}.key'}"
            if access.key
            else f"no key is set; see {access.place}.key"
        )
        return SourceRefused(f"{who} refused the key ({failed.status}){said}", hint=hint)
    if failed.status == 429:
        wait = f"; it asks to wait {failed.wait_s:g} s" if failed.wait_s else ""
        return SourceRateLimited(
            f"{who} has had too many requests (429){said}{wait}", hint="try again later"
        )
    if failed.status == 404:
        return SourceRefused(
            f"{who} does not know this (404){said}",
            hint=f"check embedding.model and {access.place}.host",
        )
    if 400 <= failed.status < 500:
        return SourceRefused(f"{who} refused the request ({failed.status}){said}")
    return SourceError(f"{who} failed ({failed.status}){said}")


def wait_of(headers: Mapping[str, str]) -> float | None:
    """How many seconds an answer's headers ask to wait: `Retry-After` as seconds or as a date (RFC
    9110, 10.2.3; counted from the answer's own `Date`), or `retry-after-ms`. None when they do not
    say, or not in a way that can be read."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        said = headers.get("retry-after", "").strip()
        if said.replace(".", "", 1).isdigit():
            return float(said)
        if said and "date" in headers:
            return max(
                0.0,
                (
                    parsedate_to_datetime(said) - parsedate_to_datetime(headers["date"])
                ).total_seconds(),
            )
    except (ValueError, TypeError):
        pass
    return None


def _wait(failed: Failed, tried: int) -> float:
    if failed.wait_s is not None:
        return failed.wait_s
    longest: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**tried)
    return longest * random.uniform(
        0.7, 1.0
    )  # so that several that were refused at once do not come back at once


def one_line(text: object) -> str:
    """What a service said, short enough for a message."""
    return " ".join(str(text or "").split())[:300]


@contextmanager
def reading(access: Access) -> Iterator[None]:
    """Raises SourceMalformed for what taking an answer apart raises."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as exc:
        raise malformed(access, "something of another shape than documented") from exc
