"""`groundhook kb rebuild | export | import`: rebuilds collections, and moves them between
engines."""

from __future__ import annotations

import gzip
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import anyio.to_thread
import click
from rich.progress import MofNCompleteColumn

from groundhook.core.errors import UsageError
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute
from groundhook.host.cli.progress import Rate, progress
from groundhook.host.cli.report import Report
from groundhook.host.cli.stopping import stoppable
from groundhook.host.cli.streams import as_utf8, standard_input
from groundhook.host.output.tree import duration

STANDARD = Path("-")  # standard input or output
GZIP = b"\x1f\x8b"  # the beginning of a compressed file


@click.command("rebuild", short_help="Rebuild a collection as it is declared now.")
@click.argument("collection")
@options.common
def rebuild(collection: str, app: Path, as_json: bool, debug: bool) -> int:
    """Rebuild COLLECTION from its stored texts, as it is declared now.

    Use it after a change of the embedding or the analyser. The old collection stays in use until
    the new one is complete. After an interruption the next `rebuild` continues. Chunks do not
    change: after a change of `chunk`, use `kb add`.
    """
    report = Report(json=as_json)

    async def work() -> int:
        began = time.monotonic()
        async with open_host(app, tune_gc=True) as host:
            with progress(
                report, f"rebuilding {collection}", chunks, MofNCompleteColumn(), Rate()
            ) as update:
                done = await host.kb.rebuild(collection, progress=update)
        whole = _count_documents(
            done.documents + done.unchanged, done.passages + done.unchanged_passages
        )
        stopped = _count_documents(done.unchanged, done.unchanged_passages)
        before = f"; {stopped} of them in an earlier run, the rest" if done.unchanged else ""
        _show_result(report, asdict(done), f"Rebuilt {done.collection}: {whole}{before}", began)
        report.show("Chunks have not changed: after a change of `chunk`, add the documents again.")
        return 0

    after = "the collection has not changed; the same command continues the rebuild"
    return execute(partial(stoppable, work, report, after), report, debug=debug)


@click.command("export", short_help="Write a collection to a file.")
@click.argument("collection")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@options.common
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def export(
    collection: str, file: Path, app: Path, as_json: bool, debug: bool, overwrite: bool
) -> int:
    """Write COLLECTION to FILE as JSON lines: texts, vectors and fields, of all tenants.

    `-` is standard output; a file whose name ends in .gz is compressed. `kb import` reads it, on
    this engine or another.
    """
    report = Report(json=as_json)
    if file != STANDARD and file.is_file() and not overwrite:
        raise click.UsageError(f"{str(file)!r} exists and was not changed: --overwrite replaces it")
    if as_json and file == STANDARD:
        raise click.UsageError("--json and the export cannot both go to standard output")

    async def work() -> int:
        began = time.monotonic()
        async with open_host(app, tune_gc=True) as host:
            with (
                progress(
                    report, f"exporting {collection}", chunks, MofNCompleteColumn(), Rate()
                ) as update,
                _open_output(file) as out,
            ):
                done = await host.kb.export(collection, out, progress=update)
        if file != STANDARD:  # the exported lines are the only output there
            _show_result(
                report,
                asdict(done),
                f"Exported {_count_documents(done.documents, done.passages)} of {done.collection}",
                began,
            )
        return 0

    after = (
        f"nothing was written to {str(file)!r}" if file != STANDARD else "the file is incomplete"
    )
    return execute(partial(stoppable, work, report, after), report, debug=debug)


@click.command("import", short_help="Add what `kb export` wrote.")
@click.argument("collection")
@click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True)
)
@options.common
@click.option(
    "--embed", is_flag=True, help="Embed the texts again instead of using the file's vectors."
)
def import_(collection: str, file: Path, app: Path, as_json: bool, debug: bool, embed: bool) -> int:
    """Add to COLLECTION what `kb export` wrote to FILE (`-`: standard input).

    Documents that the collection already has unchanged are skipped, so an interrupted import can be
    repeated.
    """
    report = Report(json=as_json)

    async def work() -> int:
        began = time.monotonic()
        async with open_host(app, tune_gc=True) as host:
            with (
                progress(
                    report, f"importing {collection}", chunks, MofNCompleteColumn(), Rate()
                ) as update,
                _open_input(file) as stored,
            ):
                lines = await anyio.to_thread.run_sync(_text_of, stored)
                done = await host.kb.import_documents(
                    collection, lines, embed=embed, progress=update
                )
        new = _count_documents(done.documents, done.passages)
        unchanged = f", {done.unchanged} unchanged" if done.unchanged else ""
        text = f"Imported {new} into {done.collection}{unchanged}"
        _show_result(report, asdict(done), text, began)
        return 0

    after = "imported documents stay; the same command continues with the rest"
    return execute(partial(stoppable, work, report, after), report, debug=debug)


def _show_result(report: Report, done: dict[str, Any], text: str, began: float) -> None:
    if report.json:
        report.line(done)
    report.show(f"{text} in {duration((time.monotonic() - began) * 1000)}.")


def _count_documents(documents: int, passages: int) -> str:
    return f"{documents} document{'' if documents == 1 else 's'} ({chunks(passages)})"


def chunks(number: int) -> str:
    return f"{number} chunk{'' if number == 1 else 's'}"


@contextmanager
def _open_output(file: Path) -> Iterator[IO[str]]:
    """Yield a temporary file in the folder of the named one, and rename it when it is complete. A
    device or a pipe is written to directly and never replaced."""
    if file == STANDARD:
        yield as_utf8(sys.stdout)
        sys.stdout.flush()
        return
    there = file.resolve()  # a link keeps its place: its target is replaced
    is_file = there.is_file() or not there.exists()
    unfinished = there.with_name(f"{there.name}.part") if is_file else there
    try:
        with _open_file(unfinished, compressed=file.suffix == ".gz") as out:
            yield out
        if is_file:
            unfinished.replace(there)
    except OSError as exc:
        raise UsageError(f"{str(file)!r} cannot be written: {exc.strerror or exc}") from exc
    finally:
        if is_file:  # after an interruption; a complete file was renamed
            unfinished.unlink(missing_ok=True)


@contextmanager
def _open_input(file: Path) -> Iterator[io.BufferedReader]:
    try:
        with standard_input() if file == STANDARD else file.open("rb") as stored:
            yield stored
    except OSError as exc:
        raise UsageError(f"{str(file)!r} cannot be read: {exc.strerror or exc}") from exc


def _text_of(stored: io.BufferedReader) -> IO[str]:
    """Return the text of a stream, decompressed if it is compressed, whatever its name. Waits for
    the beginning of the stream."""
    compressed = stored.peek(2).startswith(GZIP)
    data = cast(
        "IO[bytes]", gzip.GzipFile(str(stored.name), fileobj=stored) if compressed else stored
    )
    return io.TextIOWrapper(data, encoding="utf-8-sig", newline="\n")


def _open_file(file: Path, *, compressed: bool) -> IO[str]:
    if compressed:
        # The default level takes ten times as long, for a file that is a sixth smaller.
        return cast("IO[str]", gzip.open(file, "wt", encoding="utf-8", compresslevel=3))
    return file.open("w", encoding="utf-8", newline="\n")
