"""Measure the grammar of questions to databases: exact rows, by kind, of questions with reference
answers written by hand.

    python -m bench.db_questions [--show] [KIND...]

Questions, answers and data are in `db_questions/`, whose README describes how they were made. An
answer is right if a search returns exactly the rows of the reference, in its order if it has one,
and reports no word as not understood. An unanswerable question is right if every reading of it
reports the expected words, and wrong if it is answered as if everything had been understood. The
same rows are counted too where a word is reported, since the search then uses the conditions. An
answer is wrong without a report if its rows are others and the search warned of nothing: neither
of a word nor of one that it read in one of several ways. The
baseline is full-text search (FTS5, BM25) over all rows of the domain, for any word of the question;
its answer is as many of the first rows as the reference has. Standard error has the figures as a
table. `--show` adds the wrong answers, except those of the questions kept aside.
"""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from bench.figures import figure
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.settings import SearchSettings, UsesSettings
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import Database, open_database
from groundhook.handlers.db.model.schema import Schemas
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
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
WARM = 20  # readings of each question that are timed
SAMPLED = 300  # values of a field, as a search samples them
Rows = list[tuple[Any, ...]]
Warnings = dict[str, list[str]]  # messages by code


@dataclass(frozen=True, kw_only=True)
class Question:
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


@dataclass
class Domain:
    """The models of a domain, their rows in a database of their own, and the same rows in one table
    for full-text search."""

    models: Mapping[str, ModelSpec]
    database: Database
    rows: sqlite3.Connection
    offers: list[Offer]

    async def search(self, question: str) -> tuple[SourceResult, Warnings]:
        """What is found, and the warnings of the search."""
        request = SearchRequest(type="db", query=question, models=tuple(self.models), limit=MOST)
        warnings: Warnings = {}
        return await self.database.search(request, scope(warnings)), warnings

    def read(self, question: str, lexicons: Lexicons) -> list[Reading]:
        return read_question(question, self.offers, words_for("auto", question), NOW, lexicons)


@dataclass
class Outcome:
    question: Question
    right: bool
    wrong: bool  # without doubt: not right, and the search warned of nothing
    baseline: bool
    milliseconds: list[float]
    note: str = ""
    same: bool = False  # the rows of the reference, also where a word was reported


@dataclass
class Tally:
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def right(self) -> int:
        return sum(outcome.right for outcome in self.outcomes)

    @property
    def baseline(self) -> int:
        return sum(outcome.baseline for outcome in self.outcomes)


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


def offers_of(models: Mapping[str, ModelSpec]) -> list[Offer]:
    schemas = Schemas(models)
    plain = {}
    for name, spec in models.items():
        texts = [text.name for text in schemas[name].texts if not text.long and not text.options]
        values = {
            text: tuple(sorted({row[text] for row in spec.values if row.get(text)})[:SAMPLED])
            for text in texts
        }
        plain[name] = Offer(schemas[name], values)
    related = {
        name: {one.name: plain[one.model] for one in schemas[name].relations.values()}
        for name in models
    }
    return [Offer(offer.schema, offer.samples, related[name]) for name, offer in plain.items()]


@asynccontextmanager
async def opened(folder: Path, state: Path) -> AsyncIterator[Domain]:
    models = models_in(folder)
    path = state / f"{folder.name}.db"
    async with open_database(f"sqlite:///{path}", 5000, models) as database:
        await database.load()
        rows = sqlite3.connect(path)
        rows.execute(
            "CREATE VIRTUAL TABLE temp.texts USING fts5(kept UNINDEXED, id UNINDEXED, words)"
        )
        for spec in models.values():
            for row in rows.execute(f"SELECT * FROM {spec.table.name}").fetchall():
                note = " ".join(str(value) for value in row if value is not None)
                rows.execute(
                    "INSERT INTO temp.texts VALUES (?, ?, ?)", (spec.table.name, row[0], note)
                )
        yield Domain(models, database, rows, offers_of(models))
        rows.close()


def scope(warnings: Warnings) -> Scope:
    async def warn(code: str, message: str) -> None:
        warnings.setdefault(code, []).append(message)

    return Scope(
        identity=Identity(),
        assistant_id="bench",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: NOW,
        warn=warn,
    )


async def outcome_of(domain: Domain, question: Question, lexicons: Lexicons) -> Outcome:
    readings = domain.read(question.question, lexicons)
    times = []
    for _ in range(WARM):
        began = time.thread_time()
        readings = domain.read(question.question, lexicons)
        times.append((time.thread_time() - began) * 1000)
    if question.unplaced:
        left = [" ".join(reading.not_understood) for reading in readings]
        right = all(word in words for word in question.unplaced for words in left)
        note = f"left over: {left}"
        return Outcome(
            question, right, not all(left), not full_text(domain, question, 1), times, note
        )
    wanted = rounded(domain.rows.execute(question.sql).fetchall())
    found, warnings = await domain.search(question.question)
    left = warnings.get("db_query_words", [])
    got = rows_of(found, question, domain.models)
    same = alike(domain, question, got, wanted)
    note = (
        f"{len(got)} rows instead of {len(wanted)}; left over: {left};"
        f" {json.dumps(found.dsl, ensure_ascii=False)}"
    )
    baseline = full_text(domain, question, len(wanted))
    base = alike(domain, question, baseline, wanted)
    return Outcome(
        question,
        same and not left,
        not same and not warnings,
        bool(question.table) and base,
        times,
        note,
        same,
    )


