"""What Word shows and does not store as text: the numbers of headings and lists, equations, text
boxes, charts and diagrams. They are written into the document's XML as text, before it is
converted. Elements are those of ECMA-376, part 1: 17.9 (numbering), 22.1 (equations), 20.4.2.38
(text boxes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

from groundhook.handlers.kb.reading.drawn import DrawnRows, reference
from groundhook.handlers.kb.reading.html_parts import grouped

MATH = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}",
    "{http://purl.oclc.org/ooxml/officeDocument/math}",
)
_ALTERNATIVE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DEEPEST, _HIGHEST = 40, 100_000  # styles of a style; number of an item
_LIMITS = (("_", "sub"), ("^", "sup"))
_PLACE = re.compile(r"%([1-9])")


@dataclass
class _List:
    """A kind of list: (format, text, first number) by level, and the numbers reached so far."""

    levels: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    of_style: dict[str, int] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)

    def label(self, level: int) -> str:
        """Return the label of the next item of a level."""
        self.reached[level] = min(_HIGHEST, self.reached.get(level, self._first(level) - 1) + 1)
        for deeper in [each for each in self.reached if each > level]:
            del self.reached[deeper]
        return _PLACE.sub(self._number, self.levels.get(level, ("decimal", f"%{level + 1}.", 1))[1])

    def _first(self, level: int) -> int:
        return self.levels.get(level, ("", "", 1))[2]

    def _number(self, place: re.Match[str]) -> str:
        level = int(place[1]) - 1
        kind = self.levels.get(level, ("decimal", "", 1))[0]
        return _written(self.reached.get(level, self._first(level)), kind)


class Shown:
    """Writes into the parts of a document, whose elements have names that begin with `space`."""

    def __init__(self, space: str, roots: Mapping[str, Element]) -> None:
        self._space = space
        self._styles: dict[str, Element] = {}
        self._lists: dict[str, _List] = {}
        for root in roots.values():
            if root.tag == f"{space}styles":
                self._styles = {
                    self._get(style, "styleId"): style for style in root.iter(f"{space}style")
                }
            elif root.tag == f"{space}numbering":
                self._lists = dict(self._read_lists(root))

    def write(self, root: Element, drawings: dict[str, DrawnRows]) -> bool:
        """Write into one part, that has these drawings; return whether anything was."""
        equations = self._write_equations(root)
        drawn = self._write_drawn(root, drawings)
        return any((equations, drawn, self._write_numbers(root)))

    # ------------------------------------------------------------------------------------- numbers

    def _write_numbers(self, root: Element) -> bool:
        numbered = [
            (at, paragraph, *found)
            for at, paragraph in enumerate(root.iter(f"{self._space}p"))
            if (found := self._numbering(paragraph))
        ]
        labels = []
        for at, paragraph, list_id, level in numbered:
            kind = self._lists[list_id]
            if kind.levels.get(level, ("", "", 1))[0] in ("bullet", "none"):
                continue
            labels.append((at, paragraph, list_id, level, kind.label(level)))
        plain = _plain_lists(labels)
        written = False
        for _, paragraph, list_id, _, label in labels:
            if label and (list_id not in plain or self._is_heading(paragraph)):
                self._write_label(paragraph, label)
                written = True
        return written

    def _write_label(self, paragraph: Element, label: str) -> None:
        properties = paragraph.find(f"{self._space}pPr")
        own = properties.find(f"{self._space}numPr") if properties is not None else None
        if properties is None:
            properties = Element(f"{self._space}pPr")
            paragraph.insert(0, properties)
        if own is not None:
            properties.remove(own)
        if not self._is_heading(paragraph):  # no list of the converter, also not by its style
            numbering = SubElement(properties, f"{self._space}numPr")
            SubElement(numbering, f"{self._space}numId", {f"{self._space}val": "0"})
        at = list(paragraph).index(properties) + 1
        paragraph.insert(at, self._run(f"{label.strip()} "))

    def _numbering(self, paragraph: Element) -> tuple[str, int] | None:
        """Return the list of a paragraph and its level in it."""
        properties = paragraph.find(f"{self._space}pPr")
        if properties is None:
            return None
        own = properties.find(f"{self._space}numPr")
        style = self._value(properties, "pStyle")
        list_id, level = ("", None) if own is None else self._reference(own)
        for _ in range(_DEEPEST):
            if list_id or style not in self._styles:
                break
            in_style = self._styles[style].find(f"{self._space}pPr/{self._space}numPr")
            if in_style is not None:
                list_id, in_level = self._reference(in_style)
                level = level if level is not None else in_level
                if level is None and list_id in self._lists:
                    level = self._lists[list_id].of_style.get(style)
            style = self._value(self._styles[style], "basedOn")
        return (list_id, level or 0) if list_id in self._lists else None

    def _reference(self, numbering: Element) -> tuple[str, int | None]:
        level = self._value(numbering, "ilvl")
        return self._value(numbering, "numId"), int(level) if level.isdecimal() else None

    def _is_heading(self, paragraph: Element) -> bool:
        properties = paragraph.find(f"{self._space}pPr")
        style = "" if properties is None else self._value(properties, "pStyle")
        named = self._styles.get(style)
        name = style if named is None else self._value(named, "name")
        return name.lower().startswith("heading")

    def _read_lists(self, root: Element) -> Iterator[tuple[str, _List]]:
        kinds = {}
        for each in root.iter(f"{self._space}abstractNum"):
            found = kinds[self._get(each, "abstractNumId")] = _List()
            for level in each.iter(f"{self._space}lvl"):
                number, first = self._get(level, "ilvl"), self._value(level, "start")
                if number.isdecimal():
                    found.levels[int(number)] = (
                        self._value(level, "numFmt") or "decimal",
                        self._value(level, "lvlText"),
                        int(first) if first.isdecimal() else 1,
                    )
                    found.of_style[self._value(level, "pStyle")] = int(number)
        for instance in root.iter(f"{self._space}num"):
            base = kinds.get(self._value(instance, "abstractNumId"))
            if base is None:
                continue
            restarted = [
                (int(self._get(override, "ilvl")), int(begins))
                for override in instance.iter(f"{self._space}lvlOverride")
                if (begins := self._value(override, "startOverride")).isdecimal()
                and self._get(override, "ilvl").isdecimal()
            ]
            levels = dict(base.levels)
            for place, begin in restarted:
                kind, text, _ = levels.get(place, ("decimal", f"%{place + 1}.", 1))
                levels[place] = kind, text, begin
            named = self._get(instance, "numId")
            yield named, _List(levels, base.of_style) if restarted else base

    # ------------------------------------------------------------------------- equations and boxes

    def _write_equations(self, root: Element) -> bool:
        parents = [
            (parent, child)
            for parent in root.iter()
            for child in parent
            if child.tag in {f"{space}{name}" for space in MATH for name in ("oMath", "oMathPara")}
            and not parent.tag.startswith(MATH)
        ]
        for parent, child in parents:
            parent[list(parent).index(child)] = self._run(linear(child))
        return bool(parents)

    def _write_drawn(self, root: Element, drawings: dict[str, DrawnRows]) -> bool:
        """Move the text of drawn boxes after the paragraph that they are anchored in, and write
        that of charts and diagrams there. The converter reads boxes of the older form, which most
        files have beside the newer one."""
        parents = {id(child): parent for parent in root.iter() for child in parent}
        placed = [(content, list(content)) for content in self._boxes(root)]
        placed += [
            (each, list(self._blocks(drawings.pop(shown))))
            for each in root.iter()
            if (shown := reference(each)) in drawings
        ]
        for drawn, blocks in placed:
            at: Element | None = drawn
            while at is not None and at.tag != f"{self._space}p":
                at = parents.get(id(at))
            around = None if at is None else parents.get(id(at))
            if at is not None and around is not None:
                place = list(around).index(at) + 1
                around[place:place] = blocks
                drawn[:] = []
        return bool(placed)

    def _boxes(self, root: Element) -> list[Element]:
        """Return the boxes that are not there in the older form."""
        older = {
            id(content)
            for either in root.iter(f"{_ALTERNATIVE}AlternateContent")
            if next(either.iter(f"{_ALTERNATIVE}Fallback"), None) is not None
            for content in either.iter(f"{self._space}txbxContent")
        }
        return [
            content
            for drawing in root.iter(f"{self._space}drawing")
            for content in drawing.iter(f"{self._space}txbxContent")
            if id(content) not in older
        ]

    def _blocks(self, rows: DrawnRows) -> Iterator[Element]:
        """Yield rows as paragraphs and tables."""
        for single, together in groupby(rows, lambda row: len(row) == 1):
            if single:
                yield from (self._paragraph(text) for [text] in together)
                continue
            table = Element(f"{self._space}tbl")
            for row in together:
                line = SubElement(table, f"{self._space}tr")
                for text in row:
                    SubElement(line, f"{self._space}tc").append(self._paragraph(text))
            yield table

    def _paragraph(self, text: str) -> Element:
        paragraph = Element(f"{self._space}p")
        paragraph.append(self._run(text))
        return paragraph

    def _run(self, text: str) -> Element:
        run = Element(f"{self._space}r")
        written = SubElement(run, f"{self._space}t")
        written.text = text
        written.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        return run

    def _get(self, element: Element, name: str) -> str:
        return element.get(f"{self._space}{name}", "")

    def _value(self, element: Element, name: str) -> str:
        found = element.find(f"{self._space}{name}")
        return "" if found is None else self._get(found, "val")


def _plain_lists(labels: Sequence[tuple[int, Element, str, int, str]]) -> set[str]:
    """Return the lists that the converter numbers as Word does."""
    counted: dict[str, list[tuple[int, str]]] = {}
    for at, _, list_id, level, label in labels:
        counted.setdefault(list_id, []).append((at, "" if level else label.rstrip(".)")))
    return {
        list_id
        for list_id, items in counted.items()
        if [label for _, label in items] == [str(at + 1) for at in range(len(items))]
        and items[-1][0] - items[0][0] == len(items) - 1
    }


def linear(element: Element) -> str:
    """Return an equation as one line of text."""
    name = element.tag.rpartition("}")[2]
    if name == "t":
        return element.text or ""
    parts = {child.tag.rpartition("}")[2]: linear(child) for child in element}
    inner = parts.get("e", "")
    match name:
        case "f":
            return f"{grouped(parts.get('num', ''))}/{grouped(parts.get('den', ''))}"
        case "rad":
            return f"{parts.get('deg', '')}√{grouped(inner)}"
        case "sSup" | "sSub" | "sSubSup":
            return inner + _limits(parts)
        case "nary":
            return f"{_property(element, 'chr') or '∫'}{_limits(parts)} {inner}"
        case "d":
            return _delimited(element)
        case "func":
            return f"{parts.get('fName', '')} {inner}"
    return "".join(linear(child) for child in element)


def _delimited(element: Element) -> str:
    inner = ", ".join(linear(each) for each in element if each.tag.endswith("}e"))
    begin, end = _property(element, "begChr"), _property(element, "endChr")
    return f"{begin or '('}{inner}{end or ')'}"


def _limits(parts: Mapping[str, str]) -> str:
    """Return what stands below and above a sign."""
    written = (sign + grouped(parts[name]) for sign, name in _LIMITS if parts.get(name))
    return "".join(written)


def _property(element: Element, name: str) -> str:
    for each in element.iter():
        if each.tag.endswith("}" + name):
            return next((value for key, value in each.attrib.items() if key.endswith("}val")), "")
        if each.tag.endswith("}e"):
            break
    return ""


def _written(number: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter"):
        letter = chr(ord("a") + (number - 1) % 26) * min(9, (number - 1) // 26 + 1)
        return letter if kind == "lowerLetter" else letter.upper()
    if kind in ("lowerRoman", "upperRoman") and number < 4000:
        roman = _roman(number)
        return roman.lower() if kind == "lowerRoman" else roman
    return f"{number:02d}" if kind == "decimalZero" else str(number)


def _roman(number: int) -> str:
    signs = zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"],
        strict=True,
    )
    written = ""
    for value, sign in signs:
        written += sign * (number // value)
        number %= value
    return written
