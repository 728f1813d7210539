"""Prepare the parts of a Word document for the converter: remove hidden text and tables of
contents, write cells that a row leaves out, and rename text containers that the converter does not
know. Names and toggle properties are those of ECMA-376, part 1, sections 17.3.2 and 17.7.3."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from groundhook.handlers.kb.reading.docx_shown import Shown
from groundhook.handlers.kb.reading.drawn import drawings_of
from groundhook.handlers.kb.reading.html_parts import MOST_COLUMNS

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_TEXTS = ("document", "footnotes", "endnotes")  # names of the root elements of parts that have text
_WRAPPERS = ("fldSimple", "dir", "bdo")  # a field with its result; text in a direction of its own
_KNOWN = "smartTag"  # the converter reads its content
# Kept in a hidden run: begin and end marks of fields must stay balanced.
_KEPT = ("rPr", "fldChar", "instrText")
_CONTENTS = re.compile(r"(?i)toc (?:\d|heading)")  # names of styles
_OFF = ("0", "false", "off")


@dataclass(frozen=True)
class _Names:
    """The element names of one of the two namespaces, and the ids of the styles that hide text, and
    of those of a table of contents."""

    space: str
    hiding: frozenset[str]
    contents: frozenset[str] = frozenset()

    def name(self, local: str) -> str:
        return self.space + local

    def style(self, element: Element, kind: str) -> bool:
        """Return whether the style of a paragraph or a run hides its text."""
        named = element.find(f"{self.name(kind + 'Pr')}/{self.name(kind + 'Style')}")
        return named is not None and named.get(self.name("val")) in self.hiding

    def hides(self, element: Element, properties: str, name: str) -> bool | None:
        """Return whether the element's own toggle property hides it; None if it has no such
        property."""
        toggle = element.find(f"{self.name(properties)}/{self.name(name)}")
        return None if toggle is None else toggle.get(self.name("val")) not in _OFF


def prepare_docx(data: bytes) -> tuple[bytes, int]:
    """Return the DOCX file for the converter, and the number of hidden words that were removed.
    Raises the errors of zipfile and ElementTree."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        roots = dict(_roots(parts))
        parts_with_text = dict(_text_parts(roots))
        changed: dict[str, bytes] = {}
        hidden, seen = 0, set[str]()
        shown = {space: Shown(space, roots) for space in _NAMESPACES}
        for name, names in parts_with_text.items():
            before, taken = _remove_hidden(roots[name], names)
            before |= _remove_contents(roots[name], names)
            before |= _fill_rows(roots[name], names)
            hidden += taken
            added = shown[names.space].write(roots[name], drawings_of(parts, name, seen))
            if _rename(roots[name], names) or before or added:
                changed[name] = ElementTree.tostring(roots[name])
        if not changed:
            return data, 0
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as out:
            for part in parts.infolist():
                out.writestr(part.filename, changed.get(part.filename) or parts.read(part))
        return whole.getvalue(), hidden


def _roots(parts: zipfile.ZipFile) -> Iterator[tuple[str, Element]]:
    for name in parts.namelist():
        if name.endswith(".xml"):
            # The converter reports a broken part that has text; other parts may be anything.
            with suppress(ElementTree.ParseError):
                yield name, ElementTree.fromstring(parts.read(name))


def _text_parts(roots: Mapping[str, Element]) -> Iterator[tuple[str, _Names]]:
    """Yield the names of the parts that have text, each with its element names."""
    for space in _NAMESPACES:
        hiding = frozenset[str]().union(
            *(_hiding(root, space) for root in roots.values() if root.tag == f"{space}styles")
        )
        contents = frozenset[str]().union(
            *(_of_contents(root, space) for root in roots.values() if root.tag == f"{space}styles")
        )
        for name, root in roots.items():
            if root.tag.removeprefix(space) in _TEXTS:
                yield name, _Names(space, hiding, contents)


