"""Writes `docs/package-reference.md`: every key of every file that authors write.

`python -m scripts.package_doc` writes it from the models of the files; a test
compares it with `document()`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from groundhook.host.config.file_schemas import KINDS
from scripts.document_text import cell, paragraph

DOCUMENT = Path("docs/package-reference.md")

_HEAD = """\
# Reference of files

<!-- Written by `make docs` from the models of the files. -->

Every key of every file, with its type, its default and what it does. `.yao` files are JSON with
comments and trailing commas; `agent.yml` is YAML. Keys may be written in camelCase as well;
`$ENV.NAME` in a text is the value of an environment variable. [Configuration](configuration.md)
explains how files are combined.

The same as JSON Schemas, for editors: `groundhook schema package > schemas/package.json`, and
`"$schema": "../../schemas/package.json"` as the first key of the file (or a mapping of file names
in the editor's settings). The key `$schema` is accepted in every file and has no other effect.
"""
_NOTES = {
    "connector": "Types have `options` of their own: see [models](models.md).",
    "toolkit": "Types have keys of their own: see [tools](tools.md).",
    "agent": (
        "The keys of `package.yao` are defaults for every assistant; `server` is described in"
        " [HTTP](http.md)."
    ),
}


def document() -> str:
    """Return the whole text."""
    return "\n".join([_HEAD, *(line for kind in KINDS for line in _kind(kind))])


def _kind(kind: str) -> Iterator[str]:
    files, model = KINDS[kind]
    schema = model.model_json_schema(by_alias=False)
    definitions = schema.get("$defs", {})
    yield f"## `{files}`\n"
    about = _sentence(schema.get("description", ""))
    yield paragraph(f"{about} `groundhook schema {kind}`.") + "\n"
    if kind in _NOTES:
        yield paragraph(_NOTES[kind]) + "\n"
    yield "| key | type | default | |"
    yield "|---|---|---|---|"
    for path, each in _leaves(schema, definitions, "", ()):
        if path != "id":
            default = cell(json.dumps(each["default"], ensure_ascii=False))
            shown = "" if each["default"] in ("", None, [], {}) else f"`{default}`"
            kinds = cell(_type(each, definitions))
            yield f"| `{path}` | {kinds} | {shown} | {cell(each.get('description', ''))} |"
    yield ""


def _leaves(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str, within: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys; those of sections are named by their paths."""
    for name, each in schema.get("properties", {}).items():
        full = f"{path}.{name}" if path else name
        reference = str(each.get("$ref", each.get("items", {}).get("$ref", ""))).rpartition("/")[2]
        section = definitions.get(reference, {})
        if "properties" in section and reference not in within:
            below = f"{full}[]" if "items" in each else full
            yield from _leaves(section, definitions, below, (*within, reference))
        else:
            yield full, {"default": None, **each}


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _type(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        kinds = (_type(each, definitions) for each in schema["anyOf"] if each != {"type": "null"})
        return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type", "")
    if kind == "array":
        items = _type(schema.get("items", {}), definitions)
        return f"list of {items}" if items else "list"
    return {"string": "text", "integer": "whole number", "boolean": "true/false", "": "any"}.get(
        str(kind), str(kind)
    )


def _sentence(text: str) -> str:
    joined = " ".join(text.split())
    return joined if joined.endswith(".") else f"{joined}."


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
