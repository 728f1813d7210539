"""The format of `*.mod.yao` as a JSON Schema, which `docs/model.schema.json` publishes and
`groundhook check` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from groundhook.core.types.model_spec import ModelSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def model_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a model's file."""
    schema = ModelSpec.model_json_schema(mode="validation")
    del schema["properties"]["id"]  # it follows from the file's path
    return {"$schema": DIALECT, **schema, "title": "A database model: models/<name>.mod.yao"}


def schema_errors(content: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (path, message) for each place where a file does not fit the schema; the messages are
    those of JSON Schema."""
    # 40 ms to import, and only `groundhook check` needs it
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(dict(model_schema())).iter_errors(content):
        yield tuple(error.absolute_path), error.message
