"""The formats of `*.mod.yao` and of QueryDSL as JSON Schemas, for editors and for those who write queries.

`python -m handlers.db.published` writes docs/model.schema.json and docs/query.schema.json; a test compares them with `schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from handlers.db.dsl import IS, OPERATORS, SYNONYMS, QueryDSL
from host.types.specs import ModelSpec

MODEL, QUERY = Path("docs/model.schema.json"), Path("docs/query.schema.json")


def schemas() -> Mapping[Path, str]:
    """The text of each file."""
    model, query = _schema(ModelSpec, "A database model: models/<name>.mod.yao"), _schema(QueryDSL, "A query on one model")
    del model["properties"]["id"]  # said by the file's place
    operators = sorted({*OPERATORS, *filter(None, SYNONYMS), *IS})
    query["$defs"]["Where"]["properties"]["op"]["description"] = f"In any case: {', '.join(operators)}"
    return {path: json.dumps(said, indent=2, ensure_ascii=False) + "\n" for path, said in ((MODEL, model), (QUERY, query))}


def _schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    said = model.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **said, "title": title}


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
