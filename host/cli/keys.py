"""`groundhook keys`: the keys of an app's server."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from groundhook.core.server_settings import READER_SCOPES, CitationStyle, ServerScope
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute_without_loop
from groundhook.host.cli.report import Report
from groundhook.host.cli.tables import table
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.packages import load_app
from groundhook.host.server.identity.keys import Key, KeyFile, hash_of, id_of, make_key, shown

DAY_S = 86400
_USED = tuple(scope for scope in get_args(ServerScope) if scope != "admin")  # allows nothing yet


@click.group("keys")
def command() -> None:
    """Keys of the app's server: add, list, revoke."""


@command.command("add", short_help="Make a key. It is shown once.")
@click.argument("name", type=options.TextOption(needed=True))
@options.common
@options.identity_options
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(ServerScope)),
    multiple=True,
    help=f"What it may do; may be repeated (default: {', '.join(READER_SCOPES)}).",
)
@click.option(
    "--assistant",
    "assistants",
    multiple=True,
    metavar="ID",
    help="Assistant that it may use; may be repeated (default: all that are offered).",
)
@click.option("--acts-for", is_flag=True, help="It may name the person that it asks for.")
@click.option(
    "--client", type=click.Choice(["openwebui"]), help="Send this client's events in chunks."
)
@click.option(
    "--citations",
    type=click.Choice(get_args(CitationStyle)),
    help="How clients of OpenAI's API and of pages are shown sources, such as links.",
)
@click.option("--days", type=click.IntRange(1, 36500), metavar="N", help="It ends after N days.")
def add(
    name: str,
    app: Path,
    user: str,
    team: str,
    tenant: str,
    scopes: tuple[ServerScope, ...],
    assistants: tuple[str, ...],
    acts_for: bool,
    client: str | None,
    citations: CitationStyle | None,
    days: int | None,
    as_json: bool,
    debug: bool,
) -> int:
    """Make a key called NAME. It is shown once; the server keeps its hash."""
    report = Report(json=as_json)

    def work() -> int:
        loaded = load_app(app, app_environment(app))
        # A misspelt name would make a key that reaches nothing, and only its user would notice.
        for id in assistants:
            loaded.package(id)
        made, now = make_key(), int(time.time())
        key = Key(
            id=id_of(made),
            hash=hash_of(made),
            name=name,
            user=user,
            team=team,
            tenant=tenant,
            scopes=scopes or READER_SCOPES,
            assistants=assistants or None,
            acts_for=acts_for,
            client=client or "",
            citations=citations,
            made=now,
            ends=now + days * DAY_S if days else 0,
        )
        KeyFile(loaded.state).add(key)
        if as_json:
            report.line({"name": name, "key": made})
        else:
            # In one line, also in a narrow terminal: it is there to be copied.
            report.out.print(made, soft_wrap=True, highlight=False)
            _show_what_it_lacks(key, report)
        return 0

    return execute_without_loop(work, report, debug=debug)


def _show_what_it_lacks(key: Key, report: Report) -> None:
    """Say on standard error what the key may not do: the page only shows less with it."""
    if lacked := [scope for scope in _USED if scope not in key.scopes]:
        options = " ".join(f"--scope {scope}" for scope in (*key.scopes, *lacked))
        message = f"It lacks the scopes {', '.join(lacked)}; a key with all of them: {options}"
        report.err.print(message, soft_wrap=True, highlight=False)


@command.command("list", short_help="List the keys, without their secrets.")
@options.common
def list_(app: Path, as_json: bool, debug: bool) -> int:
    """List the keys, without their secrets, with the day of their last use."""
    report = Report(json=as_json)

    def work() -> int:
        file = KeyFile(load_app(app, app_environment(app)).state)
        keys, uses = file.all(), file.uses()
        if as_json:
            for key in keys:
                report.line({**shown(key), "used": uses.get(key.id, "")})
        elif keys:
            rows = [
                (
                    key.name,
                    key.id,
                    "/".join(part for part in (key.tenant, key.team, key.user) if part),
                    " ".join(key.scopes),
                    _day(key.made),
                    uses.get(key.id, ""),
                    _day(key.ends),
                )
                for key in keys
            ]
            columns = ("name", "id", "identity", "scopes", "made", "used", "ends")
            report.show(table(columns, rows, ids=("id",)))
        else:
            report.show("There are no keys.")
        return 0

    return execute_without_loop(work, report, debug=debug)


@command.command("revoke", short_help="Remove a key.")
@click.argument("name", type=options.TextOption(needed=True))
@options.common
def revoke(name: str, app: Path, as_json: bool, debug: bool) -> int:
    """Remove the key called NAME; servers refuse it at once."""
    report = Report(json=as_json)

    def work() -> int:
        KeyFile(load_app(app, app_environment(app)).state).revoke(name)
        report.show(f"The key {name!r} is revoked.")
        return 0

    return execute_without_loop(work, report, debug=debug)


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else ""
