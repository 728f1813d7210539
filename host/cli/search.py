"""`groundhook search`: one search outside a turn."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from groundhook.core.errors import UsageError
from groundhook.core.registry import by_end
from groundhook.core.types.events import Failed, Warned
from groundhook.core.types.search import SEARCH_TYPES, SearchResult
from groundhook.core.types.tables import Exported
from groundhook.handlers.kb.language import language_of
from groundhook.handlers.kb.ranking import passage
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import found
from groundhook.host.output.csv_text import csv_text

ONLY_FOR = {
    "collections": ("kb", "--collection"),
    "offset": ("kb", "--offset"),
    "threshold": ("kb", "--threshold"),
    "filter": ("kb", "--filter"),
    "facets": ("kb", "--facet"),
    "groups": ("kb", "--groups"),
    "neighbours": ("kb", "--neighbours"),
    "passage_tokens": ("kb", "--passage-tokens"),
    "diversity": ("kb", "--diversity"),
    "graph": ("kb", "--graph"),
    "models": ("db", "--model"),
    "sites": ("web", "--site"),
    "exclude_sites": ("web", "--exclude-site"),
    "time_range": ("web", "--time-range"),
    "language": ("web", "--language"),
    "fetch": ("web", "--fetch"),
}
_PLACES = {
    "kb": ("collections", "collection", "--collection"),
    "db": ("models", "model", "--model"),
}
_DECLARED = {"kb": ("kb", ".kb.yao"), "db": ("models", ".mod.yao")}
SHOWN_TOKENS = 60  # of the passage that answers, on a terminal


@click.command("search")
@click.argument("type", type=click.Choice(SEARCH_TYPES))
@click.argument("query", type=options.TextOption(needed=True))
@options.common
@click.option(
    "--assistant",
    metavar="ID",
    help="Use the settings, collections and models of this assistant (default: those of the app).",
)
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="C",
    help="kb: collection to search (default: those of the settings, or the only one); may be"
    " repeated.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="M",
    help="db: model to query (default: those of the settings, or the only one); may be repeated.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="S",
    help="web: only pages of this site; may be repeated.",
)
@click.option(
    "--exclude-site",
    "exclude_sites",
    multiple=True,
    metavar="S",
    help="web: no pages of this site; may be repeated.",
)
@click.option(
    "--time-range",
    type=click.Choice(("day", "week", "month", "year")),
    help="web: only pages of the last day, week, month or year.",
)
@click.option("--language", metavar="L", help="web: language of the pages, such as en.")
@click.option(
    "--fetch",
    type=click.IntRange(0, 10),
    metavar="N",
    help="web: number of first results whose pages are read (default: that of the settings, 0).",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Maximum number of results (default: max_results of the settings, 10; db: 50).",
)
@click.option(
    "--offset",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="kb: number of results to skip (default: 0).",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="kb: minimum similarity of a passage (default: that of the settings, 0.3).",
)
@click.option(
    "--filter",
    "filter_",
    metavar="JSON",
    help="kb: only documents whose fields match, such as '{\"year\": 2024}'.",
)
@click.option(
    "--facet",
    "facets",
    multiple=True,
    metavar="FIELD",
    help="kb: also count the documents by the values of this field; may be repeated.",
)
@click.option(
    "--groups",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="kb: maximum passages of one document (default: no limit).",
)
@click.option(
    "--neighbours",
    type=click.IntRange(0, 20),
    metavar="N",
    help="kb: passages to add before and after each one that is found (default: 0).",
)
@click.option(
    "--passage-tokens",
    type=click.IntRange(0, 100_000),
    metavar="N",
    help="kb: tokens to which longer passages are cut; 0: whole chunks (default: 200).",
)
@click.option(
    "--diversity",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="kb: how far passages that repeat others are ranked down (default: 0).",
)
@click.option(
    "--graph/--no-graph",
    default=None,
    help="kb: also search the graph of collections that have one (default: --no-graph).",
)
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="db: write all rows as CSV, up to 10,000.",
)
@options.identity_options
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
    as_csv: bool,
    **more: Any,
) -> int:
    """Search the web, knowledge bases (kb) or databases (db) for QUERY."""
    report = Report(json=as_json)
    identity = options.identity(user=user, team=team, tenant=tenant)
    request: dict[str, Any] = {"type": type, "query": query}
    given = {**more, "collections": collections, "models": models, "limit": limit, "facets": facets}
    for key, value in {**given, "filter": _parse_filter(filter_)}.items():
        if value not in (None, ()):
            if key in ONLY_FOR and ONLY_FOR[key][0] != type:
                raise click.UsageError(f"{ONLY_FOR[key][1]} is for `search {ONLY_FOR[key][0]}`")
            request[key] = value

    if as_csv and (as_json or type != "db"):
        raise click.UsageError("--csv is for `search db`, and not together with --json")

    async def work() -> int:
        async with open_host(app, now=now, tune_gc=True) as host:
            if type in _PLACES:
                request.update(_choose_places(host, type, collections or models, assistant))
            if as_csv:
                exported = await host.export(
                    request, identity=identity, assistant=assistant, warned=report.warned
                )
                return _write_csv(exported, report)
            result = await host.search(
                request, identity=identity, assistant=assistant, warned=report.warned
            )
        if report.json:
            report.line(result)
        elif not result.error:
            for text in found(_add_passages(result), request.get("offset", 0)):
                report.show(text)
        if result.error and not report.json:
            report.failed(Failed(code="source", message=result.error))
        return FAILED if result.error else 0

    return execute(work, report, debug=debug)


def _write_csv(found: Exported, report: Report) -> int:
    sys.stdout.buffer.write(csv_text(found.columns, found.rows).encode("utf-8"))
    sys.stdout.buffer.flush()
    if found.cut:
        least = "at least " if found.total_is == "at_least" else ""
        message = f"{len(found.rows)} of {least}{found.total} rows are written"
        report.warned(Warned(code="db_result_cut", message=message, hint="ask for a part of them"))
    return 0


def _choose_places(
    host: Host, type: str, named: Sequence[str], assistant: str | None
) -> dict[str, Any]:
    """Return the ids of the collections or models to search: the named ones (the end of an id is
    enough), or the only one, unless settings name some. Raises UsageError if there are several or
    none, UnknownName."""
    key, noun, option = _PLACES[type]
    known, configured = _list_known(host, type, assistant)
    own = f"agents.{assistant}." if assistant else ""
    usable = {
        id for id in known if not id.startswith("agents.") or id.startswith(own) or id in configured
    }
    if named:
        return {key: [_full_id(noun, name, own, known, usable) for name in named]}
    if configured:
        return {}
    if not usable:
        raise _nothing_declared(type, noun, assistant)
    candidates = {id for id in usable if id.startswith(own)} or usable
    if len(candidates) == 1:
        return {key: [*candidates]}
    raise UsageError(
        f"there are {len(usable)} {noun}s",
        hint=f"name one with {option}: {', '.join(sorted(usable))}",
    )


def _list_known(host: Host, type: str, assistant: str | None) -> tuple[set[str], set[str]]:
    """Return the ids of all collections or models, and of those that settings name."""
    settings = host.settings(assistant)
    if type == "kb":
        named = (*settings.kb.collections, *settings.search.kb.collections)
        return set(host.app.collections), set(named)
    return set(host.app.models), {*settings.db.models, *settings.search.db.models}


def _nothing_declared(type: str, noun: str, assistant: str | None) -> UsageError:
    folder, end = _DECLARED[type]
    path = (assistant or "ID").replace(".", "/")
    places = f"{folder}/NAME{end} for all assistants, or assistants/{path}/{folder}/NAME{end}"
    whose = f"the assistant {assistant!r}" if assistant else "the app"
    return UsageError(f"{whose} has no {noun}s to search", hint=f"declare one in {places} for one")


def _full_id(
    noun: str, name: str, own: str, known: Collection[str], usable: Collection[str]
) -> str:
    if ":" in name or own + name in known or name in known:
        return name  # the host resolves a table's name, or reports an unknown one
    return by_end(noun, name, usable)


def _add_passages(result: SearchResult) -> SearchResult:
    """Return the result with only the answering part of each long content: a terminal shows a few
    lines of each item."""
    if result.type != "kb":
        return result
    contents = [item.content for item in result.items]
    parts = passage.parts(contents, result.query, language_of("\n".join(contents)), SHOWN_TOKENS)
    items = [
        item.model_copy(update={"content": _cut_to_part(item.content, part)}) if part else item
        for item, part in zip(result.items, parts, strict=True)
    ]
    return result.model_copy(update={"items": tuple(items)})


def _cut_to_part(content: str, part: passage.PassagePart) -> str:
    before, after = "… " if part.start else "", " …" if part.end < len(content) else ""
    return f"{before}{part.text(content).strip()}{after}"


def _parse_filter(text: str | None) -> Any:
    example = """'{"year": 2024}', in quotes that your shell keeps"""
    return None if text is None else options.json_of("--filter", text, example)
