"""Measure database search on every engine that can be reached or started: a query on a million
rows, and many concurrent questions.

    python -m bench.db [rows]

Queries run from QueryDSL to rows, through the linter and the compiler. Their floor is the same
statement written by hand, read into the same rows with the same connection pool and guard, in the
same run. A search that fills its page also counts the further rows, up to a thousand: its floor is
two statements. Questions run through a complete search.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy as sa

from bench.figures import figure
from groundhook.core.ports import Scope
from groundhook.core.settings import SearchSettings, UsesSettings
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import DatabaseEngine, engine_for
from groundhook.handlers.db.query.dsl import parse
from groundhook.handlers.db.query.linter import checked
from groundhook.handlers.db.store import Store
from tests.loopback.databases import KINDS, NotThere, serving

ROUNDS = 100
QUESTIONS, TOGETHER = 200, 32
BRANDS, STATES = 500, ("active", "draft", "sold")
MODEL = ModelSpec.model_validate(
    {
        "id": "thing",
        "name": "Thing",
        "table": {"name": "thing"},
        "columns": [
            {"name": "id", "type": "ID"},
            {"name": "name", "type": "string", "length": 40},
            {"name": "brand", "type": "string", "length": 40, "index": True},
            {
                "name": "price",
                "type": "decimal",
                "precision": 10,
                "scale": 2,
                "index": True,
                "label": "Price",
            },
            {"name": "status", "type": "enum", "option": list(STATES)},
            {"name": "released_at", "type": "date", "index": True},
        ],
    }
)
NUMBERS = {
    "sqlite": (
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i"
        " FROM n)"
    ),
    "postgresql": "generate_series(CAST(1 AS bigint), {rows}) AS n(i)",
    "mariadb": "(SELECT seq AS i FROM seq_1_to_{rows}) AS n",
}
DAYS = {
    "sqlite": "date('2016-01-01', '+' || ({days}) || ' days')",
    "postgresql": "date '2016-01-01' + CAST(({days}) AS integer)",
    "mariadb": "date_add('2016-01-01', interval ({days}) day)",
}
COLUMNS = "id, name, brand, price, status, released_at"
# What it is → the query, and the statement by hand. `brand` is compared without case, as the query
# does.
Case = tuple[dict[str, Any], str]
CASES: dict[str, Case] = {
    "20 of a range, in order": (
        {
            "wheres": [{"field": "price", "op": "between", "value": [300, 400]}],
            "orders": [{"field": "price", "order": "asc"}],
            "limit": 20,
        },
        f"SELECT {COLUMNS} FROM thing WHERE price BETWEEN 300 AND 400 ORDER BY price, id LIMIT 20",
    ),
    "1000 of a range, in order": (
        {
            "wheres": [{"field": "price", "op": ">=", "value": 500}],
            "orders": [{"field": "price", "order": "asc"}],
            "limit": 1000,
        },
        f"SELECT {COLUMNS} FROM thing WHERE price >= 500 ORDER BY price, id LIMIT 1000",
    ),
    "all of one brand, in order": (
        {
            "wheres": [{"field": "brand", "value": "Brand 77"}],
            "orders": [{"field": "price"}],
            "limit": 1000,
        },
        f"SELECT {COLUMNS} FROM thing WHERE {{brand}} ORDER BY price DESC, id DESC LIMIT 1000",
    ),
    "figures by state over a month": (
        {
            "wheres": [
                {"field": "released_at", "op": "between", "value": ["2020-03-01", "2020-03-31"]}
            ],
            "groups": ["status"],
            "aggregates": [{"function": "count"}, {"function": "sum", "field": "price"}],
            "limit": 10,
        },
        (
            "SELECT status, count(*) AS count, sum(price) AS sum_price, count(*) AS n FROM thing"
            " WHERE released_at BETWEEN '2020-03-01' AND '2020-03-31' GROUP BY status ORDER BY"
            " status LIMIT 10"
        ),
    ),
}
BY_BRAND = {
    "sqlite": "brand COLLATE NOCASE = 'brand 77'",
    "postgresql": "lower(brand::text) = 'brand 77'",
    "mariadb": "brand = 'brand 77'",
}
WORDINGS = (
    "things cheaper than {n}",
    "active things over {n}",
    "how many things under {n}",
    "things from Brand {n} under 900",
)


async def fill(engine: DatabaseEngine, rows: int) -> None:
    number = NUMBERS[engine.dialect].format(rows=rows)
    days = DAYS[engine.dialect].format(
        days="mod(i, 3650)" if engine.dialect != "sqlite" else "i % 3650"
    )
    brand = f"mod(i, {BRANDS})" if engine.dialect != "sqlite" else f"(i % {BRANDS})"
    names = (
        "concat('Thing ', i), concat('Brand ', {0})"
        if engine.dialect != "sqlite"
        else "'Thing ' || i, 'Brand ' || {0}"
    )
    price = (
        "mod(i * 7919, 100000) / 100.0"
        if engine.dialect != "sqlite"
        else "(i * 7919 % 100000) / 100.0"
    )
    state = "CASE {0} WHEN 0 THEN 'active' WHEN 1 THEN 'draft' ELSE 'sold' END"
    third = state.format("mod(i, 3)" if engine.dialect != "sqlite" else "i % 3")
    text = (
        f"INSERT INTO thing ({COLUMNS}) SELECT i, {names.format(brand)}, {price}, {third}, {days}"
        f" FROM {number}"
    )

    def work(connection: sa.Connection) -> None:
        connection.exec_driver_sql(text)

    await engine.write(work)

    def analyse(connection: sa.Connection) -> None:
        connection.exec_driver_sql(
            "ANALYZE TABLE thing" if engine.dialect == "mariadb" else "ANALYZE thing"
        )

    await engine.write(analyse)


async def shortest(*asks: Callable[[], Awaitable[object]]) -> list[float]:
    """The shortest times in milliseconds, in turns: what they take when nothing else has the
    processor."""
    times: list[list[float]] = [[] for _ in asks]
    for _ in range(ROUNDS):
        for taken, ask in zip(times, asks, strict=True):
            began = time.perf_counter()
            await ask()
            taken.append((time.perf_counter() - began) * 1000)
    return [min(taken) for taken in times]


async def queries(engine: DatabaseEngine) -> None:
    """Rows and figures, against the same statement by hand; and rows with how many there are in
    all, against two."""
    store = Store({"": (engine, 4096)}, {"thing": MODEL})
    for name, (query, text) in CASES.items():
        hand = text.replace("{brand}", BY_BRAND[engine.dialect])

        async def found(query: Any = query, *, counted: bool = False) -> Any:
            clean = checked(parse({"model": "thing", **query}), store.schemas)
            return (
                await store.run(clean, {"thing": None}, clean.limit or 0, count_total=counted)
            ).rows

        async def written(hand: str = hand, *, counted: bool = False) -> Any:
            def work(connection: sa.Connection) -> list[dict[str, Any]]:
                result = connection.exec_driver_sql(hand)
                names = tuple(result.keys())
                rows = [dict(zip(names, row, strict=True)) for row in result.all()]
                if counted:
                    connection.exec_driver_sql(how_many(hand)).scalar_one()
                return rows

            return await engine.read(work, ["thing"])

        assert len(await found()) == len(await written()) > 0, name
        floor, value = await shortest(written, found)
        figure(f"{engine.dialect}: {name}", value, "ms", floor, "the statement written by hand")
        if query["limit"] == 20:
            floor, value = await shortest(
                partial(written, counted=True), partial(found, counted=True)
            )
            figure(
                f"{engine.dialect}: {name}, and how many",
                value,
                "ms",
                floor,
                "both statements written by hand",
            )


def how_many(hand: str) -> str:
    """As far as a thousand, as a search counts them."""
    within = hand.partition(" FROM ")[2].partition(" ORDER BY ")[0]
    return f"SELECT count(*) FROM (SELECT 1 FROM {within} LIMIT 1000) AS few"


async def questions(url: str, dialect: str) -> None:
    """Many questions at a time, each the whole way from its text to items."""
    times: list[float] = []
    failed: list[str] = []

    async def warn(_code: str, _message: str) -> None: ...

    scope = Scope(
        identity=Identity(),
        assistant_id="",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=_noon,
        warn=warn,
    )
    async with open_database(url, 20_000, {"thing": MODEL}) as database:
        send, receive = anyio.create_memory_object_stream[str](QUESTIONS)
        for number in range(QUESTIONS):
            send.send_nowait(
                WORDINGS[number % len(WORDINGS)].replace("{n}", str(number % 400 + 20))
            )
        send.close()

        async def ask() -> None:
            async for text in receive.clone():
                request = SearchRequest(type="db", query=text, models=("thing",), limit=10)
                began = time.perf_counter()
                try:
                    assert (await database.search(request, scope)).items
                except Exception as exc:  # noqa: BLE001 - each is a figure
                    failed.append(str(exc))
                times.append((time.perf_counter() - began) * 1000)

        # Samples values.
        await database.search(
            SearchRequest(type="db", query="things", models=("thing",), limit=1), scope
        )
        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(TOGETHER):
                tasks.start_soon(ask)
        whole = time.perf_counter() - began
        receive.close()
    name = f"{dialect}: {QUESTIONS} questions, {TOGETHER} at a time"
    figure(f"{name}, p95", sorted(times)[int(len(times) * 0.95)], "ms")
    figure(f"{name}, in all", QUESTIONS / whole, "questions/s")
    figure(f"{name}, failed", len(failed), "questions")
    for failure in sorted(set(failed)):
        sys.stderr.write(f"{failure}\n")


def _noon() -> datetime:
    return datetime(2026, 11, 22, 12, tzinfo=UTC)


async def measure(url: str, dialect: str, rows: int) -> None:
    async with open_database(url, 60_000, {"thing": MODEL}) as database:
        await database.load()
    engine = engine_for(url, timeout_ms=60_000, connections=8, result_kb=4096)
    await fill(engine, rows)
    await queries(engine)
    await engine.close()
    await questions(url, dialect)


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        anyio.run(measure, f"sqlite:///{folder}/bench.db", "sqlite", rows)
        for kind in KINDS:
            try:
                server = servers.enter_context(serving(kind, Path(folder)))
            except NotThere as reason:
                sys.stderr.write(f"{kind} was not measured: {reason}\n")
                continue
            url = anyio.run(server.create, "groundhook_bench")
            try:
                anyio.run(measure, url, kind, rows)
            finally:
                anyio.run(server.drop, "groundhook_bench")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
