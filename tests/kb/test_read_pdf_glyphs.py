"""PDFs as they are drawn: places of glyphs, rules, columns, and what surrounds the text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from groundhook.core.errors import IngestError
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read

Draw = Callable[[Canvas], None]


def made(*pages: Draw) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for page in pages:
        canvas.setFont("Helvetica", 10)
        page(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def drawn(*pages: Draw) -> Document:
    return read(made(*pages), "a.pdf")


def words(*lines: tuple[float, float, str]) -> Draw:
    def draw(canvas: Canvas) -> None:
        for left, height, text in lines:
            canvas.drawString(left, height, text)

    return draw


def blocks(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def test_words_are_parted_where_glyphs_are_apart_whether_the_file_has_blanks_or_not() -> None:
    def singly(canvas: Canvas) -> None:
        for height, text in ((700, "Each word is drawn by itself"), (688, "with wide gaps.")):
            left = 60.0
            for word in text.split():
                canvas.drawString(left, height, word)
                left += stringWidth(word, "Helvetica", 10) + 6

    assert blocks(drawn(singly)) == [("paragraph", "Each word is drawn by itself\nwith wide gaps.")]


def test_letters_that_are_drawn_twice_to_be_bold_are_read_once() -> None:
    document = drawn(words((60, 700, "Total 1100"), (60.3, 700, "Total 1100")))
    assert document.text.strip() == "Total 1100"


def test_powers_and_notes_are_raised_and_what_is_lowered_is_text() -> None:
    def draw(canvas: Canvas) -> None:
        line = canvas.beginText(60, 700)
        for size, rise, text in (
            (10, 0, "The limit is 10"),
            (6, 4, "-9"),
            (10, 0, " mol of CO"),
            (6, -2, "2"),
            (10, 0, " as the authority says"),
            (6, 4, "3"),
            (10, 0, "."),
        ):
            line.setFont("Helvetica", size)
            line.setRise(rise)
            line.textOut(text)
        canvas.drawText(line)

    assert drawn(draw).text.strip() == "The limit is 10^-9 mol of CO2 as the authority says[3]."


def test_rules_part_cells_that_nearly_touch() -> None:
    def grid(canvas: Canvas) -> None:
        for at, row in enumerate((("Article", "Price"), ("Pump", "12"), ("Valve", "7"))):
            canvas.drawRightString(98, 700 - 14 * at, row[0])
            canvas.drawString(102, 700 - 14 * at, row[1])
        for left in (50, 100, 140):
            canvas.line(left, 660, left, 712)

    assert blocks(drawn(grid)) == [
        ("table", "| Article | Price |\n| --- | --- |\n| Pump | 12 |\n| Valve | 7 |")
    ]


LEFT = [f"The column on the left has line {at} of very many." for at in range(20)]
RIGHT = [f"The column on the right has line {at} of them all." for at in range(20)]


def test_columns_that_the_file_stores_line_by_line_are_read_one_after_the_other() -> None:
    title = (60.0, 740.0, "A title across both of the columns of this page, which is wide enough")
    rows = [
        (left, 720.0 - 12 * at, text)
        for at, pair in enumerate(zip(LEFT, RIGHT, strict=True))
        for left, text in zip((60.0, 300.0), pair, strict=True)
    ]
    text = drawn(words(title, *rows)).text
    places = [text.index(line) for line in (title[2], *LEFT, *RIGHT)]
    assert places == sorted(places)


def test_pages_on_their_side_are_read_upright_and_a_stamp_is_read_once() -> None:
    def side(canvas: Canvas) -> None:
        canvas.rotate(90)
        for at in range(3):
            canvas.drawString(100, -100 - 12 * at, f"Row {at} of the page.")
        canvas.rotate(-45)
        canvas.drawString(300, 300, "DRAFT")

    document = drawn(side, side)
    assert "Row 0 of the page.\nRow 1 of the page.\nRow 2" in document.text
    assert document.text.count("DRAFT") == 1


def test_code_in_letters_of_one_width_is_no_table() -> None:
    def draw(canvas: Canvas) -> None:
        for at in range(8):
            canvas.drawString(60, 700 - 12 * at, "A handbook has many sentences of this kind.")
        canvas.setFont("Courier", 10)
        for at, line in enumerate(("r      INTEGER,", "s      INTEGER,", "other  Other")):
            for left, part in zip((60, 160), line.split(), strict=True):
                canvas.drawString(left, 580 - 12 * at, part)

    assert {kind for kind, _ in blocks(drawn(draw))} == {"paragraph"}


def pages_of(*feet: Sequence[str]) -> list[Draw]:
    """Pages of text with the pieces of a foot, from left to right."""
    return [
        words(
            (
                60,
                700,
                f"Sentence number {['one', 'two', 'three', 'four', 'five', 'six', 'seven'][at]} is here.",
            ),
            *[(60 + 300 * number, 30, piece) for number, piece in enumerate(foot)],
        )
        for at, foot in enumerate(feet)
    ]


def test_feet_that_change_with_the_chapter_are_read_once_for_each() -> None:
    text = drawn(
        *pages_of(*[(f"Chapter {1 + at // 3}. Words", str(at + 5)) for at in range(6)])
    ).text
    assert text.count("Chapter 1. Words") == text.count("Chapter 2. Words") == 1
    assert not {str(number) for number in range(5, 11)} & set(text.split())


def test_roman_numbers_of_pages_are_no_text() -> None:
    text = drawn(*pages_of(("i",), ("ii",), ("iii",), ("iv",))).text
    assert not {"i", "ii", "iii", "iv"} & set(text.split())


def test_a_page_number_behind_a_foot_is_no_part_of_it() -> None:
    feet = [(f"Acme Corporation, confidential 2020 {at + 3}",) for at in range(5)]
    text = drawn(*pages_of(*feet)).text
    assert text.count("Acme Corporation") == 1


def test_a_running_head_that_is_the_title_of_the_file_is_no_passage() -> None:
    texts = iter(["These are words.", "More of them.", "The last ones."])

    def titled(canvas: Canvas) -> None:
        canvas.setTitle("Password Policy")
        words((60, 800, "Password Policy"), (60, 700, next(texts)))(canvas)

    document = drawn(titled, titled, titled)
    assert document.title == "Password Policy"
    assert "Password Policy" not in document.text


def test_titles_of_the_outline_are_headings_whatever_their_type() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.bookmarkPage("a")
        canvas.addOutlineEntry("Late fees", "a")
        words((60, 700, "Late fees"), (60, 680, "Whoever pays late pays five more."))(canvas)

    assert blocks(drawn(draw))[0] == ("heading", "# Late fees")


@pytest.mark.parametrize("cut", [0.1, 0.3, 0.9])
def test_a_damaged_file_is_an_error_in_words(cut: float) -> None:
    data = made(words((60, 700, "One page has words.")), words((60, 700, "Another has others.")))
    part = data[: int(len(data) * cut)]
    with pytest.raises(IngestError, match=r"'a.pdf' was not added: it is not a PDF") as raised:
        read(part, "a.pdf")
    assert raised.value.hint
