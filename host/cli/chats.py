"""`groundhook chats`: the conversations that are kept, for the operator of the host."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import click
from rich.text import Text

from groundhook.core.errors import UsageError
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.turn import Message
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.chats.ports import ChatPage, KeptChat
from groundhook.host.cli import options
from groundhook.host.cli.check import count
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table
from groundhook.host.cli.view import View
from groundhook.host.output.dialects.kept import events_of
from groundhook.host.output.dialects.markdown import exported
from groundhook.host.output.flow import one_line
from groundhook.host.testing.evaluation.suite import (
    EvaluationRow,
    append_rows,
    assistant_of,
    read_suite,
)


@click.group("chats")
def command() -> None:
    """Conversations that are kept: list, show, export, purge."""


@command.command("list", short_help="List conversations, the last changed first.")
@options.common
@options.identity_options
@click.option("--assistant", type=options.TextOption(), metavar="A", help="Only those with A.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="At most N (50)."
)
def list_(
    app: Path,
    user: str,
    team: str,
    tenant: str,
    assistant: str | None,
    limit: int,
    as_json: bool,
    debug: bool,
) -> int:
    """List conversations, the last changed first: all of them, or those of --user and --tenant."""
    report = Report(json=as_json)
    owner = ChatOwner(tenant, user) if user or tenant else None

    async def work() -> int:
        page = ChatPage(limit=limit, assistant_id=assistant or "", archived=None)
        async with open_host(app, tune_gc=True) as host:
            found = await host.chats.upkeep.every(page, owner)
        if report.json:
            for each in found:
                report.line(_line(each))
        elif found:
            report.show(table(COLUMNS, [_row(each) for each in found], numbers=["messages"]))
        else:
            report.show("No conversations are kept.")
        return 0

    return execute(work, report, debug=debug)


COLUMNS = ("id", "assistant", "title", "messages", "changed", "user", "tenant")


def _row(kept: KeptChat) -> tuple[object, ...]:
    chat, owner = kept.chat, kept.owner
    changed = datetime.fromtimestamp(chat.changed_at / 1000).astimezone()
    when = changed.strftime("%Y-%m-%d %H:%M")
    return (chat.id, chat.assistant_id, chat.title, kept.messages, when, owner.user, owner.tenant)


def _line(kept: KeptChat) -> dict[str, object]:
    about = {"messages": kept.messages, "user": kept.owner.user, "tenant": kept.owner.tenant}
    return {**kept.chat.model_dump(mode="json"), **about}


@command.command("show", short_help="Show a conversation as it was shown live.")
@click.argument("id")
@options.common
@options.identity_options
def show(id: str, app: Path, user: str, team: str, tenant: str, as_json: bool, debug: bool) -> int:
    """Show the conversation ID: the branch that is shown, its questions and answers with their
    sources. --user and --tenant say whose, where two have the same id."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            owner = await _owner(host, id, user, tenant)
            path = await host.chats.conversations.path(owner, id)
        for message in path:
            if report.json:
                report.line(message)
            elif message.answer is None:
                report.show(Text(f"› {message.text}", "bold"))
            else:
                with View(report, trace=False) as view:
                    for event in events_of(message.answer):
                        view.show(event)
                report.show("")
        return 0

    return execute(work, report, debug=debug)


