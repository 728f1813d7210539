"""Rows as documents: what their columns mean, what becomes of wrong ones, and that a file is never
in memory as a whole."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import IngestError
from groundhook.core.types.collection_spec import RowSpec
from groundhook.handlers.kb.reading.columns import Columns
from groundhook.handlers.kb.reading.rows import LARGEST_ROW, FileRow, feed_rows, file_rows


def rows(tmp_path: Path, name: str, text: str | bytes) -> list[FileRow]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(file_rows(path))


def feed(text: str) -> list[Any]:
    return [row.error or row.values for row in feed_rows(io.BytesIO(text.encode()), "feed")]


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,"x, y"\n2,z\n',
        "a;b\n1;x, y\n2;z\n",
        "\ufeffa\tb\r\n1\tx, y\r\n2\tz\r\n",
        "a|b\n1|x, y\n\n2|z",
        "\n  \n" + 'a,b\n1,"x, y"\n2,z\n',
        "sep=;\na;b\n1;x, y\n2;z\n",
        "\ufeff" + '"sep=|"\r\na|b\r\n1|x, y\r\n2|z\r\n',
    ],
)
def test_a_table_is_read_whatever_parts_its_cells(tmp_path: Path, text: str) -> None:
    assert [dict(row.values) for row in rows(tmp_path, "t.csv", text)] == [
        {"a": "1", "b": "x, y"},
        {"a": "2", "b": "z"},
    ]


def test_a_row_says_its_line_and_how_much_was_read(tmp_path: Path) -> None:
    text = 'id,text\n1,"two\nlines"\n2,x\n'
    found = rows(tmp_path, "t.csv", text)
    assert [row.line for row in found] == [3, 4]
    assert sum(row.size for row in found) == len(text)
    assert [row.line for row in rows(tmp_path, "t.csv", f"\n\n{text}")] == [5, 6]
    assert [row.line for row in rows(tmp_path, "t.csv", f"sep=,\n{text}")] == [4, 5]
    assert [row.line for row in rows(tmp_path, "t.jsonl", '\n\n{"a": 1}\n\n{"a": 2}\n')] == [3, 5]
    assert [row.line for row in rows(tmp_path, "t.jsonl", '\n[{"a": 1},\n{"a": 2}]\n')] == [2, 3]


def test_a_row_that_is_wrong_does_not_stop_the_others(tmp_path: Path) -> None:
    assert [row.error for row in rows(tmp_path, "t.csv", "a,b\n1,2,3\n4,5\n")] == [
        "the row has 3 cells, and the first line names 2 columns",
        "",
    ]
    wrong = [row.error[:19] for row in rows(tmp_path, "t.jsonl", '{"a": 1}\n{a}\n\n[1]\n{"a": 2}')]
    assert wrong == ["", "the line is not JSO", "the row is not an o", ""]
    [cut] = rows(tmp_path, "t.jsonl", '{"a": 1, "b": "cut\n')
    assert cut.error == "the line is not JSON: invalid control character at (character 19)"


def test_cells_that_a_row_omits_at_its_end_are_empty(tmp_path: Path) -> None:
    short, _ = rows(tmp_path, "t.csv", "id,name,text\n1,Pen\n2,Cup,Blue\n")
    assert short.values == {"id": "1", "name": "Pen", "text": ""}
    with pytest.raises(IngestError, match="the row has no text in 'text'"):
        Columns(RowSpec(text=("text",))).document(short, "t.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "\ufeff\ufeffid,text\n1,\ufeffpear\n"),
        ("t.jsonl", '\ufeff{"id": "1", "text": "\ufeffpear"}\n'),
        ("t.jsonl", '{"id": 0, "text": "plum"}\n\ufeff{"id": 1, "text": "pear"}\n'),
    ],
)
def test_byte_order_marks_are_no_part_of_rows(tmp_path: Path, name: str, text: str) -> None:
    last = Columns(RowSpec()).document(rows(tmp_path, name, text)[-1], name)
    assert (last.id, last.document.text) == ("1", "pear")


@pytest.mark.parametrize("text", ["id,text\n1,pear\n", "имя,текст\n1,груша\n", '{"text": "pear"}'])
def test_rows_in_utf_16_without_its_mark_are_refused(tmp_path: Path, text: str) -> None:
    name = "t.jsonl" if text.startswith("{") else "t.csv"
    with pytest.raises(IngestError, match=r"UTF-16 without its mark .*save it as UTF-8"):
        rows(tmp_path, name, text.encode("utf-16-le"))


def test_one_nul_in_a_row_is_noted_with_its_line_and_a_row_of_nuls_is_refused() -> None:
    made = Columns(RowSpec()).document(FileRow(7, 0, {"text": "a ripe\0pear"}), "t.csv")
    assert made.document.text == "a ripe pear"
    assert made.document.notes == ("line 7: 1 NUL character was read as blank",)
    with pytest.raises(IngestError, match=r"t\.csv:7: the row is binary"):
        document({"text": "a\0\0\0pear"})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.csv", "", "it is empty"),
        ("t.csv", "a,b,a\n1,2,3\n", r"t\.csv:1: was not added: two columns are named 'a'"),
        ("t.csv", 'a,b\n1,"2\n', r"t\.csv:2: was not added from here on.*is a quote left open\?"),
        (
            "t.csv",
            'a,b\n1,2\n3,"4\n5,6\n7,8\n',
            r"t\.csv:3: was not added from here on: the row that begins here",
        ),
        (
            "t.csv",
            'a,b\n1,2\n3,"4"x\n5,6\n',
            r"t\.csv:3: was not added from here on: the row that begins here",
        ),
        ("t.csv", b"a,b\n1,caf\xe9\n", "t.csv' was not added: it is not UTF-8"),
        (
            "t.csv",
            b"a,b\n" + b"1,2\n" * 9000 + b"1,caf\xe9\n",
            r"t\.csv:8\d\d\d: the rows after this one were not",
        ),
        (
            "t.jsonl",
            '\n{\n  "a": 1\n}\n',
            r"t\.jsonl:2: was not added: an object that begins here.*on one line",
        ),
        ("t.jsonl", " \n", "it is empty"),
        ("t.jsonl", '[{"a": 1}, {"a": ', r"t\.jsonl:1: was not added from here on: it is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_to_its_end_says_where(
    tmp_path: Path, name: str, text: str | bytes, says: str
) -> None:
    with pytest.raises(IngestError, match=says):
        rows(tmp_path, name, text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=6)


@given(objects=OBJECTS, indent=st.sampled_from([None, 1]), ascii=st.booleans())
def test_a_feed_is_the_objects_that_were_written_as_lines_or_as_an_array(
    objects: list[Any], indent: int | None, ascii: bool
) -> None:
    array = json.dumps(objects, indent=indent, ensure_ascii=ascii)
    assert feed(array) == objects
    if objects:
        assert feed("\n".join(json.dumps(each, ensure_ascii=ascii) for each in objects)) == objects


class Endless(io.RawIOBase):
    """A feed that has no end, and knows how much of it was read."""

    def __init__(self, begins: bytes, row: bytes) -> None:
        self.handed = 0
        self._parts = self._all(begins, row)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = next(self._parts)
        buffer[: len(part)] = part
        self.handed += len(part)
        return len(part)

    @staticmethod
    def _all(begins: bytes, row: bytes) -> Iterator[bytes]:
        yield begins
        while True:
            yield row


@pytest.mark.parametrize(("begins", "row"), [(b"\n", b'{"id": 1}\n'), (b"[", b'{"id": 1},\n')])
def test_a_feed_is_read_as_it_comes(begins: bytes, row: bytes) -> None:
    stream = Endless(begins, row)
    found = feed_rows(io.BufferedReader(stream), "feed")
    for _ in range(20_000):
        assert next(found).values == {"id": 1}
    assert stream.handed < 20_000 * len(row) + (1 << 20) < LARGEST_ROW


# ------------------------------------------------------------------------------------------ columns


def document(
    values: dict[str, Any], spec: RowSpec | None = None, **more: Any
) -> tuple[str, str, str, str]:
    made = Columns(spec or RowSpec(), **more).document(FileRow(7, 0, values), "t.csv")
    return made.id, made.document.title, made.document.text, made.document.url


def test_columns_mean_what_they_are_called() -> None:
    row = {
        "ID": "7",
        "Name": "Pen",
        "Description": "With ink.",
        "link": "https://e.com/7",
        "price": "3",
    }
    assert document(row) == ("7", "Pen", "With ink.", "https://e.com/7")


def test_declared_columns_outrank_what_they_are_called() -> None:
    row = {"id": "7", "no": "8", "title": "T", "content": "C", "more": "M", "url": "u"}
    assert document(row, RowSpec(id="no", text=("more", "content"))) == (
        "8",
        "T",
        "more: M\ncontent: C",
        "u",
    )


def test_without_a_column_of_text_all_columns_are_it() -> None:
    row = {"id": "7", "name": "Pen", "colour": "red", "size": 3, "tenant": "acme", "empty": ""}
    assert document(row, apart=["tenant"]) == ("7", "Pen", "colour: red\nsize: 3", "")


def test_a_row_without_an_id_keeps_its_own_as_long_as_its_text_stays() -> None:
    first, second = document({"text": "pears", "n": 1}), document({"text": "pears", "n": 2})
    assert first[0] == second[0] != document({"text": "plums"})[0]


def test_fields_of_a_feed_may_stand_in_an_object_of_their_own() -> None:
    made = Columns(RowSpec()).document(
        FileRow(1, 0, {"id": "a", "content": "x", "year": 1, "fields": {"year": 2, "tag": "t"}}),
        "f",
    )
    assert {name: row.value for name, row in made.document.fields.items()} == {
        "id": "a",
        "content": "x",
        "year": 1,
        "tag": "t",
    }


@pytest.mark.parametrize(
    ("values", "spec", "says"),
    [
        ({"id": "1", "content": " "}, RowSpec(), r"t\.csv:7: the row has no text in 'content'"),
        (
            {"id": "", "content": "x"},
            RowSpec(),
            r"t\.csv:7: the row has no value in its column 'id'",
        ),
        (
            {"id": "1", "text": "x"},
            RowSpec(text=("txt",)),
            r"no column 'txt', which `rows` declares \(did you mean 'text'\?\)",
        ),
    ],
)
def test_a_row_that_is_no_document_says_why(
    values: dict[str, Any], spec: RowSpec, says: str
) -> None:
    with pytest.raises(IngestError, match=says):
        document(values, spec)
