"""Converts the table of endpoints to an OpenAPI 3.1 document. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from groundhook.core.types.base import Value
from groundhook.host.server.problems import KINDS
from groundhook.host.server.serving import Endpoint

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_REF = "#/components/schemas/{model}"


def openapi_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document, with the paths in the order of the table."""
    schemas: dict[str, Any] = {"Problem": _problem()}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Groundhook", "version": version("groundhook")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, path: str, schemas: dict[str, Any]) -> dict[str, Any]:
    name = path.strip("/").replace("/", "_").replace(".", "_") or "index"
    operation: dict[str, Any] = {
        "summary": endpoint.about,
        "operationId": f"{endpoint.method.lower()}_{re.sub(r'[{}]', '', name)}",
        "parameters": _parameters(endpoint),
        "responses": {
            str(endpoint.status): {"description": "Done", **_content(endpoint.answer, schemas)},
            "default": {
                "description": "A problem",
                "content": {
                    "application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}
                },
            },
        },
        "security": [] if endpoint.open else [{"key": [endpoint.scope] if endpoint.scope else []}],
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, **_content(endpoint.body, schemas)}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string"}
    inside = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _PARAMETER.findall(endpoint.path)
    ]
    wanted = [
        {"name": name, "in": "query", "description": about, "schema": text}
        for name, about in endpoint.query
    ]
    return [*inside, *wanted]


def _content(model: type[Value] | None, schemas: dict[str, Any]) -> dict[str, Any]:
    if model is None:
        return {}
    schema = model.model_json_schema(ref_template=_REF)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {
        "content": {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
    }


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "code": {"type": "string", "enum": list(KINDS)},
            "request": text,
        },
    }
