"""`groundhook tools`: the tools of an app's toolkits."""

from __future__ import annotations

import click

from groundhook.host.cli import tool_calls


@click.group("tools")
def command() -> None:
    """Tools of toolkits: list them, show one, call one."""


for other in (tool_calls.list_, tool_calls.show, tool_calls.call):
    command.add_command(other)
