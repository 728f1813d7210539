"""Queries in words."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.handlers.db.query.dsl import parse
from groundhook.host.output.query_words import in_words

PHRASES: dict[str, dict[str, Any]] = {
    "sum of total of product, for each month of sold_at, having sum_total > 9": {
        "groups": [{"field": "sold_at", "by": "month"}],
        "aggregates": [{"function": "sum", "field": "total"}],
        "havings": [{"field": "sum_total", "op": ">", "value": 9}],
    },
    "product where (number of sales where total > 5) > 6 and (no returns) and price > list_price and stock < (average of stock where brand = Apple)": {
        "wheres": [
            {
                "related": "sales",
                "wheres": [{"field": "total", "op": ">", "value": 5}],
                "count": {">": 6},
            },
            {"related": "returns", "none": True},
            {"field": "price", "op": ">", "other": {"field": "list_price"}},
            {
                "field": "stock",
                "op": "<",
                "other": {
                    "function": "avg",
                    "field": "stock",
                    "wheres": [{"field": "brand", "value": "Apple"}],
                },
            },
        ]
    },
    "product where price between 50 and 100 and brand is one of Apple, Sony, price ascending": {
        "wheres": [
            {"field": "price", "op": "between", "value": [50, 100]},
            {"field": "brand", "op": "in", "value": ["Apple", "Sony"]},
        ],
        "orders": [{"field": "price", "order": "asc"}],
    },
    "product where (featured = yes or (stock > 0 and rating is missing)) and any text has none of used": {
        "wheres": [
            {
                "or": [
                    {"field": "featured", "value": True},
                    {
                        "and": [
                            {"field": "stock", "op": ">", "value": 0},
                            {"field": "rating", "op": "null"},
                        ]
                    },
                ]
            },
            {"field": "*", "op": "match none", "value": ["used"]},
        ]
    },
    "how many, average of price of product, for each brand": {
        "aggregates": [{"function": "count"}, {"function": "avg", "field": "price"}],
        "groups": ["brand"],
    },
    "how many different brand of product where brand is one of 0, 1, 2, 3, 4, 5, 6, 7, …": {
        "aggregates": [{"function": "count", "field": "brand", "distinct": True}],
        "wheres": [{"field": "brand", "op": "in", "value": list(range(9))}],
    },
}


@pytest.mark.parametrize("words", PHRASES)
def test_a_query_is_shown_in_words(words: str) -> None:
    assert list(in_words(parse({"model": "product", **PHRASES[words]}).wire())) == [words]


def test_each_of_several_queries_has_a_line() -> None:
    assert list(in_words({"queries": [{"model": "product"}, {"model": "order"}]})) == [
        "product",
        "order",
    ]
