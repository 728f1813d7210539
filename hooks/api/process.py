"""`Process(name, ...)`: a small set of functions that packages call by name. Any other name is an
error that lists them. Models are only read, under the permissions of the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from groundhook.core.errors import IngestError, UsageError, suggestion
from groundhook.core.hook_services import HookServices
from groundhook.core.readers.json_in_text import extract_json
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.search import RecordQuery
from groundhook.hooks.api.row import HostCall, kind_of, pad
from groundhook.hooks.markdown import markdown_to_html

PROCESSES = {
    "text.ExtractJSON": (
        "Return the first JSON value of a text, in a fenced block or anywhere, repaired where its"
        " form is slightly wrong; null without one, and for one that is cut."
    ),
    "text.HTMLToMarkdown": (
        "Convert HTML to Markdown, without scripts, styles, images and hidden text."
    ),
    "text.MarkdownToHTML": "Convert Markdown to HTML; HTML in it is shown as text.",
    "models.<id>.Find": "Return one record of a model by its primary key, or null.",
    "models.<id>.Get": "Return records of a model.",
    "scripts.<file>.<function>": "Call a function of the package's own file; return its value.",
    "agents.<assistant>.<file>.<function>": "Call the same, named with the package's id.",
}
TEXTS = tuple(name for name in PROCESSES if name.startswith("text."))
FIND, GET = "Find", "Get"
_OF_SCRIPTS = ('["scripts.', '["agents.')  # the beginning of a call's arguments


async def _run_process(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    name, *given = arguments or [None]
    if not isinstance(name, str):
        raise UsageError(
            f"{call.js}: the name must be text, not {kind_of(name)}",
            hint=f"known: {', '.join(PROCESSES)}",
        )
    # The names of Yao's processes are the same in any case.
    known = next((text for text in TEXTS if text.lower() == name.lower()), None)
    if known is not None:
        return json.dumps(await _run_text(known, services, given))
    parts = name.split(".")
    verb = next((verb for verb in (FIND, GET) if verb.lower() == parts[-1].lower()), None)
    if parts[0].lower() == "models" and len(parts) > 2:
        model = ".".join(parts[1:-1])
        if verb is None:
            hint = f"models are read only: models.{model}.{FIND}, models.{model}.{GET}"
            raise UsageError(f"{call.js}: {name!r} is not offered", hint=hint)
        return json.dumps(await _read_records(f"{call.js}: {name}", model, verb, services, given))
    if name.startswith(("scripts.", "agents.")) and len(parts) > 2:
        return json.dumps(await services.scripts.call(name, given))
    raise UsageError(f"{call.js}: {name!r} is not offered", hint=suggestion(name, tuple(PROCESSES)))


async def _run_text(name: str, services: HookServices, given: Sequence[Any]) -> Any:
    (text,) = pad(given, 1)
    if not isinstance(text, str):
        raise UsageError(f"Process: {name}: the argument must be text, not {kind_of(text)}")
    records = services.records
    try:
        if name == "text.ExtractJSON":
            return await records.parse(extract_json, text)
        if name == "text.MarkdownToHTML":
            return await records.parse(markdown_to_html, text)
        return await records.markdown(text)
    except IngestError as exc:
        raise IngestError(f"Process: {name}: {exc.message}", hint=exc.hint) from exc


async def _read_records(
    where: str, model: str, verb: str, services: HookServices, given: Sequence[Any]
) -> Any:
    if verb == GET:
        (query,) = pad(given, 1)
        return await services.records.get(
            _parse_query(where, model, {} if query is None else query)
        )
    id, query = pad(given, 2)
    if id is None or isinstance(id, (bool, list, Mapping)):
        raise UsageError(f"{where}: the primary key must be a number or text, not {kind_of(id)}")
    found = await services.records.get(
        _parse_query(where, model, {**_require_object(where, query), "record_id": id, "limit": 1})
    )
    return found[0] if found else None


def _parse_query(where: str, model: str, raw: Any) -> RecordQuery:
    """Return the query. An unknown key is an error: ignoring it would return other records."""
    fields = dict(_require_object(where, raw))
    orders = fields.get("orders")
    if isinstance(orders, list):
        fields["orders"] = [_rename_direction(order) for order in orders]
    try:
        query, unknown = validate_known(RecordQuery, {**fields, "model": model})
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"{where}: {dotted(path)}: {message}") from exc
    if unknown:
        raise UsageError(f"{where}: the query has an {unknown[0]}")
    return query


def _rename_direction(order: Any) -> Any:
    """Rename `option`, the direction of an order in the reference's query language."""
    if isinstance(order, Mapping) and "option" in order and "order" not in order:
        return {("order" if key == "option" else key): value for key, value in order.items()}
    return order


def _require_object(where: str, raw: Any) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where}: the query must be an object, not {kind_of(raw)}")
    return raw


async def _translate(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    (key,) = pad(arguments, 1)
    if not isinstance(key, str) or not key:
        raise UsageError(f"{call.js}: the key must be text, not {kind_of(key)}")
    found = services.records.text(key)
    return json.dumps(key if found is None else found)


ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="$L",
        doc=(
            "Return a text of the assistant's locales in the language of the turn, or the key if no"
            " locale has it."
        ),
        run=_translate,
        ts="(key: string): string",
    ),
    HostCall(
        js="Process",
        doc=f"Call a function by its name, one of {', '.join(PROCESSES)}; another name throws.",
        run=_run_process,
        effect=lambda arguments: arguments.startswith(_OF_SCRIPTS),
        ts="(name: string, ...args: any[]): any",
    ),
)