@command.command("export", short_help="Write a conversation as Markdown or JSON.")
@click.argument("id")
@options.common
@options.identity_options
@click.option(
    "--format",
    "format",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    help="markdown: citations are footnotes; json: the chat and its messages.",
)
def export(
    id: str,
    app: Path,
    user: str,
    team: str,
    tenant: str,
    format: str,
    as_json: bool,
    debug: bool,
) -> int:
    """Write the conversation ID to standard output: the branch that is shown."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            owner = await _owner(host, id, user, tenant)
            chat = await host.chats.chats.chat(owner, id)
            path = await host.chats.conversations.path(owner, id)
            package = host.app.packages.get(chat.assistant_id)
        if format == "json" or report.json:
            messages = [message.model_dump(mode="json") for message in path]
            report.line({"chat": chat.model_dump(mode="json"), "messages": messages})
        else:
            name = package.name if package and package.name else chat.assistant_id
            click.echo(exported(chat, path, name=name), nl=False)
        return 0

    return execute(work, report, debug=debug)


@command.command("purge", short_help="Remove conversations that have not changed for days.")
@options.common
@click.option(
    "--older-than",
    type=click.IntRange(0),
    required=True,
    metavar="DAYS",
    help="Remove those that were last changed so many days ago, or earlier.",
)
def purge(app: Path, older_than: int, as_json: bool, debug: bool) -> int:
    """Remove conversations that have not changed for DAYS days, with all that is kept of them, also
    what hooks remember of them (ctx.memory.chat). Conversations with a turn under way stay."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            removed = await host.conversations.purge(round(time.time() * 1000), older_than)
        if report.json:
            report.line({"removed": removed})
        report.show(f"Removed {count(removed, 'conversation')}.")
        return 0

    return execute(work, report, debug=debug)


@command.command("suite", short_help="Add the questions of unhelpful answers to a suite.")
@click.argument("suite", type=click.Path(path_type=Path))
@options.common
@click.option("--assistant", type=options.TextOption(), metavar="A", help="Only answers of A.")
def suite_(suite: Path, assistant: str | None, app: Path, as_json: bool, debug: bool) -> int:
    """Add a row to SUITE for every answer that a reader marked as not helpful: the question, the
    conversation before it, and the reader's comment. Write into each row what the answer must have;
    until then `groundhook eval` only measures it. Rows that the suite has are not added again.

    Without --assistant, a suite in assistants/<id>/tests gets the answers of that assistant.
    """
    report = Report(json=as_json)
    wanted = assistant or assistant_of(suite)

    async def work() -> int:
        known = _ids_in(suite)
        async with open_host(app, tune_gc=True) as host:
            rows = [row async for row in _unhelpful(host, wanted, suite) if row.id not in known]
        append_rows(suite, rows)
        for row in rows:
            if report.json:
                report.line(row.model_dump(mode="json", exclude_defaults=True))
            note = (f"  {one_line(row.note)}", "dim")
            report.show(Text.assemble("  ", one_line(row.question), note))
        report.show(f"Added {count(len(rows), 'row')} to {suite}.")
        return 0

    return execute(work, report, debug=debug)


def _ids_in(suite: Path) -> set[str]:
    return {row.id for row in read_suite(suite, suite.as_posix()).rows} if suite.exists() else set()


async def _unhelpful(host: Host, assistant: str, suite: Path) -> AsyncIterator[EvaluationRow]:
    """Yield a row for each unhelpful answer, without the names of its reader."""
    for owner, answer in await host.chats.upkeep.rated():
        by = answer.answer.assistant_id if answer.answer else ""
        if answer.feedback is None or answer.feedback.rating >= 0 or assistant not in ("", by):
            continue
        path = await host.chats.conversations.path(owner, answer.chat_id, answer.parent)
        if not path or not path[-1].text.strip():
            continue
        yield EvaluationRow(
            id=answer.id,
            question=path[-1].text,
            messages=[Message(role=each.role, content=each.text) for each in path[:-1]],
            assistant="" if by == assistant_of(suite) else by,
            note=f"not helpful: {answer.feedback.comment}".removesuffix(": "),
        )


async def _owner(host: Host, id: str, user: str, tenant: str) -> ChatOwner:
    """Return whose chat is meant. Raises UnknownName, and UsageError where two have the same
    id."""
    if user or tenant:
        return ChatOwner(tenant, user)
    # Programs may have chosen the same id for chats of two users.
    owners = await host.chats.upkeep.owners_of(id)
    if len(owners) > 1:
        users = ", ".join(repr(owner.user) for owner in owners)
        raise UsageError(
            f"there are {len(owners)} chats {id!r}, of the users {users}",
            hint="--user and --tenant say whose is meant",
        )
    return owners[0]
