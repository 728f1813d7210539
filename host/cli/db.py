"""`groundhook db`: the models' tables and sample rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import db_import, options
from groundhook.host.cli.check import report_problem
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table

WANT_INDEX = """
All rows are read of these columns to find the values that a question names. An index in the table,
and `index` in the model, make it fast (`groundhook docs databases`, "The same result on every
engine")."""


@click.group("db")
def command() -> None:
    """Import databases and files as models; create, load and compare the tables of models."""


def _warn_of_unread_keys(host: Host, report: Report) -> None:
    """Warn of unknown keys in the app's settings: with `db.url` in place of `database.url` the
    command would use another database."""
    for problem in host.app.agent_file.ignored if host.app.agent_file else ():
        report_problem(report, problem)


@command.command("load", short_help="Create missing tables and load sample rows.")
@options.common
def load(app: Path, as_json: bool, debug: bool) -> int:
    """Create missing tables and load the models' sample rows into empty ones.

    An existing table is never altered or emptied.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            _warn_of_unread_keys(host, report)
            loaded = await host.database.load(now=host.runtime.now)
        if report.json:
            for entry in loaded:
                report.line(asdict(entry))
        elif loaded:
            rows = [
                (
                    entry.model,
                    entry.table,
                    "created" if entry.created else "existed",
                    entry.rows,
                    entry.had,
                    entry.note,
                )
                for entry in loaded
            ]
            report.show(
                table(
                    ("model", "table", "", "loaded", "had", "note"), rows, numbers=("loaded", "had")
                )
            )
        else:
            report.show("The app has no models.")
        return 0

    return execute(work, report, debug=debug)


@command.command("check", short_help="Compare the models with the existing tables.")
@options.common
def check(app: Path, as_json: bool, debug: bool) -> int:
    """Compare the models with the existing tables: missing tables and columns, types, nullability,
    keys, indexes and options. Columns of large tables are named that want an index, since questions
    look up values there.

    Nothing is changed. The exit code is 1 if something differs.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            _warn_of_unread_keys(host, report)
            shown, differences = await host.database.check()
            slow = await host.database.slow_columns()
            models = len(host.app.models)
        if report.json:
            for difference in differences:
                report.line(asdict(difference))
            for column in slow:
                report.line(asdict(column))
        elif differences:
            rows = [
                (each.model, each.table, each.column, each.aspect, each.says)
                for each in differences
            ]
            report.show(table(("model", "table", "column", "", "what differs"), rows))
        else:
            declared = "the model declares" if models == 1 else f"the {models} models declare"
            report.show(
                f"The tables in {shown} are what {declared}."
                if models
                else "The app has no models."
            )
        if slow and not report.json:
            report.show(WANT_INDEX)
            columns = [(each.model, each.table, each.column) for each in slow]
            report.show(table(("model", "table", "column"), columns))
        return 1 if differences else 0

    return execute(work, report, debug=debug)


command.add_command(db_import.command)
