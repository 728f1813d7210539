"""Queries in the dialect of other packages become queries of this host."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.handlers.db.dialect import translate
from groundhook.handlers.db.query.dsl import parse


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            {"from": "orders as o", "select": ["*"], "orders": [{"field": "id", "sort": "DESC"}]},
            {"model": "orders", "select": [], "orders": [{"field": "id", "order": "desc"}]},
        ),
        (
            {
                "from": "orders",
                "select": ["status", ":COUNT(id) as total", ":SUM(price)"],
                "groups": "status",
                "orders": "total desc, status",
                "limit": "5",
            },
            {
                "model": "orders",
                "select": [],
                "groups": ["status"],
                "aggregates": [
                    {"function": "count", "field": "id", "as": "total"},
                    {"function": "sum", "field": "price"},
                ],
                "orders": [
                    {"field": "total", "order": "desc"},
                    {"field": "status", "order": "asc"},
                ],
                "limit": 5,
            },
        ),
        (
            {"model": "orders", "select": "id, name as n", "orders": [":COUNT(id) desc"]},
            {
                "model": "orders",
                "select": ["id", "name"],
                "aggregates": [{"function": "count", "field": "id"}],
                "orders": [{"field": "count_id", "order": "desc"}],
            },
        ),
        (
            {
                "model": "orders",
                "wheres": [
                    {":price": "The price", ">": 100},
                    {"field": "kind", "in": ["pen"]},
                    {"or": [{"field": "id", "=": 1}, {"field": "id", "op": "=", "value": 2}]},
                ],
            },
            {
                "model": "orders",
                "wheres": [
                    {"field": "price", "op": ">", "value": 100},
                    {"field": "kind", "op": "in", "value": ["pen"]},
                    {
                        "or": [
                            {"field": "id", "op": "=", "value": 1},
                            {"field": "id", "op": "=", "value": 2},
                        ]
                    },
                ],
            },
        ),
        (
            {
                "model": "orders",
                "groups": [{"field": "paid_at", "by": "month"}],
                "select": [":SUM(price) as revenue"],
                "havings": [
                    {"field": ":COUNT(id)", ">": 5},
                    {"or": [{":revenue": "Revenue", ">": 100}]},
                ],
            },
            {
                "model": "orders",
                "select": [],
                "groups": [{"field": "paid_at", "by": "month"}],
                "aggregates": [
                    {"function": "sum", "field": "price", "as": "revenue"},
                    {"function": "count", "field": "id"},
                ],
                "havings": [
                    {"field": "count_id", "op": ">", "value": 5},
                    {"or": [{"field": "revenue", "op": ">", "value": 100}]},
                ],
            },
        ),
        (
            {
                "model": "customers",
                "wheres": [
                    {"related": "orders", "wheres": [{":price": "", ">": 5}], "count": {">": 6}},
                    {
                        "field": "credit",
                        "op": ">",
                        "other": {
                            "function": "avg",
                            "field": "credit",
                            "wheres": [{":id": "", "=": 1}],
                        },
                    },
                ],
            },
            {
                "model": "customers",
                "wheres": [
                    {
                        "related": "orders",
                        "wheres": [{"field": "price", "op": ">", "value": 5}],
                        "count": {">": 6},
                    },
                    {
                        "field": "credit",
                        "op": ">",
                        "other": {
                            "function": "avg",
                            "field": "credit",
                            "wheres": [{"field": "id", "op": "=", "value": 1}],
                        },
                    },
                ],
            },
        ),
    ],
)
def test_a_query_of_another_dialect_is_translated(
    written: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert translate(written) == meant
    assert parse(meant)


def test_a_query_of_our_own_stays_as_it_is() -> None:
    own = {
        "model": "order",
        "select": ["number", "product.name"],
        "wheres": [{"field": "total", "op": ">", "value": 100}],
        "orders": [{"field": "ordered_at", "order": "desc"}],
        "limit": 10,
    }
    assert translate(own) == own
