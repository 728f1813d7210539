"""Files and feeds whose rows are documents: CSV, TSV, JSON Lines, and a JSON array; read row by
row, however large they are.

A row that cannot be read is a row with an `error`, and the rows after it are read all the same;
what makes the whole file unreadable is an IngestError. What the columns mean is `columns`'
business.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from groundhook.handlers.kb.reading.text import encoding_of
from groundhook.host.core.errors import IngestError, Place
from groundhook.host.core.types.base import well_formed

LARGEST_ROW = 16 << 20  # characters
_MOST_DIGITS = 4300  # of a whole number; the time that it takes grows with their square
_TOO_DEEP = "it is nested too deeply"
_SEPARATORS = (",", ";", "\t", "|")
_TOLD_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)
_PIECE = 1 << 16


@dataclass(frozen=True)
class Row:
    """A row with its values by column. `line` is where it ends in the file, `size` the bytes that
    were read for it."""

    line: int
    size: int
    values: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


def has_rows(name: str) -> bool:
    """Whether each row of a file that ends like this one is a document."""
    return Path(name).suffix.lower() in TABLES


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of a file. Raises IngestError."""
    try:
        with path.open("rb") as file:
            yield from read_rows(file, str(path), TABLES[path.suffix.lower()])
    except OSError as exc:
        raise IngestError(f"{str(path)!r} cannot be read: {exc.strerror or exc}") from exc


def feed_rows(stream: BinaryIO, name: str) -> Iterator[Row]:
    """The rows of a feed of JSON: an object a line, or an array of objects. Raises IngestError."""
    yield from read_rows(stream, name, _json_rows)


def read_rows(stream: BinaryIO, name: str, reader: Reader) -> Iterator[Row]:
    counted = _Counted(stream)
    buffered = io.BufferedReader(counted, _PIECE)
    encoding = encoding_of(buffered.peek(4)[:4])
    if encoding == "utf-8":
        encoding = "utf-8-sig"
    text = io.TextIOWrapper(buffered, encoding=encoding, newline="")
    line = 0
    try:
        for row in reader(text, name):
            line = row.line
            yield Row(row.line, counted.taken(), row.values, row.error)
    except UnicodeDecodeError as exc:
        said = f"it is not {encoding.upper().removesuffix('-SIG')}"
        if not line:
            raise IngestError(f"{name!r} was not added: {said}", hint="save it as UTF-8") from exc
        raise IngestError(
            f"the rows after this one were not added: {said}",
            place=Place(name, line),
            hint="save it as UTF-8",
        ) from exc


