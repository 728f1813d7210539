"""`groundhook db`: the models' tables and their sample rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from host.app import open_host
from host.cli import options
from host.cli.edge import execute
from host.cli.report import Report
from host.cli.tables import table


@click.group("db")
def command() -> None:
    """Databases: create the models' tables and load their sample rows."""


@command.command("load")
@options.common
def load(app: Path, as_json: bool, debug: bool) -> int:
    """Create the tables that are missing and put the models' sample rows into empty ones.

    A table that exists is never altered and never emptied.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app) as host:
            loaded = await host.database.load(now=host.machinery.now)
        if report.json:
            for entry in loaded:
                report.line(asdict(entry))
        elif loaded:
            rows = [
                (entry.model, entry.table, "created" if entry.created else "existed", entry.rows, entry.had, entry.note)
                for entry in loaded
            ]
            report.show(table(("model", "table", "", "loaded", "had", "note"), rows, numbers=("loaded", "had")))
        else:
            report.show("The app has no models.")
        return 0

    return execute(work, report, debug=debug)
