"""Events of a stream are read as the SDKs read them, in time that grows with their bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import anthropic._streaming
import anyio
import anyio.lowlevel
import openai._streaming
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundhook.core.json_text import NotJson
from groundhook.host.llm.server_events import EventDecoder, ServerEvent

LINES = st.sampled_from(
    ["data: a", "data:b: c", "data", "event: e", "event:", ": hm", "other: x", "é", "", ""]
)
ENDS = st.sampled_from(["\n", "\r\n", "\n\n"])


async def _pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _read(decoder: Any, pieces: Sequence[bytes]) -> list[tuple[str | None, str]]:
    events = decoder.aiter_bytes(_pieces(pieces))
    return [(event.event, event.data) async for event in events if event.event or event.data]


@pytest.mark.parametrize("sdk", [anthropic._streaming, openai._streaming])
@settings(max_examples=30)
@given(lines=st.lists(st.tuples(LINES, ENDS), max_size=12), cuts=st.lists(st.integers(0, 99)))
async def test_events_are_those_that_the_sdks_read_wherever_their_bytes_are_cut(
    sdk: Any, lines: list[tuple[str, str]], cuts: list[int]
) -> None:
    whole = "".join(line + end for line, end in [*lines, ("", "\n\n")]).encode()
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    wanted = await _read(sdk.SSEDecoder(), [whole])
    assert await _read(EventDecoder(), pieces) == wanted


async def test_an_event_of_many_lines_is_one_text() -> None:
    text = b"data: a\n" * 100_000
    pieces = [text[at : at + 60_000] for at in range(0, len(text), 60_000)]
    [(_, data)] = await _read(EventDecoder(), [*pieces, b"\n"])
    assert data.count("\n") == 100_000 - 1


@pytest.mark.parametrize("line", [b"data: ", b"data: a\n", b"event: a\n", b"a"])
async def test_an_event_that_never_ends_is_refused(line: bytes) -> None:
    piece = line * (10_000 // len(line))
    with pytest.raises(ValueError, match="an event is larger than 100000 bytes"):
        await _read(EventDecoder(largest=100_000), [piece] * 12)


async def test_a_packed_piece_is_read_while_others_have_their_turn() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        decoder = EventDecoder()
        assert await _read(decoder, [b"\xef\xbb\xbf" + b":\n" * 250_000]) == []
        tasks.cancel_scope.cancel()
    assert decoder.comments == 250_000
    assert turns > 5


def test_the_value_of_an_event_is_held_to_the_bounds_of_json() -> None:
    assert ServerEvent(None, '{"a": NaN}').json() == {"a": None}
    for data in ("[" * 5000, "9" * 5000, "[" + "{}," * 200_000 + "{}]"):
        with pytest.raises(NotJson):
            ServerEvent(None, data).json()
