"""Citation ids, and reading the markers of a streamed answer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.citations import Book, Grammar, Marker, Piece, Plain, Reading, defuse, read, short_id
from host.types.search import Item

HASH = Grammar.of("#ref:{id}")
BRACKETS = Grammar.of("[{id}]")


def item(key: str) -> Item:
    return Item(type="kb", title=key, content="", key=key)


def whole(text: str, grammar: Grammar) -> list[Piece]:
    return read(Reading(), text, grammar, last=True)[1]


def markers(text: str, grammar: Grammar = HASH) -> list[str]:
    return [piece.text for piece in whole(text, grammar) if isinstance(piece, Marker)]


def in_pieces(parts: list[str], grammar: Grammar) -> list[Piece]:
    reading, pieces = Reading(), list[Piece]()
    for part in parts:
        reading, more = read(reading, part, grammar)
        pieces += more
    pieces += read(reading, "", grammar, last=True)[1]
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, Plain) and isinstance(joined[-1], Plain):
            joined[-1] = Plain(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


@given(st.text())
def test_an_id_is_stable_short_and_holds_a_letter_and_a_digit(key: str) -> None:
    id = short_id(key)
    assert id == short_id(key)
    assert len(id) == 4
    assert any(c.isalpha() for c in id)
    assert any(c.isdigit() for c in id)
    assert short_id(key, 7).startswith(id)


@given(st.lists(st.text(min_size=1), unique=True, max_size=200))
def test_no_two_sources_of_a_turn_share_an_id(keys: list[str]) -> None:
    book = Book("#ref:{id}")
    cited = [book.cite(item(key)).citation_id for key in keys]
    assert len(set(cited)) == len(keys)
    assert [book.cite(item(key)).citation_id for key in keys] == cited


def test_where_two_sources_would_share_an_id_the_later_gets_a_longer_one() -> None:
    seen: dict[str, str] = {}
    for n in range(5000):
        other = seen.setdefault(short_id(f"k{n}"), f"k{n}")
        if other != f"k{n}":
            break
    else:
        pytest.fail("no collision found to test with")
    book = Book("[{id}]")
    first, second = book.cite(item(other)), book.cite(item(f"k{n}"))
    assert len(first.citation_id) == 6
    assert len(second.citation_id) == 7
    assert second.citation_id.startswith(first.citation_id[:-1])


def test_an_id_is_found_in_whichever_case_the_model_wrote_it() -> None:
    book = Book("#ref:{id}")
    cited = book.cite(item("a"))
    assert book.find(cited.citation_id.removeprefix("#ref:").upper()) == cited


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See #ref:a1b2.", ["#ref:a1b2"]),
        ("#ref:a1b2#ref:c3d4", ["#ref:a1b2", "#ref:c3d4"]),
        ("**#ref:a1b2**, (#ref:c3d4)", ["#ref:a1b2", "#ref:c3d4"]),
        ("见#ref:a1b2这里", ["#ref:a1b2"]),
        ("an unknown #ref:1 is a marker too", ["#ref:1"]),
        ("#ref: nothing, #ref", []),
        ("```\n#ref:a1b2\n```\nafter #ref:c3d4", ["#ref:c3d4"]),
        ("~~~ #ref:a1b2\n```\n#ref:a1b2\n~~~\n#ref:c3d4", ["#ref:c3d4"]),
        ("in line: a ``` b #ref:a1b2", ["#ref:a1b2"]),
        ("#ref:" + "a1" * 40, []),
    ],
)
def test_markers_are_found_in_prose_and_not_in_code(text: str, found: list[str]) -> None:
    assert markers(text) == found


@pytest.mark.parametrize(
    ("text", "found"), [("[a1b2] [note] [2024] [x](u)", ["[a1b2]"]), ("a[1] = b[a1b2]", ["[a1b2]"]), ("[a1b2", [])]
)
def test_a_format_of_brackets_takes_no_word_and_no_year_for_a_marker(text: str, found: list[str]) -> None:
    assert markers(text, BRACKETS) == found


TEXT = st.text(alphabet="#ref:a1b2[] \n`~c3é", max_size=60)


@given(TEXT, st.lists(st.integers(0, 60)), st.sampled_from([HASH, BRACKETS, Grammar.of("<{id}/>")]))
def test_any_splitting_of_an_answer_gives_the_same_text_and_the_same_markers(
    text: str, cuts: list[int], grammar: Grammar
) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in pairwise(edges)]
    pieces = in_pieces(parts, grammar)
    assert pieces == whole(text, grammar)
    assert "".join(piece.text for piece in pieces) == text


@given(TEXT)
def test_text_that_cannot_become_a_marker_is_not_held_back(text: str) -> None:
    reading, pieces = read(Reading(), text, HASH)
    assert "".join(piece.text for piece in pieces) + reading.held == text
    assert reading.held == "" or HASH.could_begin(reading.held)


@given(TEXT)
def test_a_defused_text_holds_no_marker_and_reads_the_same(text: str) -> None:
    defused = defuse(text, "#ref:{id}")
    assert not HASH.pattern.search(defused)
    assert defused.replace("\u2060", "") == text
