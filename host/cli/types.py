"""`groundhook types`: declarations for editors, with the app's own names."""

from __future__ import annotations

import json
from pathlib import Path

import click

from groundhook.core.errors import StorageError
from groundhook.core.types.events import Warned
from groundhook.host.app.opening import open_host
from groundhook.host.check.hook_diagnostics import CONFIG, DECLARATIONS, editor_config
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report

ADVICE = (
    f'add {json.dumps(DECLARATIONS)} to its "include",'
    ' and "lib": ["ES2022"] without "DOM": a hook has no browser'
)


@click.command("types")
@options.common
def command(app: Path, as_json: bool, debug: bool) -> int:
    """Write TypeScript declarations of everything a hook may use.

    They are written to types/groundhook.d.ts, with the names of the app's collections, models,
    connectors, assistants and tools. Editors find them through tsconfig.json, which is created if
    it does not exist.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            text = host.declarations()
        _write(report, app, DECLARATIONS, text)
        config = app / CONFIG
        if not config.exists():
            _write(report, app, CONFIG, editor_config())
        elif DECLARATIONS not in config.read_text(encoding="utf-8", errors="replace"):
            report.warned(
                Warned(
                    code="types",
                    message=f"{CONFIG} does not name {DECLARATIONS}",
                    hint=ADVICE,
                    file=CONFIG,
                )
            )
        return 0

    return execute(work, report, debug=debug)


def _write(report: Report, app: Path, name: str, text: str) -> None:
    path = app / name
    try:
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        if before != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise StorageError(f"{str(path)!r} cannot be written: {exc.strerror}") from exc
    report.show(f"{name} {'is up to date' if before == text else 'written'}")
    if report.json:
        report.line({"file": name, "written": before != text})
