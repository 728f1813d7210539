"""Makes `groundhook.d.ts`: TypeScript declarations of everything a hook may use, for editors and
for the type check. They come from the table of host calls and the models of their arguments and
results, so that they cannot differ from the host. `hooks/globals.py` has the parts without a model:
the globals, the fields of `ctx`, the names that packages in the reference's dialect use. The names
of an app's collections, models and the like are passed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from inspect import getmembers, isclass
from pathlib import Path
from textwrap import indent
from typing import Any

from pydantic import BaseModel

from groundhook.core.types import search, turn
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.api.table import CALLS, ENGINE_GLOBALS, LAZY_GLOBALS, MISSING_ON_CTX
from groundhook.hooks.declare import Declarations, comment
from groundhook.hooks.globals import CONTEXT, DIALECT, GLOBALS, SHARED

GIVEN: tuple[Any, ...] = (
    turn.CreateReturn,
    turn.NextReturn,
    turn.TurnOptions,
    search.WebOptions,
    search.KBOptions,
    search.DBOptions,
)
RECEIVED: tuple[Any, ...] = (turn.Client, turn.Identity, turn.NextPayload)

SPECIAL = {
    ("KBOptions", "collections"): "CollectionName[]",
    ("KBOptions", "filter"): "Filter",
    ("KBOptions", "groups"): "number | boolean",
    ("DBOptions", "models"): "ModelName[]",
    ("RerankOptions", "agent"): "AssistantName",
    ("CreateReturn", "connector"): "ConnectorName | ConnectorName[]",
    ("CreateReturn", "mcp_servers"): "(ServerName | Record<string, any>)[]",
    ("CreateReturn", "tools"): "(ToolkitName | (string & {}) | Record<string, any>)[]",
    ("TurnOptions", "connector"): "ConnectorName | ConnectorName[]",
    ("Delegation", "agent_id"): "AssistantName",
    ("Message", "content"): "string | MessagePart[]",
    ("NextPayload", "messages"): "Message[]",
}

DOCUMENT = Path("docs/ctx.d.ts")  # of the file that `make docs` writes
_HEAD = """\
// What a hook of Groundhook may use: {whose}.
// Written by `groundhook types`; changes to this file are lost. In a hook:
//
//   import type {{ Context, CreateReturn, Message, NextPayload, NextReturn }} from "groundhook";

"""


@dataclass(frozen=True, kw_only=True)
class AppNames:
    """The names of an app's parts; a kind without names accepts any text."""

    collections: Sequence[str] = ()
    models: Sequence[str] = ()
    connectors: Sequence[str] = ()
    assistants: Sequence[str] = ()
    servers: Sequence[str] = ()
    toolkits: Sequence[str] = ()
    tools: Sequence[str] = ()


def typings(names: AppNames | None = None, calls: Sequence[HostCall] = CALLS) -> str:
    """Return the declarations, for the names of an app or for no app in particular."""
    given = names or AppNames()
    whose = "this app's names, and every call" if names else "every call"
    members = [_names(given), *_models(calls), SHARED, _context(calls), *_extra_types(calls)]
    inside = indent("\n".join(members), "  ", lambda line: bool(line.strip()))
    tests = (files("groundhook.hooks") / "testing.d.ts").read_text(encoding="utf-8")
    globals = list(_globals(_qualify_types(calls, inside)))
    values = re.findall(r"^declare (?:var|function) (\w+)", "\n".join(globals), re.MULTILINE)
    runtime = "".join(
        f"  export const {name}: typeof globalThis.{name};\n" for name in dict.fromkeys(values)
    )
    dialect = DIALECT.replace("@@values@@", runtime)
    parts = (
        _HEAD.format(whose=whose),
        f'declare module "groundhook" {{\n{inside}}}\n',
        *globals,
        dialect,
        tests,
    )
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _names(names: AppNames) -> str:
    kinds = (
        ("CollectionName", names.collections, "A knowledge base collection."),
        ("ModelName", names.models, "A database model."),
        ("ConnectorName", names.connectors, "A connector to a language model."),
        ("AssistantName", names.assistants, "An assistant."),
        ("ServerName", names.servers, "An MCP server."),
        ("ToolkitName", names.toolkits, "A toolkit."),
    )
    closed = "".join(
        f"{comment(doc)}export type {kind} = {_to_union(known)};\n" for kind, known, doc in kinds
    )
    tools = f"{_to_union(names.tools)} | (string & {{}})" if names.tools else "string"
    return (
        f"{closed}{comment('A tool; MCP servers may have others than are known here.')}export type"
        f" ToolName = {tools};\n"
    )


