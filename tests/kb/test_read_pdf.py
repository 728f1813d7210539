"""The layout of PDFs: headings, paragraphs, columns, tables, and running heads."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    PageBreak,
    PageTemplate,
    Paragraph,
    Table,
)

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read

STYLES = getSampleStyleSheet()
LINES = "Everybody has thirty days of paid leave in a year. " * 4


def text(words: str, style: str = "BodyText") -> Paragraph:
    return Paragraph(words, STYLES[style])


def pdf(*parts: Flowable, columns: int = 1, title: str = "") -> Document:
    """The parts as a document, with a head and a number on every page."""
    buffer = io.BytesIO()
    width = 480 / columns
    frames = [Frame(50 + number * width, 60, width - 20, 700) for number in range(columns)]

    def around(canvas: Canvas, document: BaseDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Handbook of Acme")
        canvas.drawString(500, 30, f"Page {document.page}")

    made = BaseDocTemplate(buffer, title=title, invariant=1)
    made.addPageTemplates([PageTemplate(frames=frames, onPage=around)])
    made.build(list(parts))
    return read(buffer.getvalue(), "rules.pdf")


def drawn(*pages: Sequence[tuple[int, int, int, str]], bold: bool = False) -> Document:
    """Pages of (left, height, size, words); `bold` for what is larger than 12 points."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for page in pages:
        for left, height, size, words in page:
            canvas.setFont("Helvetica-Bold" if bold and size > 12 else "Helvetica", size)
            canvas.drawString(left, height, words)
        canvas.showPage()
    canvas.save()
    return read(buffer.getvalue(), "drawn.pdf")


def parts(document: Document, kind: str) -> list[str]:
    return [
        document.text[block.start : block.end] for block in document.blocks if block.kind == kind
    ]


def headings(document: Document) -> list[tuple[int, str, int]]:
    return [
        (block.level, block.name, block.page)
        for block in document.blocks
        if block.kind == "heading"
    ]


def test_a_heading_is_no_part_of_the_sentence_behind_it() -> None:
    document = pdf(
        text("Annual leave", "Heading1"),
        text(LINES),
        text("Parents", "Heading2"),
        text("Twelve months are paid."),
    )
    assert headings(document) == [(1, "Annual leave", 1), (2, "Parents", 1)]
    assert "Twelve months are paid." in parts(document, "paragraph")


def test_headings_of_one_size_that_follow_one_another_stay_apart_and_a_long_one_stays_whole() -> (
    None
):
    long = "What is to be done on the first day of an illness that began on a journey"
    document = pdf(text("Leave", "Heading1"), text(long, "Heading1"), text(LINES))
    assert [name for _, name, _ in headings(document)] == ["Leave", long]


def test_text_in_bold_type_is_a_heading_only_where_it_is_a_line_of_its_own() -> None:
    document = pdf(
        text("<b>Illness</b>"),
        text(f"<b>Whoever</b> falls ill calls the office. {LINES}"),
        text("<b>Note:</b>"),
    )
    assert [name for _, name, _ in headings(document)] == ["Illness"]


def test_the_header_of_a_table_in_bold_type_is_no_heading() -> None:
    rows = [[text("<b>Door and key</b>")], [text("Main A-12")], [text("Cellar B-7")]]
    assert headings(pdf(text(LINES), Table(rows), text(LINES))) == []


def test_paragraphs_are_apart_where_there_is_room_between_them() -> None:
    document = pdf(text(LINES), text("A doctor is asked on the fourth day."))
    assert parts(document, "paragraph")[-1] == "A doctor is asked on the fourth day."


def test_words_that_a_line_s_end_parts_are_whole() -> None:
    document = pdf(
        text(
            "An iden-<br/>tifier is a well-<br/>known name, in two-<br/>and threefold form,"
            " OP-<br/>TIONAL or of Sub-<br/>Section 3."
        ),
        text("What is well-known needs no proof."),
    )
    (first,) = [part for part in parts(document, "paragraph") if part.startswith("An")]
    assert (
        " ".join(first.split())
        == "An identifier is a well-known name, in two- and threefold form, OPTIONAL or of Sub-"
        " Section 3."
    )


def test_columns_are_read_one_after_the_other() -> None:
    document = pdf(*[text(f"Rule {number}. {LINES}") for number in range(40)], columns=2)
    places = [document.text.index(f"Rule {number}.") for number in range(40)]
    assert places == sorted(places)


def test_a_table_keeps_its_rows() -> None:
    rows = [
        ["Model", "Memory", "For whom"],
        ["T14", "16 GB", "everybody"],
        ["P16", "64 GB", "data | science"],
    ]
    document = pdf(text("These can be ordered:"), Table(rows), text("The others cannot."))
    assert parts(document, "table") == [
        "| Model | Memory | For whom |\n| --- | --- | --- |\n| T14 | 16 GB | everybody |\n| P16 |"
        " 64 GB | data \\| science |"
    ]


