"""Text that grows by pieces."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.pieces import TextPieces, grown, last_of
from groundhook.core.ports import ToolDelta
from groundhook.host.turn.draft import Draft, step

LENGTHS = st.lists(st.integers(0, 40), max_size=200)


def added(lengths: Sequence[int]) -> tuple[str, TextPieces, int]:
    """The text of pieces of these lengths, its pieces, and the characters that were copied."""
    parts: list[str] = []
    pieces, copied = TextPieces(), 0
    for at, length in enumerate(lengths):
        piece = chr(ord("a") + at % 26) * length
        parts.append(piece)
        pieces = grown(pieces, piece)
        copied += len(pieces[-1]) if pieces else 0
    return "".join(parts), pieces, copied


@given(LENGTHS, st.integers(1, 300))
def test_the_pieces_are_the_text_and_few(lengths: Sequence[int], last: int) -> None:
    text, pieces, _ = added(lengths)
    assert "".join(pieces) == text
    assert len(pieces) <= len(text).bit_length()
    assert last_of(pieces, last) == text[-last:]


def test_an_answer_of_many_pieces_copies_each_character_a_few_times() -> None:
    text, _, copied = added([5] * 100_000)
    assert copied < 20 * len(text)  # a text that is copied for each piece: 50,000 times


def test_arguments_of_a_tool_call_grow_by_pieces_and_are_one_text() -> None:
    draft = step(Draft(), ToolDelta(1, "b", "add", "{}"))
    for number in range(2000):
        draft = step(draft, ToolDelta(0, "a", "say", str(number % 10)))
    written = "".join(str(number % 10) for number in range(2000))
    assert draft.calls == (ToolDelta(0, "a", "say", written), ToolDelta(1, "b", "add", "{}"))
    assert len(draft.begun[0].pieces) <= len(written).bit_length()
