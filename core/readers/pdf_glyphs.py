"""What a page of a PDF draws: glyphs with their places, values of form fields, and ruled lines.
With `pdf` the only module that calls PDFium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium

from groundhook.core.readers.visual import is_right_to_left

USUAL = 12.0  # points: the size of text in a field of a form
MOST_OBJECTS, MOST_SEGMENTS, MOST_RULES = 20_000, 400, 5_000  # that are looked at for ruled lines
STRAIGHT = 1.0  # points: what a ruled line may be off
SHORTEST = 4.0  # points: of a ruled line
# A blank that PDFium guesses is one if it is more than × the space between the letters before, and
# points.
SPACED, NEAR = 1.5, 0.3
TILTED = 0.17  # tangent of the angle from which text is a stamp across the page
# NUL is not text; the bullets of Word and LibreOffice are characters of a symbol font.
_SIGNS = {0: " ", 0x7F: "•", 0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF02D: "–"}
_HYPHEN = 2  # how PDFium gives a hyphen at the end of a line
_BLANKS = frozenset(" \t\r\n\xa0\u2002\u2003\u2009\u3000")
_BOLD = ("bold", "black", "heavy", "cmbx")  # in names of fonts; the last is TeX's
_MONO = ("mono", "courier", "cmtt", "typewriter", "consol")
_FIXED = 1  # flag of fonts whose letters are equally wide
_CHECKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_WRITTEN = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)

_text_object = pdfium.FPDFText_GetTextObject
_text_object.restype = ctypes.c_void_p  # an object for each pointer would take most of the time

Rule = tuple[float, float, float]  # its place on one axis, its begin and end on the other


@dataclass(frozen=True, slots=True)
class Type:
    """How the glyphs of one text object are drawn: `size` in points, `turn` in quarters against the
    clock (None: slanted), `base` the height of the line that upright glyphs stand on."""

    size: float
    bold: bool
    fixed: bool
    turn: int | None
    base: float


@dataclass(slots=True)
class Glyph:
    """A character. Its places are those of the text turned upright. `parted`: a blank precedes it;
    blanks are glyphs only on pages with text from right to left, where what precedes is not what is
    beside; `value`: it is what is filled into a field of a form, which is one glyph."""

    text: str
    left: float
    right: float
    base: float
    type: Type
    drawn: int
    parted: bool = False
    value: bool = False


@dataclass
class Drawn:
    """A page turned upright: `upright` rules have a place from the left, `level` ones from below.
    `aside` are glyphs of other directions, each a page of its own; `stamps` are texts across it."""

    glyphs: list[Glyph] = field(default_factory=list)
    upright: list[Rule] = field(default_factory=list)
    level: list[Rule] = field(default_factory=list)
    aside: list[list[Glyph]] = field(default_factory=list)
    stamps: list[str] = field(default_factory=list)


def read_page(page: Any, form: Any) -> Drawn:
    """Return what a page draws; `form` is PDFium's environment for the fields, or None."""
    turned: dict[int, list[Glyph]] = {}
    stamp = ""
    for glyph in _with_blanks(list(_once(_glyphs(page)))):
        if glyph.type.turn is None:
            stamp += " " * glyph.parted + glyph.text
        else:
            turned.setdefault(glyph.type.turn, []).append(glyph)
    main = max(turned, key=lambda turn: len(turned[turn]), default=0)
    drawn = Drawn(turned.pop(main, []), aside=list(turned.values()))
    if stamp:
        drawn.stamps.append(stamp.strip())
    if form is not None and not main:
        drawn.glyphs += _values(page, form)
    for left, low, right, high in _segments(page):
        (left, low), (right, high) = _upright(left, low, main), _upright(right, high, main)
        if abs(right - left) <= STRAIGHT and abs(high - low) >= SHORTEST:
            drawn.upright.append((left, min(low, high), max(low, high)))
        elif abs(high - low) <= STRAIGHT and abs(right - left) >= SHORTEST:
            drawn.level.append((low, min(left, right), max(left, right)))
    return drawn


