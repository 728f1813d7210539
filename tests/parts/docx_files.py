"""Word documents with given bodies."""

from __future__ import annotations

import io
import zipfile

from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.files import read

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
STYLES = {"Title": "Title", "Heading1": "heading 1", "Heading2": "heading 2"}


def word(body: str, **others: str) -> Document:
    return read(packed(body, **others), "policy.docx")


def packed(body: str, **others: str) -> bytes:
    """A Word document of such a body; `others` are parts beside it, such as footnotes, with the
    kind of part as their names."""
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/></w:style>'
        for id, name in STYLES.items()
    )
    inner = {"document": f"<w:body>{body}</w:body>", "styles": styles, **others}
    related = "".join(
        f'<Relationship Id="r{kind}" Type="{RELATIONS}/{kind}" Target="{kind}.xml"/>'
        for kind in inner
    )
    office = f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="word/document.xml"/>'
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml"'
            ' ContentType="application/xml"/></Types>'
        ),
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{office}</Relationships>',
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>'
        ),
        **{
            f"word/{kind}.xml": f'<w:{kind} xmlns:w="{WORD}">{content}</w:{kind}>'
            for kind, content in inner.items()
        },
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()