def test_text_that_is_wrapped_in_a_cell_stays_in_it() -> None:
    long = "Only near the office, since taxis are dear there and come late whenever it rains"
    cells = [
        ["Town", "Most", "Why"],
        ["Paris", "180", long],
        ["Oslo", long, "60"],
        ["Rome", "140", "Cheap"],
    ]
    table = Table(
        [[text(words) for words in row] for row in cells],
        colWidths=[60, 150, 150],
        style=[("VALIGN", (0, 0), (-1, -1), "TOP")],
    )
    document = pdf(text("These are paid:"), table, text(f"Elsewhere, ask. {LINES}"))
    assert parts(document, "table") == [
        f"| Town | Most | Why |\n| --- | --- | --- |\n| Paris | 180 | {long} |\n| Oslo | {long} |"
        " 60 |\n| Rome | 140 | Cheap |"
    ]
    assert parts(document, "paragraph")[-1].startswith("Elsewhere, ask. ")


def test_lines_on_every_page_are_read_once_and_page_numbers_never() -> None:
    document = pdf(
        *[part for number in range(4) for part in (text(f"Rule {number}. {LINES}"), PageBreak())]
    )
    assert document.text.count("Handbook of Acme") == 1
    assert "Page" not in pdf(text(LINES)).text
    assert "Page" not in document.text
    assert [
        block.page for block in document.blocks if "Rule" in document.text[block.start : block.end]
    ] == [1, 2, 3, 4]


def test_lines_of_one_form_that_differ_in_a_number_are_all_kept() -> None:
    bills = [
        [
            (60, 780, 18, f"Invoice {4711 + n}"),
            (60, 740, 11, LINES[:100]),
            (60, 120, 12, "Total"),
            (450, 120, 12, f"{n}7.15 EUR"),
        ]
        for n in range(3)
    ]
    lessons = [
        [(60, 780, 20, f"Lesson {n}"), *[(60, 740 - 15 * row, 11, LINES[:100]) for row in range(6)]]
        for n in range(1, 7)
    ]
    clauses = [[(60, 780, 11, f"§ {n}"), (60, 760, 11, LINES[:100])] for n in range(1, 7)]
    for pages in (bills, lessons, clauses):
        document = drawn(*pages, bold=True)
        assert [words for page in pages for *_, words in page if words not in document.text] == []
    assert [name for _, name, _ in headings(drawn(*lessons, bold=True))] == [
        f"Lesson {n}" for n in range(1, 7)
    ]


def test_titles_of_slides_are_kept_whatever_numbers_they_are() -> None:
    for first in (1, 2021):
        document = drawn(
            *[
                [(60, 520, 40, str(first + n)), (60, 300, 24, "We moved to another town")]
                for n in range(3)
            ]
        )
        assert [line for line in document.text.split() if line.isdigit()] == [
            str(first + n) for n in range(3)
        ]


def test_a_page_that_has_nothing_but_a_line_keeps_it() -> None:
    rooms = [f"Room {n}{n} costs {n}00 euro" for n in range(1, 5)]
    assert parts(drawn(*[[(60, 520, 24, words)] for words in rooms]), "paragraph") == rooms
    assert parts(drawn(*[[(60, 520, 24, "The same")]] * 4), "paragraph") == ["The same"] * 4
    assert parts(drawn([(60, 520, 24, "Page 1")]), "paragraph") == ["Page 1"]


def test_the_first_and_last_rows_of_a_table_are_kept_however_far_apart_they_are() -> None:
    pages = [
        [
            (left, 800 - 18 * row, 10, words)
            for row, cells in enumerate(
                [
                    ("Article", "Stock", "Price"),
                    *[(f"A-{40 * page + n}", f"{n}", f"{n + page}.50") for n in range(39)],
                    ("Sum", "-", "-"),
                ]
            )
            for left, words in zip((60, 250, 400), cells, strict=True)
        ]
        for page in range(6)
    ]
    document = drawn(*pages)
    assert (
        document.text.count("| Article | Stock | Price |")
        == document.text.count("| Sum | - | - |")
        == 6
    )
    assert [
        n
        for page in range(6)
        for n in range(39)
        if f"| A-{40 * page + n} | {n} |" not in document.text
    ] == []


