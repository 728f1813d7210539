"""multilingual-e5-small computed by onnxruntime: a graph without weights, stored beside this
module, with the weights of the file, repacked in memory.

A call computes one text. Batches are no faster, and a vector would depend on the other texts of its
batch, since activations share one scale.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from groundhook.core.onnx_runtime import OnnxModel
from groundhook.handlers.kb.embedders.e5.file import Floats, ModelFile, dequantise
from groundhook.handlers.kb.embedders.e5.tokens import Tokens
from groundhook.handlers.kb.embedders.e5.weights import ARITHMETIC, Arithmetic, weights

_WINDOW = 510  # tokens of a window, without the end marks


class Session:
    """An `Engine`, usable from any thread. It takes 150 MB."""

    def __init__(self, file: ModelFile, arithmetic: Arithmetic = ARITHMETIC) -> None:
        """Raises UnknownWeights, and Unusable if onnxruntime cannot be used."""
        file.check()
        graph = Path(__file__).with_name(f"encoder-{arithmetic}.onnx").read_bytes()
        # graph and tokenizer load in parallel, a tenth of a second each
        with ThreadPoolExecutor(1) as beside:
            model = beside.submit(lambda: OnnxModel(graph, weights=weights(file, arithmetic)))
            self._tokens = Tokens(file)
            self._model = model.result()
        self._ends = file.begin, file.end
        self._words = file.blocks("emb.word", file.hidden)
        places = file.floats("emb.pos").reshape(-1, file.hidden)
        self._places = places + file.floats("emb.type")[: file.hidden]

    def query(self, text: str) -> Floats:
        return self._embed("query: " + text)

    def passage(self, text: str) -> Floats:
        return self._embed("passage: " + text)

    def token_count(self, text: str) -> int:
        return len(self._tokens.ids("passage: " + text)) + len(self._ends)

    def _embed(self, text: str) -> Floats:
        """Return the vector of a text: the mean of its windows, weighted by their tokens."""
        begin, end = self._ends
        ids = self._tokens.ids(text.partition("\0")[0])
        total: Floats = np.zeros(self._places.shape[1], np.float32)
        for start in range(0, len(ids), _WINDOW):
            window = ids[start : start + _WINDOW]
            rows = self._words[np.array([begin, *window, end])]
            embedded = dequantise(rows) + self._places[: len(rows)]
            [mean] = self._model.run(["mean"], {"embeds": embedded[None]})
            total += mean[0] * len(window)
        total /= np.sqrt(max(float(total @ total), 1e-12))
        return total
