"""Reads sources outside of turns, with the identity of the reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from groundhook.core.errors import NotPermitted, SourceNotConfigured, UnknownName
from groundhook.core.json_lines import as_json
from groundhook.core.ports import Scope
from groundhook.core.settings import Settings
from groundhook.core.types.model_spec import ModelSpec, fill_title
from groundhook.core.types.search import Item, RecordQuery
from groundhook.core.types.turn import Identity
from groundhook.host.app.collections import owned_scope
from groundhook.host.app.host import Host
from groundhook.host.turn.context import Request, RunContext, search_scope
from groundhook.host.turn.stream import call_assistant


def reading_scope(host: Host, identity: Identity, settings: Settings | None = None) -> Scope:
    """Return the scope of reading a source with an identity. `settings` are those of an assistant
    (None: the app's)."""

    async def warn(code: str, message: str) -> None: ...

    request = Request(assistant_id="", messages=(), identity=identity)
    context = RunContext(runtime=host.runtime, turn_id="")
    return search_scope(context, request, settings or host.settings(), call_assistant, warn)


async def read_passages(host: Host, collection: str, id: str, identity: Identity) -> Sequence[Item]:
    """Return a document as passages. Raises UnknownName, with the same message for a document that
    does not exist and for one that the identity may not see."""
    scope, declared = reading_scope(host, identity), host.app.collections
    for owner in host.owners_of(collection):
        with suppress(NotPermitted, SourceNotConfigured, UnknownName):
            own = scope  # of the collection of a plug-in's source
            if collection in declared:
                own = owned_scope(declared[collection], owner, scope)
            return (await host.runtime.documents.fetch_document(collection, id, own)).items
    raise UnknownName("document", id[:200], ())


async def read_record(host: Host, model: str, id: str, identity: Identity) -> dict[str, Any]:
    """Return the record of a model with this primary key. Raises UnknownName, with the same message
    for a record that does not exist and for one that the identity may not see."""
    try:
        spec = host.app.models.named(model)
        query = RecordQuery(model=model, record_id=_key(spec, id), limit=1)
        records = await host.runtime.records.records(query, reading_scope(host, identity))
    except (NotPermitted, SourceNotConfigured, UnknownName):
        records = []
    if not records:
        raise UnknownName("record", id[:200], ())
    return records[0]


def shown_fields(spec: ModelSpec, record: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a record that have a value, by their labels, as text for readers."""
    labels = {column.name: column.label or column.name for column in spec.columns}
    return {
        labels.get(name, name): _text(value)
        for name, value in record.items()
        if value not in (None, "")
    }


def record_title(spec: ModelSpec, record: dict[str, Any]) -> str:
    """Return what stands for a record, as in the results of a search."""
    texts = {name: _text(value) for name, value in record.items() if value is not None}
    titled = fill_title(spec.titled, texts) if spec.titled else ""
    key = " / ".join(texts.get(name, "") for name in spec.keys)
    return titled or f"{spec.name or spec.id} {key}".strip()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return as_json(value) if isinstance(value, (dict, list)) else str(value)


def _key(spec: ModelSpec, text: str) -> Any:
    """Return a primary key in the type of its column. Raises UnknownName for one that the column
    cannot have."""
    key = next(each for each in spec.columns if each.primary or each.type == "ID")
    if len(spec.keys) > 1 or key.type not in ("ID", "integer", "bigInteger"):
        return text
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise UnknownName("record", text[:200], ())
    return int(text)
