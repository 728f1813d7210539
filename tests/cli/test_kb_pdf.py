"""From a folder of PDFs to passages with their pages, from the shell."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

from tests.cli.conftest import Groundhook

STYLES = getSampleStyleSheet()
ILLNESS = "Whoever falls ill calls the office before nine in the morning."
CHILD = "For a sick child ten days a year are paid to each parent."


def rules() -> bytes:
    buffer = io.BytesIO()
    filler = "Requests are made in the calendar at least two weeks before the first day. " * 3
    parts = [
        ("Title", "Leave"),
        ("BodyText", filler),
        ("", ""),
        ("Heading1", "Falling ill"),
        ("BodyText", ILLNESS),
    ]
    parts += [("BodyText", filler), ("Heading2", "Children"), ("BodyText", CHILD)]
    SimpleDocTemplate(buffer, title="Leave").build(
        [Paragraph(words, STYLES[style]) if style else PageBreak() for style, words in parts]
    )
    return buffer.getvalue()


def drawn(*, password: str = "") -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=StandardEncryption(password) if password else None)
    if password:
        canvas.drawString(72, 700, "Salaries")
    else:
        canvas.drawImage(ImageReader(Image.new("RGB", (20, 20), "red")), 72, 300, 400, 400)
    canvas.save()
    return buffer.getvalue()


@pytest.fixture
def shop(shop: Path) -> Path:
    """The shop with a collection of one assistant, and a folder of PDFs and others beside it."""
    folder = shop / "assistants/shop/kb"
    folder.mkdir()
    kept = '{"embedding": {"provider": "hash"}, "chunk": {"by": "page"}}'
    (folder / "rules.kb.yao").write_text(kept, encoding="utf-8")
    (shop / "agent/agent.yml").write_text(
        "connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8"
    )
    papers = shop / "papers"
    papers.mkdir()
    (papers / "leave.pdf").write_bytes(rules())
    (papers / "scan.pdf").write_bytes(drawn())
    (papers / "salaries.pdf").write_bytes(drawn(password="secret"))
    (papers / "plan.key").write_bytes(b"PK")
    return shop


def test_a_passage_from_a_folder_of_pdfs_is_shown_with_its_page(
    groundhook: Groundhook, shop: Path
) -> None:
    added = groundhook("kb", "add", "rules", "papers")
    assert added.code == 1
    assert re.match(
        r"Added 1 document to agents\.shop\.rules \(2 chunks\), 2 failed, 1 skipped"
        r" \(.*plan\.key\)",
        added.out,
    )
    assert re.search(
        r"salaries\.pdf' was not added: it is encrypted \(remove its password first\)", added.err
    )
    assert re.search(
        r"scan\.pdf' was not added: it has no text, only images \(recognise its text \(OCR\)"
        r" first\)",
        added.err,
    )

    found = groundhook(
        "search", "kb", "days paid for a sick child", "--threshold", "0", "--limit", "1"
    )
    _, _, item, place, passage, *_ = found.out.splitlines()
    assert item.endswith("Leave › Falling ill")
    assert place.strip() == "agents.shop.rules / leave.pdf, page 2"
    assert passage.strip().startswith("…")
    assert CHILD in passage
    assert ILLNESS not in passage

    result = groundhook(
        "search", "kb", "days paid for a sick child", "--threshold", "0", "--limit", "1", "--json"
    )
    (line,) = result.lines
    assert line["items"][0]["url"].endswith("papers/leave.pdf#page=2")
    assert ILLNESS in line["items"][0]["content"]  # whole, without an option to cut it
