"""Rows of a PDF page: cells in their columns, lists, tables of contents, forms, and ends of lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from reportlab.pdfgen.canvas import Canvas

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read


def drawn(
    *pages: Sequence[tuple[int, int, str]], also: Callable[[Canvas], None] | None = None
) -> Document:
    """Pages of (left, height, words)."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for page in pages:
        for left, height, words in page:
            canvas.drawString(left, height, words)
        if also:
            also(canvas)
        canvas.showPage()
    canvas.save()
    return read(buffer.getvalue(), "a.pdf")


def rows(*lines: Sequence[tuple[int, str]]) -> list[tuple[int, int, str]]:
    return [(left, 700 - 16 * at, text) for at, line in enumerate(lines) for left, text in line]


def test_cells_beside_an_empty_one_keep_their_columns() -> None:
    document = drawn(
        rows(
            [(72, "Part"), (180, "Old"), (280, "New"), (400, "Price")],
            [(72, "Pump"), (180, "P-1"), (280, "P-20"), (409, "1250")],
            [(72, "Valve"), (280, "V-7"), (421, "85")],
            [(72, "Hose"), (180, "H-3"), (427, "3")],
            [(180, "K-1"), (280, "K-9"), (427, "7")],
        )
    )
    assert document.text.strip().splitlines()[2:] == [
        "| Pump | P-1 | P-20 | 1250 |",
        "| Valve |  | V-7 | 85 |",
        "| Hose | H-3 |  | 3 |",
        "|  | K-1 | K-9 | 7 |",
    ]


def test_a_header_without_a_name_for_its_first_column_keeps_the_others() -> None:
    document = drawn(
        rows(
            [(180, "2023"), (280, "2024")],
            [(72, "North"), (180, "11"), (280, "12")],
            [(72, "South"), (180, "13"), (280, "14")],
        )
    )
    assert document.text.startswith("|  | 2023 | 2024 |\n")


def test_a_numbered_list_is_text_and_no_table() -> None:
    document = drawn(
        rows(
            [(72, "1."), (100, "Open the valve slowly.")],
            [(72, "2."), (100, "Close the drain.")],
            [(72, "(c)"), (100, "Start the motor.")],
        )
    )
    assert [block.kind for block in document.blocks] == ["paragraph"]
    assert "2. Close the drain." in document.text


def test_a_list_of_numbers_beside_numbers_is_a_table() -> None:
    document = drawn(rows([(72, "1.5"), (180, "20")], [(72, "2.5"), (180, "30")]))
    assert [block.kind for block in document.blocks] == ["table"]


def test_a_table_of_contents_is_no_text_and_a_list_of_prices_is() -> None:
    names = ["Scope", "Late fees", "References"]
    contents = rows(*[[(72, f"{name} ............... {at + 2}")] for at, name in enumerate(names)])
    chapters = [rows([(72, name)], [(72, "Words of this chapter.")]) for name in names]
    document = drawn([(72, 760, "Contents"), *contents], *chapters)
    assert "....." not in document.text
    assert all(name in document.text for name in names)
    prices = drawn(rows(*[[(72, f"{name} ............... {at}")] for at, name in enumerate(names)]))
    assert prices.text.count("....") >= 3


def test_what_is_filled_into_a_form_stands_after_its_label() -> None:
    def fields(canvas: Canvas) -> None:
        form = canvas.acroForm
        form.textfield(name="who", value="Ann Example", x=180, y=696, width=200, height=18)
        form.checkbox(name="yes", checked=True, x=180, y=664, size=14)
        form.checkbox(name="no", checked=False, x=180, y=632, size=14)

    document = drawn([(72, 700, "Name:"), (72, 668, "Parking:"), (72, 636, "Bus:")], also=fields)
    assert document.text.split() == ["Name:", "Ann", "Example", "Parking:", "[Yes]", "Bus:"]


def test_a_code_or_a_range_at_the_end_of_a_line_keeps_its_hyphen() -> None:
    document = drawn(
        [
            (72, 700, "Order the part KX-"),
            (72, 686, "20 for a pressure of 5-"),
            (72, 672, "10 bar."),
        ]
    )
    assert document.text.split() == [
        "Order",
        "the",
        "part",
        "KX-20",
        "for",
        "a",
        "pressure",
        "of",
        "5-10",
        "bar.",
    ]
