"""Files and feeds whose rows are documents: CSV, TSV, JSON Lines, and a JSON array; read row by row, however large they are.

A row that cannot be read is a row with an `error`, and the rows after it are read all the same; what makes the whole file
unreadable is an IngestError. What the columns mean is `columns`' business.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from handlers.kb.reading.text import encoding_of
from host.errors import IngestError, Place
from host.types.base import well_formed

LARGEST_ROW = 16 << 20  # characters
_MOST_DIGITS = 4300  # of a whole number; the time that it takes grows with their square
_TOO_DEEP = "it is nested too deeply"
_SEPARATORS = (",", ";", "\t", "|")
_PIECE = 1 << 16


@dataclass(frozen=True)
class Row:
    """A row with its values by column. `line` is where it ends in the file, `size` the bytes that were read for it."""

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
    try:
        for row in reader(text, name):
            yield Row(row.line, counted.taken(), row.values, row.error)
    except UnicodeDecodeError as exc:
        raise IngestError(
            f"{name!r} was not added from here on: it is not {encoding.upper().removesuffix('-SIG')}", hint="save it as UTF-8"
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
        data = self._stream.read1(len(buffer)) if isinstance(self._stream, io.BufferedReader) else self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._read += len(data)
        return len(data)

    def taken(self) -> int:
        """Bytes since this was last asked."""
        taken, self._read = self._read, 0
        return taken


# ---------------------------------------------------------------------------------------------------- tables


def _csv_rows(text: TextIO, name: str) -> Iterator[Row]:
    first = text.readline(LARGEST_ROW)
    separator = max(_SEPARATORS, key=first.count)
    yield from _table(text, first, name, separator)


def _tsv_rows(text: TextIO, name: str) -> Iterator[Row]:
    yield from _table(text, text.readline(LARGEST_ROW), name, "\t")


def _table(text: TextIO, first: str, name: str, separator: str) -> Iterator[Row]:
    csv.field_size_limit(LARGEST_ROW)
    reader = csv.reader(_lines(first, text), delimiter=separator, strict=True)
    try:
        names = [column.strip() for column in next(reader, [])]
        _check_names(names, name)
        for cells in reader:
            if len(cells) > len(names):
                said = f"{len(cells)} cells, and the first line names {len(names)} columns"
                yield Row(reader.line_num, 0, error=f"the row has {said}")
            elif any(cell.strip() for cell in cells):
                yield Row(reader.line_num, 0, dict(zip(names, cells, strict=False)))
    except csv.Error as exc:
        place = Place(name, reader.line_num)
        raise IngestError(f"was not added from here on: {exc}", place=place, hint="is a quote left open?") from exc


def _lines(first: str, text: TextIO) -> Iterator[str]:
    yield first
    yield from text


def _check_names(names: list[str], name: str) -> None:
    if not any(names):
        raise IngestError(f"{name!r} was not added: it is empty", hint="its first line names the columns")
    for column in names:
        if column and names.count(column) > 1:
            raise IngestError(f"was not added: the column {column!r} is there twice", place=Place(name, 1))


# ---------------------------------------------------------------------------------------------------- JSON


def _json_rows(text: TextIO, name: str) -> Iterator[Row]:
    first = " "
    while first and first.isspace():
        first = text.read(1)
    if not first:
        raise IngestError(f"{name!r} was not added: it is empty", hint="it should have a JSON object in each line, or an array")
    if first == "[":
        yield from _array(text, name)
        return
    decoder = _Decoder()
    for line, said in enumerate(_lines(first + text.readline(LARGEST_ROW), text), 1):
        if len(said) > LARGEST_ROW:
            yield Row(line, 0, error=f"the line has more than {LARGEST_ROW >> 20} million characters")
        elif said.strip():
            try:
                value = decoder.line(said)
            except (ValueError, RecursionError) as exc:
                yield Row(line, 0, error=f"the line is no JSON: {_said(exc)}")
            else:
                yield decoder.row(value, said, line)


def _array(text: TextIO, name: str) -> Iterator[Row]:
    """Objects of an array, each as soon as it is whole."""
    decoder, buffer, line, more = _Decoder(), "", 1, True
    while True:
        buffer, line = _skipped(buffer, line)
        if buffer.startswith("]"):
            return
        try:
            value, end = decoder.beginning(buffer)
            whole = more is False or end < len(buffer)  # a number may go on
        except (ValueError, RecursionError) as exc:
            if not more or len(buffer) > LARGEST_ROW:
                said = "it ends in the middle of its array" if not buffer else f"it is no JSON from here on: {_said(exc)}"
                raise IngestError(f"was not added from here on: {said}", place=Place(name, line)) from exc
            whole = False
        if whole:
            line += buffer.count("\n", 0, end)
            said, buffer = buffer[:end], buffer[end:]
            yield decoder.row(value, said, line)
            continue
        piece = text.read(max(_PIECE, len(buffer)))  # twice as much each time: a large object is not decoded again and again
        buffer, more = buffer + piece, bool(piece)


def _skipped(buffer: str, line: int) -> tuple[str, int]:
    """The buffer without blanks and commas before the next value."""
    rest = buffer.lstrip(" \t\r\n,")
    return rest, line + buffer.count("\n", 0, len(buffer) - len(rest))


class _Decoder:
    """JSON to rows. A number that is too long ends its row, and not the array: the value is read to its end all the same."""

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
            return Row(line, 0, error=f"a number in the row has {self._digits} digits, and at most {_MOST_DIGITS} are read")
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
    return _TOO_DEEP if isinstance(exc, RecursionError) else str(exc)


Reader = Callable[[TextIO, str], Iterator[Row]]
TABLES: Mapping[str, Reader] = {".csv": _csv_rows, ".tsv": _tsv_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}
