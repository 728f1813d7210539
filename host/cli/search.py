"""`groundhook search`: one search, without a turn around it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from host.app import open_host
from host.cli import options
from host.cli.edge import FAILED, execute
from host.cli.report import Report
from host.cli.tables import found
from host.types.events import Failed
from host.types.search import SEARCH_TYPES

ONLY_FOR = {
    "collections": ("kb", "--collection"),
    "models": ("db", "--model"),
    "sites": ("web", "--site"),
    "exclude_sites": ("web", "--exclude-site"),
    "time_range": ("web", "--time-range"),
    "language": ("web", "--language"),
}


@click.command("search")
@click.argument("type", type=click.Choice(SEARCH_TYPES))
@click.argument("query", type=options.Words())
@options.common
@click.option("--assistant", metavar="ID", help="Search with this assistant's settings, collections and models.")
@click.option("--collection", "collections", multiple=True, metavar="C", help="Collection to search; may be repeated.")
@click.option("--model", "models", multiple=True, metavar="M", help="Model to query; may be repeated.")
@click.option("--site", "sites", multiple=True, metavar="S", help="Only pages of this site of the web; may be repeated.")
@click.option("--exclude-site", "exclude_sites", multiple=True, metavar="S", help="No pages of this site; may be repeated.")
@click.option("--time-range", type=click.Choice(("day", "week", "month", "year")), help="Only pages of the web so recent.")
@click.option("--language", metavar="L", help="Language of pages of the web, such as en.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", help="Most results.")
@options.asker
@options.clock
def command(
    type: str,
    query: str,
    app: Path,
    assistant: str | None,
    collections: tuple[str, ...],
    models: tuple[str, ...],
    limit: int | None,
    user: str,
    team: str,
    tenant: str,
    now: datetime | None,
    as_json: bool,
    debug: bool,
    **web: Any,
) -> int:
    """Search the web, knowledge bases (kb) or databases (db) for QUERY."""
    report = Report(json=as_json)
    identity = options.identity(user=user, team=team, tenant=tenant)
    request: dict[str, Any] = {"type": type, "query": query}
    for key, value in {"collections": collections, "models": models, "limit": limit, **web}.items():
        if value not in (None, ()):
            if key in ONLY_FOR and ONLY_FOR[key][0] != type:
                raise click.UsageError(f"{ONLY_FOR[key][1]} is for `search {ONLY_FOR[key][0]}`")
            request[key] = value

    async def work() -> int:
        async with open_host(app, now=now) as host:
            result = await host.search(request, identity=identity, assistant=assistant, warned=report.warned)
        if report.json:
            report.line(result)
        elif not result.error:
            for text in found(result):
                report.show(text)
        if result.error and not report.json:
            report.failed(Failed(code="source", message=result.error))
        return FAILED if result.error else 0

    return execute(work, report, debug=debug)
