"""`groundhook eval`: a suite of questions, under the files as they are and under a trial."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from groundhook.core.errors import ConfigError, Place
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.check import count
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.output.flow import one_line
from groundhook.host.testing.evaluation.comparing import Measure, passed_share, shown
from groundhook.host.testing.evaluation.evaluator import Configuration, Evaluation, cassette_of
from groundhook.host.testing.evaluation.html_report import EvaluationReport as Evaluated
from groundhook.host.testing.evaluation.html_report import html_report
from groundhook.host.testing.evaluation.scoring import Outcome
from groundhook.host.testing.evaluation.suite import EvaluationRow, assistant_of, read_suite

FILES = "as in the files"
_PATH = click.Path(path_type=Path)


@click.command("eval")
@click.argument("suite", type=_PATH)
@options.common
@click.option(
    "--assistant", type=options.TextOption(), metavar="A", help="Ask A (default: the suite's)."
)
@click.option(
    "--trial", type=_PATH, metavar="FILE", help="Compare with the keys of package.yao in FILE."
)
@click.option(
    "--runs", type=click.IntRange(1, 100), default=1, metavar="N", help="Ask each N times (1)."
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Ask N questions at the same time (1); times are then longer.",
)
@click.option("--offline", is_flag=True, help="Answer from the recording beside the suite.")
@click.option("--record", is_flag=True, help="Record the answers of sources and models.")
@click.option("--report", "page", type=_PATH, metavar="FILE", help="Write an HTML report to FILE.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 100),
    default=100.0,
    metavar="PERCENT",
    help="Fail when fewer turns pass (100).",
)
def command(
    suite: Path,
    assistant: str | None,
    trial: Path | None,
    runs: int,
    at_once: int,
    offline: bool,
    record: bool,
    page: Path | None,
    at_least: float,
    app: Path,
    as_json: bool,
    debug: bool,
) -> int:
    """Ask the questions of SUITE and score the answers.

    SUITE is a file of JSON lines, such as assistants/docs/tests/first.suite.jsonl, of
    {"question", "sources", "phrases", "figures", "refusal"}. The app's real sources and models
    answer, unless --offline. With --trial each question is asked under both configurations, on the
    same results of the web.

    The exit code is 1 if fewer than --at-least percent of the turns pass (with --trial: of those of
    the trial), or if the trial is worse with 95 % confidence.
    """
    if offline and record:
        raise click.UsageError("--offline and --record exclude each other")
    report = Report(json=as_json)
    # Answers are recorded in the order of the questions.
    at_once = 1 if record else at_once

    async def work() -> int:
        questions = read_suite(suite, suite.as_posix())
        configurations = [Configuration(name=FILES)]
        if trial is not None:
            configurations.append(Configuration(name=trial.name, trial=trial))
        async with open_host(app) as host:
            cassette = cassette_of(host, questions, play=offline)
            evaluation = Evaluation(
                host=host,
                suite=questions,
                configurations=configurations,
                cassette=cassette,
                assistant=assistant or assistant_of(suite),
                runs=runs,
                at_once=at_once,
            )
            view = _View(report, evaluation)
            outcomes = await evaluation.run(view.show)
        if record and cassette.save():
            report.show(Text(f"recorded {cassette.shown}", "dim"))
        names = [each.name for each in configurations]
        at = datetime.now().astimezone()
        evaluated = Evaluated(suite=questions, names=names, runs=runs, at=at, outcomes=outcomes)
        if page is not None:
            _write(page, html_report(evaluated))
        failed = _has_failed(evaluated, at_least)
        view.summary(evaluated, failed=failed)
        if page is not None:
            report.show(Text(f"report: {page}", "dim"))
        return FAILED if failed else 0

    return execute(work, report, debug=debug)


def _has_failed(evaluated: Evaluated, at_least: float) -> bool:
    comparison = evaluated.comparison
    too_few = passed_share(evaluated.every[-1]) * 100 < at_least - 1e-9
    return too_few or (comparison is not None and comparison.is_worse)


def _write(page: Path, text: str) -> None:
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ConfigError(
            f"the report cannot be written: {exc.strerror}",
            place=Place(str(page)),
            hint="name a file in a folder that exists",
        ) from exc


class _View:
    """Outcomes in the terminal, or as JSON lines."""

    def __init__(self, report: Report, evaluation: Evaluation) -> None:
        self._report = report
        self._evaluation = evaluation

    def show(self, outcome: Outcome) -> None:
        turn = outcome.turn
        row = self._evaluation.suite.rows[turn.row]
        configuration = self._evaluation.configurations[turn.configuration].name
        if self._report.json:
            self._report.line(_as_json(outcome, row, configuration))
            return
        mark, style = ("ok", "green") if outcome.passed else ("FAILED", "red")
        if outcome.error:
            mark = "ERROR"
        where = "" if len(self._evaluation.configurations) == 1 else f" · {configuration}"
        where += f" · run {turn.run + 1}" if self._evaluation.runs > 1 else ""
        line = Text.assemble((mark, style), f" {one_line(row.question)}", (where, "dim"))
        self._report.show(line)
        for each in (*outcome.lacks, *filter(None, outcome.error.split("\n"))):
            self._report.show(Text(f"    {one_line(each)}", "red"))

    def summary(self, evaluated: Evaluated, *, failed: bool) -> None:
        if self._report.json:
            self._report.line(_summary(evaluated, failed=failed))
            return
        self._report.show("")
        compared = ["difference", "95 %"] if evaluated.comparison else []
        rows = [(each.label, *cells) for each, cells in _measure_cells(evaluated).items()]
        self._report.rows(["measure", *evaluated.names, *compared], rows)
        self._report.show(Text(_verdict(evaluated), "red" if failed else "green"))


def _summary(evaluated: Evaluated, *, failed: bool) -> dict[str, Any]:
    comparison, means = evaluated.comparison, evaluated.means
    summary: dict[str, Any] = {
        "type": "summary",
        "passed": [passed_share(each) for each in evaluated.every],
        "means": {measure.name: values for measure, values in means.items()},
    }
    if comparison is not None:
        intervals = {each.measure.name: each.interval for each in comparison.measures}
        summary |= {"intervals": intervals, "changes": {**comparison.count, "p": comparison.p}}
    return {**summary, "failed": failed}


def _measure_cells(evaluated: Evaluated) -> dict[Measure, list[str]]:
    """Return the cells of a measure's row: its means, and their difference."""
    cells = {
        measure: ["" if value is None else shown(value, measure.unit) for value in values]
        for measure, values in evaluated.means.items()
    }
    for each in evaluated.comparison.measures if evaluated.comparison else ():
        unit, interval = each.measure.unit, ""
        if each.interval is not None:
            low, high = (shown(value, unit, signed=True) for value in each.interval)
            interval = f"{low} to {high}{' *' if each.certain else ''}"
        cells[each.measure] += [shown(each.after - each.before, unit, signed=True), interval]
    return cells


