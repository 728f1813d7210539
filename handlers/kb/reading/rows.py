"""Read files and feeds whose rows are documents: CSV, TSV, JSON Lines and JSON arrays. They are
read row by row and may be of any size.

A row that cannot be read is a row with an `error`, and reading continues; what makes the whole file
unreadable is an IngestError. `columns` interprets the columns.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from groundhook.core.errors import IngestError, Place
from groundhook.core.types.base import well_formed
from groundhook.handlers.kb.reading.text import AS_UTF_8, BINARY, MARK, encoding_of

LARGEST_ROW = 16 << 20  # characters
_MOST_DIGITS = 4300  # of an integer; the time to parse it grows with the square of their number
_TOO_DEEP = "it is nested too deeply"
_SEPARATORS = (",", ";", "\t", "|")
_DECLARED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)
_PIECE = 1 << 16


@dataclass(frozen=True)
class FileRow:
    """A row with its values by column. `line` is the line at which it ends, `size` the number of
    bytes read for it."""

    line: int
    size: int
    values: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


def has_rows(name: str) -> bool:
    """Return whether a file with this ending has a document in each row."""
    return Path(name).suffix.lower() in TABLES


def file_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows of a file. Raises IngestError."""
    try:
        with path.open("rb") as file:
            yield from read_rows(file, str(path), TABLES[path.suffix.lower()])
    except OSError as exc:
        raise IngestError(f"{str(path)!r} cannot be read: {exc.strerror or exc}") from exc


def feed_rows(stream: BinaryIO, name: str) -> Iterator[FileRow]:
    """Yield the rows of a feed of JSON: one object per line, or an array of objects. Raises
    IngestError."""
    yield from read_rows(stream, name, _json_rows)


def read_rows(stream: BinaryIO, name: str, reader: _RowReader) -> Iterator[FileRow]:
    """Decode the stream and yield its rows with their sizes. Raises IngestError."""
    counted = _Counted(stream)
    buffered = io.BufferedReader(counted, _PIECE)
    beginning = buffered.peek(4)[:4]
    encoding = encoding_of(beginning)
    if encoding == "utf-8":
        if b"\0" in beginning:
            raise IngestError(f"{name!r} was not added: it {BINARY}", hint=AS_UTF_8)
        encoding = "utf-8-sig"
    text = io.TextIOWrapper(buffered, encoding=encoding, newline="")
    line = 0
    try:
        for row in reader(text, name):
            line = row.line
            yield FileRow(row.line, counted.taken(), row.values, row.error)
    except UnicodeDecodeError as exc:
        problem = f"it is not {encoding.upper().removesuffix('-SIG')}"
        if not line:
            raise IngestError(
                f"{name!r} was not added: {problem}", hint="save it as UTF-8"
            ) from exc
        raise IngestError(
            f"the rows after this one were not added: {problem}",
            place=Place(name, line),
            hint="save it as UTF-8",
        ) from exc


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read of another and leaves that open when it is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # read1 returns what has arrived; read would block until a pausing feed fills the buffer
        data = (
            self._stream.read1(len(buffer))
            if isinstance(self._stream, io.BufferedReader)
            else self._stream.read(len(buffer))
        )
        buffer[: len(data)] = data
        self._read += len(data)
        return len(data)

    def taken(self) -> int:
        """Return the bytes read since the last call."""
        taken, self._read = self._read, 0
        return taken


# ------------------------------------------------------------------------------------------- tables


def _csv_rows(text: TextIO, name: str) -> Iterator[FileRow]:
    first, above = _first_line(text)
    # the line by which spreadsheets declare it
    if declared := _DECLARED_SEPARATOR.fullmatch(first):
        first, more = _first_line(text)
        yield from _table(text, first, name, declared.group(1), above + more)
    else:
        yield from _table(text, first, name, max(_SEPARATORS, key=first.count), above)


def _tsv_rows(text: TextIO, name: str) -> Iterator[FileRow]:
    first, above = _first_line(text)
    yield from _table(text, first, name, "\t", above)


def _first_line(text: TextIO) -> tuple[str, int]:
    """Return the first line that is not blank, and the number of lines read for it."""
    for number in count(1):
        line = text.readline(LARGEST_ROW)
        if line.strip() or not line:
            return line, number
    raise AssertionError


def _table(text: TextIO, first: str, name: str, separator: str, above: int) -> Iterator[FileRow]:
    """Yield the rows of a table. `first` is its line of column names, which has the line number
    `above`."""
    csv.field_size_limit(LARGEST_ROW)
    reader = csv.reader(_lines(first, text), delimiter=separator, strict=True)
    begun = above  # the line at which the current row begins
    try:
        names = [column.lstrip(MARK).strip() for column in next(reader, [])]
        _check_names(names, name, above)
        begun = reader.line_num + above
        for cells in reader:
            line = reader.line_num + above - 1
            if len(cells) > len(names):
                problem = f"{len(cells)} cells, and the first line names {len(names)} columns"
                yield FileRow(line, 0, error=f"the row has {problem}")
            elif any(cell.strip() for cell in cells):
                # Spreadsheets may omit empty cells at the end of a row.
                yield FileRow(line, 0, dict(zip_longest(names, cells, fillvalue="")))
            begun = line + 1
    except csv.Error as exc:
        problem = f"the row that begins here cannot be read: {exc}"
        raise IngestError(
            f"was not added from here on: {problem}",
            place=Place(name, begun),
            hint="is a quote left open?",
        ) from exc


