"""`groundhook chat`: a conversation, or one turn of it, shown as it happens."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.types.events import Event
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.view import View


@click.command("chat")
@click.argument("assistant", required=False, default="")
@click.argument("message", type=options.TextOption(needed=True), required=False)
@options.common
@click.option(
    "--search/--no-search",
    "search",
    default=None,
    help="Force a search, or forbid it; overrides assistant and hook.",
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
@options.identity_options
@options.message_options
@options.clock
@click.option(
    "--attach",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    multiple=True,
    help="Attach a file to MESSAGE, or to the first question; repeat it for several.",
)
@click.option(
    "--trace",
    is_flag=True,
    help="Show the steps of the turn, their times, and its warnings at the end.",
)
def command(
    assistant: str,
    message: str | None,
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
    attach: tuple[Path, ...],
    trace: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Send MESSAGE to ASSISTANT, and watch it search, answer and cite. Without MESSAGE: a
    conversation, which is kept; --chat ID continues one. Without ASSISTANT, or where it is "": the
    app's default (uses.default).

    The answer and its sources are on standard output, warnings and errors on standard error. In a
    conversation, Ctrl-C stops an answer and Ctrl-D ends it; where standard input is not a terminal,
    each of its lines is a question.
    """
    report = Report(json=as_json)
    asking = options.request_arguments(
        user=user, team=team, tenant=tenant, chat=chat, locale=locale, metadata=metadata
    )
    overrides = {"search": search, "connector": connector or None}

    async def work() -> int:
        async with open_host(app, now=now, tune_gc=True) as host:
            named = host.app.assistant_or_default(assistant)
            if chat is not None:
                await _refuse_other_owner(host, tenant, user, chat)
            if message is None:
                failed = await _converse(
                    host, named, report, asking, overrides, attach=attach, trace=trace
                )
            else:
                question = options.with_files(message, attach)
                turn = await _turn(host, named, question, asking, overrides)
                failed = await _show(turn, report, trace=trace)
        return FAILED if failed else 0

    return execute(work, report, debug=debug)


async def _refuse_other_owner(host: Host, tenant: str, user: str, chat: str) -> None:
    """Raise UsageError for a kept chat of other users alone: a turn with its id would begin without
    its history. An id that nobody has is one that hooks know."""
    try:
        owners = await host.chats.upkeep.owners_of(chat)
    except UnknownName:
        return
    if any((owner.tenant, owner.user, owner.program) == (tenant, user, "") for owner in owners):
        return
    # Whoever runs this command may read every chat, so its owner is no secret.
    given = [("--tenant", owners[0].tenant), ("--user", owners[0].user)]
    options = " ".join(f"{name} {shlex.quote(id)}" for name, id in given if id)
    raise UsageError(
        f"the chat {chat!r} belongs to another user",
        hint=f"`{options}` continues it" if options else "without --user and --tenant it continues",
    )


async def _show(
    turn: AbstractAsyncContextManager[AsyncIterator[Event]], report: Report, *, trace: bool
) -> bool:
    """Show a turn and return whether it failed."""
    failed = False
    async with turn as events:
        with View(report, trace=trace) as view:
            async with view.telling_of_waits():
                async for event in events:
                    failed = failed or event.type == "error"
                    view.show(event)
    return failed


async def _turn(
    host: Host,
    assistant: str,
    question: str | list[dict[str, Any]],
    asking: Mapping[str, Any],
    overrides: Mapping[str, Any],
) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
    """Return the turn of one message: the next of the kept conversation that --chat names, else
    one that is not kept."""
    id = asking["options"].get("chat_id")
    if id is not None:
        with suppress(UnknownName):
            async with host.chat(assistant, identity=asking["identity"], chat_id=id) as chat:
                options = {**asking["options"]}
                del options["chat_id"]
                return chat.send(question, **overrides, options=options)
    messages = question if isinstance(question, str) else [{"role": "user", "content": question}]
    return host.stream(assistant, messages, **overrides, **asking)


async def _converse(
    host: Host,
    assistant: str,
    report: Report,
    asking: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    attach: Sequence[Path],
    trace: bool,
) -> bool:
    """Hold a conversation and return whether a turn of it has failed."""
    # Imported here because a single turn needs neither.
    from groundhook.host.cli.conversation import COMMANDS, TerminalConversation
    from groundhook.host.cli.prompt import opened_lines

    lines = opened_lines(host.app.state / "questions", list(COMMANDS), json=report.json)
    conversation = TerminalConversation(
        host,
        assistant,
        lines,
        report,
        asking=asking,
        overrides=overrides,
        attach=attach,
        trace=trace,
    )
    await conversation.run()
    return conversation.failed
