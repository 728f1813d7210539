"""The fold over the deltas of an answer: whole characters, and thinking apart from the answer."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.ports import Delta, ReasoningDelta, TextDelta
from groundhook.core.types.base import well_formed
from groundhook.host.llm.deltas import Settling, end, read

# Text as the endpoints send it, a character outside the first plane as two halves.
PIECE = st.text(st.sampled_from("\ud83d\ude00a <>/\n") | st.characters(), max_size=4)
TAGGED = st.lists(st.sampled_from(["<think>", "</think>", "<thi", "\n", "a", "<", "\ud83d"]))


def settle(
    pieces: Sequence[str], kind: type[TextDelta | ReasoningDelta] = TextDelta
) -> list[Delta]:
    state, settled = Settling(), list[Delta]()
    for piece in pieces:
        state, more = read(state, kind(piece))
        settled += more
    return [*settled, *end(state)]


def joined(settled: Sequence[Delta], kind: type[TextDelta | ReasoningDelta]) -> str:
    return "".join(delta.text for delta in settled if isinstance(delta, kind))


@given(st.lists(PIECE), st.sampled_from([TextDelta, ReasoningDelta]))
def test_the_pieces_of_a_text_are_together_the_whole_text_wherever_it_is_cut(
    pieces: list[str], kind: type[TextDelta | ReasoningDelta]
) -> None:
    settled = settle(pieces, kind)
    assert joined(settled, kind) == well_formed("".join(pieces))
    for delta in settled:
        assert isinstance(delta, kind)
        delta.text.encode()  # no half of a character


@given(TAGGED)
def test_thinking_is_the_same_wherever_the_text_is_cut(words: list[str]) -> None:
    text = "".join(words)
    whole, cut = settle([text]), settle(list(text))
    for kind in (TextDelta, ReasoningDelta):
        assert joined(whole, kind) == joined(cut, kind)
    assert text.lstrip().startswith("<think>") or not joined(whole, ReasoningDelta)


def test_a_long_beginning_of_blanks_is_not_held_back() -> None:
    state, settled = read(Settling(), TextDelta(" " * 100))
    assert settled == [TextDelta(" " * 100)]
    assert not end(state)
