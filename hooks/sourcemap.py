"""Source maps: from a place in emitted JavaScript back to the author's file.

Owns the decoding of `mappings` (base64 VLQ, ECMA-426) of maps with one source; pure. Lines and
columns count from 0, as in the format; columns are UTF-16 units.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
VALUE = {digit: value for value, digit in enumerate(DIGITS)}

Segment = tuple[int, int, int]  # emitted column, source line, source column


def decode_vlq(text: str) -> list[int]:
    """Return the numbers of one segment. Raises ValueError for a character that is not a digit and
    for an incomplete number."""
    numbers: list[int] = []
    value = shift = 0
    for char in text:
        if char not in VALUE:
            raise ValueError(f"{char!r} is not a base64 digit")
        digit = VALUE[char]
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    if shift:
        raise ValueError("the last number is incomplete")
    return numbers


def decode_mappings(mappings: str) -> list[list[Segment]]:
    """Return the segments of each emitted line, by column. Raises ValueError."""
    lines: list[list[Segment]] = []
    source_line = source_column = 0
    for line in mappings.split(";"):
        column = 0
        segments: list[Segment] = []
        for numbers in _segments(line):
            column += numbers[0]
            if len(numbers) >= 4:
                source_line += numbers[2]
                source_column += numbers[3]
                segments.append((column, source_line, source_column))
        lines.append(segments)
    return lines


def find_original(mappings: str, line: int, column: int) -> tuple[int, int] | None:
    """Return the source (line, column) of an emitted place, None when the map has none."""
    lines = decode_mappings(mappings)
    if not 0 <= line < len(lines) or not lines[line]:
        return None
    segments = lines[line]
    index = bisect_right(segments, column, key=lambda segment: segment[0])
    _, source_line, source_column = segments[max(index - 1, 0)]
    return source_line, source_column


def _segments(line: str) -> Iterator[list[int]]:
    for text in line.split(","):
        if text:
            yield decode_vlq(text)
