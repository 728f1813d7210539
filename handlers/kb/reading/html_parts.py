"""Parts of a page that Markdown has no form for: cells that span rows, superscripts, formulas, the
words of pictures, boxes with headings of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from groundhook.core.readers.superscripts import superscript_text

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

LONGEST_ALT, LONGEST_TERM = 300, 100  # characters
MOST_COLUMNS, MOST_COPIES = 100, 20_000  # that a cell spans, and that are made of cells of a page
HEADINGS = [f"h{level}" for level in range(1, 7)]
_INNER = [*HEADINGS, "blockquote", "div", "dl", "ol", "p", "pre", "table", "ul"]
# Classes of elements that stand beside the text around them.
BOXES = (
    *("admonition", "alert", "attention", "callout", "caution", "danger", "example", "hint"),
    *("important", "info", "infobox", "note", "sidebar", "tip", "warning"),
)
_FILE = re.compile(r"\S+\.(?:avif|gif|jpe?g|png|svg|webp)", re.IGNORECASE)
_OPERAND = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]|\([^()]*\)|√\w|[)\]}|⟩]|")


def name_icons(soup: BeautifulSoup) -> None:
    """Write drawn icons as their names."""
    for icon in soup("svg"):
        title = icon.find("title")
        name = str(icon.get("aria-label") or (title.get_text() if title else ""))
        shown = icon.get("aria-hidden") != "true"
        icon.replace_with(" ".join(name.split())[:LONGEST_ALT] if shown else " ")
    for icon in soup.select("[role=img][aria-label], i[aria-label]"):
        if not icon.get_text().strip() and icon.name != "img":
            icon.string = str(icon["aria-label"])[:LONGEST_ALT]


def simplify(soup: BeautifulSoup) -> None:
    """Write such parts as text."""
    for image in soup("img"):
        alt = " ".join(str(image.get("alt") or "").split())[:LONGEST_ALT]
        image.replace_with(" " if _FILE.fullmatch(alt) else alt or " ")
    for box in soup.select("input[type=checkbox], input[type=radio]"):
        after = box.next_sibling
        space = "" if isinstance(after, str) and after[:1].isspace() else " "
        box.replace_with(("[x]" if box.has_attr("checked") else "[ ]") + space)
    for listed in soup("dl"):
        _write_terms(soup, listed)
    for formula in soup("math"):
        formula.replace_with(_formula(formula))
    for tag in soup("sup"):
        _write_raised(tag)
    for box in (*soup.find_all(class_=BOXES), *soup(["aside"]), *soup.select("[role=note]")):
        for heading in box(HEADINGS):
            heading.name = "p"
    copies = 0
    for table in soup("table"):
        copies = _repeat_cells(soup, table, copies)
        _tidy_rows(soup, table)


def _tidy_rows(soup: BeautifulSoup, table: Tag) -> None:
    """Remove rows without words, and move a first row that is one cell over all columns before the
    table: it is the title of the table, not the name of a column."""
    if table.find("table"):
        return
    rows = [row for row in table("tr") if row.find(["td", "th"], recursive=False)]
    for row in rows:
        if not row.get_text().strip():
            row.extract()
    rows = [row for row in rows if row.parent is not None]
    cells = rows[0].find_all(["td", "th"], recursive=False) if len(rows) > 1 else []
    if len(cells) == 1 and _span(cells[0], "colspan") > 1:
        title = soup.new_tag("p")
        title.string = cells[0].get_text(" ", strip=True)
        table.insert_before(title)
        rows[0].extract()


def _write_terms(soup: BeautifulSoup, listed: Tag) -> None:
    """Write terms and their definitions as paragraphs, the terms in bold; Markdown has no form for
    them."""
    listed.name = "div"
    for part in listed(["dt", "dd"]):
        term = part.name == "dt" and not part.find(_INNER)
        part.name = "p" if term else "div"
        if term and 0 < len(part.get_text().strip()) <= LONGEST_TERM:
            for bold in part(["b", "strong"]):
                bold.unwrap()
            bold = soup.new_tag("strong")
            bold.extend(list(part.contents))
            part.append(bold)


def _write_raised(tag: Tag) -> None:
    """Write a power as `10^9`, and the number of a note as `[3]`."""
    before = tag.find_previous(string=True) if tag.previous_sibling is not None else ""
    linked = bool(tag.find("a") or tag.find_parent("a"))
    text = tag.get_text()
    if (written := superscript_text(text, str(before), linked=linked)) != text:
        tag.string = written


def _formula(tag: Tag) -> str:
    """Return MathML as one line of text."""
    from bs4 import Tag

    if tag.name in ("annotation", "annotation-xml", "mphantom"):
        return ""
    parts = [
        _formula(each) if isinstance(each, Tag) else " ".join(str(each).split())
        for each in tag.children
    ]
    parts = [part for part in parts if part]
    match tag.name, parts:
        case "mfrac", [above, below]:
            return f"{grouped(above)}/{grouped(below)}"
        case (("msup" | "mover"), [base, high]):
            return f"{grouped(base)}^{grouped(high)}"
        case "msubsup", [base, low, high]:
            return f"{base}_{grouped(low)}^{grouped(high)}"
        case (("msub" | "munder"), [base, low]):
            return f"{base}_{grouped(low)}"
        case "mroot", [base, degree]:
            return f"{grouped(base)}^(1/{degree})"
        case "mtr", _:
            return " ".join(parts)
        case "mtable", _:
            return "; ".join(parts)
        case "msqrt", _:
            return f"√{grouped(''.join(parts))}"
    return "".join(parts).replace("\u2062", "").replace("\u2061", "")


def grouped(text: str) -> str:
    """Return an operand of a formula, in brackets if it is more than one sign or name."""
    return text if _OPERAND.fullmatch(text) else f"({text})"


def _repeat_cells(soup: BeautifulSoup, table: Tag, copies: int) -> int:
    """Write a cell that spans rows in each of them, and return the `copies` of the page so far.
    Beyond their limit cells stay as they are."""
    above: dict[int, tuple[int, str, int]] = {}  # column → rows that are left, text, columns
    for row in table("tr"):
        if row.find_parent("table") is not table:
            continue
        below: dict[int, tuple[int, str, int]] = {}
        column = 0
        for cell in [*row.find_all(["td", "th"], recursive=False), None]:
            while column in above:
                left, text, width = above.pop(column)
                if copies < MOST_COPIES:
                    copy = soup.new_tag("td", colspan=str(width))
                    copy.string = text
                    row.append(copy) if cell is None else cell.insert_before(copy)
                    copies += width
                if left > 1:
                    below[column] = left - 1, text, width
                column += width
            if cell is None:
                break
            width, rows = _span(cell, "colspan"), _span(cell, "rowspan")
            cell["colspan"] = str(width)
            if rows > 1:
                below[column] = rows - 1, cell.get_text(" ", strip=True), width
            column += width
        # A row that is too short reaches none of the cells beside it.
        above = {
            at: (n - 1, text, width) for at, (n, text, width) in above.items() if n > 1
        } | below
    return copies


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "1").strip()
    if value == "0" and name == "rowspan":  # to the end
        return MOST_COLUMNS
    return max(1, min(MOST_COLUMNS, int(value))) if value.isascii() and value.isdigit() else 1
