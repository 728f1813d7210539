"""`groundhook tools list`, `show` and `call`: the tools of an app, for authors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.text import Text

from groundhook.core.errors import UnknownName, suggestion
from groundhook.core.types.events import Event, Failed, ToolProgress, Warned
from groundhook.core.types.tools import (
    Needs,
    ToolInfo,
    ToolOutcome,
    homonyms_of,
    nearest_first,
)
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.output.flow import visible

F = TypeVar("F", bound=Callable[..., Any])


def _assistant(command: F) -> F:
    return click.option(
        "--assistant",
        metavar="ID",
        help="The tools that this assistant lists, instead of those of every toolkit.",
    )(command)


@click.command("list", short_help="List the tools of the app, or those of an assistant.")
@_assistant
@options.common
def list_(assistant: str | None, app: Path, as_json: bool, debug: bool) -> int:
    """List the tools of every toolkit of the app, or those that an assistant offers to its
    model."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            tools = await host.tools(assistant=assistant, problem=_warn(report))
        for tool in tools if report.json else ():
            report.line(_line(tool))
        report.rows(
            ("tool", "canonical name", "needs", "description"),
            [(tool.name, tool.canonical, _needed(tool.needs), tool.description) for tool in tools],
        )
        if not tools:
            report.show("There are no tools.")
        return 0

    return execute(work, report, debug=debug)


@click.command("show", short_help="Show the arguments and the answer of a tool.")
@click.argument("name")
@_assistant
@options.common
def show(name: str, assistant: str | None, app: Path, as_json: bool, debug: bool) -> int:
    """Show what NAME does, who may use it, and the JSON Schemas of its arguments and answer."""
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            tools = await host.tools(assistant=assistant, problem=_warn(report))
        found = next((tool for tool in tools if name in (tool.name, tool.canonical)), None)
        if found is None:
            known = nearest_first(name, [each.canonical for each in tools])
            raise UnknownName(
                "tool", name, known, hint=homonyms_of(name, known) or suggestion(name, known)
            )
        if report.json:
            report.line(_line(found))
            return 0
        report.show(Text(visible(f"{found.canonical}: {found.description}")))
        report.show(f"offered as {found.name}")
        if needed := _needed(found.needs):
            report.show(f"needs {needed}")
        report.show("changes nothing" if found.reads_only else "may change something")
        for title, schema in (("arguments", found.parameters), ("answer", found.output)):
            if schema is not None:
                report.show(Text(f"\n{title}:\n{json.dumps(schema, indent=2, ensure_ascii=False)}"))
        return 0

    return execute(work, report, debug=debug)


@click.command("call", short_help="Call a tool, and print what it answers.")
@click.argument("name")
@click.argument("arguments", default="{}")
@_assistant
@options.identity_options
@click.option(
    "--scope", type=options.TextOption(), default="", metavar="S", help="Words of the scope."
)
@click.option(
    "--metadata", type=options.JsonObject(), metavar="JSON", help="Metadata of the request."
)
@click.option("--locale", type=options.LanguageTag(), metavar="L", help="Language.")
@click.option("--events", is_flag=True, help="Also print the events of the call.")
@options.common
def call(
    name: str,
    arguments: str,
    assistant: str | None,
    user: str,
    team: str,
    tenant: str,
    scope: str,
    metadata: dict[str, Any] | None,
    locale: str | None,
    events: bool,
    app: Path,
    as_json: bool,
    debug: bool,
) -> int:
    """Call NAME with ARGUMENTS, a JSON object, under the identity of the options.

    NAME is the name under which it is offered, or the canonical one: `catalogue.searchDatasets`.
    With --json the answer is one line: {name, result, text, error, items, warnings, duration_ms}.
    """
    report = Report(json=as_json)
    given = options.json_of("ARGUMENTS", arguments, """'{"query": "pears"}'""")
    if not isinstance(given, dict):
        raise click.UsageError('ARGUMENTS must be a JSON object, such as \'{"query": "pears"}\'')

    def happened(event: Event) -> None:
        if events and report.json:
            report.line(event)
        elif events and isinstance(event, ToolProgress):
            of = f" of {event.total:g}" if event.total is not None else ""
            report.err.print(Text(visible(f"{event.done:g}{of} {event.message}".rstrip())))
        if isinstance(event, Warned):
            report.warned(event)

    async def work() -> int:
        identity = {"user_id": user, "team_id": team, "tenant_id": tenant, "scope": scope}
        async with open_host(app, tune_gc=True) as host:
            outcome = await host.tool(
                name,
                given,
                identity=identity,
                assistant=assistant,
                metadata=metadata,
                locale=locale or "",
                events=happened,
            )
        if report.json:
            report.line(outcome.answer())
        elif outcome.error is not None:
            report.failed(Failed(code=outcome.code, message=outcome.error))
        else:
            text, notes = _answer(outcome)
            report.show(Text(visible(text)))
            if notes:  # beside the answer, which programs may read as JSON
                report.err.print(Text(visible(notes)), soft_wrap=True)
        return FAILED if outcome.error is not None else 0

    return execute(work, report, debug=debug)


def _answer(outcome: ToolOutcome) -> tuple[str, str]:
    """Return a result for people, and the sentences for models that follow the JSON in its text."""
    compact = json.dumps(outcome.result, ensure_ascii=False)
    if isinstance(outcome.result, str) or not outcome.text.startswith(compact):
        return outcome.text, ""
    notes = outcome.text.removeprefix(compact).strip()
    return json.dumps(outcome.result, ensure_ascii=False, indent=2), notes


def _warn(report: Report) -> Callable[[Warned], object]:
    return report.warned


def _line(tool: ToolInfo) -> Mapping[str, Any]:
    return {**asdict(tool), "needs": {**asdict(tool.needs), "identity": dict(tool.needs.parts)}}


def _needed(needs: Needs) -> str:
    """Return the requirements of a tool in words."""
    parts = [part if part == word else f"{part} ({word})" for part, word in needs.parts.items()]
    parts += [f"scope {' or '.join(needs.scopes)}"] if needs.scopes else []
    parts += [f"metadata.{key}" for key in needs.metadata]
    return ", ".join(parts)