def _lines(first: str, text: TextIO) -> Iterator[str]:
    yield first
    yield from text


def _check_names(names: list[str], name: str, line: int) -> None:
    if any("\0" in column for column in names):
        raise IngestError(f"{name!r} was not added: it {BINARY}", hint=AS_UTF_8)
    if not any(names):
        raise IngestError(
            f"{name!r} was not added: it is empty", hint="its first line names the columns"
        )
    for column in names:
        if column and names.count(column) > 1:
            raise IngestError(
                f"was not added: two columns are named {column!r}", place=Place(name, line)
            )


# --------------------------------------------------------------------------------------------- JSON


def _json_rows(text: TextIO, name: str) -> Iterator[FileRow]:
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
            "was not added: an object that begins here spans several lines",
            place=Place(name, began),
            hint=hint,
        )
    decoder = _Decoder()
    for line, content in enumerate(_lines(first, text), began):
        content = content.lstrip(MARK)  # of a file that was appended to another
        if len(content) > LARGEST_ROW:
            yield FileRow(
                line, 0, error=f"the line has more than {LARGEST_ROW >> 20} million characters"
            )
        elif content.strip():
            try:
                value = decoder.line(content)
            except (ValueError, RecursionError) as exc:
                yield FileRow(line, 0, error=f"the line is not JSON: {_json_problem(exc)}")
            else:
                yield decoder.row(value, content, line)


def _array(text: TextIO, name: str, line: int) -> Iterator[FileRow]:
    """Yield the objects of an array that begins at this line, each as soon as it is complete."""
    decoder, buffer, more = _Decoder(), "", True
    while True:
        buffer, line = _skip_blanks(buffer, line)
        if buffer.startswith("]"):
            return
        try:
            value, end = decoder.beginning(buffer)
            # a number at the end of the buffer may be incomplete
            whole = more is False or end < len(buffer)
        except (ValueError, RecursionError) as exc:
            if not more or len(buffer) > LARGEST_ROW:
                problem = (
                    "it ends in the middle of its array"
                    if not buffer
                    else f"it is not JSON from here on: {_json_problem(exc)}"
                )
                raise IngestError(
                    f"was not added from here on: {problem}", place=Place(name, line)
                ) from exc
            whole = False
        if whole:
            line += buffer.count("\n", 0, end)
            content, buffer = buffer[:end], buffer[end:]
            yield decoder.row(value, content, line)
            continue
        # Doubling keeps the time linear: a large object is decoded only a few times.
        piece = text.read(max(_PIECE, len(buffer)))
        buffer, more = buffer + piece, bool(piece)


def _skip_blanks(buffer: str, line: int) -> tuple[str, int]:
    """Return the buffer without blanks and commas before the next value, and the line of that
    value."""
    rest = buffer.lstrip(" \t\r\n,")
    return rest, line + buffer.count("\n", 0, len(buffer) - len(rest))


class _Decoder:
    """Decodes JSON as rows. A number that is too long fails its row, not the array: the value is
    decoded to its end."""

    def __init__(self) -> None:
        self._json = json.JSONDecoder(parse_int=self._int)
        self._digits = 0  # of the last number that was too long

    def line(self, text: str) -> Any:
        self._digits = 0
        return self._json.decode(text)

    def beginning(self, text: str) -> tuple[Any, int]:
        """Return the value at the beginning of the text, and where it ends."""
        self._digits = 0
        return self._json.raw_decode(text)

    def row(self, value: Any, content: str, line: int) -> FileRow:
        """Return the row for the value that was decoded last, from the text `content`."""
        if self._digits:
            return FileRow(
                line,
                0,
                error=(
                    f"a number in the row has {self._digits} digits, and at most {_MOST_DIGITS} are"
                    " read"
                ),
            )
        try:
            if not isinstance(value, dict):
                return FileRow(line, 0, error=f"the row is not an object: {json.dumps(value)[:60]}")
            return FileRow(
                line, 0, well_formed(value) if "\\ud" in content or "\\uD" in content else value
            )
        except RecursionError:
            return FileRow(line, 0, error=_TOO_DEEP)

    def _int(self, text: str) -> int:
        digits = len(text.lstrip("-"))
        if digits > _MOST_DIGITS:
            self._digits = digits
            return 0
        return int(text)


def _json_problem(exc: Exception) -> str:
    """Return what is wrong with a JSON text."""
    # The message of the exception itself counts lines from the beginning of the buffer.
    if isinstance(exc, json.JSONDecodeError):
        return f"{exc.msg[:1].lower()}{exc.msg[1:]} (character {exc.pos + 1})"
    return _TOO_DEEP if isinstance(exc, RecursionError) else str(exc)


_RowReader = Callable[[TextIO, str], Iterator[FileRow]]
TABLES: Mapping[str, _RowReader] = {
    ".csv": _csv_rows,
    ".tsv": _tsv_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
}
