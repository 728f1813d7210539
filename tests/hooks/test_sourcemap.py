"""Source maps: decoding is the inverse of encoding, and places are found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.hooks.sourcemap import DIGITS, VALUE, decode_mappings, decode_vlq, find_original


def encode_vlq(numbers: Sequence[int]) -> str:
    """What `decode_vlq` decodes."""
    text = ""
    for number in numbers:
        left = (-number << 1) | 1 if number < 0 else number << 1
        while True:
            digit, left = left & 31, left >> 5
            text += DIGITS[digit | 32 if left else digit]
            if not left:
                break
    return text


NUMBERS = st.lists(st.integers(-(2**40), 2**40))


@given(NUMBERS)
def test_decoding_undoes_encoding(numbers: list[int]) -> None:
    assert decode_vlq(encode_vlq(numbers)) == numbers


@given(st.text(alphabet=DIGITS))
def test_any_digits_decode_or_are_refused_as_cut_short(text: str) -> None:
    if text and VALUE[text[-1]] & 32:
        with pytest.raises(ValueError, match="incomplete"):
            decode_vlq(text)
    else:
        assert len(decode_vlq(text)) <= len(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", []), ("A", [0]), ("C", [1]), ("D", [-1]), ("gB", [16]), ("2HwcqxB", [123, 456, 789])],
)
def test_known_segments(text: str, numbers: list[int]) -> None:
    assert decode_vlq(text) == numbers


def test_a_strange_character_is_refused() -> None:
    with pytest.raises(ValueError, match="not a base64 digit"):
        decode_vlq("A-B")


SEGMENTS = st.lists(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500)), max_size=6),
    min_size=1,
    max_size=6,
)


@given(SEGMENTS)
def test_mappings_decode_to_the_segments_they_were_made_of(
    lines: list[list[tuple[int, int, int]]],
) -> None:
    lines = [sorted(line) for line in lines]
    text, source_line, source_column = [], 0, 0
    for line in lines:
        parts, column = [], 0
        for to_column, to_line, to_source_column in line:
            parts.append(
                encode_vlq(
                    [to_column - column, 0, to_line - source_line, to_source_column - source_column]
                )
            )
            column, source_line, source_column = to_column, to_line, to_source_column
        text.append(",".join(parts))
    assert decode_mappings(";".join(text)) == lines


def test_a_place_is_that_of_the_last_segment_before_it() -> None:
    mappings = ";" + ",".join((encode_vlq([4, 0, 2, 0]), encode_vlq([6, 0, 1, 3])))
    assert find_original(mappings, 1, 5) == (2, 0)
    assert find_original(mappings, 1, 10) == (3, 3)
    assert find_original(mappings, 1, 0) == (2, 0)
    assert find_original(mappings, 0, 0) is None
    assert find_original(mappings, 9, 0) is None
