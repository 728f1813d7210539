"""What a page shows where Markdown has no form for it."""

from __future__ import annotations

import pytest

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read


def page(body: str | bytes, head: str = "") -> Document:
    inner = body.encode() if isinstance(body, str) else body
    return read(b"<html><head>" + head.encode() + b"</head><body>" + inner, "a.html")


def test_a_cell_that_spans_rows_is_in_each_of_them_and_the_others_keep_their_columns() -> None:
    rows = (
        "<tr><th>Zone</th><th>Size</th><th>Fee</th></tr>"
        "<tr><td rowspan=2>North</td><td>small</td><td rowspan=3>12</td></tr>"
        "<tr><td>large</td></tr>"
        "<tr><td>South</td><td>any</td></tr>"
        "<tr><td colspan=2>Islands</td><td>30</td></tr>"
    )
    assert page(f"<table>{rows}</table>").text.splitlines()[2:] == [
        "| North | small | 12 |",
        "| North | large | 12 |",
        "| South | any | 12 |",
        "| Islands | | 30 |",
    ]


def test_cells_that_span_very_many_rows_and_columns_stay_small() -> None:
    cell = "<td rowspan=1000 colspan=1000>x</td>"
    text = page(f"<table>{f'<tr>{cell * 20}</tr>' * 60}</table>").text
    assert len(text) < 500_000


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("9.46 × 10<sup>15</sup> m", "9.46 × 10^15 m"),
        ("10<sup>−9</sup> mol/l", "10^-9 mol/l"),
        ("25 m<sup>2</sup>", "25 m^2"),
        ("2<sup>n+1</sup>", "2^(n+1)"),
        ("CO<sub>2</sub>", "CO2"),
        ("the 1<sup>st</sup> of May", "the 1st of May"),
        ("See the note<sup>3</sup>.", "See the note[3]."),
        ('10<sup><a href="#n">3</a></sup>', "10[3]"),
        ("Acme<sup>®</sup>", "Acme®"),
        ("set max_retry_count", "set max_retry_count"),
        (
            "<math><mfrac><mn>1</mn><mn>2</mn></mfrac><mi>π</mi><msup><mi>r</mi><mn>2</mn></msup></math>",
            "1/2πr^2",
        ),
        (
            "<math><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mo>=</mo><mo>(</mo><mi>x</mi><mo>+</mo>"
            "<mn>1</mn><msup><mo>)</mo><mn>2</mn></msup></mtd></mtr><mtr><mtd><mi>b</mi></mtd></mtr>"
            "</mtable></math>",
            "a =(x+1)^2; b",
        ),
        ("<math><msqrt><mi>a</mi><mo>+</mo><mi>b</mi></msqrt></math>", "√(a+b)"),
        ('press <img src="p.png" alt="the power button"> now', "press the power button now"),
        ('a<img src="p.png" alt="photo-1.png">b', "a b"),
        ("press <svg><title>Save</title><path/></svg> now", "press Save now"),
        ('press<svg aria-hidden="true"><title>Save</title></svg>now', "press now"),
        ('<input type="checkbox" checked>paid', "[x] paid"),
        ("soft&shy;ware", "software"),
        ("pass *args; 2 * 3 * 4", "pass *args; 2 * 3 * 4"),
        ("a *b* c", "a *b* c"),
        (r"C:\*.txt, 5\* and \alpha", r"C:\*.txt, 5\* and \alpha"),
    ],
)
def test_a_part_of_a_line_is_written_as_text(written: str, read_as: str) -> None:
    assert page(f"<p>{written}</p>").text.strip() == read_as


@pytest.mark.parametrize(
    ("declared", "data", "text"),
    [
        ("iso-8859-1", b"\x93Fees\x94 \x96 \x80 20", "“Fees” – € 20"),
        ("iso-8859-9", b"\x93\xfe\x94", "“ş”"),
        ("tis-620", b"\x93\xba\xd2\xb7\x94", "“บาท”"),
        ("gbk", "价€".encode("gb18030"), "价€"),
        ("windows-1252", b"20 \x81 \x80", "20 � €"),
        ("utf-8", "20 €".encode(), "20 €"),
    ],
)
def test_a_declared_encoding_is_decoded_as_in_a_browser(
    declared: str, data: bytes, text: str
) -> None:
    document = page(b"<p>" + data, f'<meta charset="{declared}">')
    assert document.text.strip() == text
    assert not document.notes


def test_what_follows_a_box_belongs_to_the_heading_before_it() -> None:
    box = '<div class="note"><h3 class="title">Note</h3><p>Only roots may.</p></div>'
    document = page(f"<h2>Restore</h2>{box}<p>It needs the space twice.</p>")
    assert [block.name for block in document.blocks if block.kind == "heading"] == ["Restore"]
    assert "Only roots may." in document.text