def alike(domain: Domain, question: Question, got: Rows, wanted: Rows) -> bool:
    """Whether the same rows were found, in the order of the reference where it has one: equal ones
    may stand in any."""
    if not question.ordered:
        return sorted(got, key=repr) == sorted(wanted, key=repr)
    chosen, _, order = question.sql.partition(" ORDER BY ")
    by = order.removesuffix(", id").split(", id LIMIT")[0].removesuffix(" DESC")
    sorted_by = dict(
        domain.rows.execute(chosen.replace("SELECT id", f"SELECT id, {by}")).fetchall()
    )
    values = [[sorted_by.get(row[0], "not among them") for row in rows] for rows in (got, wanted)]
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


def full_text(domain: Domain, question: Question, most: int) -> Rows:
    """The ids of the best rows of the reference's table that have any word of the question."""
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.question))
    kept = "AND kept = ?" if question.table else "AND kept <> ?"
    sql = f"SELECT id FROM temp.texts WHERE texts MATCH ? {kept} ORDER BY bm25(texts), id LIMIT ?"
    return domain.rows.execute(sql, (words, question.table, most)).fetchall()


def report(name: str, tallies: Mapping[str, Tally]) -> None:
    table = [f"{name:22} {'right':>9} {'full text':>11}"]
    for kind, tally in tallies.items():
        count = len(tally.outcomes)
        figure(
            f"questions {name}: {kind}",
            tally.right,
            f"of {count}",
            tally.baseline,
            "full-text search over the rows",
        )
        table.append(f"  {kind:20} {tally.right:>3} of {count:<3} {tally.baseline:>3} of {count}")
    every = [outcome for tally in tallies.values() for outcome in tally.outcomes]
    answers = [outcome for outcome in every if not outcome.question.unplaced]
    right, base = (sum(getattr(outcome, key) for outcome in every) for key in ("right", "baseline"))
    share, least = 100 * right / len(every), 100 * base / len(every)
    figure(f"questions {name}: exact rows", share, "%", least, "full-text search over the rows")
    figure(f"questions {name}: exact rows of those that have an answer", _share(answers), "%")
    same = sum(outcome.same for outcome in answers)
    figure(f"questions {name}: exact rows, with words reported or not", same, f"of {len(answers)}")
    wrong = sum(outcome.wrong for outcome in answers)
    invented = sum(outcome.wrong for outcome in every) - wrong
    figure(
        f"questions {name}: answered though they have no answer",
        invented,
        f"of {len(every) - len(answers)}",
    )
    figure(f"questions {name}: answered wrongly and nothing reported", wrong, f"of {len(answers)}")
    table.append(
        f"  {'all':20} {share:8.1f}% {least:9.1f}%   answered though without an answer: {invented},"
        f" wrongly: {wrong}   the same rows: {same} of {len(answers)}"
    )
    print("\n".join(table), file=sys.stderr, flush=True)


def _share(outcomes: Sequence[Outcome]) -> float:
    return 100 * sum(outcome.right for outcome in outcomes) / max(1, len(outcomes))


async def main(*, show: bool, kinds: Sequence[str]) -> None:
    times: list[float] = []
    async with AsyncExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundhook-bench-")))
        folders = {folder.name: folder for folder in sorted(HERE.iterdir()) if folder.is_dir()} | {
            "shop": SHOP
        }
        domains = {
            name: await stack.enter_async_context(opened(folder, state))
            for name, folder in folders.items()
        }
        lexicons = Lexicons()
        for name, file in SETS.items():
            tallies: dict[str, Tally] = {}
            for question in questions(file):
                if kinds and question.kind not in kinds:
                    continue
                outcome = await outcome_of(domains[question.domain], question, lexicons)
                tallies.setdefault(question.kind, Tally()).outcomes.append(outcome)
                times += outcome.milliseconds
                if show and not outcome.right and "aside" not in name:
                    print(
                        f"✗ {question.kind}: {question.question}\n  {outcome.note}", file=sys.stderr
                    )
            report(name, tallies)
    figure(
        "a question read for all models of its domain, warm, CPU time, p50",
        statistics.median(times),
        "ms",
    )
    figure(
        "a question read for all models of its domain, warm, CPU time, p95",
        statistics.quantiles(times, n=20)[-1],
        "ms",
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    anyio.run(
        lambda: main(
            show="--show" in arguments, kinds=[one for one in arguments if not one.startswith("-")]
        )
    )
