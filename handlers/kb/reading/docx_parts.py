"""The parts of a Word document before they are converted: hidden text is taken out, and what holds
text under a name that the converter does not know gets one that it does. Names and toggles are
those of ECMA-376, part 1, sections 17.3.2 and 17.7.3."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_TEXTS = ("document", "footnotes", "endnotes")  # of the parts that have text
_WRAPPERS = ("fldSimple", "dir", "bdo")  # a field with its result; text in a direction of its own
_KNOWN = "smartTag"  # is read as what is in it
_KEPT = (
    "rPr",
    "fldChar",
    "instrText",
)  # of a hidden run: where fields begin and end must stay in balance
_OFF = ("0", "false", "off")


@dataclass(frozen=True)
class _Word:
    """The names of one of the two namespaces, and of the styles those that hide."""

    space: str
    hiding: frozenset[str]

    def name(self, local: str) -> str:
        return self.space + local

    def style(self, element: Element, kind: str) -> bool:
        """Whether the style that a paragraph or a run names hides its text."""
        named = element.find(f"{self.name(kind + 'Pr')}/{self.name(kind + 'Style')}")
        return named is not None and named.get(self.name("val")) in self.hiding

    def hides(self, element: Element, properties: str, name: str) -> bool | None:
        """What an element says of itself; None when nothing."""
        said = element.find(f"{self.name(properties)}/{self.name(name)}")
        return None if said is None else said.get(self.name("val")) not in _OFF


def mended(data: bytes) -> tuple[bytes, int]:
    """A DOCX as the converter should see it, and how many words were hidden. Raises what reading
    ZIP and XML does."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        roots = dict(_roots(parts))
        words = dict(_words_of(roots))
        changed: dict[str, bytes] = {}
        hidden = 0
        for name, word in words.items():
            before, taken = _take_out(roots[name], word)
            hidden += taken
            if _rename(roots[name], word) or before:
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
            with suppress(
                ElementTree.ParseError
            ):  # of a part that has text, the converter says so; others may be anything
                yield name, ElementTree.fromstring(parts.read(name))


def _words_of(roots: Mapping[str, Element]) -> Iterator[tuple[str, _Word]]:
    """The parts that have text, each with the names that hold in it."""
    for space in _NAMESPACES:
        hiding = frozenset[str]().union(
            *(_hiding(root, space) for root in roots.values() if root.tag == f"{space}styles")
        )
        for name, root in roots.items():
            if root.tag.removeprefix(space) in _TEXTS:
                yield name, _Word(space, hiding)


def _hiding(styles: Element, space: str) -> set[str]:
    """The ids of the styles whose text is hidden, by what they say or by what they are based on."""
    word = _Word(space, frozenset())
    said: dict[str, bool | None] = {}
    based: dict[str, str] = {}
    for style in styles.iter(word.name("style")):
        id = style.get(word.name("styleId"), "")
        parent = style.find(word.name("basedOn"))
        said[id], based[id] = (
            word.hides(style, "rPr", "vanish"),
            "" if parent is None else parent.get(word.name("val"), ""),
        )
    found: set[str] = set()
    for id in said:
        at, seen = id, {id}
        while said.get(at) is None and (at := based.get(at, "")) not in seen and at in said:
            seen.add(at)
        if said.get(at):
            found.add(id)
    return found


def _take_out(root: Element, word: _Word) -> tuple[bool, int]:
    """Hidden rows of tables go, and hidden runs lose what they hold → whether there were any, and
    how many words."""
    paragraph, run, row, text = map(word.name, ("p", "r", "tr", "t"))
    kept = {word.name(local) for local in _KEPT}
    gone: list[Element] = []
    waiting = [(root, False)]  # elements, and whether the style of the paragraph around them hides
    while waiting:
        element, outer = waiting.pop()
        empty = False
        if element.tag == paragraph:
            outer = word.style(element, "p")
        elif element.tag == run:
            own = word.hides(element, "rPr", "vanish")
            # Of the two styles each turns around what the other says; what a run says itself is the
            # last word.
            empty = own if own is not None else outer != word.style(element, "r")
        stay: list[Element] = []
        for child in element:
            away = (
                child.tag not in kept
                if empty
                else child.tag == row and word.hides(child, "trPr", "hidden")
            )
            (gone if away else stay).append(child)
        if len(stay) < len(element):
            element[:] = stay
        waiting += [(child, outer) for child in stay]
    return bool(gone), sum(
        len((found.text or "").split()) for each in gone for found in each.iter(text)
    )


def _rename(root: Element, word: _Word) -> bool:
    wrappers = [element for local in _WRAPPERS for element in root.iter(word.name(local))]
    for element in wrappers:
        element.tag = word.name(_KNOWN)
    return bool(wrappers)