def test_bars_of_links_and_links_that_skip_or_stay_are_no_text() -> None:
    body = (
        '<a href="#main">Skip to content</a>'
        '<div class="navheader"><table><tr><td><a href="a">Prev</a></td></tr></table></div>'
        '<h1>Fees<a class="headerlink" href="#fees">¶</a></h1><p>Twelve.</p>'
        '<h2><a href="#toc-1">Late fees</a></h2>'
    )
    assert page(body).text == "# Fees\n\nTwelve.\n\n## Late fees\n"


def test_the_title_of_a_picture_is_not_that_of_the_page() -> None:
    assert page("<p>Press <svg><title>Print</title></svg>.</p><h1>Fees</h1>").title == "Fees"


def test_a_cell_that_spans_the_rest_of_a_table_is_in_each_row() -> None:
    cells = "<tr><td rowspan=0>North</td><td>12</td></tr><tr><td>19</td></tr><tr><td>23</td></tr>"
    assert page(f"<table><tr><th>Zone</th><th>Fee</th></tr>{cells}</table>").text.splitlines()[
        2:
    ] == [
        "| North | 12 |",
        "| North | 19 |",
        "| North | 23 |",
    ]


def test_a_paragraph_that_begins_like_a_list_or_a_heading_is_a_paragraph() -> None:
    document = page("<p>1986. A great year.</p><p># no heading</p><p>+ plus</p><p>- minus</p>")
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert document.title == "a"


def test_characters_that_markdown_would_read_stand_as_they_are() -> None:
    document = page(
        "<p>1986. A great year.</p><p># no heading</p><p>Notes<br>=====<br>- New: *a* and"
        " *b*<br>~~~~<br>More.</p>"
    )
    assert not set("\\=~") & set(document.text)
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert [" ".join(line.split()) for line in document.text.splitlines() if line.strip()] == [
        "1986. A great year.",
        "# no heading",
        "Notes",
        "- New: *a* and *b*",
        "More.",
    ]


def test_a_block_ends_a_paragraph_that_is_open() -> None:
    document = page("<p>Intro:<ul><li># one<li>two</ul><p>Then<h2>Fees</h2><p>x<pre>* y</pre>")
    assert [block.kind for block in document.blocks] == [
        *("paragraph", "list", "paragraph", "heading", "paragraph", "code")
    ]


def test_terms_and_their_definitions_are_paragraphs() -> None:
    document = page(
        "<dl><dt><code>--leak-check</code></dt><dd><p>Searches for leaks.</p><p>By default:</p>"
        "<pre>summary</pre></dd></dl>"
    )
    assert [
        (block.kind, document.text[block.start : block.end].strip()) for block in document.blocks
    ] == [
        ("paragraph", "**`--leak-check`**"),
        ("paragraph", "Searches for leaks."),
        ("paragraph", "By default:"),
        ("code", "```\nsummary\n```"),
    ]


@pytest.mark.parametrize(
    "links",
    [
        '<table summary="Navigation header"><tr><td><a accesskey="p" href="1">Prev</a><td>The'
        ' manual<td><a accesskey="n" href="2">Next</a></table>',
        '<div class="toc"><p><b>Table of Contents</b></p><dl><dt><a href="#1">Introduction to it'
        '</a></dt><dd><dl><dt><a href="#2">Getting it</a></dt></dl></dd></dl></div>',
        '<ul><li><a href="a">A</a><li><a class="active" href="b">B</a><li><a href="c">C</a></ul>',
        '<div id="left-sidebar"><ul><li><a href="1">One</a><li><a href="2">Two</a></ul></div>',
    ],
)
def test_what_only_moves_a_reader_about_is_no_text(links: str) -> None:
    words = "<p>The words of the page, which are longer than its links by far.</p>"
    assert page(links + words).text == page(words).text


def test_a_page_that_is_only_contents_keeps_them() -> None:
    text = page('<h1>Manual</h1><div class="toc"><ul><li><a href="a.html">Fees and taxes</a></ul>')
    assert "Fees and taxes" in text.text


def test_a_head_ends_where_its_end_tag_is_missing_and_the_page_begins() -> None:
    page = (
        b"<html><head><title>Fees\xa0of\n2024</title><link rel=x href=y><body><p>Twelve.</p></body>"
    )
    document = read(page.replace(b"\xa0", b"&nbsp;"), "a.html")
    assert document.text.strip() == "Twelve."
    assert document.title == "Fees of 2024"