class _Counted(io.RawIOBase):
    """A stream that counts what was read of it; closing it leaves the stream open."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # read1: a feed that pauses is read as far as it has come
        data = (
            self._stream.read1(len(buffer))
            if isinstance(self._stream, io.BufferedReader)
            else self._stream.read(len(buffer))
        )
        buffer[: len(data)] = data
        self._read += len(data)
        return len(data)

    def taken(self) -> int:
        """Bytes since this was last asked."""
        taken, self._read = self._read, 0
        return taken


# ------------------------------------------------------------------------------------------- tables


def _csv_rows(text: TextIO, name: str) -> Iterator[Row]:
    first, above = _first_line(text)
    if told := _TOLD_SEPARATOR.fullmatch(first):  # how spreadsheets say it
        first, more = _first_line(text)
        yield from _table(text, first, name, told.group(1), above + more)
    else:
        yield from _table(text, first, name, max(_SEPARATORS, key=first.count), above)


def _tsv_rows(text: TextIO, name: str) -> Iterator[Row]:
    first, above = _first_line(text)
    yield from _table(text, first, name, "\t", above)


def _first_line(text: TextIO) -> tuple[str, int]:
    """The first line that is not blank, and how many lines were read for it."""
    for number in count(1):
        line = text.readline(LARGEST_ROW)
        if line.strip() or not line:
            return line, number
    raise AssertionError


def _table(text: TextIO, first: str, name: str, separator: str, above: int) -> Iterator[Row]:
    """`first` names the columns and is line number `above`."""
    csv.field_size_limit(LARGEST_ROW)
    reader = csv.reader(_lines(first, text), delimiter=separator, strict=True)
    begun = above  # the line at which the row under way begins
    try:
        names = [column.strip() for column in next(reader, [])]
        _check_names(names, name, above)
        begun = reader.line_num + above
        for cells in reader:
            line = reader.line_num + above - 1
            if len(cells) > len(names):
                said = f"{len(cells)} cells, and the first line names {len(names)} columns"
                yield Row(line, 0, error=f"the row has {said}")
            elif any(cell.strip() for cell in cells):
                yield Row(line, 0, dict(zip(names, cells, strict=False)))
            begun = line + 1
    except csv.Error as exc:
        said = f"the row that begins here cannot be read: {exc}"
        raise IngestError(
            f"was not added from here on: {said}",
            place=Place(name, begun),
            hint="is a quote left open?",
        ) from exc


def _lines(first: str, text: TextIO) -> Iterator[str]:
    yield first
    yield from text


def _check_names(names: list[str], name: str, line: int) -> None:
    if not any(names):
        raise IngestError(
            f"{name!r} was not added: it is empty", hint="its first line names the columns"
        )
    for column in names:
        if column and names.count(column) > 1:
            raise IngestError(
                f"was not added: the column {column!r} is there twice", place=Place(name, line)
            )


# --------------------------------------------------------------------------------------------- JSON


def _json_rows(text: TextIO, name: str) -> Iterator[Row]:
    first, began = " ", 1
    while first and first.isspace():
        began += first == "\n"
        first = text.read(1)
    if not first:
        raise IngestError(
            f"{name!r} was not added: it is empty",
            hint="it should have a JSON object in each line, or an array",
        )
    if first == "[":
        yield from _array(text, name, began)
        return
    first += text.readline(LARGEST_ROW)
    if first.strip() == "{":
        hint = "write each object on one line, or all of them as one array"
        raise IngestError(
            "was not added: an object begins here that goes on over several lines",
            place=Place(name, began),
            hint=hint,
        )
    decoder = _Decoder()
    for line, said in enumerate(_lines(first, text), began):
        if len(said) > LARGEST_ROW:
            yield Row(
                line, 0, error=f"the line has more than {LARGEST_ROW >> 20} million characters"
            )
        elif said.strip():
            try:
                value = decoder.line(said)
            except (ValueError, RecursionError) as exc:
                yield Row(line, 0, error=f"the line is no JSON: {_said(exc)}")
            else:
                yield decoder.row(value, said, line)


def _array(text: TextIO, name: str, line: int) -> Iterator[Row]:
    """Objects of an array that begins at this line, each as soon as it is whole."""
    decoder, buffer, more = _Decoder(), "", True
    while True:
        buffer, line = _skipped(buffer, line)
        if buffer.startswith("]"):
            return
        try:
            value, end = decoder.beginning(buffer)
            whole = more is False or end < len(buffer)  # a number may go on
        except (ValueError, RecursionError) as exc:
            if not more or len(buffer) > LARGEST_ROW:
                said = (
                    "it ends in the middle of its array"
                    if not buffer
                    else f"it is no JSON from here on: {_said(exc)}"
                )
                raise IngestError(
                    f"was not added from here on: {said}", place=Place(name, line)
                ) from exc
            whole = False
        if whole:
            line += buffer.count("\n", 0, end)
            said, buffer = buffer[:end], buffer[end:]
            yield decoder.row(value, said, line)
            continue
        piece = text.read(
            max(_PIECE, len(buffer))
        )  # twice as much each time: a large object is not decoded again and again
        buffer, more = buffer + piece, bool(piece)


def _skipped(buffer: str, line: int) -> tuple[str, int]:
    """The buffer without blanks and commas before the next value."""
    rest = buffer.lstrip(" \t\r\n,")
    return rest, line + buffer.count("\n", 0, len(buffer) - len(rest))


class _Decoder:
    """JSON to rows. A number that is too long ends its row, and not the array: the value is read to
    its end all the same."""

    def __init__(self) -> None:
        self._json = json.JSONDecoder(parse_int=self._int)
        self._digits = 0  # of the last number that is too long

    def line(self, text: str) -> Any:
        self._digits = 0
        return self._json.decode(text)

    def beginning(self, text: str) -> tuple[Any, int]:
        """The value that the text begins with, and where it ends."""
        self._digits = 0
        return self._json.raw_decode(text)

    def row(self, value: Any, said: str, line: int) -> Row:
        """The row that was read last, from the text `said`."""
        if self._digits:
            return Row(
                line,
                0,
                error=(
                    f"a number in the row has {self._digits} digits, and at most {_MOST_DIGITS} are"
                    " read"
                ),
            )
        try:
            if not isinstance(value, dict):
                return Row(line, 0, error=f"the row is no object: {json.dumps(value)[:60]}")
            return Row(line, 0, well_formed(value) if "\\ud" in said or "\\uD" in said else value)
        except RecursionError:
            return Row(line, 0, error=_TOO_DEEP)

    def _int(self, text: str) -> int:
        digits = len(text.lstrip("-"))
        if digits > _MOST_DIGITS:
            self._digits = digits
            return 0
        return int(text)


def _said(exc: Exception) -> str:
    if isinstance(
        exc, json.JSONDecodeError
    ):  # its own words count lines from where it began to read
        return f"{exc.msg[:1].lower()}{exc.msg[1:]} (character {exc.pos + 1})"
    return _TOO_DEEP if isinstance(exc, RecursionError) else str(exc)


Reader = Callable[[TextIO, str], Iterator[Row]]
TABLES: Mapping[str, Reader] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
}
