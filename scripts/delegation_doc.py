"""Writes the requests and answers in `docs/delegation.md` from `core.types.delegation`.

`python -m scripts.delegation_doc` writes them between the two marks in the file; a
test compares them with `section()`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from groundhook.core.types.uses import (
    USES,
    Use,
)
from scripts.document_text import paragraph

DOCUMENT = Path("docs/delegation.md")
BEGIN, END = (
    "<!-- Written by `make docs` from core/types/delegation.py. -->",
    "<!-- End of what `make docs` writes. -->",
)

_CONFIGURED = {
    "rewrite": "`uses.rewrite`; deadline `search.rewrite.timeout_ms`",
    "title": "`uses.title`; deadline 5 s",
    "keyword": "`uses.keyword`; deadline `search.keyword.timeout_ms`",
    "query": "`uses.query`; deadline `search.query.timeout_ms`",
    "rerank": "`uses.rerank` or `search.rerank`; deadline `search.rerank.timeout_ms`",
    "web": "`uses.web` or `search.web.provider`; deadline `search.web.timeout_ms`",
    "verify": "`uses.verify`; deadline `search.verify.timeout_ms`",
    "fetch": "`uses.fetch`; deadline `search.web.pages.timeout_ms`",
    "vision": "`uses.vision`; deadline `attachments.timeout_ms`",
    "entities": "`entities.extractor` of a collection",
}


def section() -> str:
    """Return the generated part, without its marks."""
    return "\n".join(line for use in USES for line in _use(use))


def with_section(document: str) -> str:
    """Return the document with the part replaced. Raises ValueError if it has no marks."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{DOCUMENT} has no {BEGIN}")
    return f"{before}{BEGIN}\n\n{section()}\n{END}{after}"


def _use(use: Use[Any, Any]) -> Iterator[str]:
    yield f"### {use.name}\n"
    yield paragraph(f"{use.asks.__doc__ or ''} {_CONFIGURED[use.name]}.") + "\n"
    names = ", ".join(f"`{name}`" for name in use.tools)
    yield paragraph(f"If only the server is configured, its tool is found by name: {names}.") + "\n"
    yield from _table("request", use.asks)
    yield paragraph(f"The answer is {use.answers.__doc__ or ''}") + "\n"
    yield from _table("answer", use.answers)
    yield "<details><summary>JSON Schema of both</summary>\n"
    schemas = _drop_titles(
        {"request": use.asks.model_json_schema(), "answer": use.answers.model_json_schema()}
    )
    yield f"```json\n{json.dumps(schemas, indent=1, ensure_ascii=False)}\n```\n"
    yield "</details>\n"


def _table(heading: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"| {heading} | type | |\n|---|---|---|"
    yield from _rows(model, "")
    yield ""


def _rows(model: type[BaseModel], path: str) -> Iterator[str]:
    schema = model.model_json_schema()
    for name, info in model.model_fields.items():
        other = [each for each in getattr(info.validation_alias, "choices", ()) if each != name]
        notes = [
            info.description or "",
            f"also accepted as {', '.join(f'`{each}`' for each in other)}" if other else "",
        ]
        optional = "" if info.is_required() else ", optional"
        yield (
            f"| `{path}{name}` | {_type(schema['properties'][name])}{optional} |"
            f" {'; '.join(filter(None, notes))} |"
        )
        for inner in _models_in(info.annotation):
            yield from _rows(inner, f"{path}{name}[].")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _drop_titles(schema: Any) -> Any:
    """Return the schema without titles, which only repeat the names of keys."""
    if isinstance(schema, dict):
        return {
            key: _drop_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_drop_titles(each) for each in schema] if isinstance(schema, list) else schema


def _type(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kind = str(field.get("type", "object"))
    return "list" if kind == "array" else kind


if __name__ == "__main__":
    DOCUMENT.write_text(with_section(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
