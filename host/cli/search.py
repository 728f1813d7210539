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
    "threshold": ("kb", "--threshold"),
    "filter": ("kb", "--filter"),
    "facets": ("kb", "--facet"),
    "groups": ("kb", "--groups"),
    "neighbours": ("kb", "--neighbours"),
    "passage_tokens": ("kb", "--passage-tokens"),
    "diversity": ("kb", "--diversity"),
    "models": ("db", "--model"),
    "sites": ("web", "--site"),
    "exclude_sites": ("web", "--exclude-site"),
    "time_range": ("web", "--time-range"),
    "language": ("web", "--language"),
    "fetch": ("web", "--fetch"),
}


@click.command("search")
@click.argument("type", type=click.Choice(SEARCH_TYPES))
@click.argument("query", type=options.Words(needed=True))
@options.common
@click.option("--assistant", metavar="ID", help="Search with this assistant's settings, collections and models.")
@click.option("--collection", "collections", multiple=True, metavar="C", help="Collection to search; may be repeated.")
@click.option("--model", "models", multiple=True, metavar="M", help="Model to query; may be repeated.")
@click.option("--site", "sites", multiple=True, metavar="S", help="Only pages of this site of the web; may be repeated.")
@click.option("--exclude-site", "exclude_sites", multiple=True, metavar="S", help="No pages of this site; may be repeated.")
@click.option("--time-range", type=click.Choice(("day", "week", "month", "year")), help="Only pages of the web so recent.")
@click.option("--language", metavar="L", help="Language of pages of the web, such as en.")
@click.option("--fetch", type=click.IntRange(0, 10), metavar="N", help="Read so many of the first pages of the web.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", help="Most results.")
@click.option("--threshold", type=click.FloatRange(0, 1), metavar="X", help="kb: least similarity, 0-1.")
@click.option(
    "--filter", "filter_", metavar="JSON", help="kb: only documents whose fields fulfil it, such as '{\"year\": 2024}'."
)
@click.option("--facet", "facets", multiple=True, metavar="FIELD", help="kb: count documents by this field; may be repeated.")
@click.option("--groups", type=click.IntRange(1, 1000), metavar="N", help="kb: most passages of one document.")
@click.option("--neighbours", type=click.IntRange(0, 20), metavar="N", help="kb: passages before and after each hit.")
@click.option("--passage-tokens", type=click.IntRange(0, 100_000), metavar="N", help="kb: longest content; 0: whole chunks.")
@click.option("--diversity", type=click.FloatRange(0, 1), metavar="X", help="kb: how much repetition falls behind, 0-1.")
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
    filter_: str | None,
    facets: tuple[str, ...],
    user: str,
    team: str,
    tenant: str,
    now: datetime | None,
    as_json: bool,
    debug: bool,
    **more: Any,
) -> int:
    """Search the web, knowledge bases (kb) or databases (db) for QUERY."""
    report = Report(json=as_json)
    identity = options.identity(user=user, team=team, tenant=tenant)
    request: dict[str, Any] = {"type": type, "query": query}
    said = {**more, "collections": collections, "models": models, "limit": limit, "facets": facets}
    for key, value in {**said, "filter": _filter(filter_)}.items():
        if value not in (None, ()):
            if key in ONLY_FOR and ONLY_FOR[key][0] != type:
                raise click.UsageError(f"{ONLY_FOR[key][1]} is for `search {ONLY_FOR[key][0]}`")
            request[key] = value

    async def work() -> int:
        async with open_host(app, now=now) as host:
            if collections and not assistant:
                request["collections"] = [host.kb.named(name) for name in collections]
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


def _filter(text: str | None) -> Any:
    example = """'{"year": 2024}', in quotes that your shell keeps"""
    return None if text is None else options.json_of("--filter", text, example)
