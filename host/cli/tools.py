"""`groundhook tools`: the tools of an app's toolkits."""

from __future__ import annotations

import click

from groundhook.host.cli import tool_calls, tools_sync


@click.group("tools")
def command() -> None:
    """Tools of toolkits: list them, show one, call one; sync what they search, and show
    when that was done last."""


for other in (
    tool_calls.list_,
    tool_calls.show,
    tool_calls.call,
    tools_sync.sync,
    tools_sync.status,
):
    command.add_command(other)
