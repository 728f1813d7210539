"""`groundhook check`: mistakes in an app, each with its place."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from groundhook.core.errors import ConfigError, Place
from groundhook.core.problems import Problem, by_file
from groundhook.core.types.events import Failed, Warned
from groundhook.hooks.runner import open_engine
from groundhook.host.app.opening import open_host
from groundhook.host.check.check import check
from groundhook.host.check.hook_diagnostics import hook_problems
from groundhook.host.check.yao import yao_notes
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.environment import child_environment
from groundhook.host.config.packages import load_app


@click.command("check")
@click.argument("assistant", required=False)
@click.option("--yao", is_flag=True, help="Also report what works differently than in Yao.")
@options.common
def command(assistant: str | None, yao: bool, app: Path, as_json: bool, debug: bool) -> int:
    """Find mistakes in configuration, hooks and references between files.

    Checks ASSISTANT, or the whole app. The exit code is 1 if there is an error; for warnings it is
    0.
    """
    report = Report(json=as_json)

    async def work() -> int:
        problems = await _find_problems(app, assistant)
        if yao:
            notes = yao_notes(app, assistant or "")
            noted = {note.place for note in notes}  # a note says more than "unknown key"
            problems = [
                each for each in problems if each.place not in noted or each.severity == "error"
            ]
            problems += notes
        for problem in problems:
            report_problem(report, problem)
        errors = sum(problem.severity == "error" for problem in problems)
        report.show(
            f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}"
            if problems
            else "No mistakes found."
        )
        return FAILED if errors else 0

    return execute(work, report, debug=debug)


async def _find_problems(app: Path, assistant: str | None) -> list[Problem]:
    """Return the problems with an app, also when it cannot be opened."""
    try:
        async with open_host(app, tune_gc=True) as host:
            return await host.check(assistant)
    except ConfigError:  # only the first problem of a broken app: the checks find the others
        closed = load_app(app, app_environment(app))
        found = check(closed, assistant or "")
        if not any(problem.severity == "error" for problem in found):
            raise  # an error of opening that no check knows
        ids = [assistant] if assistant else sorted(closed.packages)
        # A temporary state folder: the app's own may be the problem.
        with tempfile.TemporaryDirectory() as cache:
            async with open_engine(
                workers=1, cache=Path(cache), environment=child_environment()
            ) as engine:
                return by_file([*found, *await hook_problems(closed, ids, engine)])


def report_problem(report: Report, problem: Problem) -> None:
    """Report a problem as it appears in a turn: as an error or a warning."""
    place = problem.place or Place("")
    kind = Failed if problem.severity == "error" else Warned
    event = kind(
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
        file=place.file,
        line=place.line,
        column=place.column,
    )
    if isinstance(event, Failed):
        report.failed(event)
    else:
        report.warned(event)
        if report.json:
            report.line(event)


def count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
