"""What a page shows of Markdown: no backslashes, no entities, no definitions of links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read


def markdown(text: str) -> Document:
    return read(text.encode(), "a.md")


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (r"1986\. A great year", "1986. A great year"),
        (r"\# no heading", "#\u00a0no heading"),
        (r"\* no \*item\*", "* no *item*"),
        (r"pull\_request\_target", "pull_request_target"),
        (r"`\*` and ``a`\*`` stay", r"`\*` and ``a`\*`` stay"),
        (r"Windows\Temp and \alpha", r"Windows\Temp and \alpha"),
        ("soft\u00adware, co&shy;operate", "software, cooperate"),
        ("Fish &amp; chips &ndash; 5&nbsp;€ &unknown;", "Fish & chips – 5\u00a0€ &unknown;"),
        ("one\\\ntwo", "one\ntwo"),
        (r"\```js", r"\```js"),
        ("With {pypi}`pip` and {ref}`this part <part>`.", "With pip and this part."),
        ("`{ref}`x``, a{b}`c` and {not so}`d`", "`{ref}`x``, a{b}`c` and {not so}`d`"),
    ],
)
def test_a_character_that_is_escaped_stands_for_itself(written: str, read_as: str) -> None:
    document = markdown(f"# T\n\n{written}\n")
    assert [block.kind for block in document.blocks] == ["heading", "paragraph"]
    assert document.text == f"# T\n\n{read_as}\n"


def test_code_and_the_columns_of_tables_stay_as_they_are() -> None:
    code = "- item \\*\n\n  ```\n  a \\* b &lt;\n  ```\n\n- next \\*\n\n    \\# code\n"
    assert markdown(code).text == (
        "- item *\n\n  ```\n  a \\* b &lt;\n  ```\n\n- next *\n\n    \\# code\n".replace(
            "\\# code", "#\u00a0code"
        )
    )
    fence = "```\n\\* &amp;\n```\n"
    assert markdown(fence).text == fence
    table = "| a \\| b | \\*c\\* |\n| --- | --- |\n| 1 | 2 |\n"
    assert markdown(table).text == table.replace("\\*", "*")


def test_links_by_labels_have_their_addresses_and_definitions_are_no_text() -> None:
    document = markdown(
        "---\ntitle: T\n---\nSee [the\\_guide][g], [Rules] and [below][here]. [x] [y](z)\n\n"
        "[g]: https://e.com/g 'Guide'\n[rules]:\n  rules.md\n[here]: #here\n\nThe end.\n"
    )
    texts = [document.text[block.start : block.end].strip() for block in document.blocks]
    assert texts == [
        "See [the_guide](https://e.com/g), [Rules](rules.md) and below. [x] [y](z)",
        "The end.",
    ]
    assert document.fields["title"].line == 2


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("# Loguru\n\n## Install\n", "readme.md", "Loguru"),
        ("# Install\n\n# Usage\n", "readme.md", "Install"),
        ("# Install\n\n# Usage\n", "loguru.md", "loguru"),
        ("# qs [![Badge](a.svg)](b)\n\n## Use\n", "qs.md", "qs"),
        ("# ![Logo](a.svg)\n\n## Use\n", "qs.md", "Logo"),
        ("# The Loguru library\n\n# Usage\n", "loguru.md", "The Loguru library"),
    ],
)
def test_the_first_of_several_sections_is_not_the_title_of_their_document(
    text: str, name: str, title: str
) -> None:
    assert read(text.encode(), name).title == title


def test_a_text_of_nothing_but_definitions_of_links_is_kept() -> None:
    assert markdown("[ref]: https://e.com/a").text == "[ref]: https://e.com/a"


@given(st.text(alphabet="\\`~#*[]():&;<>|-1.a \n\u00ad", min_size=1, max_size=120))
def test_blocks_of_any_text_follow_each_other(text: str) -> None:
    document = read((text + " end").encode(), "a.md")
    reached = 0
    for block in document.blocks:
        assert reached <= block.start <= block.end <= len(document.text)
        reached = block.end


@pytest.mark.parametrize(
    "unit", ["\\", "`", "``", "` ", "[", "[a", "<a:", "&a", "\\#", "> ", "- ", "[a]: b\n"]
)
def test_a_long_repetition_is_read_in_one_pass(unit: str) -> None:
    markdown("a " + unit * 20_000 + "x")
