"""Embedding models: text to vectors, and a model's cosine to a similarity that means the same for
every model.

A provider is a factory, `EmbeddingSpec` → `Embedder`, entered under its name in a registry
(`handlers.kb.embedders.providers`); `hash` is one. Models are loaded when they are first used.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Literal, Protocol, runtime_checkable

from groundhook.core.errors import ConfigError
from groundhook.core.language.catalogue import languages
from groundhook.core.language.scripts import normalise
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import EmbeddingSpec

_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\)")
_LONGEST_QUESTION = 300  # characters of a text that is taken for one question
_MARKS = "?？؟!！.。… \t\n"
_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)  # of a table
_BAR = re.compile(r"(?<!\\)\|")

EmbedderFactory = Callable[[EmbeddingSpec], Embedder]


@runtime_checkable
class TokenCounter(Protocol):
    """An embedder that counts the tokens of a text; for others `embedding_tokens` is used."""

    def count_tokens(self, text: str, /) -> int: ...


@runtime_checkable
class Closeable(Protocol):
    """An embedder that holds connections or threads."""

    async def aclose(self) -> None: ...


@runtime_checkable
class ContextualEmbedder(Protocol):
    """An embedder that may look at passages together. Where `in_context` is true, `embed_documents`
    is given the passages of one document, all of them and in their order; a vector then depends on
    its neighbours."""

    @property
    def in_context(self) -> bool: ...


@runtime_checkable
class FallbackEmbedder(Protocol):
    """An embedder that uses a slower engine when its usual one is unavailable."""

    async def fallback(self) -> str:
        """Return the reason and the cost; "" while the usual engine is in use."""
        ...


# Where the curve of a model is from: measured, made of published examples, or a guess.
CurveSource = Literal["measured", "published", "guessed"]


@runtime_checkable
class CurvedEmbedder(Protocol):
    """An embedder whose `similarity` may rest on a curve that was not measured."""

    @property
    def curve_source(self) -> CurveSource: ...


@runtime_checkable
class BatchQueryEmbedder(Protocol):
    """An embedder that embeds several questions faster than one after the other."""

    async def embed_queries(self, texts: Sequence[str], /) -> list[list[float]]: ...


async def embed_questions(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Return a vector for each question, together where the embedder can. Raises its errors."""
    texts = [as_written(text) for text in texts]
    if len(texts) > 1 and isinstance(embedder, BatchQueryEmbedder):
        return await embedder.embed_queries(texts)
    return [await embedder.embed_query(text) for text in texts]


def as_written(text: str) -> str:
    """Return a question with a capital and a question mark, as in the questions by which the curves
    were measured: who types neither finds the same, as surely. Other texts are returned as they
    are."""
    if len(text) > _LONGEST_QUESTION or not _opening().match(text):
        return text
    bare = text.strip().rstrip(_MARKS)
    return f"{bare[:1].upper()}{bare[1:]}?"


@cache
def _opening() -> re.Pattern[str]:
    """Return the pattern of the first words of a question, in the languages that have words for
    them."""
    words = "|".join(
        word for each in languages().values() for word in sorted(each.words("opening questions"))
    )
    return re.compile(rf"\s{{0,9}}(?:{words})\s{{1,9}}\w{{1,40}}\s{{1,9}}\w", re.I)


def curve_source(embedder: Embedder) -> CurveSource:
    """Return where the curve of the embedder's similarities is from."""
    return embedder.curve_source if isinstance(embedder, CurvedEmbedder) else "measured"


def guesses(embedder: Embedder) -> bool:
    """Return whether the embedder's similarities are a guess."""
    return curve_source(embedder) == "guessed"


def in_context(embedder: Embedder) -> bool:
    """Return whether passages must be embedded with all others of their document."""
    return isinstance(embedder, ContextualEmbedder) and embedder.in_context


def without_markup(text: str) -> str:
    """Return a text without what a model would take for content: the addresses of links, and the
    bars and rules of tables in Markdown. A text that has nothing else is returned as it is: some
    services refuse blank ones. `bench.retrieval --only paraphrase` measures its worth."""
    words = text
    if "](" in words:
        for _ in range(2):  # an image may be the text of a link
            words = _LINK.sub(r"\1", words)
    words = _ROW.sub(_cells, words) if "|" in words else words
    return words if words.strip() else text


def _cells(row: re.Match[str]) -> str:
    cells = (cell.strip() for cell in _BAR.split(row[0]))
    return " ".join(cell for cell in cells if cell.strip(":-"))


def embedding_tokens(text: str) -> int:
    """Return about how many tokens a text has for a multilingual embedding model: one for four
    bytes of UTF-8, rounded up."""
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return -(-size // 4)


def least_cosine(similarity: Callable[[float], float], threshold: float) -> float:
    """Return the least cosine whose similarity reaches `threshold`, to within 1e-6 below.
    `similarity` must not fall anywhere."""
    low, high = -1.0, 1.0  # bisection
    if similarity(low) >= threshold:
        return low
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if similarity(middle) >= threshold else (middle, high)
    return low


@lru_cache(maxsize=1 << 16)
def _hash_word(word: str) -> tuple[int, int]:
    """Return a number that selects a dimension, and a sign, 1 or -1."""
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return int.from_bytes(digest[:7], "big"), 1 - 2 * (digest[7] & 1)


class HashEmbedder:
    """Words hashed into a vector: no model, no meaning, the same everywhere, and instant. It
    matches texts that share words; for tests of assistants and for trying out collections without
    waiting for a model."""

    provider = "hash"
    model = "words"

    def __init__(self, spec: EmbeddingSpec) -> None:
        if spec.model not in ("", self.model):
            raise ConfigError(
                f"the hash embedding has no model {spec.model!r}", hint="leave out embedding.model"
            )
        self.dimensions = spec.dimensions or 256

    async def embed_query(self, text: str, /) -> list[float]:
        return self._embed(text)

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    def similarity(self, cosine: float, /) -> float:
        """Texts that share no word have a cosine near 0."""
        return min(1.0, max(0.0, cosine))

    def count_tokens(self, text: str, /) -> int:
        return embedding_tokens(text)

    def _embed(self, text: str) -> list[float]:
        words = Counter(re.findall(r"\w+", normalise(text).lower())) or Counter([""])
        vector = [0.0] * self.dimensions
        for word, count in words.items():
            number, sign = _hash_word(word)
            vector[number % self.dimensions] += sign * math.sqrt(count)
        length = math.hypot(*vector)
        if length == 0.0:  # words that cancel each other out
            vector[0] = length = 1.0
        return [value / length for value in vector]