def test_a_head_is_one_from_three_pages_on_and_only_where_most_have_it() -> None:
    def times(words: str, *, on: int, of: int, size: int = 10) -> int:
        head = (60, 800, size, words)
        pages = [
            [*([head] if page < on else []), (60, 700, 10, f"Rule {page}. {LINES[:80]}")]
            for page in range(of)
        ]
        return drawn(*pages).text.count(words)

    assert times("Handbook", on=3, of=3) == times("Handbook", on=3, of=5) == 1
    assert times("Handbook", on=2, of=2) == times("Handbook", on=2, of=3) == 2
    assert times("Handbook", on=3, of=6) == 3
    assert times("Handbook", on=4, of=4, size=14) == 4  # text in the type of headings is a heading


def test_page_numbers_are_left_out_where_they_rise_with_the_pages() -> None:
    def kept(*feet: str) -> int:
        pages = [
            [(60, 700, 10, f"Rule {at}. {LINES[:80]}"), (300, 30, 10, foot)]
            for at, foot in enumerate(feet)
        ]
        return sum(block.strip() in feet for block in drawn(*pages).text.split("\n"))

    for pattern in ("{}", "- {} -", "Page {} of 12", "Seite {}", "{} / 12"):
        assert kept(*[pattern.format(number) for number in range(7, 11)]) == 0
    assert kept("7", "9", "11", "13") == kept("7 / 9", "8 / 7", "9 / 3", "10 / 4") == 4
    assert kept("Lesson 1", "Lesson 2", "Lesson 3") == kept("2021", "2022", "2023") == 3
    assert kept("7", "8") == kept("Page 7", "Page 8") == 2
    assert kept("Page 1", "Page 2") == kept("Page 1") == 0


def test_a_head_of_two_rows_is_read_once() -> None:
    document = drawn(
        *[
            [
                (60, 810, 8, "Acme"),
                (60, 800, 8, "Internal"),
                (60, 700, 10, f"Rule {n}. {LINES[:80]}"),
            ]
            for n in range(4)
        ]
    )
    assert document.text.count("Acme") == document.text.count("Internal") == 1
    assert document.text.count("Rule") == 4


def test_a_line_of_a_million_letters_is_read_as_far_as_a_string_of_a_pdf_may_be_long() -> None:
    assert drawn([(10, 700, 1, "a" * 1_000_000)]).text.count("a") == 32_767


def test_a_table_that_fills_its_pages_keeps_the_numbers_of_its_last_rows() -> None:
    rows = [
        [f"Hose {chr(65 + number // 26)}{chr(65 + number % 26)}", str(number)]
        for number in range(200)
    ]
    document = pdf(Table(rows))
    assert len({block.page for block in document.blocks}) > 3
    assert [row for row in rows if f"| {row[0]} | {row[1]} |" not in document.text] == []


def test_a_number_on_its_own_is_text_where_there_is_one_page() -> None:
    assert "42" in parts(pdf(text("In all"), text("42")), "paragraph")


def test_the_title_is_that_of_the_metadata_else_the_largest_line_of_the_first_page() -> None:
    parts = [text("Annual leave", "Heading2"), text("Handbook", "Title"), text(LINES)]
    assert pdf(*parts, title="Rules").title == "Rules"
    assert pdf(*parts, title="Microsoft Word - rules_final2.docx").title == "Handbook"
    assert pdf(text(LINES), title="untitled").title == "rules"


# Hebrew letters but for the last, and Arabic digits, as codes of a font.
LETTERS = {chr(0x5D0 + number): chr(ord("a") + number) for number in range(26)}
DIGITS = {chr(0x660 + number): chr(ord("A") + number) for number in range(10)}
CMAP = (
    "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff>"
    " endcodespacerange\n"
)
CMAP += "2 beginbfrange\n<61> <7a> <05d0>\n<41> <4a> <0660>\nendbfrange endcmap end"


def from_right_to_left(*pieces: tuple[int, int, *tuple[str, ...]]) -> str:
    """The text of a page with pieces at (left, height), in the order in which they are read. Each
    is drawn in one go as the eye sees it: where it runs in both directions, in its parts."""
    buffer, made = io.BytesIO(), io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for left, height, *words in pieces:
        turned = [part if re.search(r"[A-Z0-9٠-٩]", part) else part[::-1] for part in words]
        seen = (
            "".join(reversed(turned))
            if any(letter in LETTERS for letter in turned[0]) or len(turned) == 1
            else "".join(turned)
        )
        piece = canvas.beginText(left, height)
        piece.textOut("".join({**LETTERS, **DIGITS}.get(letter, letter) for letter in seen))
        canvas.drawText(piece)
    canvas.save()
    writer = PdfWriter(clone_from=buffer)
    font = writer.pages[0]["/Resources"]["/Font"]["/F1"].get_object()  # type: ignore[index]
    codes = DecodedStreamObject()
    codes.set_data(CMAP.encode())
    font[NameObject("/ToUnicode")] = writer._add_object(codes)
    writer.write(made)
    return read(made.getvalue(), "drawn.pdf").text.strip()


