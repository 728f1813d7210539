"""PDF files with given texts."""

from __future__ import annotations

import io

from reportlab.pdfgen.canvas import Canvas


def pdf(*pages: str, title: str = "") -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    if title:
        canvas.setTitle(title)
    for page in pages:
        for line, text in enumerate(page.split("\n")):
            canvas.drawString(72, 720 - 20 * line, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
