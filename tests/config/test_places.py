"""Every key and value of a random document is found where it was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.host.config.documents import parse_document
from tests.config.random_documents import (
    JSON_GAPS,
    JSONC_GAPS,
    YAML_GAPS,
    Writer,
    line_and_column,
    objects,
)


@pytest.mark.parametrize(
    ("file", "gaps", "trailing"),
    [
        ("x.yao", JSONC_GAPS, True),
        ("x.jsonc", JSONC_GAPS, True),
        ("x.json", JSON_GAPS, False),
        ("x.yml", YAML_GAPS, True),
    ],
)
@given(value=objects, data=st.data())
def test_every_key_and_value_of_a_document_is_read_and_found_where_it_was_written(
    file: str, gaps: list[str], trailing: bool, value: dict[str, Any], data: st.DataObject
) -> None:
    writer = Writer(
        lambda: data.draw(st.sampled_from(gaps)),
        trailing=lambda: trailing and data.draw(st.booleans()),
        before_colon=file != "x.yml",  # YAML wants the colon in the key's line
    )
    writer.write(value)
    document = parse_document(writer.text.encode(), file)

    assert document.data == value
    assert document.warnings == ()
    for path, offset in writer.values.items():
        place = document.place(path)
        assert (place.line, place.column) == line_and_column(writer.text, offset)
    for path, offset in writer.keys.items():
        place = document.place(path, of="key")
        assert (place.line, place.column) == line_and_column(writer.text, offset)


def test_a_path_that_does_not_exist_is_placed_at_what_is_around_it() -> None:
    document = parse_document(b'{\n  "a": {"b": [1]}\n}', "x.yao")

    assert str(document.place(("a", "c"))) == "x.yao:2:8"
    assert str(document.place(("a", "b", 7))) == "x.yao:2:14"
    assert str(document.place(("z",), of="key")) == "x.yao:1:1"
