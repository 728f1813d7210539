"""Provider for your own cross-encoders, in a folder: `rerank: {type: model, model: onnx, path:
models/reranker}`. The folder has an ONNX graph and a tokenizer.json; nothing leaves the machine.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from groundhook.core.errors import RerankError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.onnx_folder import Computing, ModelFolder
from groundhook.core.onnx_runtime import Unusable
from groundhook.rerankers.provider_contract import ProviderType, RerankerAccess, Scores


class CrossEncoder:
    """A `rerankers.provider_contract.Provider`. The model is loaded by the first call; pairs of the
    question and a text are computed one by one, on every core."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loading = threading.Lock()
        self._computing: Computing | None = None

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        scores: Scores = []
        waiting = iter(enumerate(texts))

        async def work() -> None:
            for index, text in waiting:
                score = await anyio.to_thread.run_sync(
                    self._score, query, text, abandon_on_cancel=True
                )
                scores.append((index, score))

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                for _ in range(min(os.cpu_count() or 1, len(texts))):
                    tasks.start_soon(work)
        return sorted(scores)

    def _score(self, query: str, text: str) -> float:
        """Return the relevance of the text, 0-1."""
        try:
            made = self._load_model().run(query, text).reshape(-1).tolist()
        except Unusable as exc:
            raise RerankError(
                f"the reranking model cannot be used: {exc}",
                hint="see `groundhook docs embedding-models`",
            ) from exc
        if len(made) not in (1, 2) or not all(map(math.isfinite, made)):
            raise RerankError(
                f"the model in {self._folder.name!r} is not a cross-encoder: it gives {len(made)}"
                " values for a pair of texts",
                hint="search.rerank.path must name a model with one value, or two classes",
            )
        raw = made[-1] - (made[0] if len(made) == 2 else 0.0)
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, raw))))

    def _load_model(self) -> Computing:
        with self._loading:
            if self._computing is None:
                self._computing = Computing(ModelFolder(self._folder), ("logits",))
            return self._computing


def _open(access: RerankerAccess) -> CrossEncoder:
    return CrossEncoder(Path(access.host))


ONNX = ProviderType(variables=(), host="", model="", max_chars=8_000, make=_open, local=True)
