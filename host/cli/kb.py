"""`groundhook kb`: documents of knowledge bases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Column

from host.app import open_host
from host.cli import kb_move, options
from host.cli.edge import FAILED, execute
from host.cli.report import Report
from host.cli.tables import table
from host.output.flow import one_line
from host.output.terminal import duration
from host.types.events import Failed

SHOWN_NAME = 24  # characters of a document's id beside the progress bar

Told = Callable[[int, int, str], None]  # bytes done, bytes in all, document under way


class Outcome(Protocol):
    """What became of one file, as the knowledge base reports it."""

    @property
    def path(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def error(self) -> str: ...


@click.group("kb")
def command() -> None:
    """Documents of knowledge bases: add, list, remove; collections: rebuild, export, import."""


for moving in (kb_move.rebuild, kb_move.export, kb_move.import_):
    command.add_command(moving)


@command.command("add")
@click.argument("collection")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@options.common
@click.option("--tenant", default="", metavar="T", help="Tenant that the documents belong to.")
def add(collection: str, paths: tuple[Path, ...], app: Path, tenant: str, as_json: bool, debug: bool) -> int:
    """Add files, and the files in folders, to COLLECTION: Markdown, text, HTML and PDF.

    A file that was added before and has changed is replaced; one that has not is left alone. The exit code is 1 when a file
    could not be added; the others were.
    """
    report = Report(json=as_json)

    async def work() -> int:
        began = time.monotonic()
        async with open_host(app) as host:
            with progress_bar(report.err) as told:
                added = await host.kb.add(collection, paths, tenant=tenant, progress=told)
        for file in added.files:
            if report.json:
                report.line({"collection": collection, **asdict(file)})
            elif file.outcome == "failed":
                told_place = "" if file.path in file.error else file.path
                report.failed(Failed(code="ingest", message=file.error, file=told_place))
        report.show(summary(collection, added.files, added.skipped, (time.monotonic() - began) * 1000))
        return FAILED if added.failed else 0

    return execute(work, report, debug=debug)


@command.command("list")
@click.argument("collections", nargs=-1, metavar="[COLLECTION]...")
@options.common
@click.option("--tenant", metavar="T", help="Only documents of this tenant.")
def list_(collections: tuple[str, ...], app: Path, tenant: str | None, as_json: bool, debug: bool) -> int:
    """Show the app's collections; or, when some are named, the documents in them."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app) as host:
            listed = await host.kb.list(collections or None, tenant=tenant)
        if report.json:
            for entry in listed:
                report.line(asdict(entry))
        elif collections:
            documents = [
                (entry.id, stored.document, stored.title, stored.chunks, decimal(stored.bytes))
                for entry in listed
                for stored in entry.documents
            ]
            report.show(table(("collection", "document", "title", "chunks", "size"), documents, numbers=("chunks", "size")))
        elif listed:
            rows = [
                (entry.id, entry.name, len(entry.documents), entry.chunks, decimal(entry.bytes), decimal(entry.disk_bytes))
                for entry in listed
            ]
            numbers = ("documents", "chunks", "size", "on disk")
            report.show(table(("collection", "name", *numbers), rows, numbers=numbers))
        else:
            report.show("The app has no collections; declare one in kb/<id>.kb.yao.")
        return 0

    return execute(work, report, debug=debug)


@command.command("remove")
@click.argument("collection")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@options.common
@click.option("--tenant", default="", metavar="T", help="Tenant that the documents belong to.")
def remove(collection: str, ids: tuple[str, ...], app: Path, tenant: str, as_json: bool, debug: bool) -> int:
    """Remove documents from COLLECTION by their ids, as `kb list COLLECTION` shows them."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app) as host:
            removed = await host.kb.remove(collection, ids, tenant=tenant)
        if report.json:
            report.line({"collection": collection, "removed": list(removed)})
        report.show(f"Removed {documents(len(removed))} from {collection}.")
        return 0

    return execute(work, report, debug=debug)


@contextmanager
def progress_bar(err: Console) -> Iterator[Told | None]:
    """A bar with rate and time left, fed with bytes; None where it could not be drawn. It is gone when the block ends."""
    if not err.is_terminal or err.is_dumb_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(width=SHOWN_NAME, no_wrap=True)),
        BarColumn(bar_width=None),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, expand=True) as bar:
        task = bar.add_task("", total=None)

        def told(done: int, total: int, document: str) -> None:
            bar.update(task, completed=done, total=total, description=_shortened(one_line(document)))

        yield told


def summary(collection: str, files: Sequence[Outcome], skipped: int, ms: float) -> str:
    """`Added 3 documents (41 chunks) to docs, 2 replaced, 1 failed in 1.2s.`"""

    def count(outcome: str) -> int:
        return sum(file.outcome == outcome for file in files)

    chunks = sum(file.chunks for file in files)
    parts = [f"Added {documents(count('added'))} to {collection} ({chunks} chunks)"]
    parts += [f"{count(outcome)} {outcome}" for outcome in ("replaced", "unchanged", "failed") if count(outcome)]
    if skipped:
        parts.append(f"{skipped} skipped (of a kind that cannot be read)")
    return f"{', '.join(parts)} in {duration(ms)}."


def documents(number: int) -> str:
    return f"{number} document{'' if number == 1 else 's'}"


def _shortened(name: str) -> str:
    return name if len(name) <= SHOWN_NAME else f"…{name[1 - SHOWN_NAME :]}"
