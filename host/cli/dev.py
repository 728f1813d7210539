"""`groundhook dev`: watches an app's files; changes apply from the next turn on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import click
from rich.text import Text

from groundhook.core.error_events import error_events
from groundhook.core.errors import HostError
from groundhook.core.extras import extra
from groundhook.core.problems import Problem
from groundhook.core.types.events import Warned
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.app.reload import Swap
from groundhook.host.app.watching import Stamp, changes, stamps
from groundhook.host.cli import options
from groundhook.host.cli.check import count, report_problem
from groundhook.host.cli.conversation import COMMANDS, TerminalConversation
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.prompt import Lines, is_nowhere, opened_lines
from groundhook.host.cli.report import Report
from groundhook.host.cli.stopping import cancel_on_signals
from groundhook.host.output.tree import duration

Beside = Callable[[Callable[[], None]], Awaitable[None]]


@click.command("dev")
@click.argument("assistant", required=False)
@options.common
@options.identity_options
@options.message_options
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
    """Watch the app, and apply saved files while turns continue.

    A running turn keeps the files that it began with. A broken file is reported, and its last good
    version stays in use. The types of hooks are checked on every save.

    With ASSISTANT the command is also a conversation, like `groundhook chat ASSISTANT`; Ctrl-C
    stops an answer. If standard input is not a terminal, each of its lines is a question, and the
    command ends with the last one; the exit code is 1 if a turn failed.
    """
    report = Report(json=as_json)
    asking = options.request_arguments(
        user=user, team=team, tenant=tenant, chat=chat, locale=locale, metadata=metadata
    )

    async def work() -> int:
        code = 0
        # Before the command says that it watches.
        with extra("authoring", "watching files"):
            import_module("watchfiles")
        async with (
            open_host(app, tune_gc=True) as host,
            host.runtime.hooks.keep_compiler(),  # loading it takes most of the time of a swap
            anyio.create_task_group() as tasks,
        ):
            if assistant is not None:
                host.app.package(assistant)  # raises UnknownName before anything is printed
            lines = _open_lines(host, report) if assistant is not None else None
            typed = lines is not None and lines.typed
            # Where a person types, Ctrl-C belongs to the conversation.
            wanted = [signal.SIGTERM] if typed else [signal.SIGINT, signal.SIGTERM]
            tasks.start_soon(cancel_on_signals, tasks.cancel_scope, *wanted)
            # Before the first reading, so that a file saved during it is read again.
            seen = stamps(app)
            for problem in (await host.reload()).problems:
                report_problem(report, problem)
            _greet(host, app, report)
            watch = Watch(host, app, report, beside=lines.beside if lines else None)
            tasks.start_soon(watch.run, seen)
            if assistant is None or lines is None:
                await anyio.sleep_forever()
            else:
                conversation = TerminalConversation(host, assistant, lines, report, asking=asking)
                await conversation.run(create=True)
                # Without input, such as in the background, the command keeps watching.
                if not typed and is_nowhere(sys.stdin.fileno()):
                    await anyio.sleep_forever()
                code = FAILED if conversation.failed and not typed else 0
            tasks.cancel_scope.cancel()
        return code

    return execute(work, report, debug=debug)


def _open_lines(host: Host, report: Report) -> Lines:
    return opened_lines(host.app.state / "questions", list(COMMANDS), json=report.json)


def _greet(host: Host, app: Path, report: Report) -> None:
    folder = str(app.absolute())
    report.show(
        f"watching {count(len(host.app.packages), 'assistant')} in {folder!r}; Ctrl-C ends this"
    )
    if report.json:
        report.line({"type": "watching", "assistants": list(host.app.packages)})


async def _show_at_once(show: Callable[[], None]) -> None:
    show()


class Watch:
    """Reads saved files again and shows the result. `beside` shows something without disturbing the
    line that is being typed."""

    def __init__(self, host: Host, root: Path, report: Report, *, beside: Beside | None) -> None:
        self._host, self._root, self._report = host, root, report
        self._beside = beside or _show_at_once
        self._type_errors: dict[str, list[Problem]] = {}  # those shown last, by assistant

    async def run(self, seen: dict[Path, Stamp]) -> None:
        """Watch until the task is cancelled."""
        async with aclosing(changes(self._root, seen)) as batches:
            async for paths in batches:
                swap = await self._host.reload(paths)
                files = sorted(path.relative_to(self._root).as_posix() for path in paths)
                await self._beside(partial(_show_swap, swap, files, self._report))
                # After the swap, which does not wait for the types: they take longer.
                await self._check_types(swap.assistants)

    async def _check_types(self, assistants: Iterable[str]) -> None:
        """Show the type errors in the hooks of the assistants that were swapped."""
        for id in assistants:
            try:
                found = [each for each in await self._host.check(id) if _is_type_error(each)]
            except HostError as exc:  # such as an extra that is not installed
                await self._beside(partial(self._show_failure, exc))
                return
            before, self._type_errors[id] = self._type_errors.get(id, []), found
            await self._beside(partial(self._show_types, id, found, mended=bool(before)))

    def _show_failure(self, exc: HostError) -> None:
        # As a warning: the swap has succeeded.
        for event in error_events(exc):
            self._report.warned(Warned(code=event.code, message=event.message, hint=event.hint))

    def _show_types(self, id: str, found: list[Problem], *, mended: bool) -> None:
        for problem in found:
            report_problem(self._report, problem)
        if mended and not found:
            self._report.show(Text(f"{id}: types fit again", "green"))


def _is_type_error(problem: Problem) -> bool:
    return problem.code.startswith("TS")


def _show_swap(swap: Swap, files: list[str], report: Report) -> None:
    for problem in swap.problems:
        report_problem(report, problem)
    if swap.problems:
        report.show(Text("the last good version stays in use", "yellow"))
    for name in swap.repaired:
        report.show(Text(f"{name}: repaired", "green"))
    named = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    took = duration(swap.took_ms)
    for id in swap.assistants:
        report.show(f"{id}: swapped in {took} ({named})")
    for id in swap.removed:
        report.show(f"{id}: removed")
    if not swap.assistants and not swap.removed and not swap.problems:
        report.show(f"reloaded in {took} ({named})")
    for key in swap.restart:
        report.show(Text(f"{key!r} was changed; restart this command to apply it", "yellow"))
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