def has_images(page: Any) -> bool:
    """Return whether a page draws an image, or a form that may contain one."""
    kinds = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM)
    return any(pdfium.FPDFPageObj_GetType(each) in kinds for each in _objects(page))


# ----------------------------------------------------------------------------------------- glyphs


def _glyphs(page: Any) -> Iterator[Glyph]:
    text = page.get_textpage()
    try:
        box, types = pdfium.FS_RECTF(), dict[int | None, Type]()
        blanks = _Blanks()
        for at in range(text.count_chars()):
            code = pdfium.FPDFText_GetUnicode(text, at)
            sign = "-" if code == _HYPHEN else _SIGNS.get(code) or chr(code)
            if sign in _BLANKS or (code < 32 and code != _HYPHEN):
                if pdfium.FPDFText_IsGenerated(text, at):
                    blanks.guess()
                    continue
                sign = " "
            found = _text_object(text, at)
            if (type_ := types.get(found)) is None:
                type_ = types[found] = _type(text, at, found)
            pdfium.FPDFText_GetLooseCharBox(text, at, box)
            glyph = _placed(sign, box, type_, found or 0)
            glyph.parted = blanks.before(glyph)
            yield glyph
    finally:
        text.close()


class _Blanks:
    """Tells where blanks are: those of the file, and those that PDFium guesses, if there is more
    space than between the letters before."""

    def __init__(self) -> None:
        self._last: Glyph | None = None
        self._guessed = False
        self._usual = 0.0  # space between the letters before, in points

    def guess(self) -> None:
        self._guessed = True

    def before(self, glyph: Glyph) -> bool:
        """Return whether a blank precedes the next glyph."""
        last, guessed = self._last, self._guessed
        self._last, self._guessed = glyph, False
        if last is None or last.text == " " or glyph.text == " ":
            return True
        gap = abs(glyph.left - last.right)
        if last.base != glyph.base:  # another line, or a raised number
            self._usual = 0.0
            return guessed and gap >= NEAR
        if guessed and gap >= SPACED * self._usual + NEAR:
            return True
        self._usual = gap
        return False


def _with_blanks(glyphs: list[Glyph]) -> list[Glyph]:
    if any(is_right_to_left(glyph.text) for glyph in glyphs):
        return glyphs
    return [glyph for glyph in glyphs if glyph.text != " "]


def _placed(sign: str, box: Any, type_: Type, drawn: int) -> Glyph:
    if not type_.turn:
        return Glyph(sign, box.left, box.right, type_.base, type_, drawn)
    one = _upright(box.left, box.bottom, type_.turn)[0]
    two = _upright(box.right, box.top, type_.turn)[0]
    return Glyph(sign, min(one, two), max(one, two), type_.base, type_, drawn)


def _upright(x: float, y: float, turn: int) -> tuple[float, float]:
    match turn:
        case 1:
            return y, -x
        case 2:
            return -x, -y
        case 3:
            return -y, x
    return x, y


def _type(text: Any, at: int, object_: int) -> Type:
    form, x, y = pdfium.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetMatrix(text, at, form)
    pdfium.FPDFText_GetCharOrigin(text, at, x, y)
    turn: int | None = None
    if abs(form.b) <= TILTED * abs(form.a):
        turn = 0 if form.a >= 0 else 2
    elif abs(form.a) <= TILTED * abs(form.b):
        turn = 1 if form.b > 0 else 3
    size = round(pdfium.FPDFText_GetFontSize(text, at) * math.hypot(form.c, form.d), 1)
    name, fixed = _font(object_)
    base = _upright(x.value, y.value, turn or 0)[1]
    return Type(abs(size) or 1.0, any(word in name for word in _BOLD), fixed, turn, base)


def _font(object_: int | None) -> tuple[str, bool]:
    """Return the name of a font, in lower case, and whether its letters are equally wide."""
    if not object_:
        return "", False
    font = pdfium.FPDFTextObj_GetFont(ctypes.cast(object_, pdfium.FPDF_PAGEOBJECT))
    if not font:
        return "", False
    name = ctypes.create_string_buffer(200)
    pdfium.FPDFFont_GetBaseFontName(font, name, len(name))
    named = name.value.decode("utf-8", "replace").casefold()
    flagged = max(0, pdfium.FPDFFont_GetFlags(font)) & _FIXED
    return named, bool(flagged) or any(word in named for word in _MONO)


