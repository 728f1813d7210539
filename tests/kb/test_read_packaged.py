"""Notebooks, e-mails, workbooks, presentations and e-books: what is text in them, and its place."""

from __future__ import annotations

import json

import pytest

from groundhook.core.errors import IngestError
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read
from tests.parts.workbooks import packed, workbook

DRAWN = "http://schemas.openxmlformats.org/drawingml/2006/main"


def headings(document: Document) -> list[tuple[str, int]]:
    return [(block.name, block.page) for block in document.blocks if block.kind == "heading"]


def test_a_notebook_is_its_texts_its_code_and_its_results() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Fees\n", "\n", "Twelve.\n"]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [{"data": {"text/plain": ["2"], "image/png": "AAAA"}}, {"text": "said"}],
        },
    ]
    document = read(json.dumps({"cells": cells}).encode(), "a.ipynb")
    assert document.title == "Fees"
    assert [block.kind for block in document.blocks] == ["heading", "paragraph", *["code"] * 3]
    assert "AAAA" not in document.text


def test_an_email_is_its_subject_its_people_and_its_text() -> None:
    written = (
        "From: Ann <ann@example.org>\r\nTo: bo@example.org\r\nSubject: =?utf-8?q?Geb=C3=BChren?=\r\n"
        "MIME-Version: 1.0\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<p>Zw\xf6lf <b>Euro</b>."
    )
    document = read(written.encode("latin-1"), "a.eml")
    assert document.title == "Gebühren"
    assert "From: Ann <ann@example.org>" in document.text
    assert "Zwölf **Euro**." in document.text


def test_a_workbook_is_a_table_for_each_sheet() -> None:
    rows: list[list[str | float]] = [["Zone", "Fee"], ["North | East", 12]]
    document = read(workbook({"Fees 2024": rows}), "fees.xlsx")
    assert headings(document) == [("Fees 2024", 0)]
    assert "| Zone | Fee |\n| --- | --- |\n| North \\| East | 12 |" in document.text


def test_the_page_of_a_passage_of_a_presentation_is_its_slide() -> None:
    def slide(*paragraphs: str) -> str:
        written = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
        cells = "".join(f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>" for text in "xy")
        return f'<s xmlns:a="{DRAWN}">{written}<a:tbl><a:tr>{cells}</a:tr></a:tbl></s>'

    document = read(
        packed(
            {
                "ppt/slides/slide10.xml": slide("Last"),
                "ppt/slides/slide2.xml": slide("Fees", "Twelve."),
            }
        ),
        "a.pptx",
    )
    assert headings(document) == [("Fees", 2), ("Last", 10)]
    assert document.text.split("\n\n")[:3] == ["## Fees", "Twelve.", "x | y"]


def test_an_ebook_is_its_chapters_in_order() -> None:
    document = read(
        packed(
            {
                "META-INF/container.xml": '<c><rootfile full-path="OEBPS/book.opf"/></c>',
                "OEBPS/book.opf": (
                    '<p xmlns:d="d"><d:title>Rules</d:title><manifest>'
                    '<item id="b" href="b%201.xhtml"/><item id="a" href="a.xhtml"/></manifest>'
                    '<spine><itemref idref="a"/><itemref idref="b"/></spine></p>'
                ).replace("<manifest>", '<manifest xmlns="x">'),
                "OEBPS/a.xhtml": "<h1>One</h1><p>Pears.</p>",
                "OEBPS/b 1.xhtml": "<h1>Two</h1><p>Plums.</p>",
            }
        ),
        "a.epub",
    )
    assert document.title == "Rules"
    assert [name for name, _ in headings(document)] == ["One", "Two"]


@pytest.mark.parametrize("name", ["a.ipynb", "a.xlsx", "a.pptx", "a.epub"])
@pytest.mark.parametrize("data", [b"PK\x03\x04broken", b"[]", b"text"])
def test_a_file_of_another_kind_is_an_error_that_names_it(name: str, data: bytes) -> None:
    with pytest.raises(IngestError, match=name):
        read(data, name)
