"""`groundhook chat`: one turn of a conversation, shown as it happens."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import DEBUG_HINT, FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.core.types.events import Event, Failed

if TYPE_CHECKING:
    from groundhook.host.output.terminal import Terminal


@click.command("chat")
@click.argument("assistant")
@click.argument("message", type=options.Words(needed=True))
@options.common
@click.option(
    "--search/--no-search",
    "search",
    default=None,
    help="Force a search, or forbid it, whatever assistant and hook choose.",
)
@click.option(
    "--connector",
    metavar="ID",
    multiple=True,
    help=(
        "Language model to use instead of the assistant's; repeat it to name models to fall back"
        " on."
    ),
)
@options.asker
@options.circumstances
@options.clock
@click.option(
    "--trace",
    is_flag=True,
    help="Show the steps of the turn, their times, and its warnings at the end.",
)
def command(
    assistant: str,
    message: str,
    app: Path,
    search: bool | None,
    connector: tuple[str, ...],
    user: str,
    team: str,
    tenant: str,
    chat: str | None,
    locale: str | None,
    metadata: dict[str, Any] | None,
    now: datetime | None,
    trace: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Send MESSAGE to ASSISTANT, and watch it search, answer and cite.

    The answer and its sources are on standard output, warnings and errors on standard error.
    """
    report = Report(json=as_json)
    asking = options.asking(
        user=user, team=team, tenant=tenant, chat=chat, locale=locale, metadata=metadata
    )

    async def work() -> int:
        failed = False
        async with (
            open_host(app, now=now, tune_gc=True) as host,
            host.stream(
                assistant, message, search=search, connector=connector or None, **asking
            ) as events,
        ):
            with View(report, trace=trace) as view:
                async for event in events:
                    failed = failed or event.type == "error"
                    view.show(event)
        return FAILED if failed else 0

    return execute(work, report, debug=debug)


class View:
    """Shows events as JSON lines or in the terminal; leaving it ends the line of the answer."""

    def __init__(self, report: Report, *, trace: bool) -> None:
        self._report = report
        self._trace = trace

    @cached_property
    def _terminal(self) -> Terminal:
        # Imported here because JSON lines need no terminal.
        from groundhook.host.output.terminal import Terminal

        return Terminal(self._report.out, self._report.err, trace=self._trace)

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._report.json:
            self._terminal.close()

    def show(self, event: Event) -> None:
        if isinstance(event, Failed) and event.code == "internal":
            event = event.model_copy(update={"hint": DEBUG_HINT})
        if not self._report.json:
            self._terminal.show(event)
        elif isinstance(event, Failed):
            self._report.failed(event)
        else:
            self._report.line(event)
