"""Embedding models in a folder of the app: `embedding: {provider: onnx, path: encoders/e5-base}`.

The folder has the files of sentence-transformers: the pooling is in `1_Pooling/config.json` (mean
if it is missing), prefixes of questions and documents are the `prompts` of
`config_sentence_transformers.json`, and `matryoshka_dimensions` of `config.json` lists the
dimensions to which vectors may be cut. Vectors always have unit length.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio.to_thread

from groundhook.core.errors import ConfigError
from groundhook.core.onnx_folder import Computing, ModelFolder
from groundhook.core.onnx_runtime import Unusable
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import CurveSource
from groundhook.handlers.kb.embedders.curve import curve_of
from groundhook.handlers.kb.embedders.on_cpu import CpuEmbedder

_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}


def own_model(root: Path, spec: EmbeddingSpec) -> Embedder:
    """Return the model of a folder below `root`; it is loaded at the first use. Raises ConfigError
    for an incomplete folder."""
    if not spec.path:
        raise ConfigError(
            "the embedding provider 'onnx' needs a folder", hint="set embedding.path to it"
        )
    try:
        return OnnxEmbedder(ModelFolder(root / spec.path), spec)
    except Unusable as exc:
        raise _unusable(exc) from exc


class OnnxEmbedder(CpuEmbedder):
    """An `Embedder` with the model of a folder."""

    provider = "onnx"

    def __init__(self, folder: ModelFolder, spec: EmbeddingSpec) -> None:
        """Raises Unusable, ConfigError."""
        self.model = spec.model or folder.path.name
        self._folder = folder
        pooling = folder.read("1_Pooling/config.json")
        self._pooling = _pooling(folder, pooling)
        self._own = next(
            (
                size
                for size in (
                    pooling.get("word_embedding_dimension"),
                    folder.config.get("hidden_size"),
                    folder.config.get("d_model"),
                    folder.config.get("dim"),
                )
                if isinstance(size, int)
            ),
            spec.dimensions,
        )
        self.dimensions = _dimensions(folder, self._own, spec)
        prompts = folder.read("config_sentence_transformers.json").get("prompts") or {}
        self._before_query = str(prompts.get("query") or "")
        self._before_passage = str(prompts.get("document") or prompts.get("passage") or "")
        self._curve = curve_of(self.model)
        self._loading = threading.Lock()
        self._computing: Computing | None = None

    def similarity(self, cosine: float, /) -> float:
        return self._curve.similarity(cosine)

    @property
    def curve_source(self) -> CurveSource:
        return self._curve.source

    def count_tokens(self, text: str, /) -> int:
        return self._load().count(text)

    async def fallback(self) -> str:
        """Load the model and compute a vector, to report errors now; return "", since it has no
        other engine. Raises ConfigError."""
        await anyio.to_thread.run_sync(self._passage, "")
        return ""

    def _query(self, text: str) -> list[float]:
        return self._vector(self._before_query + text)

    def _passage(self, text: str) -> list[float]:
        return self._vector(self._before_passage + text)

    def _load(self) -> Computing:
        with self._loading:
            if self._computing is None:
                try:
                    self._computing = Computing(self._folder, _OUTPUTS)
                except Unusable as exc:
                    raise _unusable(exc) from exc
            return self._computing

    def _vector(self, text: str) -> list[float]:
        import numpy as np

        computing = self._load()
        try:
            made = computing.run(text)[0]
        except Unusable as exc:
            raise _unusable(exc) from exc
        vector = self._pool(made) if made.ndim == 2 else made
        if vector.ndim != 1 or len(vector) != self._own:
            shape = " × ".join(map(str, vector.shape))
            raise ConfigError(
                f"the embedding model in {self._folder.path.name!r} makes vectors of {shape}"
                f" dimensions, not of {self._own}",
                hint="correct hidden_size in its config.json, or embedding.dimensions",
            )
        vector = vector[: self.dimensions].astype(np.float32)
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0:
            raise ConfigError(
                f"the embedding model in {self._folder.path.name!r} gave a vector of zeros",
                hint="its graph may need another precision: export it with 32-bit floats",
            )
        values: list[float] = (vector / length).tolist()
        return values

    def _pool(self, tokens: Any) -> Any:
        match self._pooling:
            case "cls":
                return tokens[0]
            case "last":
                return tokens[-1]
            case "max":
                return tokens.max(0)
            case _:
                return tokens.mean(0)


def _pooling(folder: ModelFolder, config: dict[str, Any]) -> str:
    """Return the pooling mode. Raises ConfigError for an unknown one, or for several at once."""
    chosen = [key for key, value in config.items() if key.startswith("pooling_mode_") and value]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in _POOLINGS:
        raise ConfigError(
            f"the embedding model in {folder.path.name!r} pools by {', '.join(chosen)}",
            hint=f"set one of {', '.join(_POOLINGS)} in 1_Pooling/config.json",
        )
    return _POOLINGS[chosen[0]]


def _dimensions(folder: ModelFolder, own: int, spec: EmbeddingSpec) -> int:
    """Return the dimensions of the vectors, cut if the spec says so. Raises ConfigError."""
    if not own:
        raise ConfigError(
            f"the folder {folder.path.name!r} does not give the dimensions of its vectors",
            hint="add hidden_size to its config.json, or set embedding.dimensions",
        )
    wanted = spec.dimensions or own
    sizes = folder.config.get("matryoshka_dimensions")
    allowed = sizes if isinstance(sizes, list) else []
    if wanted != own and wanted not in allowed:
        known = f"{own}, or {', '.join(map(str, allowed))}" if allowed else str(own)
        raise ConfigError(
            f"the embedding model in {folder.path.name!r} has vectors of {known} dimensions, not"
            f" of {wanted}",
            hint="embedding.dimensions may be omitted; config.json lists matryoshka_dimensions",
        )
    return wanted


def _unusable(exc: Unusable) -> ConfigError:
    return ConfigError(
        f"the embedding model cannot be used: {exc}", hint="see `groundhook docs embedding-models`"
    )
