"""What charts and diagrams of Office files say, as rows of text. Elements are those of ECMA-376,
part 1: 21.2 (charts) and 21.4 (diagrams)."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain, islice
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

DrawnRows = list[list[str]]  # lines of one cell, and the rows of a table

_RELATIONS = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}",
)
_MOST_CELLS = 20_000  # of a chart
_KINDS = ("chart", "diagramData")
_DAY_0 = datetime(1899, 12, 30)
_LATEST = 2_958_465  # the day before the year 10000


def named(root: Element, name: str) -> Iterator[Element]:
    """Yield the elements of that name, in whatever namespace, at any depth."""
    return (each for each in root.iter() if each.tag.rpartition("}")[2] == name)


def relations(parts: zipfile.ZipFile, path: str) -> dict[str, tuple[str, str]]:
    """Return what a part of an Office file refers to: id → (kind, path)."""
    folder, file = posixpath.split(path)
    try:
        root = ElementTree.fromstring(parts.read(f"{folder}/_rels/{file}.rels"))
    except KeyError:
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join(f"/{folder}", each.get("Target", "")))[1:],
        )
        for each in root
    }


def drawings_of(parts: zipfile.ZipFile, path: str, seen: set[str]) -> dict[str, DrawnRows]:
    """Return the charts and diagrams that a part refers to, by the ids of the references. One that
    cannot be read, or is in `seen`, is left out: a small file could show one a thousand times."""
    found: dict[str, DrawnRows] = {}
    for id, (kind, target) in relations(parts, path).items():
        if kind in _KINDS and target not in seen:
            seen.add(target)
            with suppress(KeyError, ElementTree.ParseError):
                root = ElementTree.fromstring(parts.read(target))
                found[id] = chart(root) if kind == "chart" else _diagram(root)
    return found


def reference(element: Element) -> str:
    """Return the id of the chart or diagram that an element shows; "" for any other element."""
    name = {"chart": "id", "relIds": "dm"}.get(element.tag.rpartition("}")[2], "")
    return _relation(element, name) if name else ""


def _relation(element: Element, name: str) -> str:
    """Return the id of a relation that an attribute of an element has; "" without it."""
    ids = (element.get(f"{space}{name}", "") for space in _RELATIONS)
    return next(filter(None, ids), "")


def chart(root: Element) -> DrawnRows:
    """Return the title of a chart, and a table of its series: a column for each, a row for each
    category."""
    title, across, upright = _titles(root)
    unit = f" ({', '.join(upright)})" if upright else ""
    rows = [[title + unit]] if title or unit else []
    names = iter(_series_names(root))
    left = _MOST_CELLS
    for categories, columns in _tables(named(root, "ser")):
        head = [across, *islice(names, len(columns))]
        numbers = sorted(set[int]().union(*columns))[: left // len(columns)]
        table = [
            [categories.get(number, ""), *(column.get(number, "") for column in columns)]
            for number in numbers
        ]
        rows += [head, *table] if table else []
        left -= len(table) * len(columns)
    return rows


def _caption(root: Element) -> DrawnRows:
    """Return what a chart says beside the cells that it shows: its titles, and names of series."""
    title, across, upright = _titles(root)
    words = filter(None, [title, across, *upright, *_series_names(root)])
    line = "; ".join(dict.fromkeys(words))
    return [[f"Chart: {line}"]] if line else []


def _titles(root: Element) -> tuple[str, str, list[str]]:
    """Return the title of a chart, that of its axis of categories, and those of the others."""
    title = next((_title(each) for each in named(root, "chart")), "")
    axes = [(_is(each, "valAx"), _title(each)) for each in root.iter() if each.tag.endswith("Ax")]
    across = next((text for values, text in axes if not values), "")
    return title, across, [text for _, text in axes if text and text != across]


def _series_names(root: Element) -> list[str]:
    return [" ".join(_cells(each, "tx").values()) for each in named(root, "ser")]


def _tables(series: Iterable[Element]) -> list[tuple[dict[int, str], list[dict[int, str]]]]:
    """Return the categories and the columns of each run of series that have the same ones."""
    found: list[tuple[dict[int, str], list[dict[int, str]]]] = []
    for each in series:
        categories = _cells(each, "cat", "xVal")
        if not found or (categories and categories != found[-1][0]):
            found.append((categories, []))
        found[-1][1].append(_cells(each, "val", "yVal"))
    return found


def _title(around: Element) -> str:
    """Return the title that an element has of its own."""
    found = next((each for each in around if _is(each, "title")), None)
    if found is None:
        return ""
    words = [each.text or "" for each in found.iter() if each.tag.endswith(("}t", "}v"))]
    return " ".join("".join(words).split())


def _cells(series: Element, *kinds: str) -> dict[int, str]:
    """Return the points of a series: number → text. Levels of categories are joined, the widest
    first."""
    for around in series:
        if _is(around, *kinds):
            dates = any(_is_date(each.text or "") for each in named(around, "formatCode"))
            levels = [each for each in around.iter() if _has_points(each)] or [around]
            *outer, found = (dict(_points(level, dates)) for level in reversed(levels))
            for level in reversed(outer):
                found = _joined(level, found)
            return found
    return {}


def _joined(outer: Mapping[int, str], found: Mapping[int, str]) -> dict[int, str]:
    """Return points with those of the level around them, each of which holds up to the next."""
    joined: dict[int, str] = {}
    reached = ""
    for number in sorted(outer.keys() | found.keys()):
        reached = outer.get(number, reached)
        if number in found:
            joined[number] = f"{reached} {found[number]}".strip()
    return joined


def _has_points(element: Element) -> bool:
    return any(_is(child, "pt") for child in element)


def _points(level: Element, dates: bool) -> Iterator[tuple[int, str]]:
    for point in level if _has_points(level) else [level]:
        number = point.get("idx", "0")
        value = next((each.text or "" for each in named(point, "v")), "")
        if value.strip() and number.isascii() and number.isdigit():
            yield int(number[:7]), _shown(" ".join(value.split()), dates)


def _shown(value: str, date: bool) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    if not date or not 0 < number < _LATEST:
        return f"{number:.15g}"
    day = _DAY_0 + timedelta(days=number)
    return str(day.date() if number.is_integer() else day.replace(microsecond=0))


def _is_date(code: str) -> bool:
    """Return whether a format of numbers shows dates: has letters of years or days, outside of
    quotes and brackets."""
    bare = "".join(code.split('"')[::2]).lower().partition("]")
    return any(letter in (bare[2] or bare[0]) for letter in "yd")


def _diagram(root: Element) -> DrawnRows:
    """Return the texts of a diagram (SmartArt), in their order."""
    points = (each for each in named(root, "pt") if each.get("type", "node") in ("node", "asst"))
    lines = (
        " ".join("".join(each.text or "" for each in named(paragraph, "t")).split())
        for point in points
        for paragraph in named(point, "p")
    )
    return [[line] for line in lines if line]


def _is(element: Element, *names: str) -> bool:
    return element.tag.rpartition("}")[2] in names


def charts_of_sheets(parts: zipfile.ZipFile) -> Mapping[str, DrawnRows]:
    """Return what the charts of each sheet of a workbook say beside its cells, by the sheets'
    names."""
    path = "xl/workbook.xml"
    sheets = relations(parts, path)
    found: dict[str, DrawnRows] = {}
    seen: set[str] = set()
    for sheet in named(ElementTree.fromstring(parts.read(path)), "sheet"):
        _, file = sheets.get(_relation(sheet, "id"), ("", ""))
        charts = [
            target
            for drawing in _of_kind(parts, file, "drawing", seen)
            for target in _of_kind(parts, drawing, "chart", seen)
        ]
        rows = (_caption(ElementTree.fromstring(parts.read(each))) for each in charts)
        found[sheet.get("name", "")] = [*chain.from_iterable(rows)]
    return found


def _of_kind(parts: zipfile.ZipFile, path: str, kind: str, seen: set[str]) -> Iterator[str]:
    """Yield the parts of a kind that a part refers to, each once."""
    for found, target in relations(parts, path).values():
        if found == kind and target not in seen:
            seen.add(target)
            yield target
