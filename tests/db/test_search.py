"""Searches of the shop through the handler, on real SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.errors import SourceError, SourceNotConfigured
from groundhook.core.trace import recording
from groundhook.core.types.events import TraceNode
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop, shop_models


async def test_a_question_returns_its_records_in_order_as_complete_items(
    shop: Shop,
) -> None:
    found = await shop.search("Products cheaper than $100 from Apple")
    assert found.dsl == {
        "model": "product",
        "wheres": [
            {"field": "price", "op": "<", "value": 100},
            {"field": "brand", "op": "=", "value": "Apple"},
        ],
        "limit": 10,
    }
    assert found.account.certainty == "sure"
    assert found.account.read_as == "Product where Price < 100 and Brand = Apple"
    rows = [
        row
        for row in shop_models()["product"].values
        if row["brand"] == "Apple" and row["price"] < 100
    ]
    assert sorted(item.record_id for item in found.items) == sorted(row["id"] for row in rows)
    assert found.total == len(rows)
    first = next(item for item in found.items if item.title == "EarPods USB-C")
    assert (first.title, first.model, first.key) == (
        "EarPods USB-C",
        "product",
        f"db:product/{first.record_id}",
    )
    assert first.data is not None
    assert (first.data["price"], first.data["released_at"]) == (18.99, "2023-09-22")
    assert "Brand: Apple\nCategory: Audio\nPrice: 18.99" in first.content
    assert [item.score for item in found.items] == sorted(
        (item.score for item in found.items), reverse=True
    )
    assert 0.85 <= found.items[-1].score <= found.items[0].score == 0.9
    assert shop.warnings == []


async def test_the_same_question_gives_the_same_answer_again(shop: Shop) -> None:
    assert await shop.search("active products in stock") == await shop.search(
        "active products in stock"
    )


async def test_total_counts_all_that_match_and_not_only_those_returned(shop: Shop) -> None:
    found = await shop.search("delivered orders", limit=3)
    delivered = [row for row in shop_models()["order"].values if row["status"] == "delivered"]
    assert (len(found.items), found.total) == (3, len(delivered))


async def test_a_count_that_times_out_keeps_the_rows_with_a_warning(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    path, quick, slow = tmp_path / "notes.db", 5, 5000
    async with open_database(f"sqlite:///{path}", 1000, {"note": spec()}) as database:
        await database.load()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER note__text_insert")  # no index: each text is looked at
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT"
                " INTO note (id, title, kind, done) SELECT i, CASE WHEN i <= ? THEN 'öl' ELSE ?"
                " END, 'memo', 0 FROM n",
                # Each takes half a millisecond or more to be held against the pattern.
                (slow, quick, "ä" * 10_000),
            )
            connection.commit()
        shop = Shop(database, "")
        wheres = [{"field": "title", "op": "like", "value": "ö"}]
        found = await shop.search("notes", "note", wheres=wheres, limit=quick)
    assert (len(found.items), found.total) == (quick, quick)
    assert [message for code, message in shop.warnings if code == "db_total"] == [
        "at least 5 records of 'note' match; not all were counted"
    ]


async def test_the_callers_conditions_are_anded_with_those_of_the_question(shop: Shop) -> None:
    wheres = [
        {"column": "status", "value": "discontinued"},
        {"field": "price", "op": ">", "value": 20},
    ]
    found = await shop.search("products from Apple", "product", wheres=wheres)
    assert found.items
    for item in found.items:
        assert item.data is not None
        assert (item.data["brand"], item.data["status"]) == ("Apple", "discontinued")


async def test_the_callers_orders_come_first_and_its_fields_alone_are_returned(shop: Shop) -> None:
    found = await shop.search(
        "cheapest phones",
        "product",
        orders=[{"field": "rating"}, {"field": "name", "order": "asc"}],
        select=["name", "price"],
    )
    assert found.dsl is not None
    assert [order["field"] for order in found.dsl["orders"]] == ["rating", "name", "price"]
    assert all(
        item.data is not None and set(item.data) == {"id", "name", "price"} for item in found.items
    )


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("=", "APPLE", {"Apple"}),
        ("in", ["apple", "SONY"], {"Apple", "Sony"}),
        ("like", "app", {"Apple"}),
        ("like", "%ony", {"Sony"}),
        ("like", "%", None),
        ("like", "_pple", set()),
        ("in", [], set()),
    ],
)
async def test_text_is_compared_without_case_and_like_means_contains(
    shop: Shop, op: str, value: object, expected: set[str] | None
) -> None:
    found = await shop.search(
        "products", "product", wheres=[{"field": "brand", "op": op, "value": value}], limit=200
    )
    brands = {item.data["brand"] for item in found.items if item.data}
    assert brands == (
        expected
        if expected is not None
        else {row["brand"] for row in shop_models()["product"].values}
    )


@pytest.mark.parametrize(
    ("op", "value"),
    [("=", "KRAKÓW"), ("=", "zürich"), ("like", "RICH"), ("like", "ÜRICH"), ("in", ["ZÜRICH"])],
)
async def test_letters_beyond_ascii_are_compared_without_case(
    shop: Shop, op: str, value: object
) -> None:
    found = await shop.search(
        "customers", "customer", wheres=[{"field": "city", "op": op, "value": value}]
    )
    assert [item.data["city"] for item in found.items if item.data] in (["Kraków"], ["Zürich"])


async def test_a_question_for_one_record_is_not_answered_with_a_list(shop: Shop) -> None:
    assert not (await shop.search("which product is zzyzx", "product", limit=50)).items


@pytest.mark.parametrize(
    "question", ["products by Zebulon", "products of zebulon", "the Zebulon products"]
)
async def test_a_name_that_no_record_has_does_not_list_the_records_of_all(
    shop: Shop, question: str
) -> None:
    found = await shop.search(question, "product")
    assert not found.items


async def test_strict_makes_words_not_understood_an_error(shop: Shop) -> None:
    with pytest.raises(SourceError, match="“wireless purple”"):
        await shop.search("wireless purple products", strict=True)
    assert (await shop.search("products under $100", strict=True)).items


async def test_a_greeting_searches_nothing_and_conditions_of_the_caller_still_do(
    shop: Shop,
) -> None:
    greeted = await shop.search("thank you")
    assert (greeted.items, greeted.account.certainty) == ((), "none")
    found = await shop.search("thank you", "product", wheres=[{"field": "brand", "value": "Brio"}])
    assert found.account.certainty == "partial"
    assert [item.title for item in found.items] == ["Wooden Train Set"]


async def test_a_model_without_the_callers_field_is_skipped_with_a_warning(shop: Shop) -> None:
    found = await shop.search(
        "under $15", "product", "order", wheres=[{"field": "brand", "value": "mattel"}]
    )
    assert {item.model for item in found.items} == {"product"}
    assert shop.warnings[0] == (
        "db_model_skipped",
        "'order' was not searched: it has no field 'brand'",
    )


@pytest.mark.parametrize("part", ["wheres", "orders", "select"])
async def test_an_unknown_field_of_the_caller_names_the_known_ones(shop: Shop, part: str) -> None:
    requested: dict[str, Any] = {
        "wheres": [{"field": "prise", "value": 1}],
        "orders": [{"field": "prise"}],
        "select": ["prise"],
    }
    with pytest.raises(SourceError, match=r"no field 'prise'.*did you mean 'price'"):
        await shop.search("products", "product", **{part: requested[part]})


async def test_an_unknown_model_names_the_nearest(shop: Shop) -> None:
    with pytest.raises(SourceNotConfigured, match="did you mean 'product'"):
        await shop.search("anything", "prodct")
    with pytest.raises(SourceNotConfigured, match=r"db\.models"):
        await shop.database.search(
            SearchRequest(type="db", query="x", models=(), limit=5), shop.scope()
        )


async def test_before_loading_the_error_says_how_to_load(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path}/none.db", 5000, shop_models()) as database:
        with pytest.raises(SourceNotConfigured, match="groundhook db load"):
            await Shop(database, "").search("products")
        (tmp_path / "none.db").touch()
        with pytest.raises(SourceNotConfigured, match=r"shop_product.*groundhook db load"):
            await Shop(database, "").search("products", "product")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DROP TABLE shop_customer", "run `groundhook db load` to create it"),
        (
            "ALTER TABLE shop_customer RENAME COLUMN city TO town",
            "`groundhook db check` shows the differences",
        ),
    ],
)
async def test_a_model_whose_table_differs_is_skipped_if_another_is_left(
    shop: Shop, change: str, says: str
) -> None:
    path = shop.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        for trigger in ("insert", "update", "delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS shop_customer__text_{trigger}")
        connection.execute(change)
    found = await shop.search("cheaper than $15 from Mattel")
    assert [item.model for item in found.items] == ["product"]
    assert any("'customer'" in message and says in message for _, message in shop.warnings)
    with pytest.raises(SourceNotConfigured, match=says):
        await shop.search("customers in Berlin", "customer")


async def test_a_file_that_is_not_a_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"this is not a database at all" * 100)
    async with open_database(f"sqlite:///{tmp_path}/bad.db", 5000, shop_models()) as database:
        with pytest.raises(SourceError, match="not a database"):
            await Shop(database, "").search("products")


async def test_the_trace_shows_the_query_its_sql_and_its_values(shop: Shop) -> None:
    nodes: list[TraceNode] = []
    with recording(nodes.append):
        await shop.search("products under $15 from Mattel")
    done = {node.type: node for node in nodes if node.status == "completed"}
    assert list(done) == ["dsl_build", "db_query"]
    assert done["dsl_build"].data["dsl"][0]["model"] == "product"
    query = done["db_query"].data
    assert "WHERE" in query["sql"]
    assert "Mattel" not in query["sql"]
    assert {"Mattel", 15} <= set(query["parameters"].values())
    assert (query["rows"], query["total"]) == (1, 1)


async def test_deleted_rows_are_never_returned(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(
        values=[{"title": "here"}, {"title": "gone", "deleted_at": "2026-01-01T00:00:00Z"}],
        option={"soft_deletes": True},
    )
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        found = await Shop(database, "").search("notes", "note")
    assert [item.title for item in found.items] == ["here"]


async def test_every_type_is_returned_as_json(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    row = {
        "title": "x",
        "pages": 3,
        "price": "12.3400",
        "due": "2026-02-03",
        "seen": "2026-02-03T10:00:00+02:00",
    }
    model = spec(values=[{**row, "extra": {"a": [1]}, "done": True}])
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        found = await Shop(database, "").search("notes due on 2026-02-03", "note")
    assert found.items[0].data == {
        "id": 1,
        "title": "x",
        "body": None,
        "pages": 3,
        "price": 12.34,
        "kind": "memo",
        "done": True,
        "due": "2026-02-03",
        "seen": "2026-02-03 08:00:00",
        "extra": {"a": [1]},
    }


async def test_a_negation_keeps_rows_without_a_value(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(values=[{"title": "a", "pages": 1}, {"title": "b"}])
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        found = await Shop(database, "").search(
            "notes", "note", wheres=[{"field": "pages", "op": "!=", "value": 1}]
        )
    assert [item.title for item in found.items] == ["b"]
