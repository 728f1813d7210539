"""The format of `*.mod.yao` as a JSON Schema, which `docs/model.schema.json` publishes and
`groundhook check` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from groundhook.host.core.types.model_spec import ModelSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def model_schema() -> Mapping[str, Any]:
    """The schema of a model's file."""
    schema = ModelSpec.model_json_schema(mode="validation")
    del schema["properties"]["id"]  # said by the file's place
    return {"$schema": DIALECT, **schema, "title": "A database model: models/<name>.mod.yao"}


def misfits(said: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where a file is not what the schema says, and how in the words of JSON Schema."""
    from jsonschema import Draft202012Validator  # 40 ms, and only `groundhook check` asks

    for error in Draft202012Validator(dict(model_schema())).iter_errors(said):
        yield tuple(error.absolute_path), error.message
