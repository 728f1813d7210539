"""`groundhook schema`: JSON Schemas of the files that authors write, for editors."""

from __future__ import annotations

import json

import click

from groundhook.host.cli.edge import print_text
from groundhook.host.config.file_schemas import KINDS, file_schema


@click.command("schema", epilog=f"KIND is one of {', '.join(KINDS)}.")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
def command(kind: str) -> int:
    """Print the JSON Schema of a kind of file.

    Save it and name it in a file's "$schema" or in the settings of your editor, which then
    completes and describes keys. `groundhook check` uses the same models.
    """
    return print_text(json.dumps(file_schema(kind), indent=2, ensure_ascii=False) + "\n")
