"""`groundhook tools sync` and `groundhook tools status`: the collections of toolkits and their
sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

import click
from rich.progress import MofNCompleteColumn

from groundhook.core.error_events import error_events
from groundhook.core.errors import HostError
from groundhook.core.types.events import Warned
from groundhook.core.types.sync import SyncProgress, SyncReport, SyncStatus
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.progress import Progressed, progress
from groundhook.host.cli.report import Report
from groundhook.host.cli.stopping import stoppable
from groundhook.host.cli.tables import table
from groundhook.host.output.tree import duration


@click.command("sync", short_help="Fill the collections of toolkits from their sources.")
@click.argument("toolkits", nargs=-1, metavar="[TOOLKIT]...")
@options.common
@options.clock
@click.option("--full", is_flag=True, help="List everything, and put every document again.")
@click.option(
    "--force", is_flag=True, help="Remove all records that no longer exist, however many."
)
@click.option("--events", is_flag=True, help="With --json, print the progress as well.")
def sync(
    toolkits: Sequence[str],
    app: Path,
    now: datetime | None,
    full: bool,
    force: bool,
    events: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Read new and changed records from the source of each TOOLKIT (default: all of them), and put
    them into its collections.

    An interrupted sync continues where it stopped. Records that the source no longer has are
    removed after a complete listing, unless they are suspiciously many. The exit code is 1 if a
    sync failed; earlier records stay searchable.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, now=now, tune_gc=True) as host:
            ids = [host.syncs.id_of(name) for name in toolkits] or host.syncs.ids()
            if not ids:
                report.show(
                    "No toolkit has anything to sync: a toolkit with a source is declared in"
                    " toolkits/<name>.toolkit.yao."
                )
            codes = [
                await _sync(host, id, report, full=full, force=force, events=events) for id in ids
            ]
        return max(codes, default=0)

    after = "records that were read stay; the same command continues from there"
    return execute(partial(stoppable, work, report, after), report, debug=debug)


async def _sync(
    host: Host, id: str, report: Report, *, full: bool, force: bool, events: bool
) -> int:
    began = time.monotonic()
    try:
        with progress(report, f"syncing {id}", str, MofNCompleteColumn()) as update:
            done = await host.syncs.run(
                id, full=full, force=force, progress=_show_progress(report, update, events=events)
            )
    except HostError as exc:
        for event in error_events(exc):
            report.failed(event)
        return FAILED
    for note in done.notes:
        report.warned(Warned(code="sync", message=f"{id}: {note}"))
    if report.json:
        report.line({"type": "sync", **asdict(done)})
    report.show(summary(done, (time.monotonic() - began) * 1000))
    return FAILED if done.failed else 0


def _show_progress(
    report: Report, update: Progressed | None, *, events: bool
) -> Callable[[SyncProgress], None]:
    def show(progress: SyncProgress) -> None:
        if update is not None:
            listing = "complete listing" if progress.mode == "full" else ""
            update(progress.done, progress.total, listing)
        if report.json and events:
            report.line({"type": "sync_progress", **asdict(progress)})

    return show


@click.command("status", short_help="Show when toolkits were synced, and what went wrong.")
@click.argument("toolkits", nargs=-1, metavar="[TOOLKIT]...")
@options.common
def status(toolkits: Sequence[str], app: Path, as_json: bool, debug: bool) -> int:
    """Show the state of the syncs of each TOOLKIT (default: of all that are synced)."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            syncs = host.syncs
            names = list(toolkits) or syncs.ids()
            found = [await syncs.status(name) for name in names]
        if report.json:
            for each in found:
                report.line(asdict(each))
        elif found:
            rows = [
                (
                    each.toolkit,
                    each.records,
                    _local_time(each.succeeded_at) or "never",
                    each.every or "by hand",
                    _state(each),
                )
                for each in found
            ]
            columns = ("toolkit", "records", "last sync", "every", "state")
            report.show(table(columns, rows, numbers=("records",)))
        else:
            report.show("No toolkit has anything to sync.")
        return 0

    return execute(work, report, debug=debug)


def _local_time(moment: str) -> str:
    """Return an ISO 8601 time as a date and a time of this machine's zone."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}" if moment else ""


def _state(status: SyncStatus) -> str:
    if status.running:
        return f"running in process {status.running}"
    if status.error:
        return f"failed {_local_time(status.failed_at)}: {status.error}"
    if status.interrupted:
        return "interrupted: the next sync continues"
    return "ok" if status.succeeded_at else "not synced yet"


def summary(done: SyncReport, ms: float) -> str:
    """`Synced catalogue: 80 datasets (3 added, 77 unchanged), in 1.2s.`"""
    outcomes = ("added", "changed", "unchanged", "removed", "folded", "failed")
    parts = [f"{number:,} {name}" for name in outcomes if (number := getattr(done, name))]
    if done.mode == "changes":
        parts.append("only changes were listed")
    if done.resumed:
        parts.append("continued")
    named = ", ".join(parts) or "nothing new"
    return f"Synced {done.toolkit}: {done.known:,} {done.noun} ({named}), in {duration(ms)}."
