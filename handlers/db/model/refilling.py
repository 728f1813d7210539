"""The model and the rows of a table that is filled again from a file. Pure.

What people wrote in the model stays: labels, comments, formats, relations. The columns that both
have keep their types, unless the command names others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from groundhook.core.errors import ConfigError
from groundhook.handlers.db.model.tabular import TYPES, Tabular
from groundhook.handlers.db.model.updating import FACTS, without_columns

_OF_THE_TABLE = {*chain.from_iterable(FACTS.values()), "index"}


def known_types(model: Mapping[str, Any]) -> dict[str, str]:
    """Return the types with which the columns of a file are read again."""
    read_as = {"enum": "string"}
    types = ((one["name"], read_as.get(one["type"], one["type"])) for one in model["columns"])
    return {name: type for name, type in types if type in TYPES}


def replaced(model: Mapping[str, Any], found: Tabular) -> dict[str, Any]:
    """Return the content of a model whose table gets the columns and rows of a file instead of its
    own."""
    mine = {column["name"]: column for column in model["columns"]}
    columns = []
    for column in found.content["columns"]:
        before = mine.get(column["name"], {})
        kept = {key: value for key, value in before.items() if key not in _OF_THE_TABLE}
        columns.append({**column, **kept})
    names = {column["name"] for column in columns}
    content = {**model, "columns": columns}
    without_columns(content, mine.keys() - names)
    return content


def appended(model: Mapping[str, Any], found: Tabular) -> dict[str, Any]:
    """Return the content of a model to whose table the rows of a file are added: its columns may
    have more options. Raises ConfigError for a file with columns that the table lacks."""
    mine = {column["name"] for column in model["columns"]}
    if others := sorted(set(found.names.values()) - mine):
        raise ConfigError(
            f"the table has no column {', '.join(others)}, and the file has",
            hint="--replace makes the table anew, with the columns of the file",
        )
    given = {
        one.content["name"]: {str(value) for value in one.values if value is not None}
        for one in found.columns
    }
    columns = [
        {**column, "option": sorted({*column["option"], *given.get(column["name"], ())})}
        if column["type"] == "enum"
        else column
        for column in model["columns"]
    ]
    return {**model, "columns": columns}


def rows_to_add(model: Mapping[str, Any], found: Tabular, last: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file in the columns of a table. Where the file has no key, they are
    numbered from `last` on."""
    names = [column["name"] for column in model["columns"]]
    keys = [one["name"] for one in model["columns"] if one["type"] == "ID"]
    numbered = [name for name in keys if name not in found.names.values()]
    for number, row in enumerate(found.rows(), last + 1):
        kept = {name: row.get(name) for name in names}
        yield kept | dict.fromkeys(numbered, number)
