"""`groundhook kb`: documents of knowledge bases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import click
from rich.filesize import decimal

from groundhook.core.types.events import Failed, Warned
from groundhook.host.app.opening import open_host
from groundhook.host.cli import kb_add, kb_calibrate, kb_move, options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import RowTable, table
from groundhook.host.output import flow

LONGEST_TITLE = 60  # characters of a title in a list; `--json` has the whole


class _Stored(Protocol):
    """A document in a listing."""

    @property
    def document(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class _Listed(Protocol):
    """A collection with its documents, as the knowledge base lists it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def documents(self) -> Sequence[_Stored]: ...
    @property
    def chunks(self) -> int: ...
    @property
    def source_bytes(self) -> int: ...
    @property
    def disk_bytes(self) -> int: ...


@click.group("kb")
def command() -> None:
    """Add, watch, list and remove documents of knowledge bases, and show that they are gone;
    rebuild, export, import and calibrate collections."""


for other in (
    *(kb_add.add, kb_add.watch, kb_move.rebuild, kb_move.export, kb_move.import_),
    kb_calibrate.calibrate,
):
    command.add_command(other)


@command.command("list", short_help="Show the collections, or the documents in some.")
@click.argument("collections", nargs=-1, metavar="[COLLECTION]...")
@options.common
@click.option("--tenant", metavar="T", help="Only documents of this tenant (default: of all).")
def list_(
    collections: tuple[str, ...], app: Path, tenant: str | None, as_json: bool, debug: bool
) -> int:
    """Show the app's collections, or the documents of each COLLECTION."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            listed = await host.kb.list_collections(collections or None, tenant=tenant)
        if report.json:
            for entry in listed:
                report.line(asdict(entry))
        elif collections:
            report.show(_document_table(listed))
        elif listed:
            report.show(_collection_table(listed))
        else:
            report.show("The app has no collections; declare one in kb/<id>.kb.yao.")
        for entry in listed:
            if entry.error:
                report.failed(Failed(code="storage", message=entry.error))
        return FAILED if any(entry.error for entry in listed) else 0

    return execute(work, report, debug=debug)


def _document_table(listed: Sequence[_Listed]) -> RowTable | str:
    stored = [(entry.id, each) for entry in listed for each in entry.documents]
    if not stored:
        return f"No documents in {', '.join(entry.id for entry in listed)}."
    tenants = any(each.tenant for _, each in stored)  # most apps need no such column
    columns = (
        "collection",
        *(["tenant"] if tenants else ()),
        "document",
        "title",
        "chunks",
        "size",
    )
    rows = [
        (
            id,
            *([each.tenant] if tenants else ()),
            each.document,
            flow.shortened(each.title, LONGEST_TITLE),
            each.chunks,
            decimal(each.bytes),
        )
        for id, each in stored
    ]
    return table(columns, rows, numbers=("chunks", "size"), ids=("document",))


def _collection_table(listed: Sequence[_Listed]) -> RowTable:
    rows = [
        (
            entry.id,
            entry.name,
            len(entry.documents),
            entry.chunks,
            decimal(entry.source_bytes),
            decimal(entry.disk_bytes),
        )
        for entry in listed
    ]
    numbers = ("documents", "chunks", "size", "on disk")
    return table(("collection", "name", *numbers), rows, numbers=numbers)


@command.command("remove", short_help="Remove documents.")
@click.argument("collection")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options.common
@click.option("--tenant", default="", metavar="T", help="Tenant that the documents belong to.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Remove all documents; with --tenant, all documents of that tenant.",
)
def remove(
    collection: str,
    ids: tuple[str, ...],
    app: Path,
    tenant: str,
    everything: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Remove documents from COLLECTION by their ids, as `kb list COLLECTION` shows them. If one of
    the ids does not exist, nothing is removed."""
    report = Report(json=as_json)
    # Both or neither: a forgotten id must never remove everything.
    if everything == bool(ids):
        raise click.UsageError(
            "name the documents to remove, or --all"
            if not ids
            else "--all removes every document; name none"
        )

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            whole = host.kb.full_id(collection)
            named = None if everything else ids
            removed = await host.remove_documents(whole, named, tenant=tenant)
        if report.json:
            report.line({"collection": whole, "removed": list(removed)})
        report.show(f"Removed {documents(len(removed))} from {whole}.")
        return 0

    return execute(work, report, debug=debug)


@command.command("gone", short_help="Show that documents were removed everywhere.")
@click.argument("collection")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@options.common
@click.option("--tenant", default="", metavar="T", help="Tenant that the documents belonged to.")
def gone(
    collection: str, ids: tuple[str, ...], app: Path, tenant: str, as_json: bool, debug: bool
) -> int:
    """Show what COLLECTION still has of documents that were removed: in its list, by id, in what
    searches compare (with their vectors and words), in an export, in the graph and among the exact
    texts. The exit code is 1 if anything is left."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            whole = host.kb.full_id(collection)
            left = await host.remains(whole, ids, tenant=tenant)
            others = [each for each in await host.kb.tenants_of(whole, ids) if each != tenant]
        # Without this, a mistyped tenant would look like documents that are gone.
        if others:
            shown = ", ".join(map(repr, others))
            report.warned(Warned(code="tenants", message=f"other tenants have these ids: {shown}"))
        if report.json:
            for each in left:
                report.line({"collection": whole, **each})
        places = tuple(left[0])
        rows = [tuple(map(str, each.values())) for each in left]
        report.show(table(places, rows, numbers=places[1:]))
        return FAILED if any(each[place] for each in left for place in places[1:]) else 0

    return execute(work, report, debug=debug)


@command.command("search", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("anything", nargs=-1)
def search(anything: tuple[str, ...]) -> int:
    """Point to the search command, which has all kinds of search."""
    raise click.UsageError(
        "`groundhook search kb QUERY` searches knowledge bases; --collection names one"
    )


def documents(number: int) -> str:
    return f"{number} document{'' if number == 1 else 's'}"
