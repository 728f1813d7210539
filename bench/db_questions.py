"""Measure the built-in reader of questions to databases: right and sure, right and doubtful,
declined, wrong and doubtful, wrong and sure, per set of questions with reference answers written by
hand.

    python -m bench.db_questions [--show] [--model] [SET...]

Questions, answers and data are in `db_questions/`, whose README describes how they were made. An
answer is right if a search returns exactly the rows of the reference, in its order if it has one;
it is sure or doubtful as its `certainty` says (`sure`, `partial`), and declined with `none`. A
question that the data cannot answer is right if it is declined. The last figure is what a reader
without a way back is told: a wrong answer that is called sure. Standard error has a table. `--show`
adds the answers that are wrong, except those of the sets kept aside. With `--model` a model that
reads every question rightly (`bench.perfect_reader`) helps, as `uses.query: auto` has it: what the
checks of its queries and the query language let through.
"""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from bench.figures import figure
from bench.perfect_reader import PerfectReader
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.settings import SearchSettings, UsesSettings
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import Database, open_database
from groundhook.host.config.documents import read_document

HERE = Path(__file__).with_name("db_questions")
SHOP = Path(__file__).parent.parent / "assistants/shop/models"
SETS = {
    "tuned": "tuned",
    "later": "later",
    "rental": "rental",
    "events": "events",
    "kept aside": "kept_aside",
    "mistakes": "mistakes",
    "mistakes kept aside": "mistakes_aside",
    "music": "music",
    "trials": "trials",
    "theatre": "theatre",
    "workshop": "workshop",
    "vineyard": "vineyard",
    "ferry": "ferry",
    "marina": "marina",
    "shelter": "shelter",
    "museum": "museum",
    "brigade": "brigade",
    "trees kept aside": "trees_aside",
    "hotel kept aside": "hotel_aside",
}
NOW = datetime(2026, 11, 12, 10, tzinfo=UTC)
MOST = 1000
OUTCOMES = (
    "right and sure",
    "right and doubtful",
    "declined",
    "wrong and doubtful",
    "wrong and sure",
)
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with the query of its answer; without one the data cannot answer it."""

    domain: str
    kind: str
    question: str
    sql: str = ""
    unplaced: Sequence[str] = ()

    @property
    def ordered(self) -> bool:
        return " ORDER BY " in self.sql

    @property
    def table(self) -> str:
        """Whose ids the reference has; empty where it has figures."""
        table = re.match(r"SELECT (?:\w\.)?id FROM (\w+)", self.sql)
        return table[1] if table else ""


@dataclass(frozen=True)
class Domain:
    """The models of a domain, and their rows in a database of their own."""

    models: Mapping[str, ModelSpec]
    database: Database
    rows: sqlite3.Connection

    async def search(self, question: Question, reader: PerfectReader | None) -> SourceResult:
        asked = question.question
        request = SearchRequest(type="db", query=asked, models=tuple(self.models), limit=MOST)
        if reader is None:
            return await self.database.search(request, scope())
        reader.sql, reader.models = question.sql, self.models
        helped = replace(
            scope(),
            uses=UsesSettings(query="auto"),
            delegates=reader.delegates(),
            connector="connector:perfect",
        )
        return await self.database.search(request, helped)


def questions(name: str) -> list[Question]:
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


def models_in(folder: Path) -> dict[str, ModelSpec]:
    paths = sorted(folder.glob("*.mod.yao"))
    made = ((path, path.name.removesuffix(".mod.yao")) for path in paths)
    return {
        name: ModelSpec.model_validate({**read_document(path, path.name).data, "id": name})
        for path, name in made
    }


@asynccontextmanager
async def opened(folder: Path, state: Path) -> AsyncIterator[Domain]:
    models = models_in(folder)
    path = state / f"{folder.name}.db"
    async with open_database(f"sqlite:///{path}", 60_000, models) as database:
        await database.load()
        rows = sqlite3.connect(path)
        yield Domain(models, database, rows)
        rows.close()


def scope() -> Scope:
    async def warn(code: str, message: str) -> None:
        """Warnings are for authors: the result itself says how sure it is."""

    return Scope(
        identity=Identity(),
        assistant_id="bench",
        settings=SearchSettings(),
        uses=UsesSettings(query="builtin"),
        now=lambda: NOW,
        warn=warn,
    )


async def outcome_of(
    domain: Domain, question: Question, reader: PerfectReader | None = None
) -> tuple[str, float, str]:
    """Return the outcome, the processor time in milliseconds, and what was read and found."""
    began = time.process_time()
    found = await domain.search(question, reader)
    took = (time.process_time() - began) * 1000
    account = found.account
    note = account.read_as or account.explanation
    if account.certainty == "none":
        return "declined", took, note
    doubt = "sure" if account.certainty == "sure" else "doubtful"
    if not question.sql:
        return f"wrong and {doubt}", took, note
    wanted = rounded(domain.rows.execute(question.sql).fetchall())
    got = rows_of(found, question, domain.models)
    right = alike(domain, question, got, wanted)
    note += f"; {len(got)} rows instead of {len(wanted)}"
    return f"{'right' if right else 'wrong'} and {doubt}", took, note


def alike(domain: Domain, question: Question, got: Rows, wanted: Rows) -> bool:
    """Whether the same rows were found, in the order of the reference where it has one: equal ones
    may stand in any, and all that equal a first one may be there."""
    if not question.ordered:
        return sorted(got, key=repr) == sorted(wanted, key=repr)
    chosen, _, order = question.sql.partition(" ORDER BY ")
    by = order.removesuffix(", id").split(", id LIMIT")[0].removesuffix(" DESC")
    sorted_by = dict(
        domain.rows.execute(chosen.replace("SELECT id", f"SELECT id, {by}")).fetchall()
    )
    values = [[sorted_by.get(row[0], "not among them") for row in rows] for rows in (got, wanted)]
    if len(wanted) == 1 and " LIMIT 1" in question.sql:
        values = [list(dict.fromkeys(each)) for each in values]
    return values[0] == values[1] and len(set(got)) == len(got)


def rows_of(found: SourceResult, question: Question, models: Mapping[str, ModelSpec]) -> Rows:
    """What a search brought, as the reference has it: ids of records of its table, or the values of
    figures."""
    if not question.table:
        # Of related records that are counted one by one the references have the names alone.
        return rounded(
            [
                tuple(v for k, v in (item.data or {}).items() if not k.endswith("_id"))
                for item in found.items
            ]
        )
    tables = [models[item.model].table.name for item in found.items]
    return [
        (item.record_id if table == question.table else item.model,)
        for item, table in zip(found.items, tables, strict=True)
    ]


def rounded(rows: Sequence[Sequence[Any]]) -> Rows:
    return [
        tuple(round(value, 4) if isinstance(value, float) else value for value in row)
        for row in rows
    ]


def report(name: str, outcomes: Counter[str]) -> None:
    count = outcomes.total()
    for outcome in OUTCOMES:
        figure(f"questions {name}: {outcome}", outcomes[outcome], f"of {count}")
    cells = "".join(f"{outcomes[outcome]:>8}" for outcome in OUTCOMES)
    print(f"{name:22}{cells}{count:>8}", file=sys.stderr, flush=True)


async def main(*, show: bool, model: bool, names: Sequence[str]) -> None:
    reader = PerfectReader({}) if model else None
    times: list[float] = []
    every: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundhook-bench-")))
        folders = {folder.name: folder for folder in sorted(HERE.iterdir()) if folder.is_dir()}
        folders["shop"] = SHOP
        domains: dict[str, Domain] = {}
        print(" " * 22 + "".join(f"{_short(each):>8}" for each in OUTCOMES), file=sys.stderr)
        for name, file in SETS.items():
            if names and name not in names:
                continue
            outcomes: Counter[str] = Counter()
            for question in questions(file):
                if question.domain not in domains:
                    domains[question.domain] = await stack.enter_async_context(
                        opened(folders[question.domain], state)
                    )
                outcome, took, note = await outcome_of(domains[question.domain], question, reader)
                outcomes[outcome] += 1
                times.append(took)
                if show and outcome.startswith("wrong") and "aside" not in name:
                    print(f"✗ {outcome}: {question.question}\n  {note}", file=sys.stderr)
            report(name, outcomes)
            every += outcomes
    report("all", every)
    if reader is not None:
        figure("questions all: calls of the model", reader.asked, "")
        figure("questions all: corrections", len(reader.problems), "")
        figure("questions all: not written in the query language", reader.unwritten, "")
    told = every.total() - every["declined"]
    figure(
        "questions all: wrong and sure, of those answered",
        100 * every["wrong and sure"] / told,
        "%",
    )
    figure("a question, with its queries, CPU time, p50", statistics.median(times), "ms")
    figure(
        "a question, with its queries, CPU time, p95", statistics.quantiles(times, n=20)[-1], "ms"
    )


def _short(outcome: str) -> str:
    first, _, last = outcome.partition(" and ")
    return f"{first[:5]}/{last[:1]}" if last else first[:8]


if __name__ == "__main__":
    arguments = sys.argv[1:]
    anyio.run(
        lambda: main(
            show="--show" in arguments,
            model="--model" in arguments,
            names=[one for one in arguments if not one.startswith("-")],
        )
    )