def _once(glyphs: Iterator[Glyph]) -> Iterator[Glyph]:
    """Yield the glyphs without those that another text object has drawn at the same place, which
    makes letters bold. The parts of a ligature have one place and one object."""
    seen: dict[tuple[str, int, int], int] = {}
    for glyph in glyphs:
        x, y = round(glyph.left), round(glyph.base)
        near = (
            seen.get((glyph.text, x + right, y + up)) for right in (0, -1, 1) for up in (0, -1, 1)
        )
        if glyph.text != " " and any(drawn is not None and drawn != glyph.drawn for drawn in near):
            continue
        seen[glyph.text, x, y] = glyph.drawn
        yield glyph


# ------------------------------------------------------------------------------------------ fields


def _values(page: Any, form: Any) -> Iterator[Glyph]:
    box = pdfium.FS_RECTF()
    for at in range(pdfium.FPDFPage_GetAnnotCount(page)):
        note = pdfium.FPDFPage_GetAnnot(page, at)
        if not note:
            continue
        try:
            value = _value(note, form)
            if value and pdfium.FPDFAnnot_GetRect(note, box):
                high = abs(box.top - box.bottom)
                size = min(high, USUAL) or 1.0
                # a field for several lines begins at its top
                base = (
                    box.bottom + (high - size) / 2 + 0.2 * size
                    if high < 3 * size
                    else box.top - size
                )
                type_ = Type(size, False, False, 0, base)
                right = min(box.right, box.left + 0.5 * size * len(value))
                yield Glyph(value, box.left, right, base, type_, -1 - at, True, True)
        finally:
            pdfium.FPDFPage_CloseAnnot(note)


def _value(note: Any, form: Any) -> str:
    if pdfium.FPDFAnnot_GetSubtype(note) != pdfium.FPDF_ANNOT_WIDGET:
        return ""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
    if kind in _CHECKED:
        if not pdfium.FPDFAnnot_IsChecked(form, note):
            return ""
        return f"[{_wide(pdfium.FPDFAnnot_GetFormFieldExportValue, form, note) or 'x'}]"
    if kind in _WRITTEN:
        return " ".join(_wide(pdfium.FPDFAnnot_GetFormFieldValue, form, note).split())
    return ""


def _wide(ask: Any, form: Any, note: Any) -> str:
    """Return the text that a function of PDFium writes as UTF-16."""
    size = ask(form, note, None, 0)
    buffer = ctypes.create_string_buffer(size + 2)
    ask(form, note, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").split("\0")[0]


# ------------------------------------------------------------------------------------------- rules


def _objects(page: Any) -> Iterator[Any]:
    for at in range(min(MOST_OBJECTS, pdfium.FPDFPage_CountObjects(page))):
        yield pdfium.FPDFPage_GetObject(page, at)


def _segments(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of the page's paths: left, low, right, high."""
    found = 0
    for path in _objects(page):
        if pdfium.FPDFPageObj_GetType(path) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        points = _points(path)
        for one, two in pairwise(points):
            if one is not None and two is not None and found < MOST_RULES:
                found += 1
                yield (*one, *two)


def _points(path: Any) -> Sequence[tuple[float, float] | None]:
    """Return the corners of a path, with None where it is interrupted."""
    count = pdfium.FPDFPath_CountSegments(path)
    if not 2 <= count <= MOST_SEGMENTS:
        return ()
    form, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(path, form)
    points: list[tuple[float, float] | None] = []
    begin: tuple[float, float] | None = None
    for at in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(path, at)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        here = (
            form.a * x.value + form.c * y.value + form.e,
            form.b * x.value + form.d * y.value + form.f,
        )
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            points.append(None)
            begin = here
        elif kind != pdfium.FPDF_SEGMENT_LINETO:  # a curve
            points.append(None)
        points.append(here)
        if pdfium.FPDFPathSegment_GetClose(segment) and begin is not None:
            points += [begin, None]
    return points
