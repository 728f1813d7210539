"""What reaches a terminal: no character it would obey, and lines that fit, however the text
arrives."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from groundhook.host.output.flow import Flow, Isolates, one_line, visible

WORDS = st.text(alphabet="ab \n\t你好é", max_size=200)


def flowed(parts: Sequence[str], width: int) -> str:
    flow = Flow(width, cell_len)
    pieces = [piece for part in parts for piece in flow.feed(part)] + flow.end()
    return "".join(text for text, _ in pieces)


@given(st.text())
def test_no_control_character_is_left_but_tabs_and_line_feeds(text: str) -> None:
    assert [
        c for c in visible(text) if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"
    ] == []


def test_an_escape_sequence_is_written_out() -> None:
    assert visible("a\x1b[2Jb\x9b1mc\r\nd\re\u202ef") == "a\\x1b[2Jb\\x9b1mc\nd\\x0de\\u202ef"


@given(st.text())
def test_text_that_is_visible_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)


DIRECTED = st.text(alphabet="ab\n\u2066\u2067\u2068\u2069א", max_size=60)


def open_at_ends(text: str) -> list[int]:
    """How many isolates are open where each line ends; below 0 for an end without a beginning."""
    return [
        sum({"\u2069": -1}.get(sign, 1) for sign in line if "\u2066" <= sign <= "\u2069")
        for line in text.split("\n")
    ]


def test_isolates_that_are_closed_stay_and_others_end_with_their_line() -> None:
    assert visible("a \u2067שלום\u2069 b") == "a \u2067שלום\u2069 b"
    assert visible("a \u2067b\nc\u2069") == "a \u2067b\u2069\nc"
    assert one_line("\u2068title") == "\u2068title\u2069"


@given(DIRECTED, st.lists(st.integers(0, 60)))
def test_no_isolate_reaches_beyond_its_line_however_the_text_arrives(
    text: str, cuts: list[int]
) -> None:
    at = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    isolates = Isolates()
    shown = (
        "".join(isolates.feed(text[start:stop]) for start, stop in pairwise(at)) + isolates.end()
    )
    assert shown == visible(text)
    assert set(open_at_ends(shown)) == {0}
    assert (
        min(
            open_at_ends(
                "".join(f"{line[:n]}\n" for line in shown.split("\n") for n in range(len(line) + 1))
            )
        )
        == 0
    )


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(WORDS, st.lists(st.integers(0, 200)), st.integers(1, 30))
def test_however_text_is_split_its_lines_are_the_same(
    text: str, cuts: list[int], width: int
) -> None:
    at = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    parts = [text[start:stop] for start, stop in pairwise(at)]
    assert flowed(parts, width) == flowed([text], width)


@given(WORDS, st.integers(2, 30))
def test_lines_fit_unless_one_word_does_not(text: str, width: int) -> None:
    for line in flowed([text], width).split("\n"):
        assert (
            cell_len(line) <= width
            or cell_len(line.split()[-1]) > width
            or line.startswith((" ", "\t"))
        )


@given(WORDS, st.integers(0, 30))
def test_no_word_is_lost(text: str, width: int) -> None:
    assert "".join(flowed([text], width).split()) == "".join(text.split())


def test_without_a_width_text_is_not_touched() -> None:
    assert flowed(["a " * 500, " b\n"], 0) == "a " * 500 + " b\n"
