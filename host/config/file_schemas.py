"""JSON Schemas of the files that authors write, made from the models that validate them.

A schema has the keys of the documentation, and every other accepted spelling. It accepts the short
forms that the reader of files accepts: `true` for a source, the list alone for a section with one
list, a single name for a list of names, and `$ENV.NAME` for any value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from groundhook.core.settings import ListSection, SearchSettings
from groundhook.core.settings_files import AgentFile, PackageFile
from groundhook.core.source_settings import Sources, Switched
from groundhook.core.types.api_spec import ApiSpec
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.model_schema import DIALECT
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.toolkit_spec import ToolkitSettings
from groundhook.host.config.normalise import spellings

# The name of each kind, its files, and the model of their content.
KINDS: dict[str, tuple[str, type[BaseModel]]] = {
    "package": ("assistants/<path>/package.yao", PackageFile),
    "agent": ("agent/agent.yml", AgentFile),
    "search": ("agent/search.yao", SearchSettings),
    "model": ("models/<name>.mod.yao", ModelSpec),
    "kb": ("kb/<name>.kb.yao", CollectionSpec),
    "connector": ("connectors/<name>.conn.yao", ConnectorSpec),
    "api": ("apis/<name>.api.yao", ApiSpec),
    "mcp": ("mcps/<name>.mcp.yao", ServerSpec),
    "toolkit": ("toolkits/<name>.toolkit.yao", ToolkitSettings),
}

_VARIABLE = {"type": "string", "pattern": r"^\$ENV\."}
_OPEN = {"connector", "toolkit"}  # a type of connector or toolkit has keys of its own


def file_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file, one of KINDS."""
    files, model = KINDS[kind]
    schema = model.model_json_schema(by_alias=False)
    definitions = schema.pop("$defs", {})
    models = {each.__name__: each for each in _models(model, set())}
    made = {name: _add_short_forms(each, models.get(name)) for name, each in definitions.items()}
    whole = _add_spellings(schema, model)
    whole["properties"].pop("id", None)  # it follows from the file's path
    whole["properties"]["$schema"] = {"type": "string", "description": "For editors"}
    if kind in _OPEN:
        whole["additionalProperties"] = True
    return {"$schema": DIALECT, **whole, "title": files, **({"$defs": made} if made else {})}


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """Yield a model and those of its fields, at any depth."""
    if model in seen:
        return
    seen.add(model)
    yield model
    for info in model.model_fields.values():
        waiting: list[Any] = [info.annotation]
        while waiting:
            kind = waiting.pop()
            waiting += get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _models(kind, seen)


def _add_short_forms(schema: Mapping[str, Any], model: type[BaseModel] | None) -> dict[str, Any]:
    """Return the schema of a section, with the other forms in which it may be written."""
    if model is None or "properties" not in schema:
        return dict(schema)
    section = _add_spellings(schema, model)
    if issubclass(model, (Switched, Sources)):
        return {"anyOf": [section, {"type": "boolean"}]}
    if issubclass(model, ListSection):
        return {"anyOf": [section, {"type": "array"}, {"type": "string"}]}
    # The model also reads a short form.
    if any(
        each.info.mode == "before"
        for each in model.__pydantic_decorators__.model_validators.values()
    ):
        return {"anyOf": [section, {"not": {"type": "object"}}]}
    return section


def _add_spellings(schema: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an object with every accepted spelling of its keys."""
    properties = {name: _add_variable_form(each) for name, each in schema["properties"].items()}
    required = set(schema.get("required", ()))
    for spelling, name in spellings(model).items():
        if name in properties and spelling not in properties:
            properties[spelling] = {**properties[name], "description": f"The same as {name}"}
            required.discard(name)  # a file has one of the spellings
    made = {**schema, "properties": properties, "required": sorted(required)}
    return made if required else {key: made[key] for key in made if key != "required"}


def _add_variable_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be a variable, and a single name for a list."""
    kept = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    bare = {key: schema[key] for key in schema if key not in kept}
    kept.pop("title", None)
    if not bare or (bare.get("type") == "string" and not ({"enum", "pattern"} & bare.keys())):
        return {**kept, **bare}
    single = bare.get("type") == "array" and bare.get("items", {}).get("type") == "string"
    other = {"type": "string"} if single else _VARIABLE
    forms = bare["anyOf"] if bare.keys() == {"anyOf"} else [bare]
    return {**kept, "anyOf": [*forms, other]}
