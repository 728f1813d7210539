"""Citation ids, and reading the markers of a streamed answer."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.markers import usable_format
from groundhook.core.types.search import Item
from groundhook.host.search.citations import claims
from groundhook.host.search.citations.ids import key_of, short_id
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.citations.reader import (
    LONGEST_CODE,
    Grammar,
    Marker,
    Piece,
    Plain,
    Reading,
    defuse,
    read,
)

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
    book = CitationIndex("#ref:{id}")
    cited = [book.cite(item(key)).citation_id for key in keys]
    assert len(set(cited)) == len(keys)
    assert [book.cite(item(key)).citation_id for key in keys] == cited


def test_the_later_of_two_sources_with_the_same_id_gets_a_longer_one() -> None:
    seen: dict[str, str] = {}
    for n in range(5000):
        other = seen.setdefault(short_id(f"k{n}"), f"k{n}")
        if other != f"k{n}":
            break
    else:
        pytest.fail("no collision found to test with")
    book = CitationIndex("[{id}]")
    first, second = book.cite(item(other)), book.cite(item(f"k{n}"))
    assert len(first.citation_id) == 6
    assert len(second.citation_id) == 7
    assert second.citation_id.startswith(first.citation_id[:-1])


def test_an_id_is_found_in_whichever_case_the_model_wrote_it() -> None:
    book = CitationIndex("#ref:{id}")
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
        ("```x``` inline #ref:a1b2\nand #ref:c3d4", ["#ref:a1b2", "#ref:c3d4"]),
        ("```x #ref:a1b2 ``` #ref:c3d4", ["#ref:c3d4"]),
        ("```x #ref:a1b2\n#ref:a1b2\n```\n#ref:c3d4", ["#ref:c3d4"]),
        ("``` #ref:a1b2", []),
        ("~~~ a ` b\n#ref:a1b2\n~~~\n#ref:c3d4", ["#ref:c3d4"]),
        ("```\n```js\n#ref:a1b2\n``` \t\r\n#ref:c3d4", ["#ref:c3d4"]),
        ("````\n```\n#ref:a1b2\n`````\n#ref:c3d4", ["#ref:c3d4"]),
        (f"{'`' * 40}\n{'`' * 30}\n#ref:a1b2\n{'`' * 40}\n#ref:c3d4", ["#ref:c3d4"]),
        (f"```{'x' * 40}`\n#ref:c3d4", ["#ref:c3d4"]),
        ("   ```\n#ref:a1b2\n    ```\n#ref:a1b2\n  ```\n#ref:c3d4", ["#ref:c3d4"]),
        ("    ```\n#ref:c3d4", ["#ref:c3d4"]),
        ("\t```\n#ref:c3d4", ["#ref:c3d4"]),
        ("`#ref:a1b2` ``a ` #ref:a1b2`` #ref:c3d4", ["#ref:c3d4"]),
        ("a ` b #ref:a1b2\n`#ref:c3d4", ["#ref:a1b2", "#ref:c3d4"]),
        ("`` a ` #ref:a1b2 ` #ref:c3d4", ["#ref:c3d4"]),
        (f"`{'x' * 300} #ref:a1b2 `", ["#ref:a1b2"]),
        ("#ref:" + "a1" * 40, []),
    ],
)
def test_markers_are_found_in_prose_and_not_in_code(text: str, found: list[str]) -> None:
    assert markers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [("[a1b2] [note] [2024] [x](u)", ["[a1b2]"]), ("a[1] = b[a1b2]", ["[a1b2]"]), ("[a1b2", [])],
)
def test_a_format_of_brackets_takes_no_word_and_no_year_for_a_marker(
    text: str, found: list[str]
) -> None:
    assert markers(text, BRACKETS) == found


ROUND = Grammar.of("[{id}][")
TICKED = Grammar.of("`{id}`")
NUMBERS = Grammar.of("[{index}]", "#ref:{id}")
SEVERAL = Grammar.of("[{id}]", "[[{id}]]", "#ref:{id}", "#{id}", "#{id}#")
# Pieces of fences and markers, so that texts are often nearly one.
SIGNS = st.sampled_from(
    [
        *"#ref:a1b2[]()<>/ \t\r\n`~c3é",
        "```",
        "````",
        "~~~",
        "```js",
        "\n",
        "#ref:a1b2",
        "[c3d4]",
        "ref:",
        "REF: ",
        "e5f6",
        ", ",
        "[12]",
        "    ",
        "`" * 20,
    ]
)
TEXT = st.lists(SIGNS, max_size=40).map("".join)


@given(
    TEXT,
    st.lists(st.integers(0, 200)),
    st.sampled_from([HASH, BRACKETS, Grammar.of("<{id}/>"), ROUND, TICKED, SEVERAL, NUMBERS]),
)
def test_any_splitting_of_an_answer_gives_the_same_text_and_the_same_markers(
    text: str, cuts: list[int], grammar: Grammar
) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in pairwise(edges)]
    pieces = whole(text, grammar)
    assert in_pieces(parts, grammar) == pieces
    assert in_pieces(list(text), grammar) == pieces
    assert "".join(piece.text for piece in pieces) == text


@given(TEXT)
def test_only_the_beginning_of_a_marker_or_of_code_is_held_back(
    text: str,
) -> None:
    reading, pieces = read(Reading(), text, HASH)
    assert "".join(piece.text for piece in pieces) + reading.held == text
    begins = HASH.could_begin(reading.held) or reading.held.lstrip(" ").startswith("`")
    assert reading.held == "" or begins
    assert len(reading.held) <= 2 * LONGEST_CODE


@pytest.mark.parametrize("unit", ["Tea #ref:a1b2 takes minutes. ", "\n"])
def test_a_line_of_many_markers_or_many_empty_lines_take_a_few_steps_each(unit: str) -> None:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        read(Reading(), unit * 300, HASH)
        claims.with_text(claims.ClaimState(), "\n" * 300, frozenset())
    finally:
        sys.setprofile(before)
    assert calls < 20_000


def test_a_long_answer_of_one_fence_is_read_in_no_time() -> None:
    text = "`" * 20_000 + " #ref:a1b2 " + "x" * 20_000
    assert len(in_pieces(list(text), HASH)) == 1


@given(
    TEXT,
    st.sampled_from(
        [("#ref:{id}",), ("[{id}[",), ("[{id}]", "[[{id}]]"), ("#{id}", "#{id}#"), ("[{index}]",)]
    ),
)
def test_a_defused_text_holds_no_marker_and_reads_the_same(
    text: str, formats: tuple[str, ...]
) -> None:
    grammar = Grammar.of(*formats)
    defused = defuse(text, grammar)
    assert not grammar.pattern.search(defused)
    assert defused.replace("\u2060", "") == text


def test_numbered_markers_count_the_sources_and_leave_other_numbers_alone() -> None:
    index = CitationIndex(usable_format("[{index}]"))
    first, second = index.cite(item("a")), index.cite(item("b"))
    again = index.cite(item("a"))
    assert [each.citation_id for each in (first, second, again)] == ["[1]", "[2]", "[1]"]
    answer = "As [1][2] say [2024], but [3] and list[x] and [] do not."
    assert markers(answer, index.grammar) == ["[1]", "[2]", "[3]"]
    assert [index.find(id) for id in ("1", "2", "3", "2024")] == [again, second, None, None]


def test_xml_names_a_format_and_numbers_need_an_end() -> None:
    index = CitationIndex(usable_format("xml"))
    marker = index.cite(item("a")).citation_id
    assert re.fullmatch(r'<ref id="[a-z2-7]{4}"/>', marker)
    assert markers(f"So {marker}.", index.grammar) == [marker]
    for wrong in ("[{index}{id}]", "#{index}", "[index]"):
        with pytest.raises(ValueError, match=r"must (contain|have)"):
            usable_format(wrong)


def test_markers_that_were_handed_out_in_an_earlier_format_are_still_read() -> None:
    book = CitationIndex("#ref:{id}")
    book.reformat("<{id}>")
    assert len(book.grammar.forms) == 1
    early = book.cite(item("a")).citation_id
    book.reformat("[{id}]")
    late = book.cite(item("b")).citation_id
    assert markers(f"{early} {late} #ref:zz99", book.grammar) == [early, late]


FIELDS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["web", "kb", "db"]),
        **{
            name: st.sampled_from(["", "a", "a/b", '","', "A"])
            for name in ("title", "content", "document_id", "collection", "model")
        },
        "url": st.sampled_from(
            [
                "",
                "https://example.org/a",
                "https://example.org/a#b",
                "https://example.org/A",
                "http://[",
            ]
        ),
        "record_id": st.sampled_from([None, 1, "1", True, "a"]),
        "data": st.sampled_from([None, {}, {"a": 1}]),
    }
)


@given(FIELDS, FIELDS)
def test_items_without_a_key_share_one_only_when_they_are_the_same_source(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    one, other = Item(**first), Item(**second)
    assert key_of(one) == key_of(Item(**first, score=0.3))
    if key_of(one) == key_of(other):
        record = one.model and one.record_id is not None
        page = not record and not one.document_id and one.type == "web" and one.url
        what = (
            ("model", "record_id")
            if record
            else ("url",)
            if page
            else ("collection", "document_id", "content")
        )
        assert [repr(first[name]) for name in ("type", *what)] == [
            repr(second[name]) for name in ("type", *what)
        ]
    if first["content"] != second["content"]:
        record_or_page = (one.model and one.record_id is not None) or (
            one.type == "web" and one.url
        )
        assert record_or_page or key_of(one) != key_of(other)


def test_a_page_without_a_key_is_its_address_whatever_its_snippet_says() -> None:
    one, other = (
        Item(type="web", url=url, content=url)
        for url in ("https://Example.org", "https://example.org/")
    )
    assert key_of(one) == key_of(other)


def test_items_without_a_key_are_cited_apart() -> None:
    book = CitationIndex("#ref:{id}")
    cited = [
        book.cite(Item(type="kb", title="A title", content=text)) for text in ("one", "two", "one")
    ]
    assert len({each.citation_id for each in cited}) == 2
    assert len({each.key for each in cited}) == 2


def test_a_source_that_no_model_was_given_is_unknown_until_it_is_found_again() -> None:
    index = CitationIndex("#ref:{id}")
    given, dropped = index.cite(item("a")), index.cite(item("b"))
    ids = [each.citation_id.removeprefix("#ref:") for each in (given, dropped)]
    index.withhold([given, dropped], [given])
    assert [index.find(id) for id in ids] == [given, None]
    index.cite(dropped)
    assert [index.find(id) for id in ids] == [given, dropped]
