"""Repack the weights of the file, in memory, for the graph of the encoder.

`int8` computes with 7-bit weights (one scale for each output channel) and 8-bit activations; sums
of pairs of products then fit into 16 bits, so that processors with and without VNNI give equal
results. Three matrices whose inputs are too uneven for one scale stay in float arithmetic. `exact`
keeps all weights as in the file, 4 bits, with float arithmetic.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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
