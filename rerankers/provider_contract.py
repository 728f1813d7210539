"""The contract of a rerank provider: what it receives, what it returns, and how it fails. Plug-in
packages implement it as the built-in providers do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from groundhook.core.concealed import shortened
from groundhook.core.errors import RerankError
from groundhook.core.types.closing import OnClose

Scores = list[tuple[int, float]]  # (position in the texts, relevance)

# Of an answer: it has a position and a number for each of a few hundred texts.
MAX_BYTES = 4 * 1024 * 1024
MOST_VALUES = 50_000


@dataclass(frozen=True, kw_only=True)
class RerankerAccess:
    """A service's base URL and key. `variable` is the environment variable that the key was read
    from ("" for none); `closing` registers an async function to await when the app closes."""

    host: str
    key: str = field(default="", repr=False)
    variable: str = ""
    closing: OnClose = field(repr=False, compare=False)


class RerankRequestFailed(Exception):
    """A request that failed: its HTTP status (0: no answer arrived), the service's reason in at
    most 300 characters, and the seconds to wait before a retry (None: not given)."""

    def __init__(self, status: int, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.wait_s = status, shortened(reason, 300), wait_s


class Provider(Protocol):
    """A service that scores texts by their relevance to a query."""

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        """Return the relevance of each text, 0-1 or raw, higher is better. Raises RequestFailed,
        and RerankError for an unreadable answer. The caller enforces `timeout_s` (seconds) too,
        since no client has a total deadline."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderType:
    """A provider's entry in the registry. `variables` are the environment variables that may hold
    its key, of which the first that is set counts; empty: it needs no key. `host` and `model` are
    its defaults ("": none; `host` must be configured then). `max_chars` is the default limit of a
    text's length. `make` opens it for an address and a key. `local`: it is a folder, named by
    `search.rerank.path`, and its address is that folder's path."""

    variables: tuple[str, ...]
    host: str
    model: str
    max_chars: int
    make: Callable[[RerankerAccess], Provider]
    local: bool = False


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """Raise RerankError for the errors that parsing an answer of the wrong shape raises."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as exc:
        raise RerankError(f"the answer of {name!r} is not a ranking", hint=_SHAPE) from exc


def parse_score(value: Any) -> float:
    """Return a relevance as a float. Raises ValueError for anything but a finite number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or value != value
        or value in (float("inf"), float("-inf"))
    ):
        raise ValueError("not a finite number")
    return float(value)


def parse_index(value: Any) -> int:
    """Return a position. Raises ValueError for anything but an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("not a position")
    return value


_SHAPE = "search.rerank.host, if set, must be the address of the provider's API"
