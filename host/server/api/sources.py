"""Endpoints of sources, to which citations link. A source is read with the reader's own identity,
so a link gives no access. Programs get JSON, browsers a page without script."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from anyio import to_thread
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from groundhook.core.errors import HostError, IngestError, SourceError, UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.search import Item
from groundhook.core.types.tables import Exported
from groundhook.core.unseen import clean
from groundhook.host.output.csv_text import csv_text
from groundhook.host.output.dialects.blocks import _Block, blocks_of_texts, plain_block
from groundhook.host.output.dialects.places import page_of
from groundhook.host.server.api.page_files import address
from groundhook.host.server.api.source_page import (
    ShownPassage,
    page_of_values,
    plain_page,
    record_page,
)
from groundhook.host.server.api.turns import wants_blocks
from groundhook.host.server.problems import Refused
from groundhook.host.server.reading import read_passages, read_record, record_title, shown_fields
from groundhook.host.server.serving import Call
from groundhook.host.turn.names import AssistantNames

log = logging.getLogger("groundhook")

# The style sheet alone.
SOURCE_POLICY = (
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; form-action 'none';"
    " base-uri 'none'"
)


async def document(call: Call) -> ASGIApp:
    """Return the text of a document as passages; those within the extent are marked."""
    collection = call.request.path_params["collection"]
    id = call.request.path_params["document"]
    start, end = _place(call, "start"), _place(call, "end")
    may_read(call, "kb", collection)
    items = await read_passages(call.serving.host, collection, id, call.caller.identity)
    title = items[0].title if items else id
    if call.wants_page:
        return _html(await _page_of(call, collection, title, items, (start, end)))
    marked = _cited(items, start, end)
    texts = _once(items, marked)
    blocks = await _blocks(call, collection, texts) if wants_blocks(call) else None

    def body() -> dict[str, Any]:
        passages: list[dict[str, Any]] = [
            {
                "content": item.content,
                "start": item.extent.start if item.extent else None,
                "end": item.extent.end if item.extent else None,
                "marked": each,
                **({"page": page} if (page := page_of(item.url)) else {}),
            }
            for item, each in zip(items, marked, strict=True)
        ]
        for passage, tree in zip(passages, blocks or (), strict=False):
            passage["blocks"] = tree
        return {"collection": collection, "document": id, "title": title, "passages": passages}

    return await _json(body)


async def _page_of(
    call: Call,
    collection: str,
    title: str,
    items: Sequence[Item],
    extent: tuple[int | None, int | None],
) -> str:
    """Return the page of a document; its text as it is written if no parser ends with it."""

    def values() -> list[dict[str, Any]]:
        marked = _cited(items, *extent)
        return [
            {"text": text, "marked": each, "page": page_of(item.url)}
            for item, text, each in zip(items, _once(items, marked), marked, strict=True)
        ]

    shown, style = await to_thread.run_sync(values), address("source.css")
    try:
        return str(await call.serving.readers.call(page_of_values, title, shown, style))
    except IngestError as exc:
        log.warning("a document of %r is shown as it is written: %s", collection, exc)
        plain = [ShownPassage(**each) for each in shown]
        return await to_thread.run_sync(plain_page, title, plain, style)


async def record(call: Call) -> ASGIApp:
    """Return a record, as the caller may see it."""
    model = call.request.path_params["model"]
    id = call.request.path_params["record"]
    host = call.serving.host
    may_read(call, "db", model)
    found = await read_record(host, model, id, call.caller.identity)
    spec = host.app.models.named(model)
    title = record_title(spec, found)
    if call.wants_page:
        return _html(record_page(title, shown_fields(spec, found), address("source.css")))
    body: dict[str, Any] = {"model": model, "record_id": id, "record": found}
    if wants_blocks(call):
        body.update(title=title, fields=shown_fields(spec, found))
    return await _json(lambda: body)


async def rows(call: Call) -> Response:
    """Return all rows of a table as CSV."""
    token = call.request.path_params["token"]
    try:
        found = await call.serving.tables.read(token, call.caller.identity)
    except SourceError as exc:
        log.warning("rows are not exported: %s", exc)
        raise Refused("storage", "the search failed") from exc
    return await csv_answer(found)


async def csv_answer(found: Exported) -> Response:
    """Return exported rows as a CSV file; headers say how many there are."""
    text = await to_thread.run_sync(csv_text, found.columns, found.rows)
    headers = {
        "content-disposition": 'attachment; filename="rows.csv"',
        "groundhook-rows": str(len(found.rows)),
        "groundhook-total": f"{'>=' if found.total_is == 'at_least' else ''}{found.total}",
    }
    return Response(text, media_type="text/csv", headers=headers)


async def _blocks(call: Call, collection: str, texts: Sequence[str]) -> list[list[_Block]]:
    """Return the blocks of passages; their texts as they are written if no parser ends with
    them."""
    try:
        found: list[list[_Block]] = await call.serving.readers.call(blocks_of_texts, texts)
    except IngestError as exc:
        log.warning("a document of %r is shown as it is written: %s", collection, exc)
        return [[plain_block(text)] for text in texts]
    return found


def _html(page: str) -> Response:
    return HTMLResponse(page, headers={"content-security-policy": SOURCE_POLICY})


def may_read(call: Call, kind: str, name: str) -> None:
    """Raise UnknownName for a source that no assistant of the caller may use. Authors of all
    assistants may read every source."""
    if call.caller.reaches_all:
        return
    host = call.serving.host
    for id in call.serving.offered(call.caller):
        with suppress(HostError):
            names = AssistantNames(host.app, id, host.settings(id))
            if (names.collection(name) if kind == "kb" else names.model(name)) == name:
                return
    raise UnknownName("source", name[:200], ())


def _place(call: Call, name: str) -> int | None:
    given = call.request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise UsageError(f"{name} must be a whole number")
    return int(given)


def _cited(items: Sequence[Item], start: int | None, end: int | None) -> list[bool]:
    """Return which passages have what is cited: those that have it whole, else those with a part
    of it. Passages repeat the end of the one before."""
    if start is None or end is None:
        return [False for _ in items]
    extents = [(each.start, each.end) if (each := item.extent) else (0, 0) for item in items]
    whole = [begin <= start and end <= ends for begin, ends in extents]
    return whole if any(whole) else [begin < end and start < ends for begin, ends in extents]


def _once(items: Sequence[Item], cited: Sequence[bool]) -> list[str]:
    """Return the texts of passages in which what two of them have is once: in the cited one, else
    in the first."""
    texts = [item.content for item in items]
    for n, (before, item) in enumerate(pairwise(items)):
        if before.extent is None or item.extent is None:
            continue
        size = before.extent.end - item.extent.start
        if size <= 0 or not before.content.endswith(item.content[:size]):
            continue
        if cited[n + 1] and not cited[n]:
            texts[n] = texts[n][: -len(item.content[:size])]
        else:
            texts[n + 1] = item.content[size:]
    return texts


async def _json(body: Callable[[], Any]) -> Response:
    """Answer with what `body` returns. In a thread: a document may have thousands of passages."""
    text = await to_thread.run_sync(lambda: line(_clean_all(body())))
    return Response(text, media_type="application/json")


def _clean_all(value: Any) -> Any:
    """Return a JSON value without the characters that no reader sees, as every other exit."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _clean_all(each) for key, each in value.items()}
    return [_clean_all(each) for each in value] if isinstance(value, list | tuple) else value
