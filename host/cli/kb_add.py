"""`groundhook kb add` and `groundhook kb watch`: documents from files, folders or standard input,
and those of folders that change."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import anyio
import click
from rich.filesize import decimal
from rich.progress import DownloadColumn

from groundhook.core.error_events import error_events
from groundhook.core.errors import HostError
from groundhook.core.extras import extra
from groundhook.core.language.catalogue import language
from groundhook.core.types.events import Failed, Warned
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.app.watching import looks, stamp_of
from groundhook.host.cli import kb_move, options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.progress import progress, shortened
from groundhook.host.cli.report import Report
from groundhook.host.cli.stopping import cancel_on_signals, stoppable
from groundhook.host.cli.streams import standard_input
from groundhook.host.output.tree import duration

FEED = "-"

_Command = Callable[..., Any]


class Added(Protocol):
    """The result of an add, as the knowledge base reports it."""

    @property
    def collection(self) -> str: ...
    @property
    def files(self) -> Sequence[Any]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def undeclared(self) -> Sequence[str]: ...
    @property
    def failed(self) -> bool: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def chunks(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def unread(self) -> Sequence[str]: ...
    @property
    def language(self) -> str: ...
    @property
    def curve(self) -> Literal["measured", "published", "guessed"]: ...


# What the curve of its model (docs/embedding-models.md) says of a collection's searches.
_SURE = {
    "measured": "searches of it can be sure",
    "published": "how sure its searches are rests on published examples of its model, which"
    " `groundhook kb calibrate {}` measures",
    "guessed": "no search of it can be sure",
}


def _options(command: _Command) -> _Command:
    """Add the options that both commands have."""
    for option in (
        click.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Omit files and folders of this name in PATH, or of this path below it if it has a"
            " '/' (may be repeated).",
        ),
        click.option(
            "--prune/--no-prune",
            default=None,
            help="Remove documents whose files no longer exist in PATH (default: --prune, but"
            " --no-prune if all of them are missing).",
        ),
        click.option(
            "--tenant", default="", metavar="T", help="Tenant that the documents belong to."
        ),
        options.common,
    ):
        command = option(command)
    return command


@click.command("add", short_help="Add documents from files, folders or standard input.")
@click.argument("collection")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_options
def add(
    collection: str,
    paths: tuple[str, ...],
    app: Path,
    tenant: str,
    prune: bool | None,
    exclude: tuple[str, ...],
    as_json: bool,
    debug: bool,
) -> int:
    """Add files, and the files in folders, to COLLECTION: Markdown, text, HTML, PDF, DOCX and
    more, and the rows of CSV and JSON Lines files. `-` reads JSON from standard input: one object
    {id, title, content, url, …} per line, or an array of them.

    A changed document replaces its last version; an unchanged one is skipped. A document that was
    added from the same folder or file and no longer exists there is removed. The exit code is 1 if
    something could not be added; everything else was added.
    """
    report = Report(json=as_json)
    adding = _Adding(report, collection, _files(paths), tenant, prune, exclude)

    async def work() -> int:
        feed = standard_input() if FEED in paths else None
        async with open_host(app, tune_gc=True) as host:
            added, ms = await adding.add(host, feed)
        adding.show(added, ms)
        return FAILED if added.failed else 0

    after = "added documents stay; the same command continues with the rest"
    return execute(partial(stoppable, work, report, after), report, debug=debug)


@click.command("watch", short_help="Add documents, and go on with those that change.")
@click.argument("collection")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_options
def watch(
    collection: str,
    paths: tuple[str, ...],
    app: Path,
    tenant: str,
    prune: bool | None,
    exclude: tuple[str, ...],
    as_json: bool,
    debug: bool,
) -> int:
    """Add files and folders to COLLECTION as `kb add` does, and watch them: a file that is saved is
    added again, and the documents of one that is removed are removed. Ctrl-C ends it.

    A file is read once it has stopped changing, about a second after it was saved. One that cannot
    be added is reported, and tried again when it changes.
    """
    report = Report(json=as_json)
    if FEED in paths:
        raise click.UsageError("standard input cannot be watched: name files and folders")
    adding = _Adding(report, collection, _files(paths), tenant, prune, exclude)

    async def work() -> int:
        with extra("authoring", "watching files"):
            import_module("watchfiles")
        async with (
            open_host(app, tune_gc=True) as host,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(cancel_on_signals, tasks.cancel_scope, signal.SIGINT, signal.SIGTERM)
            await adding.watch(host)
        return 0

    return execute(work, report, debug=debug)


def _files(paths: Sequence[str]) -> list[Path]:
    if "" in paths:  # as a path it would be the current folder
        raise click.UsageError("a PATH is empty: is a variable of the shell not set?")
    return [Path(path) for path in paths if path != FEED]


class _Adding:
    """Adds the same files and folders to a collection, once or whenever they change."""

    def __init__(
        self,
        report: Report,
        collection: str,
        files: Sequence[Path],
        tenant: str,
        prune: bool | None,
        exclude: Sequence[str],
    ) -> None:
        self._report, self._collection, self._files = report, collection, files
        self._tenant, self._prune, self._exclude = tenant, prune, exclude

    async def add(self, host: Host, feed: BinaryIO | None = None) -> tuple[Added, float]:
        """Return the report of an add, and how long it took in ms. Raises HostError."""
        began = time.monotonic()
        doing = f"adding to {self._collection}"
        with progress(self._report, doing, decimal, DownloadColumn()) as update:
            added = await host.kb.add(
                self._collection,
                self._files,
                tenant=self._tenant,
                feed=feed,
                prune=self._prune,
                exclude=self._exclude,
                progress=update,
                delegates=host.delegates(warned=self._report.warned),
            )
        return added, (time.monotonic() - began) * 1000

    def show(self, added: Added, ms: float, *, changes_only: bool = False) -> None:
        """Show the report of an add; with `changes_only` nothing of what stayed as it was."""
        report = self._report
        for file in added.files:
            if report.json:
                if not (changes_only and _is_unchanged(file)):
                    report.line({"collection": added.collection, **asdict(file)})
            elif file.outcome == "failed":
                # Messages of most readers already name the file.
                place = "" if file.path in file.error else file.path
                report.failed(Failed(code="ingest", message=file.error, file=place))
        for note in (*added.notes, *unread(added.undeclared)):
            report.warned(Warned(code="ingest", message=note))
        report.show(summary(added, ms))

    async def watch(self, host: Host) -> None:
        """Add, and add again whenever a file was changed and no file has changed since the look
        before, until cancelled. Raises HostError of the first add."""
        # Before the first add, so that a file that is saved meanwhile is read again.
        seen = await anyio.to_thread.run_sync(self._stamps, host)
        self.show(*await self.add(host))
        self._report.show(f"watching {', '.join(map(str, self._files))}; Ctrl-C ends this")
        if self._report.json:
            self._report.line({"type": "watching", "paths": [str(path) for path in self._files]})
        waiting = False
        look = partial(anyio.to_thread.run_sync, self._stamps, host)
        async with aclosing(looks(self._folders, look, seen)) as changed:
            async for files in changed:
                if files:
                    waiting = True
                elif waiting:
                    waiting = False
                    await self._add_again(host)

    async def _add_again(self, host: Host) -> None:
        try:
            added, ms = await self.add(host)
        except HostError as exc:  # such as a folder that is gone, or a full disk
            for event in error_events(exc):
                self._report.failed(event)
            return
        if any(number for outcome, number in added.counts.items() if outcome != "unchanged"):
            self.show(added, ms, changes_only=True)

    def _folders(self) -> list[Path]:
        return [path for path in self._files if path.is_dir()]

    def _stamps(self, host: Host) -> dict[Path, tuple[int, int, int]]:
        """Return the files that an add would read now, with values that change when a file does."""
        try:
            found = host.kb.files(self._files, exclude=self._exclude)
        except HostError:  # a folder is gone: the add that follows has the reason
            return {}
        return {path: stamp for path in found if (stamp := stamp_of(path)) is not None}


def unread(names: Sequence[str]) -> Iterator[str]:
    """Yield the note about fields of documents that the collection does not declare."""
    if names:
        shown = ", ".join(repr(name) for name in names)
        yield (
            f"not kept, since no field declares them: {shown} (declare under `fields` the ones to"
            " filter by or show)"
        )


def summary(added: Added, ms: float) -> str:
    """Return `Added 3 documents to docs (41 chunks), 2 replaced, 1 failed in 1.2s.`"""
    counts = added.counts
    parts = [
        f"Added {_count(counts.get('added', 0))} to {added.collection}"
        f" ({kb_move.chunks(added.chunks)})"
    ]
    outcomes = ("replaced", "unchanged", "removed", "failed")
    parts += [f"{counts[outcome]} {outcome}" for outcome in outcomes if counts.get(outcome)]
    if added.skipped:
        named = ", ".join(map(shortened, added.unread)) + (
            ", …" if added.skipped > len(added.unread) else ""
        )
        parts.append(f"{added.skipped} skipped (of a kind that cannot be read: {named})")
    known = language(added.language)
    sure = _SURE[added.curve].format(added.collection)
    analysed = f" It is analysed as {known.name.capitalize()}; {sure}." if known else ""
    return f"{', '.join(parts)} in {duration(ms)}.{analysed}"


def _is_unchanged(file: Any) -> bool:
    return file.outcome == "unchanged" or (
        file.outcome == "read" and set(file.rows) <= {"unchanged"}
    )


def _count(number: int) -> str:
    return f"{number} document{'' if number == 1 else 's'}"