def _verdict(evaluated: Evaluated) -> str:
    passed = [sum(each.passed for each in outcomes) for outcomes in evaluated.every]
    line = f"{passed[-1]} of {count(len(evaluated.every[-1]), 'turn')} passed"
    if evaluated.comparison is None:
        return line
    changes, p = evaluated.comparison.count, evaluated.comparison.p
    return (
        f"{line} with the trial, {passed[0]} without; of the questions {changes['better']} better,"
        f" {changes['worse']} worse, {changes['same']} the same (p = {p:.3f})"
    )


def _as_json(outcome: Outcome, row: EvaluationRow, configuration: str) -> dict[str, Any]:
    return {
        "type": "outcome",
        "id": row.id,
        "question": row.question,
        "configuration": configuration,
        "run": outcome.turn.run,
        "passed": outcome.passed,
        "score": outcome.score,
        "checks": dict(outcome.checks),
        "lacks": list(outcome.lacks),
        "found": outcome.found,
        "supported": outcome.supported,
        "certainty": outcome.certainty,
        "first_text_ms": outcome.first_text_ms,
        "total_ms": outcome.total_ms,
        "tokens": outcome.tokens,
        "cost": outcome.cost,
        "cited": list(outcome.cited),
        "error": outcome.error,
        "content": outcome.content,
    }
