"""Checks toolkits and the lists of them: unknown names, tools that do not exist or share a name,
collections that do not separate tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groundhook.core.errors import ConfigError, HostError, UnknownName
from groundhook.core.problems import Problem, problems_of
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.host.config import tree
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.locations import Path
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App
from groundhook.host.config.variables import variables_in
from groundhook.host.tools.toolkits import ListedTools, ToolkitOf

CONNECTOR = "connector:"  # before the id of a connector, in a value of a toolkit's file


def toolkit_problems(app: App, place: tree.FoundPath, toolkits: ToolkitOf) -> Iterator[Problem]:
    """Yield the problems of one toolkit's file."""
    try:
        document = read_document(place.path, place.shown)
        spec = app.toolkits.named(place.id)
    except HostError as exc:
        yield from problems_of(exc)
        return
    yield from document.warnings
    try:
        tools = toolkits(place.id).tools()
    except HostError as exc:
        yield from problems_of(exc)
        tools = ()
    collections: list[CollectionSpec] = []
    for path, name in _list_collections(document.data):
        try:
            collections.append(
                app.resolve_collection(spec.assistant, name, place=document.place(path))
            )
        except UnknownName as exc:
            yield from problems_of(exc)
        except ConfigError:
            continue  # reported by the check of that file
    for path, id in _list_connectors(document.data, ()):
        if app.connector_id(spec.assistant, id) not in app.connectors:
            at = document.place(path)
            yield from problems_of(UnknownName("connector", id, app.connectors, place=at))
    if spec.common.type == "documents":
        yield from _ranker_problems(spec, document)
    needing = [tool.name for tool in tools if "tenant" in tool.needs.parts]
    if needing and collections and not any(each.tenant_field for each in collections):
        yield _warn_of_tenants(spec, document, needing, collections)


def list_problems(app: App, package: Package, toolkits: ToolkitOf) -> Iterator[Problem]:
    """Yield the problems of the list of toolkits of one assistant: unknown tools, and tools of one
    name. Unknown toolkits are found with the other names of the file."""
    resolved = app.settings_for(package)
    listed = ListedTools.of(app, package.id, resolved.settings.tools, toolkits)
    place = resolved.place("tools")
    for problem in listed.problems.values():
        if isinstance(problem, UnknownName) and problem.message.startswith("no tool of "):
            yield Problem("error", problem.message, place, problem.hint, problem.code)
    for name, owners in listed.homonyms().items():
        offered = ", ".join(f"'{owner.rpartition('.')[2]}__{name}'" for owner in owners)
        yield Problem(
            "warning",
            f"{len(owners)} toolkits have a tool {name!r}; they are offered as {offered}",
            place,
            "'as' in their entries gives them other names",
            "tool_name",
        )


def _ranker_problems(spec: ToolkitSpec, document: ConfigDocument) -> Iterator[Problem]:
    """Yield a warning if nobody gets the messages of `ranker.prompts`, and for each variable in
    them: they are sent as they are written."""
    name, by = document.at(("ranker", "prompts")), document.at(("ranker", "by"), "builtin")
    if not name or not isinstance(name, str) or not isinstance(by, str):
        return
    place = document.place(("ranker", "prompts"))
    if by != "builtin" and not by.startswith((CONNECTOR, "$ENV.")):
        message = f"'ranker.prompts': {by!r} does not get them, only connectors do"
        hint = "remove them; an assistant has prompts of its own"
        yield Problem("warning", message, place, hint)
        return
    try:
        texts = [message.text for message in spec.prompts(name)]
    except HostError:  # the toolkit cannot be made, which is reported
        return
    for variable in (each for text in texts for each in variables_in(text)):
        message = f"nothing fills {variable!r} in the prompts {name!r} of a ranker"
        yield Problem("warning", message, place, "write them without variables")


def _warn_of_tenants(
    spec: ToolkitSpec, document: ConfigDocument, tools: list[str], collections: list[CollectionSpec]
) -> Problem:
    named = ", ".join(repr(each.id) for each in collections)
    key = "collections" if "collections" in document.data else "collection"
    return Problem(
        "error",
        f"{', '.join(tools)} of toolkit {spec.id!r} needs a tenant, and none of its collections"
        f" ({named}) has a tenant_field",
        document.place((key,)),
        "declare tenant_field in the collection's .kb.yao",
    )


def _list_collections(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the collections that a file names, under `collection` or `collections`."""
    one, several = data.get("collection"), data.get("collections")
    if isinstance(one, str):
        yield ("collection",), one
    if isinstance(several, Mapping):
        entries: list[tuple[str | int, Any]] = list(several.items())
    else:
        entries = list(enumerate(several)) if isinstance(several, list) else []
    for key, name in entries:
        if isinstance(name, str):
            yield ("collections", key), name


def _list_connectors(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the connectors that a file names anywhere, as `connector:<id>`."""
    if isinstance(value, str) and value.startswith(CONNECTOR):
        yield path, value.removeprefix(CONNECTOR)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_connectors(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _list_connectors(inner, (*path, place))
