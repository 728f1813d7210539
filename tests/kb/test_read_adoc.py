"""AsciiDoc, as its pages show it."""

from __future__ import annotations

import pytest

from groundhook.handlers.kb.reading.files import read


def text(written: str) -> str:
    return read(written.encode(), "a.adoc").text


def test_titles_and_sections_are_headings_also_underlined_ones() -> None:
    written = "= Rules\n:v: 3\nAnn <a@example.org>\n\n== Fees of {v}\n\nTwelve.\n\nReturns\n-------\n\nTen."
    document = read(written.encode(), "a.adoc")
    found = [(block.name, block.level) for block in document.blocks if block.kind == "heading"]
    assert found == [("Rules", 1), ("Fees of 3", 2), ("Returns", 2)]
    assert document.title == "Rules"


@pytest.mark.parametrize(
    ("written", "page"),
    [
        ("a *b* _c_ `d_e_` {pp} \\{x} {y}", "a **b** *c* `d_e_` ++ {x} {y}"),
        ("https://x.org/a[the page^], link:b.txt[a file]", "[the page](https://x.org/a), [a file]"),
        (
            "See <<fees>>, <<fees,the fees>> and xref:a.adoc#b[that].",
            "See fees, the fees and that.",
        ),
        ("Paid.footnote:[In crowns.] image:x.png[A cup,20] #now#", "Paid. (In crowns.) A cup now"),
        ("Press kbd:[Ctrl+C], menu:File[Save > As].", "Press Ctrl+C, File › Save › As."),
        ("[[anchor]]Tea ((cup)) (((tea,cup))).", "Tea cup ."),
        ("[.path]_a/b_ [.cmd]`ls`", "*a/b* `ls`"),
        ("NOTE: Mind it.", "**Note:** Mind it."),
        ("NOTE: Mind it,\n      please,\n      Ann.", "**Note:** Mind it,\nplease,\nAnn."),
        ("See <<a,the `b` key>> at \\http://x.org.", "See the `b` key at http://x.org."),
        (". a\n\n  $ b\n+\nc\n\n. d\n.. e\n. f", "1. a\n\n\n    $ b\n\nc\n\n2. d\n   1. e\n3. f"),
        (". a\n\nb\n\n. c", "1. a\n\nb\n\n1. c"),
        ("[WARNING]\n====\nHot.\n====", "**Warning**\n\n\nHot."),
        ("tea:: a leaf\ncup::\n  a vessel", "**tea**\n\na leaf\n\n**cup**\n\n\na vessel"),
        ("* a\n** b\n- c", "* a\n  * b\n* c"),
        (". a\n.. b", "1. a\n   1. b"),
        (".The title\nText.", "**The title**\n\nText."),
        ("image::cup.png[A blue cup]", "A blue cup"),
        ("Text.\n\n  code x\n  more", "    code x\n    more"),
    ],
)
def test_a_line_is_what_its_page_shows(written: str, page: str) -> None:
    assert page in text(written)


def test_code_is_kept_and_what_no_page_shows_is_not() -> None:
    written = (
        "// a comment\n////\nhidden\n////\n[source,python]\n----\n*x* = <<1>>\n----\n\n++++\n<b>raw</b>\n++++\n"
        "include::other.adoc[]\n:name: value\n"
    )
    shown = text(written)
    assert "*x* = <<1>>" in shown
    for gone in ("comment", "hidden", "raw", "include", "source", "value"):
        assert gone not in shown


@pytest.mark.parametrize(
    "head",
    [
        '[cols="1,2",options="header"]\n|===\n|Name\n|Fee',
        "|===\n|Name |Fee\n",
        "[%header,cols=2*]\n|===\n|Name|Fee",
    ],
)
def test_a_table_has_its_columns(head: str) -> None:
    assert "| Name | Fee |\n| --- | --- |\n| tea | 4 \\| 5 |\n| cup | of two |" in text(
        f"{head}\n|tea\n|4 {{vbar}} 5\n\n|cup\n|of\ntwo\n|===\n"
    )
