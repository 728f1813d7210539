"""multilingual-e5-small computed by onnxruntime: a graph without weights, stored beside this
module, with the weights of the file, repacked in memory.

A call computes one text. Batches are no faster, and a vector would depend on the other texts of its
batch, since activations share one scale.

The tokenizer of multilingual-e5-small: the pieces of a text by the unigram model, over the
vocabulary in the file of weights.

Words are tokenised one by one and cached: 5 µs per token of ordinary text. The ids equal those of
the model's own engine.

Repack the weights of the file, in memory, for the graph of the encoder.

`int8` computes with 7-bit weights (one scale for each output channel) and 8-bit activations; sums
of pairs of products then fit into 16 bits, so that processors with and without VNNI give equal
results. Three matrices whose inputs are too uneven for one scale stay in float arithmetic. `exact`
keeps all weights as in the file, 4 bits, with float arithmetic.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundhook.core.onnx_runtime import OnnxModel
from groundhook.handlers.kb.embedders.e5.file import Bytes, Floats, ModelFile, dequantise

Arithmetic = Literal["int8", "exact"]
ARITHMETIC: Arithmetic = "int8"  # half the time of exact, with cosines ≥ .99 to it

IN_FLOATS = frozenset({"l0.fo", "l4.fo", "l5.fo"})
_LARGEST = 64  # absolute value of a 7-bit weight


def weights(file: ModelFile, arithmetic: Arithmetic) -> dict[str, NDArray[Any]]:
    """Return the initializers of the graph by name."""
    made: dict[str, NDArray[Any]] = {name: file.floats(name) for name in ("emb.ln.w", "emb.ln.b")}
    for layer in range(file.layers):
        at = f"l{layer}."
        made[f"{at}qkv.b"] = np.concatenate([file.floats(f"{at}{name}.b") for name in "qkv"])
        for name in ("aln.w", "aln.b", "ao.b", "fi.b", "oln.w", "oln.b", "fo.b"):
            made[at + name] = file.floats(at + name)
        matrices = {
            "qkv": np.concatenate([file.blocks(f"{at}{name}.w", file.hidden) for name in "qkv"]),
            "ao": file.blocks(f"{at}ao.w", file.hidden),
            "fi": file.blocks(f"{at}fi.w", file.hidden),
            "fo": file.blocks(f"{at}fo.w", file.inner),
        }
        for name, blocks in matrices.items():
            if arithmetic == "exact" or at + name in IN_FLOATS:
                made[f"{at}{name}.nibbles"], made[f"{at}{name}.scales"] = _in_4_bits(blocks)
            else:
                made[f"{at}{name}.int8"], made[f"{at}{name}.scale"] = _in_7_bits(blocks)
    return made


def _in_4_bits(blocks: Bytes) -> tuple[Bytes, Floats]:
    """Return the same weights with neighbours in one byte, and the scale of each block."""
    packed = blocks[..., 2:]
    values = np.concatenate([packed & 15, packed >> 4], -1)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    return values[..., 0::2] | values[..., 1::2] << 4, scales.reshape(-1)


def _in_7_bits(blocks: Bytes) -> tuple[NDArray[np.int8], Floats]:
    """Return weights [inputs, outputs], and the scale of each output."""
    floats = dequantise(blocks)
    scale = np.maximum(np.maximum(floats.max(1), -floats.min(1)), 1e-8) / _LARGEST
    floats /= scale[:, None]
    np.rint(floats, out=floats)
    return np.ascontiguousarray(floats.T, np.int8), scale


_BLANK = "\u2581"  # marks a piece at the beginning of a word
_BLANKS = re.compile("  +")
_CACHED, _LONGEST_CACHED = 1 << 16, 64  # words in the cache, and characters of the longest one
_AT_ONCE = 1 << 14  # characters of a word that are tokenised together: memory grows with them
_UNKNOWN_PENALTY = 10.0  # log-probability of an unknown character, below that of the rarest piece


class _Tokenizer:
    """The tokenizer. Usable from any thread."""

    def __init__(self, file: ModelFile) -> None:
        pieces = file.pieces()
        self._pieces = dict(zip(pieces, range(len(pieces)), strict=True))
        del self._pieces[pieces[file.unknown]]
        self._scores = file.scores.tolist()
        self._normalisation = file.normalisation
        self._unknown = file.unknown
        self._unknown_score = float(file.scores.min()) - _UNKNOWN_PENALTY
        self._longest = max(map(len, pieces))
        self._cached_cut = lru_cache(_CACHED)(self._cut)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, without the two that mark its beginning and end."""
        plain = _BLANKS.sub(" ", text.translate(self._normalisation))
        ids: list[int] = []
        for word in plain.removeprefix(" ").split(" "):
            marked = _BLANK + word
            if len(marked) <= _LONGEST_CACHED:
                ids += self._cached_cut(marked)
            else:
                for start in range(0, len(marked), _AT_ONCE):
                    ids += self._cut(marked[start : start + _AT_ONCE])
        return ids

    def _cut(self, word: str) -> tuple[int, ...]:
        """Return the most likely pieces of a word (Viterbi)."""
        pieces, scores, longest = self._pieces.get, self._scores, self._longest
        size = len(word)
        best = [0.0] + [float("-inf")] * size
        # (start, id) of the last piece on the best path to each offset
        last = [(0, 0)] * (size + 1)
        for start in range(size):
            so_far = best[start]
            for stop in range(start + 1, min(size, start + longest) + 1):
                id = pieces(word[start:stop])
                if id is not None and so_far + scores[id] > best[stop]:
                    best[stop] = so_far + scores[id]
                    last[stop] = (start, id)
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1] = so_far + self._unknown_score
                last[start + 1] = (start, self._unknown)
        ids = []
        place = size
        while place:
            place, id = last[place]
            ids.append(id)
        return tuple(reversed(ids))


_WINDOW = 510  # tokens of a window, without the end marks


class E5Session:
    """An `Engine`, usable from any thread. It takes 150 MB."""

    def __init__(self, file: ModelFile, arithmetic: Arithmetic = ARITHMETIC) -> None:
        """Raises UnknownWeights, and Unusable if onnxruntime cannot be used."""
        file.check()
        graph = Path(__file__).with_name(f"encoder-{arithmetic}.onnx").read_bytes()
        # graph and tokenizer load in parallel, a tenth of a second each
        with ThreadPoolExecutor(1) as beside:
            model = beside.submit(lambda: OnnxModel(graph, weights=weights(file, arithmetic)))
            self._tokens = _Tokenizer(file)
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
