"""`groundhook config`: the settings of an assistant, and the layer that set each."""

from __future__ import annotations

from pathlib import Path

import click

from groundhook.core.errors import UnknownName
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute_without_loop
from groundhook.host.cli.report import Report
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.packages import load_app
from groundhook.host.output.flow import compact


@click.group("config")
def command() -> None:
    """Show the settings of an assistant."""


@command.command("explain", short_help="Show every setting and which layer set it.")
@click.argument("assistant")
@click.argument("key", required=False, default="")
@options.common
def explain(assistant: str, key: str, app: Path, as_json: bool, debug: bool) -> int:
    """Show every setting of ASSISTANT, the layer that set it, and the file and line. With KEY, such
    as `search.web`, show only that setting or section."""
    report = Report(json=as_json)

    def work() -> int:
        # Settings are folded from files: no source, model or server of the app is opened.
        rows = load_app(app, app_environment(app)).explain(assistant)
        if key:
            known = [row.key for row in rows]
            rows = [row for row in rows if row.key == key or row.key.startswith(f"{key}.")]
            if not rows:
                raise UnknownName("setting", key, known)
        if report.json:
            for row in rows:
                place = str(row.place) if row.place else ""
                report.line(
                    {"key": row.key, "value": row.value, "layer": row.layer, "place": place}
                )
        else:
            report.rows(
                ("key", "value", "layer", "where"),
                [(row.key, compact(row.value), row.layer, row.place or "") for row in rows],
            )
        return 0

    return execute_without_loop(work, report, debug=debug)
