"""JSON Schemas of `*.mod.yao` and of QueryDSL, for editors and authors of queries.

`python -m scripts.json_schemas` writes docs/model.schema.json and
docs/query.schema.json; a test compares them with `schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from groundhook.core.types.model_schema import DIALECT, model_schema
from groundhook.handlers.db.query.dsl import IS, OPERATORS, SYNONYMS, QueryDSL

MODEL, QUERY = Path("docs/model.schema.json"), Path("docs/query.schema.json")


def schemas() -> Mapping[Path, str]:
    """Return the text of each file."""
    query = QueryDSL.model_json_schema(mode="validation")
    operators = sorted({*OPERATORS, *filter(None, SYNONYMS), *IS})
    query["$defs"]["Where"]["properties"]["op"]["description"] = (
        f"In any case: {', '.join(operators)}"
    )
    documents = {
        MODEL: model_schema(),
        QUERY: {"$schema": DIALECT, **query, "title": "A query on one model"},
    }
    return {
        path: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for path, schema in documents.items()
    }


if __name__ == "__main__":
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
