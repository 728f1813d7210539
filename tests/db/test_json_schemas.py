"""The published JSON Schemas: current, and consistent with the parsers of models and queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from groundhook.core.errors import SourceError
from groundhook.handlers.db.query.dsl import parse
from groundhook.host.config.documents import read_document
from scripts.json_schemas import MODEL, QUERY, schemas

ROOT = Path(__file__).parents[2]


def validator(path: Path) -> Draft202012Validator:
    schema = json.loads((ROOT / path).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", [MODEL, QUERY])
def test_the_published_schema_is_the_current_one(path: Path) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == schemas()[path], "run `make docs`"


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("assistants/*/models/*.mod.yao")), ids=lambda path: path.name
)
def test_the_models_of_the_samples_are_valid(path: Path) -> None:
    validator(MODEL).validate(read_document(path, path.name).data)


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"table": {"name": "t"}}, "columns"),
        ({"table": {"name": "t"}, "columns": [{"name": "id", "type": "identifier"}]}, "identifier"),
        (
            {
                "table": {"name": "t"},
                "columns": [],
                "relations": {"a": {"type": "many", "model": "b", "key": "c", "foreign": "d"}},
            },
            "many",
        ),
        (
            {"table": {"name": "t"}, "columns": [{"name": "id", "type": "ID", "lable": "x"}]},
            "lable",
        ),
    ],
)
def test_an_invalid_model_is_rejected(wrong: dict[str, Any], where: str) -> None:
    assert where in " ".join(error.message for error in validator(MODEL).iter_errors(wrong))


GOOD: list[dict[str, Any]] = [
    {"model": "product"},
    {
        "model": "product",
        "wheres": [{"field": "price", "op": "<", "value": 100}],
        "orders": [{"field": "price", "order": "asc"}],
        "limit": 3,
    },
    {
        "model": "order",
        "select": ["number", "item.brand"],
        "wheres": [{"or": [{"field": "a", "value": 1}, {"and": [{"field": "b"}]}]}],
    },
    {
        "model": "order",
        "groups": ["city"],
        "aggregates": [{"function": "sum", "field": "total", "as": "revenue"}],
    },
]
BAD: list[dict[str, Any]] = [
    {},
    {"model": "product", "limit": 0},
    {"model": "product", "wheres": "price < 100"},
    {"model": "product", "aggregates": [{"function": "median"}]},
    {"model": "product", "sql": "SELECT 1"},
]


@pytest.mark.parametrize("query", GOOD)
def test_a_query_that_parses_is_valid(query: dict[str, Any]) -> None:
    parse(query)
    validator(QUERY).validate(query)


@pytest.mark.parametrize("query", BAD)
def test_a_query_that_does_not_parse_is_not_valid(query: dict[str, Any]) -> None:
    with pytest.raises(SourceError):
        parse(query)
    assert not validator(QUERY).is_valid(query)
