"""Requests the APIs that a message refers to (`apis/<id>.api.yao`); entries of the answer become
items. Reading an answer is pure.

The request goes through the guarded client: to the host of the file and to those that it lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from groundhook.core.addresses import address
from groundhook.core.errors import (
    NotPermitted,
    SourceError,
    SourceMalformed,
    SourceTimeout,
)
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import SourceResult, Warn
from groundhook.core.settings import HttpSettings
from groundhook.core.trace import span
from groundhook.core.types.api_spec import ApiSpec, fill, fill_address
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Identity
from groundhook.host.web_client.clients import WebClients

_ABSENT = object()


async def read_api(
    clients: WebClients, spec: ApiSpec, question: str, locale: str, identity: Identity, warn: Warn
) -> SourceResult:
    """Send the request of an API and return the items of its answer, in its order. Raises
    NotPermitted, before anything is sent, where the identity lacks an id that the file names;
    SourceError and its kinds for everything that can go wrong with the answer."""
    values: dict[str, str | int] = {
        "question": question,
        "limit": spec.max_results,
        "locale": locale,
        "user_id": identity.user_id,
        "team_id": identity.team_id,
        "tenant_id": identity.tenant_id,
    }
    url = fill_address(spec.url, values)
    query, body = fill(spec.query, values), fill(spec.body, values)
    headers = {name: str(each) for name, each in fill(spec.headers, values).items()}
    client = clients.of(
        HttpSettings(hosts=(spec.host, *spec.hosts), timeout_ms=spec.timeout_ms, max_kb=spec.max_kb)
    )
    # The trace shows neither the query nor the headers, which may contain keys.
    with span("http", f"{spec.method} {url.partition('?')[0]}") as node:
        try:
            answer = await client.request(spec.method, url, query=query, headers=headers, json=body)
        except NotPermitted as exc:
            raise NotPermitted(exc.message, hint=_describe_source(spec, "hosts")) from exc
        except SourceTimeout as exc:
            raise SourceTimeout(exc.message, hint=_describe_source(spec, "timeout_ms")) from exc
        node.data.update(status=answer.status, bytes=len(answer.body))
    host = repr(urlsplit(url).netloc)
    if not 200 <= answer.status < 300:
        hint = "see its 'headers'" if answer.status in (401, 403) else ""
        raise SourceError(f"{host} answered with status {answer.status}", hint=hint)
    try:
        value = read_json(answer.body, nan=True)
    except NotJson as exc:
        kind = answer.headers.get("content-type", "").partition(";")[0] or "no content type"
        raise SourceMalformed(f"{host} did not answer with JSON ({kind})") from exc
    entries = _find_entries(value, spec, host)
    items = tuple(_make_items(entries[: spec.max_results], spec))
    if entries and not items:
        await warn("api_empty", f"no entry of {host} has a text at {_join_paths(spec)}")
    return SourceResult(items=items)


def _describe_source(spec: ApiSpec, key: str) -> str:
    return f"see {key!r} in the file of the API {spec.id!r}"


def _find_entries(value: Any, spec: ApiSpec, host: str) -> list[Any]:
    """Return the entries of an answer. Raises SourceMalformed where there is no list of them; one
    object counts as a list with one entry."""
    found = value_at(value, spec.items)
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return [found]
    what = "nothing" if found in (_ABSENT, None) else f"a {type(found).__name__}"
    place = f"at {spec.items!r}" if spec.items else "as its answer"
    raise SourceMalformed(
        f"{host} has {what} {place}, not a list of entries", hint=_describe_source(spec, "items")
    )


def _make_items(entries: list[Any], spec: ApiSpec) -> Iterator[Item]:
    """Yield an item for each entry with a text. Scores fall from 1 to 0.5, in the API's order."""
    for place, entry in enumerate(entries):
        fields = spec.fields
        content = _format_content(entry, fields.content)
        title = _format_value(value_at(entry, fields.title)) if fields.title else ""
        if not content and not title:
            continue
        yield Item(
            type="api",
            title=title or spec.label or spec.id,
            content=content or title,
            url=address(_format_value(value_at(entry, fields.url))) if fields.url else "",
            score=1 - place / (2 * spec.max_results),
            document_id=_format_value(value_at(entry, fields.id)) if fields.id else "",
            collection=spec.id,
        )


def _format_content(entry: Any, paths: tuple[str, ...]) -> str:
    if paths:
        return "\n".join(filter(None, (_format_value(value_at(entry, path)) for path in paths)))
    if not isinstance(entry, dict):
        return _format_value(entry)
    shown = ((key, _format_value(value)) for key, value in entry.items())
    return "\n".join(f"{key}: {text}" for key, text in shown if text)


def _join_paths(spec: ApiSpec) -> str:
    return ", ".join(map(repr, spec.fields.content)) or "any key"


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of keys and positions, such as `rows.0.name`; _ABSENT if it does
    not exist. The empty path is the value itself."""
    for step in path.split(".") if path else ():
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def _format_value(value: Any) -> str:
    if value is _ABSENT or value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)
