"""The command `groundhook`: its commands by name, each loaded when it is used.

Only the module of the command that runs is imported, so that `groundhook --help` answers at once
and `chat` does not wait for what `kb add` needs. Exit codes: 0 done, 1 the turn or the check
failed, 2 wrong usage, 130 interrupted, 141 the reader of the output is gone.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence

import click

from groundhook.host.cli.streams import open_what_is_closed, replace_what_has_no_code

COMMANDS = {
    "chat": (
        "groundhook.host.cli.chat",
        "Chat with an assistant: it searches, answers and cites.",
    ),
    "chats": (
        "groundhook.host.cli.chats",
        "List, show, export and purge kept conversations.",
    ),
    "search": ("groundhook.host.cli.search", "Search the web, knowledge bases or databases."),
    "kb": (
        "groundhook.host.cli.kb",
        "Add, list and remove documents of knowledge bases; rebuild, export and import"
        " collections.",
    ),
    "db": (
        "groundhook.host.cli.db",
        "Import databases and files; create, load and compare tables of models.",
    ),
    "tools": (
        "groundhook.host.cli.tools",
        "List, show and call tools of toolkits; sync the collections that they search.",
    ),
    "mcp": ("groundhook.host.cli.mcp", "List and call MCP servers; serve the app as one."),
    "check": ("groundhook.host.cli.check", "Find mistakes in configuration, hooks and references."),
    "types": ("groundhook.host.cli.types", "Write TypeScript declarations of what a hook may use."),
    "schema": ("groundhook.host.cli.schema", "Print the JSON Schema of a kind of file."),
    "docs": ("groundhook.host.cli.docs", "Print a page of the documentation."),
    "new": ("groundhook.host.cli.new", "Create an assistant that runs."),
    "dev": ("groundhook.host.cli.dev", "Watch an app, and apply saved files while turns continue."),
    "serve": (
        "groundhook.host.cli.serve",
        "Serve the app over HTTP: its own API, and OpenAI's for chat clients.",
    ),
    "keys": ("groundhook.host.cli.keys", "Add, list and revoke keys of the app's server."),
    "test": ("groundhook.host.cli.test", "Run the tests of assistants, offline."),
    "eval": (
        "groundhook.host.cli.eval",
        "Score the answers to a suite of questions; compare a trial of other settings.",
    ),
    "config": (
        "groundhook.host.cli.config",
        "Show every setting of an assistant and which layer set it.",
    ),
}
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130


class _Commands(click.Group):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # What an import creates stays in use: looking for garbage in it takes a fifth of its time.
        gc.disable()
        try:
            command = importlib.import_module(COMMANDS[cmd_name][0]).command
        except ImportError as exc:
            raise click.ClickException(
                f"{cmd_name!r} cannot be loaded, the installation is incomplete: {exc}"
            ) from exc
        finally:
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as exc:
            raise click.NoSuchCommand(exc.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])


@click.group(cls=_Commands)
@click.version_option(package_name="groundhook", message="%(prog)s %(version)s")
def groundhook() -> None:
    """A host for chat assistants whose answers cite what they found."""


def main() -> None:
    """Run the command line of this process and exit. No command runs when its output could not be
    written."""
    # Pydantic looks for plug-ins of its own in all installed packages, 10 ms of each start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # noqa: TID251
    closed = sys.stdout is None
    open_what_is_closed()
    replace_what_has_no_code()
    code = _report_closed_output() if closed else run(sys.argv[1:])
    # The process ends anyway: without this, Python looks for garbage once more, which takes a
    # sixth of the time of `chat`.
    gc.freeze()
    sys.exit(code)


def _report_closed_output() -> int:
    from groundhook.core.types.events import Failed
    from groundhook.host.cli.report import Report

    hint = "to discard the output: > /dev/null"
    Report(json=False).failed(
        Failed(code="output", message="standard output cannot be written: it is closed", hint=hint)
    )
    return FAILED


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Usage errors are reported here, all others in
    `host.cli.edge`."""
    try:
        code = groundhook.main(args=list(arguments), prog_name="groundhook", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as exc:
        exc.show()
        return WRONG_USAGE
    except click.ClickException as exc:
        # Imported here because it takes four times as long as everything that `groundhook --help`
        # needs.
        from groundhook.host.cli.report import report_wrong_usage

        context = getattr(exc, "ctx", None)
        report_wrong_usage(
            exc.format_message(),
            context.command_path if context else "groundhook",
            json="--json" in arguments,
        )
        return exc.exit_code
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0
