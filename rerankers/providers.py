"""The contract of a service that judges texts with a model, narrow enough for a stranger's: what it
is asked, how it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from groundhook.host.core.errors import RerankError

Scores = list[tuple[int, float]]  # position in the texts, and relevance


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a service is and who asks. `variable` is the environment variable that the key came
    from; `closing` takes what must be awaited when the app is closed."""

    host: str
    key: str = field(default="", repr=False)
    variable: str = ""
    closing: Callable[[Callable[[], Awaitable[None]]], object] = field(repr=False, compare=False)


class Failed(Exception):
    """A request that failed: the status (0: no answer arrived), what the service said, and how many
    seconds it asks to wait."""

    def __init__(self, status: int, said: str, wait_s: float | None = None) -> None:
        super().__init__(said)
        self.status, self.said, self.wait_s = status, " ".join(said.split())[:300], wait_s


class Provider(Protocol):
    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        """How relevant each text is. Raises Failed; RerankError for an answer that is none.
        `timeout_s` is also held by the caller, since no client has a total deadline."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderType:
    """A provider as it is registered. `variables` may hold its key, the first that is set; none: it
    needs no key. `host` and `model` are its own ("": must be said). `max_chars` is what a text is
    cut to unless the settings say otherwise."""

    variables: tuple[str, ...]
    host: str
    model: str
    max_chars: int
    make: Callable[[Access], Provider]


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raises RerankError for what reading an answer of the wrong shape raises."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as exc:
        raise RerankError(
            f"{name!r} answered with something that is no ranking", hint=_SHAPE
        ) from exc


def score_of(value: Any) -> float:
    """A relevance as a number. Raises ValueError, also for what is no number (NaN) or has no
    end."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or value != value
        or value in (float("inf"), float("-inf"))
    ):
        raise ValueError("no number")
    return float(value)


def index_of(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no position")
    return value


def wait_of(headers: Mapping[str, str] | None) -> float | None:
    """Seconds that `Retry-After` asks to wait, where it says so in seconds."""
    said = {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}.get(
        "retry-after", ""
    )
    try:
        return max(0.0, float(said))
    except ValueError:
        return None


_SHAPE = "search.rerank.host, if set, must be the address of the provider's API"