def test_numbers_and_signs_in_text_from_right_to_left_stand_where_they_are_read() -> None:
    read = from_right_to_left(
        (420, 700, "שולם "),
        (398, 700, "250"),
        (320, 700, " שקלים לפי סעיף "),
        (308, 700, "14"),
        (250, 700, "(ב), נשלח ב-"),
        (244, 700, "3"),
    )
    assert read == "שולם 250 שקלים לפי סעיף 14(ב), נשלח ב-3"


def test_a_line_from_right_to_left_that_is_drawn_in_one_go_is_read_from_its_right_end() -> None:
    words = ("שולם ", "250", " שקלים לפי סעיף ", "NOT 9001", " (ב), נשלח ב-", "3", ".")
    assert from_right_to_left((200, 700, *words)) == "".join(words)
    assert from_right_to_left((60, 700, "TOP ", "משה כהן", " - NOT SO.")) == "TOP משה כהן - NOT SO."


def test_digits_of_arabic_writing_keep_their_order() -> None:
    read = from_right_to_left(
        (420, 700, "לפי סעיף "), (403, 700, "١٤"), (378, 700, " של "), (312, 700, "٣/١٢/٢٠٢٤")
    )
    assert read == "לפי סעיף ١٤ של ٣/١٢/٢٠٢٤"


def test_cells_of_a_row_from_right_to_left_do_not_run_into_each_other() -> None:
    read = from_right_to_left(
        (420, 700, "עיר"), (370, 700, "סכום"), (420, 680, "אוסלו"), (370, 680, "180")
    )
    assert read == "| עיר | סכום |\n| --- | --- |\n| אוסלו | 180 |"


def test_a_sign_behind_a_name_from_right_to_left_stays_behind_it() -> None:
    assert (
        from_right_to_left((60, 700, "TOP "), (90, 700, "משה כהן"), (126, 700, ", WORN."))
        == "TOP משה כהן, WORN."
    )


def test_a_line_that_is_drawn_letter_by_letter_is_one_and_cells_of_one_letter_are_cells() -> None:
    words = "Each Willow of mine is drawn by itself."
    places = [60 + round(stringWidth(words[:at], "Helvetica", 12)) for at in range(len(words))]
    spelled = [(left, 600, 12, letter) for left, letter in zip(places, words, strict=True)]
    cells = [
        (60 + 30 * column, 500 - 15 * row, 12, "abc"[column])
        for row in range(2)
        for column in range(3)
    ]
    document = drawn([*spelled, *cells])
    assert parts(document, "paragraph") == [words]
    assert parts(document, "table") == ["| a | b | c |\n| --- | --- | --- |\n| a | b | c |"]


def test_the_first_of_several_chapters_is_not_the_title_of_all() -> None:
    chapters = [
        part
        for n in range(1, 4)
        for part in (text(f"Chapter {n}", "Heading1"), text(LINES), PageBreak())
    ]
    for title in ("", "(anonymous)", "(untitled)"):
        document = pdf(*chapters, title=title)
        assert document.title == "rules"
        assert headings(document) == [(1, f"Chapter {n}", n) for n in range(1, 4)]
    assert (
        pdf(
            text("Handbook", "Title"),
            text("Chapter 1", "Heading2"),
            text(LINES),
            title="(anonymous)",
        ).title
        == "Handbook"
    )


def test_headings_of_one_size_are_of_one_level_in_whatever_type() -> None:
    document = drawn(
        *[
            [(60, 700, 12 + page % 2, f"Part {page}"), (60, 650, 9, LINES[:80])]
            for page in range(3)
        ],
        bold=True,
    )
    assert [level for level, *_ in headings(document)] == [2, 1, 2]
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for number, font in enumerate(("Helvetica-Bold", "Helvetica")):
        canvas.setFont(font, 14)
        canvas.drawString(60, 700 - 100 * number, f"Part {number}")
        canvas.setFont("Helvetica", 9)
        canvas.drawString(60, 650 - 100 * number, LINES[:80])
    canvas.save()
    assert [level for level, *_ in headings(read(buffer.getvalue(), "two.pdf"))] == [1, 1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Heading1", "Heading2", "BodyText", "Code"]),
            st.text("abc .:#|-1", max_size=30),
        ),
        max_size=12,
    )
)
def test_every_block_is_in_the_text_in_order_for_any_layout(
    parts: Sequence[tuple[str, str]],
) -> None:
    document = pdf(*[text(words, style) for style, words in parts], text("end"))
    ends = [0]
    for block in document.blocks:
        assert ends[-1] <= block.start < block.end
        ends.append(block.end)
    letters = sum(letter in "abc1" for _, words in parts for letter in words)
    assert sum(letter in "abc1" for letter in document.text) >= letters