def _to_union(names: Sequence[str]) -> str:
    return " | ".join(json.dumps(name, ensure_ascii=False) for name in sorted(names)) or "string"


def _models(calls: Sequence[HostCall]) -> tuple[str, ...]:
    made = Declarations(SPECIAL)
    for annotation in RECEIVED:
        made.type_of(annotation, given=False)
    for annotation in (*GIVEN, *(call.options for call in calls)):
        made.type_of(annotation, given=True)
    for call in calls:
        made.type_of(call.result, given=False)
    for model in _named_models(calls):
        made.add(model, given=False)
    return made.texts


def _named_models(calls: Sequence[HostCall]) -> Iterator[type[BaseModel]]:
    """Yield the models that signatures of rows name."""
    known = {
        name: value for module in (search, turn) for name, value in getmembers(module, isclass)
    }
    words = dict.fromkeys(
        word for call in calls for word in re.findall(r"\b[A-Z]\w+", call.ts + call.types)
    )
    for word in words:
        model = known.get(word)
        if model is not None and issubclass(model, BaseModel) and model is not search.SearchRequest:
            yield model


def _extra_types(calls: Sequence[HostCall]) -> list[str]:
    """Return the additional declarations of rows, each text once."""
    texts = dict.fromkeys(call.types.strip("\n") + "\n" for call in calls if call.types)
    return [
        re.sub(r"^(?=interface|type|class)", "export ", text, flags=re.MULTILINE) for text in texts
    ]


# -------------------------------------------------------------------------------------------- calls


def _context(calls: Sequence[HostCall]) -> str:
    tree = _tree(call for call in calls if call.js.startswith("ctx.")).get("ctx", {})
    parts = "".join(
        f"{comment(f'Undefined here: {instead}.')}readonly {name}?: any;\n"
        for name, instead in MISSING_ON_CTX.items()
        if "." not in name
    )
    return f"{CONTEXT}{indent(parts + _body(tree), '  ')}}}\n"


def _globals(calls: Sequence[HostCall]) -> Iterator[str]:
    tree = _tree(call for call in calls if not call.js.startswith("ctx."))
    for name, node in tree.items():
        if isinstance(node, HostCall):
            signatures = _overloads(node) if _is_public(node) else ()
            yield from (
                f"{comment(node.doc)}declare function {name}{signature};\n"
                for signature in signatures
            )
        else:
            yield f"declare var {name}: {{\n{indent(_body(node), '  ')}}};\n"
    yield from (
        GLOBALS.get(name, f"declare var {name}: any;\n")
        for name in (*LAZY_GLOBALS, *ENGINE_GLOBALS)
    )


def _qualify_types(calls: Sequence[HostCall], inside: str) -> list[HostCall]:
    """Return the rows as declared outside the module, where its types carry the module's name."""
    words = "|".join(re.findall(r"^ *export (?:interface|type|class) (\w+)", inside, re.MULTILINE))
    named = re.compile(rf"(?<![\w.])(?:{words})\b")
    return [
        (
            replace(
                call, ts=named.sub(lambda word: f'import("groundhook").{word[0]}', _signature(call))
            )
            if _is_public(call)
            else call
        )
        for call in calls
    ]


def _is_public(call: HostCall) -> bool:
    """Return whether hooks may call it; a row without group and signature is only for the
    prelude."""
    return bool(call.group or call.ts)


def _tree(calls: Iterator[HostCall]) -> dict[str, Any]:
    """Return the rows by the parts of their names: {"ctx": {"search": {"Web": row}}}."""
    tree: dict[str, Any] = {}
    for call in calls:
        *steps, last = call.js.split(".")
        node = tree
        for step in steps:
            node = node.setdefault(step, {})
        if last.replace("$", "S").isidentifier() and not last.startswith("_"):
            node[last] = call
    return tree


def _body(tree: Mapping[str, Any]) -> str:
    text = ""
    for name, node in tree.items():
        if isinstance(node, HostCall):
            text += comment(node.doc) + "".join(
                f"{name}{signature};\n" for signature in _overloads(node)
            )
        else:
            text += f"readonly {name}: {{\n{indent(_body(node), '  ')}}};\n"
    return text


def _overloads(call: HostCall) -> list[str]:
    """Return what follows the name, one text for each overload."""
    return [line.strip().rstrip(";") for line in _signature(call).splitlines() if line.strip()]


def _signature(call: HostCall) -> str:
    if call.ts:
        return call.ts
    if call.prints:
        return "(...values: any[]): void"
    result = (
        "any" if call.result is None else Declarations(SPECIAL).type_of(call.result, given=False)
    )
    return f"(...args: any[]): {result}"


if __name__ == "__main__":
    DOCUMENT.write_text(typings(), encoding="utf-8")
