"""What Word shows and stores as no text: numbers, equations, text boxes."""

from __future__ import annotations

import pytest

from tests.parts.docx_files import word

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def numbering(*levels: tuple[str, str, int]) -> str:
    """One list with these levels: format, text and first number."""
    written = "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{first}"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for at, (kind, text, first) in enumerate(levels)
    )
    return (
        f'<w:abstractNum w:abstractNumId="0">{written}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )


def item(text: str, level: int = 0, style: str = "") -> str:
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return f"<w:p><w:pPr>{styled}{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_headings_have_the_numbers_that_word_shows() -> None:
    document = word(
        item("Scope", 0, "Heading1")
        + item("Payments", 0, "Heading1")
        + item("Due dates", 1, "Heading2")
        + item("Late fees", 1, "Heading2")
        + item("Ends", 0, "Heading1")
        + item("Notice", 1, "Heading2"),
        numbering=numbering(("decimal", "%1", 1), ("decimal", "%1.%2", 1)),
    )
    assert [block.name for block in document.blocks] == [
        "1 Scope",
        "2 Payments",
        "2.1 Due dates",
        "2.2 Late fees",
        "3 Ends",
        "3.1 Notice",
    ]


@pytest.mark.parametrize(
    ("kind", "text", "first", "labels"),
    [
        ("lowerLetter", "(%1)", 3, ["(c) one", "(d) two"]),
        ("upperRoman", "%1.", 4, ["IV. one", "V. two"]),
        ("decimal", "Article %1", 1, ["Article 1 one", "Article 2 two"]),
    ],
)
def test_items_of_a_list_have_the_labels_that_word_shows(
    kind: str, text: str, first: int, labels: list[str]
) -> None:
    document = word(item("one") + item("two"), numbering=numbering((kind, text, first)))
    assert document.text.strip().split("\n\n") == labels


def test_a_list_that_goes_on_after_a_paragraph_keeps_counting() -> None:
    between = "<w:p><w:r><w:t>between</w:t></w:r></w:p>"
    body = item("one") + between + item("two")
    document = word(body, numbering=numbering(("decimal", "%1.", 1)))
    assert "1. one" in document.text
    assert "2. two" in document.text


def test_a_plain_list_stays_a_list() -> None:
    document = word(item("one") + item("two"), numbering=numbering(("decimal", "%1.", 1)))
    assert [block.kind for block in document.blocks] == ["list"]


def test_an_equation_stands_in_its_sentence() -> None:
    fraction = (
        "<m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
    )
    power = (
        "<m:sSup><m:e><m:r><m:t>r</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    )
    document = word(
        '<w:p><w:r><w:t xml:space="preserve">Take </w:t></w:r>'
        f'<m:oMath xmlns:m="{MATH}">{fraction}<m:r><m:t>·</m:t></m:r>{power}</m:oMath>'
        '<w:r><w:t xml:space="preserve"> litres.</w:t></w:r></w:p>'
    )
    assert document.text.strip() == "Take (a+b)/2·r^2 litres."


def test_the_text_of_a_box_follows_its_paragraph() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>Never open valve 7.</w:t></w:r></w:p></w:txbxContent>"
    document = word(
        f"<w:p><w:r><w:t>Before.</w:t></w:r><w:r><w:drawing>{box}</w:drawing></w:r></w:p>"
        "<w:p><w:r><w:t>After.</w:t></w:r></w:p>"
    )
    assert document.text.split("\n\n") == ["Before.", "Never open valve 7.", "After.\n"]