def _hiding(styles: Element, space: str) -> set[str]:
    """Return the ids of the styles whose text is hidden, by their own property or by that of the
    style they are based on."""
    names = _Names(space, frozenset())
    own_toggle: dict[str, bool | None] = {}
    based: dict[str, str] = {}
    for style in styles.iter(names.name("style")):
        id = style.get(names.name("styleId"), "")
        parent = style.find(names.name("basedOn"))
        own_toggle[id], based[id] = (
            names.hides(style, "rPr", "vanish"),
            "" if parent is None else parent.get(names.name("val"), ""),
        )
    found: set[str] = set()
    for id in own_toggle:
        at, seen = id, {id}
        while (
            own_toggle.get(at) is None
            and (at := based.get(at, "")) not in seen
            and at in own_toggle
        ):
            seen.add(at)
        if own_toggle.get(at):
            found.add(id)
    return found


def _of_contents(styles: Element, space: str) -> set[str]:
    """Return the ids of the styles of tables of contents and their titles."""
    names = _Names(space, frozenset())
    return {
        style.get(names.name("styleId"), "")
        for style in styles.iter(names.name("style"))
        if (named := style.find(names.name("name"))) is not None
        and _CONTENTS.fullmatch(named.get(names.name("val"), ""))
    }


def _remove_contents(root: Element, names: _Names) -> bool:
    """Remove the text of tables of contents; return whether there was any. Marks of fields stay,
    since a field may begin in one paragraph and end in another."""
    run, kept = names.name("r"), {names.name(local) for local in _KEPT}
    runs = [
        each
        for paragraph in root.iter(names.name("p"))
        if _in_contents(paragraph, names)
        for each in paragraph.iter(run)
    ]
    for each in runs:
        each[:] = [child for child in each if child.tag in kept]
    return bool(runs)


def _in_contents(paragraph: Element, names: _Names) -> bool:
    styled = paragraph.find(f"{names.name('pPr')}/{names.name('pStyle')}")
    return styled is not None and styled.get(names.name("val")) in names.contents


def _remove_hidden(root: Element, names: _Names) -> tuple[bool, int]:
    """Remove hidden table rows and the content of hidden runs. Return whether there were any, and
    the number of words."""
    paragraph, run, row, text = map(names.name, ("p", "r", "tr", "t"))
    kept = {names.name(local) for local in _KEPT}
    gone: list[Element] = []
    # elements, and whether the style of the paragraph around them hides text
    waiting = [(root, False)]
    while waiting:
        element, outer = waiting.pop()
        empty = False
        if element.tag == paragraph:
            outer = names.style(element, "p")
        elif element.tag == run:
            own = names.hides(element, "rPr", "vanish")
            # The toggles of the two styles cancel each other out; a run's own property overrides
            # both.
            empty = own if own is not None else outer != names.style(element, "r")
        stay: list[Element] = []
        for child in element:
            removed = (
                child.tag not in kept
                if empty
                else child.tag == row and names.hides(child, "trPr", "hidden")
            )
            (gone if removed else stay).append(child)
        if len(stay) < len(element):
            element[:] = stay
        waiting += [(child, outer) for child in stay]
    return bool(gone), sum(
        len((found.text or "").split()) for each in gone for found in each.iter(text)
    )


def _fill_rows(root: Element, names: _Names) -> bool:
    """Write the columns that a row leaves out before its first cell as empty cells; return whether
    there were any."""
    value, filled = names.name("val"), False
    for row in root.iter(names.name("tr")):
        skipped = row.find(f"{names.name('trPr')}/{names.name('gridBefore')}")
        number = "" if skipped is None else skipped.get(value, "")
        if not (number.isascii() and number.isdigit()):
            continue
        cells = [at for at, child in enumerate(row) if child.tag == names.name("tc")]
        for _ in range(min(int(number[:6]), MOST_COLUMNS) if cells else 0):
            empty = Element(names.name("tc"))
            empty.append(Element(names.name("p")))
            row.insert(cells[0], empty)
            filled = True
    return filled


def _rename(root: Element, names: _Names) -> bool:
    """Rename the unknown text containers; return whether there were any."""
    wrappers = [element for local in _WRAPPERS for element in root.iter(names.name(local))]
    for element in wrappers:
        element.tag = names.name(_KNOWN)
    return bool(wrappers)
