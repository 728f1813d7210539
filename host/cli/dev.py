"""`groundhook dev`: an app's files are watched, and what is saved holds from the next turn on."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import click
from rich.text import Text

from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.app.reload import Swap
from groundhook.host.app.watching import Stamp, changes, stamps
from groundhook.host.cli import options
from groundhook.host.cli.chat import View
from groundhook.host.cli.check import count, report_problem
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.core.error_events import failures
from groundhook.host.core.errors import HostError
from groundhook.host.output.tree import duration

PIECE = 1 << 16  # bytes read from standard input at once


@click.command("dev")
@click.argument("assistant", required=False)
@options.common
@options.asker
@options.circumstances
def command(
    assistant: str | None,
    app: Path,
    user: str,
    team: str,
    tenant: str,
    chat: str | None,
    locale: str | None,
    metadata: dict[str, Any] | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Watch the app, and swap what is saved while turns go on.

    A turn in flight ends on what it began with. A broken file is reported, and its last good
    version stays. With ASSISTANT every line on standard input is a turn. Ctrl-C ends it, and so
    does the end of those lines: with 1 when a turn has failed.
    """
    report = Report(json=as_json)
    folder = str(app.absolute())
    asking = options.asking(
        user=user, team=team, tenant=tenant, chat=chat, locale=locale, metadata=metadata
    )

    async def work() -> int:
        code = 0

        async def converse(opened: Host, name: str, scope: anyio.CancelScope) -> None:
            nonlocal code
            failed = await _converse(name, asking, opened, report)
            if not _is_nowhere(
                sys.stdin.fileno()
            ):  # which is what a command in the background is given
                code = FAILED if failed else 0
                scope.cancel()

        async with (
            open_host(app, tune_gc=True) as host,
            host.runtime.hooks.keep_compiler(),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_until_interrupted, tasks.cancel_scope)
            if assistant is not None:
                host.app.package(assistant)
            seen = stamps(app)
            for problem in (await host.reload()).problems:
                report_problem(report, problem)
            report.show(
                f"watching {count(len(host.app.packages), 'assistant')} in {folder!r}; Ctrl-C ends"
                " this"
            )
            if report.json:
                report.line({"type": "watching", "assistants": list(host.app.packages)})
            tasks.start_soon(_watch, app, seen, host, report)
            if assistant is not None:
                tasks.start_soon(converse, host, assistant, tasks.cancel_scope)
            await anyio.sleep_forever()
        return code

    return execute(work, report, debug=debug)


async def _until_interrupted(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _watch(root: Path, seen: Mapping[Path, Stamp], host: Host, report: Report) -> None:
    async with aclosing(changes(root, seen)) as batches:
        async for paths in batches:
            swap = await host.reload(paths)
            _tell_swap(swap, sorted(path.relative_to(root).as_posix() for path in paths), report)


def _tell_swap(swap: Swap, files: list[str], report: Report) -> None:
    for problem in swap.problems:
        report_problem(report, problem)
    if swap.problems:
        report.show(Text("what was good last stays", "yellow"))
    for name in swap.repaired:
        report.show(Text(f"{name}: repaired", "green"))
    named = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    took = duration(swap.took_ms)
    for id in swap.assistants:
        report.show(f"{id}: swapped in {took} ({named})")
    for id in swap.removed:
        report.show(f"{id}: removed")
    if not swap.assistants and not swap.removed and not swap.problems:
        report.show(f"taken over in {took} ({named})")
    for key in swap.restart:
        report.show(Text(f"{key!r} was changed, which holds when this is started again", "yellow"))
    if report.json:
        report.line({"type": "swap", "files": files, **_as_json(swap)})


def _as_json(swap: Swap) -> dict[str, Any]:
    return {
        "assistants": swap.assistants,
        "removed": swap.removed,
        "broken": bool(swap.problems),
        "repaired": swap.repaired,
        "restart": swap.restart,
        "took_ms": swap.took_ms,
    }


async def _converse(assistant: str, asking: Mapping[str, Any], host: Host, report: Report) -> bool:
    """Every line that is typed is a turn, on what is good when it begins. Whether one has
    failed."""
    failed = False
    async for line in _lines():
        message = line.strip()
        if not message:
            continue
        try:
            async with host.stream(assistant, message, **asking) as events:
                with View(report, trace=False) as view:
                    async for event in events:
                        failed = failed or event.type == "error"
                        view.show(event)
        except HostError as exc:
            failed = True
            for event in failures(exc):
                report.failed(event)
    return failed


async def _lines() -> AsyncIterator[str]:
    """Lines of standard input as they are typed. No thread waits for them, so that nothing keeps
    the process at its end."""
    descriptor = sys.stdin.fileno()
    waits = not stat.S_ISREG(os.fstat(descriptor).st_mode) and not _is_nowhere(descriptor)
    held = b""
    while True:
        if waits:
            await anyio.wait_readable(descriptor)
        data = os.read(descriptor, PIECE)
        held += data
        *whole, held = held.split(b"\n")
        for line in [*whole, *([held] if not data and held else [])]:
            yield line.decode("utf-8", "replace")
        if not data:
            return


def _is_nowhere(descriptor: int) -> bool:
    """Whether it is /dev/null, which no event loop can wait for."""
    nowhere = Path(os.devnull).stat()
    return os.fstat(descriptor).st_rdev == nowhere.st_rdev and stat.S_ISCHR(
        os.fstat(descriptor).st_mode
    )
