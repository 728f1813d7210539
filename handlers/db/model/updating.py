"""The content of an existing model with the changes of its table. Pure.

What people wrote stays: labels, comments, formats, titles, the names of relations, the order of
columns. A column that the model lacked when it was imported was removed by hand, and is not added
again: `imported` of a model has the columns that its table had.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.types.model_spec import title_columns
from groundhook.handlers.db.model.schema_diff import Difference

IMPORTED = "imported"
# What a column is in the table, by the aspect that differs.
FACTS: Mapping[str, Sequence[str]] = {
    "type": ("type", "length", "precision", "scale", "option", "primary"),
    "options": ("option",),
    "nullable": ("nullable",),
}
_FileContent = dict[str, Any]


def file_text(content: Mapping[str, Any]) -> str:
    """Return the content of a model's file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def changes(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    """Return the difference of two contents, line by line as `diff -u` writes it; "" for none."""
    old, new = (file_text(one).splitlines() for one in (before, after))
    return "\n".join(difflib.unified_diff(old, new, name, name, lineterm=""))


def updated(
    model: Mapping[str, Any],
    table: Mapping[str, Any],
    differences: Sequence[Difference],
) -> _FileContent:
    """Return the content of a model with what its table has become: `table` is the content that an
    import writes, and `differences` are those of the model and the table."""
    there = {column["name"]: column for column in table["columns"]}
    known = model.get(IMPORTED, there)
    wrong = {(one.column, one.aspect) for one in differences}
    mine = [column["name"] for column in model["columns"]]
    added = [name for name in there if name not in known and name not in mine]
    gone = {name for name in mine if (name, "column") in wrong}
    columns = [
        _column(column, there.get(column["name"], {}), wrong)
        for column in model["columns"]
        if column["name"] not in gone
    ]
    content = {**model, "columns": [*columns, *(there[name] for name in added)]}
    without_columns(content, gone)
    _relate(content, table.get("relations", {}))
    return {**content, IMPORTED: list(there)} if content != model else content


def _column(
    mine: Mapping[str, Any], found: Mapping[str, Any], wrong: Collection[tuple[str, str]]
) -> _FileContent:
    facts = [
        key for aspect, keys in FACTS.items() if (mine["name"], aspect) in wrong for key in keys
    ]
    kept = {key: value for key, value in mine.items() if key not in facts}
    changed = {key: found[key] for key in facts if key in found}
    whole = {**kept, **changed}
    return {key: whole[key] for key in dict.fromkeys((*mine, *changed)) if key in whole}


def without_columns(content: dict[str, Any], gone: Collection[str]) -> None:
    """Remove from the content of a model what names columns that are gone."""
    if not gone:
        return
    gone = set(gone)
    if gone & set(title_columns(content.get("title", ""))):
        del content["title"]
    if "relations" in content:
        content["relations"] = {
            name: each for name, each in content["relations"].items() if each["foreign"] not in gone
        }
    if "indexes" in content:
        content["indexes"] = [
            each for each in content["indexes"] if not gone & set(each.get("columns", ()))
        ]
    if "values" in content:
        content["values"] = [
            {name: value for name, value in row.items() if name not in gone}
            for row in content["values"]
        ]


def _relate(content: _FileContent, found: Mapping[str, Any]) -> None:
    """Add the relations that the model lacks under any name."""
    mine = content.get("relations", {})
    there = {_ends(each) for each in mine.values()}
    names = {column["name"] for column in content["columns"]}
    more = {
        name: each
        for name, each in found.items()
        if _ends(each) not in there and each["foreign"] in names
    }
    taken = {*mine, *names}
    for name, each in more.items():
        free: Iterator[str] = (f"{name}_{number}" for number in range(2, len(taken) + 3))
        mine = {**mine, (name if name not in taken else next(free)): each}
    if more:
        content["relations"] = mine


def _ends(relation: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a relation joins, whatever its name."""
    through = relation.get("through") or {}
    return (relation["model"], relation["key"], relation["foreign"], through.get("model"))
