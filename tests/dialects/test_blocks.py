"""Answers as blocks: a closed tree, in which nothing that a stranger wrote is markup or an address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.types.chats import KeptAnswer, KeptCitation
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.blocks import (
    LIGHT,
    Tail,
    markdown_blocks,
    parsed,
    weight,
    written,
)

TYPES = [
    "p",
    "h",
    "ul",
    "ol",
    "li",
    "quote",
    "code",
    "table",
    "tr",
    "cell",
    "hr",
    "em",
    "strong",
    "del",
    "codespan",
    "link",
    "ref",
    "br",
]
MARKER = "#ref:k3x9"
SOURCE = Item(citation_id=MARKER, type="web", title="A page", url="https://example.org/a?b=ü")
PIECES = st.sampled_from(
    [
        *("# a", "\n", "\n\n", "- x", "1. y", "|a|b|\n|-|-|\n|1|2|", "```\n", "> q", "*e*"),
        *("**s**", "`c`", "text ", MARKER, " ", "[l](https://example.org/a?b=ü)", "<b>", "\r\n"),
        *("\u2028", "  ", "---"),
    ]
)


def answer(text: str) -> KeptAnswer:
    places = tuple(found.start() for found in re.finditer(re.escape(MARKER), text))
    cited = KeptCitation(marker=MARKER, verdict="ok", item=SOURCE, places=places)
    return KeptAnswer(content=text, citations=(cited,))


def blocks_of(answer: KeptAnswer) -> list[Any]:
    return parsed(*written(answer))[0]


def inside(nodes: list[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        if isinstance(node, dict):
            yield from inside(node.get("children", []))


def test_markdown_becomes_a_tree_with_the_markers_at_their_places() -> None:
    text = f"Wax *only* {MARKER}, `{MARKER}` too.\n\n| a | b |\n|---|--:|\n| x | {MARKER} |"
    paragraph, table = blocks_of(answer(text))
    assert paragraph["children"] == [
        "Wax ",
        {"type": "em", "children": ["only"]},
        " ",
        {"type": "ref", "marker": MARKER},
        ", ",
        {"type": "codespan", "text": MARKER},
        " too.",
    ]
    assert table["children"][0]["children"][1]["align"] == "right"
    assert table["children"][1]["children"][1]["children"] == [{"type": "ref", "marker": MARKER}]


def test_the_same_text_where_it_is_no_citation_stays_text() -> None:
    (block,) = blocks_of(KeptAnswer(content=f"See {MARKER}."))
    assert block["children"] == [f"See {MARKER}."]


def test_only_addresses_of_sources_are_links() -> None:
    text = (
        "[ours](https://example.org/a?b=ü) [theirs](https://evil.example/x) [run](javascript:alert(1))"
        f" <https://evil.example> ![i](https://evil.example/i.png) {MARKER}"
    )
    (block,) = blocks_of(answer(text))
    links = [node for node in inside([block]) if isinstance(node, dict) and node["type"] == "link"]
    assert [link["href"] for link in links] == ["https://example.org/a?b=%C3%BC"]
    said = "".join(node for node in inside([block]) if isinstance(node, str))
    assert "theirs (evil.example)" in said


def test_html_of_an_answer_is_text() -> None:
    hostile = "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n<!-- x -->"
    blocks = markdown_blocks(hostile)
    assert {block["type"] for block in blocks} == {"p"}
    assert "<script>alert(1)</script>" in blocks[0]["children"]


def test_characters_that_stand_for_markers_cannot_be_forged() -> None:
    (block,) = blocks_of(answer(f"\ue0000\ue001 {MARKER}"))
    refs = [node for node in inside([block]) if isinstance(node, dict) and node["type"] == "ref"]
    assert len(refs) == 1


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_text_gives_the_closed_tree(text: str) -> None:
    blocks = blocks_of(answer(text))
    kinds = {node["type"] for node in inside(blocks) if isinstance(node, dict)}
    assert kinds <= set(TYPES)
    json.dumps(blocks)


@example(["- x", "\n", "---", "# a"])
@given(st.lists(PIECES, min_size=1, max_size=30))
def test_an_answer_that_grows_keeps_the_blocks_before_its_tail(pieces: list[str]) -> None:
    shown: list[Any] = []
    tail, text = Tail(), ""
    for piece in pieces:
        text += piece
        first = tail.blocks
        blocks, complete, start = parsed(*written(answer(text), tail))
        tail = Tail(tail.blocks + complete, tail.start + start)
        shown[first:] = blocks
        assert len(shown) >= tail.blocks
        assert tail.start <= len(text)
    assert shown == blocks_of(answer(text))


def test_a_text_beyond_all_bounds_is_shown_as_it_is() -> None:
    (block,) = blocks_of(KeptAnswer(content="*a* " * 100_000))
    assert len(block["children"][0]) == 400_000


def test_a_short_table_cannot_be_many_cells() -> None:
    text = "|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "a\n" * 700
    (block,) = blocks_of(KeptAnswer(content=text))
    assert block == {"type": "p", "children": [text]}


def test_a_table_of_plain_size_is_light() -> None:
    text = "|a|b|c|d|e|\n|-|-|-|-|-|\n" + "|one|two|three|four|five|\n" * 40
    assert weight(text) < LIGHT
    assert len(blocks_of(KeptAnswer(content=text))[0]["children"]) == 41
