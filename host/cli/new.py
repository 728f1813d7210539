"""`groundhook new`: creates an assistant that runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.text import Text

from groundhook.host.app.scaffold.packages import new_assistant
from groundhook.host.cli import options
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report


@click.group("new")
def command() -> None:
    """Create an assistant that runs."""


@command.command("assistant", short_help="Create an assistant with a collection, a hook and tests.")
@click.argument("id")
@options.common
def assistant(id: str, app: Path, as_json: bool, debug: bool) -> int:
    """Create the assistant ID: settings, a typed hook, a collection with a first document, and a
    test.

    ID is a name such as helper, or team.helper for assistants/team/helper. Existing files are not
    changed. In a folder that is not an app yet, the app's settings are created as well.
    """
    report = Report(json=as_json)

    async def work() -> int:
        written = new_assistant(app, id)
        for name in written:
            report.show(Text(f"  {name}"))
            if report.json:
                report.line({"file": name})
        report.show(Text("\nNext:\n" + "".join(f"  {line}\n" for line in _next_commands(app, id))))
        return 0

    return execute(work, report, debug=debug)


def _next_commands(app: Path, id: str) -> list[str]:
    """Return the next commands to type, each with its effect."""
    where = "" if app == Path() else f" --app {shlex.quote(str(app))}"
    documents = shlex.quote(str(app / "assistants" / id.replace(".", "/") / "docs"))
    add = f"groundhook kb add agents.{id}.{id.rpartition('.')[2]} {documents}{where}"
    ask = f'groundhook chat {id} "How do I add documents?"{where}'
    lines = (
        (f"{add} && {ask}", "read its documents, and ask"),
        (f"groundhook types{where}", "declare for your editor what a hook may use"),
        (f"groundhook check {id}{where}", "find mistakes; types need the extra authoring"),
        (f"groundhook test {id}{where}", "run its tests"),
    )
    # The first one is longer than the others, which stay narrow.
    width = max(len(line) for line, _ in lines[1:])
    return [f"{line:<{width}}   # {what}" for line, what in lines]
