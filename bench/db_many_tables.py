"""Measure the CPU time of the built-in reader of questions over a database of many tables.

    python -m bench.db_many_tables [tables]

Each table has ten columns, four of them texts with sampled values, and a relation to another one.
Nothing is read from a database, so the figures are those of the reader alone: its names, values and
clauses. The floor is the same question over one table.
"""

from __future__ import annotations

import statistics
import sys
import time
from datetime import UTC, datetime

from bench.figures import figure
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.reading import read_question
from groundhook.handlers.db.question.scope import OfferedModel
from groundhook.handlers.db.question.vocabulary import vocabulary

ROUNDS = 3
ROWS = 50
NOW = datetime(2026, 11, 12, 10, tzinfo=UTC)
PARTS = [
    "pump",
    "valve",
    "filter",
    "motor",
    "sensor",
    "cable",
    "frame",
    "wheel",
    "door",
    "light",
    "panel",
    "screw",
    "brake",
    "gear",
    "lever",
    "hose",
    "tank",
    "meter",
    "switch",
    "lamp",
]
COLUMNS = {
    "id": "ID",
    "name": "string",
    "maker": "string",
    "city": "string",
    "status": "string",
    "price": "double",
    "weight_kg": "double",
    "made_on": "date",
    "active": "boolean",
    "other_id": "integer",
}
QUESTIONS = {
    "read": "how many pump valves cost more than 20",
    "declined": "pump valves by maker 3",
}


def name_of(number: int) -> str:
    return f"{PARTS[number % 20]} {PARTS[number // 20 % 20]} {number // 400 or ''}".strip()


def model(number: int, tables: int) -> ModelSpec:
    other = {"model": f"t{(number * 7 + 1) % tables}", "key": "id", "foreign": "other_id"}
    return ModelSpec.model_validate(
        {
            "id": f"t{number}",
            "name": name_of(number).capitalize(),
            "table": {"name": f"t{number}"},
            "columns": [{"name": name, "type": type} for name, type in COLUMNS.items()],
            "relations": {"other": {"type": "hasOne", **other}},
        }
    )


def offers(tables: int) -> list[OfferedModel]:
    schemas = Schemas({f"t{number}": model(number, tables) for number in range(tables)})
    alone = {
        id: OfferedModel(
            schema,
            {
                "name": {f"{schema.name} {row}": 1 for row in range(ROWS)},
                "maker": {f"Maker {maker}": 7 for maker in range(7)},
                "city": {f"City {city}": 5 for city in range(11)},
                "status": {"new": 25, "old": 25},
            },
        )
        for id, schema in schemas.items()
    }
    return [
        OfferedModel(
            one.schema, one.samples, {}, {"other": alone[one.schema.relations["other"].model]}
        )
        for one in alone.values()
    ]


def seconds(question: str, offered: list[OfferedModel]) -> float:
    """Return the median CPU time of a reading."""
    words, times = vocabulary("en"), []
    for _ in range(ROUNDS):
        start = time.thread_time()
        read_question(question, offered, words, NOW)
        times.append(time.thread_time() - start)
    return statistics.median(times)


def main() -> None:
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    many, one = offers(tables), offers(1)
    for what, question in QUESTIONS.items():
        read_question(question, many, vocabulary("en"), NOW)
        figure(
            f"a question that is {what}, {tables} tables",
            1000 * seconds(question, many),
            "ms of CPU",
            1000 * seconds(question, one),
            "one table",
        )


if __name__ == "__main__":
    main()
