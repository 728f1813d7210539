"""Word documents as Word writes them: titles, tables that are longer than a chunk, footnotes, comments, tracked changes."""

from __future__ import annotations

import io
import zipfile

from handlers.kb.adding.chunk import chunks
from handlers.kb.embed import estimated_tokens
from handlers.kb.reading.document import Document
from handlers.kb.reading.files import read

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
STYLES = {"Title": "Title", "Heading1": "heading 1", "Heading2": "heading 2"}


def word(body: str, **others: str) -> Document:
    """The document of such a body; `others` are parts beside it, such as footnotes, with the kind of part as their names."""
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/></w:style>' for id, name in STYLES.items()
    )
    inner = {"document": f"<w:body>{body}</w:body>", "styles": styles, **others}
    related = "".join(f'<Relationship Id="r{kind}" Type="{RELATIONS}/{kind}" Target="{kind}.xml"/>' for kind in inner)
    office = f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="word/document.xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{office}</Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
        **{f"word/{kind}.xml": f'<w:{kind} xmlns:w="{WORD}">{said}</w:{kind}>' for kind, said in inner.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return read(buffer.getvalue(), "policy.docx")


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text: str, style: str = "Normal", after: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{run(text)}{after}</w:p>'


def table(*rows: tuple[str, ...]) -> str:
    lines = ("".join(f"<w:tc><w:p>{run(cell)}</w:p></w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def note(kind: str, number: int, text: str) -> str:
    return f'<w:{kind} w:id="{number}"><w:p>{run(text)}</w:p></w:{kind}>'


def test_the_title_is_the_paragraph_that_is_styled_as_one() -> None:
    document = word(paragraph("Travel policy", "Title") + paragraph("Booking", "Heading1") + paragraph("By the portal."))
    assert document.title == "Travel policy"
    assert [(block.level, block.name) for block in document.blocks if block.level] == [(1, "Travel policy"), (1, "Booking")]


def test_each_part_of_a_long_table_begins_with_its_first_row() -> None:
    document = word(table(("Country", "Hotel"), *[(f"Country number {n}", f"{n} euros a|night") for n in range(60)]))
    parts = chunks(document, size=64, overlap=0, by="heading", count=estimated_tokens)
    assert len(parts) > 5
    assert all(part.content.startswith("| Country | Hotel |\n| --- | --- |\n| Country number ") for part in parts)
    assert "| Country number 7 | 7 euros a\\|night |" in document.text


def test_a_footnote_stands_behind_the_paragraph_that_refers_to_it() -> None:
    one, two = ('<w:r><w:footnoteReference w:id="1"/></w:r>', '<w:r><w:footnoteReference w:id="2"/></w:r>')
    end = '<w:r><w:endnoteReference w:id="1"/></w:r>'
    body = paragraph("Meals cost ten", after=one + run(" or twelve") + two) + paragraph("Rooms cost ninety", after=end)
    document = word(
        body + paragraph("The last words."),
        footnotes=note("footnote", 1, "Fifteen at airports.") + note("footnote", 2, "In Norway."),
        endnotes=note("endnote", 1, "Without breakfast."),
    )
    assert document.text.strip().split("\n\n") == [
        "Meals cost ten[1] or twelve[2]",
        "[1] Fifteen at airports.",
        "[2] In Norway.",
        "Rooms cost ninety[3]",
        "[3] Without breakfast.",
        "The last words.",
    ]


def test_comments_are_left_out_and_of_tracked_changes_the_last_version_counts() -> None:
    changed = (
        '<w:del w:id="1"><w:r><w:delText xml:space="preserve"> forty</w:delText></w:r></w:del>'
        f'<w:ins w:id="2">{run(" fifty")}</w:ins><w:r><w:commentReference w:id="0"/></w:r>'
    )
    document = word(paragraph("It costs", after=changed), comments=note("comment", 0, "Too much!"))
    assert document.text.strip() == "It costs fifty"
