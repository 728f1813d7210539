"""The attacks of `bench.stops` on every endpoint of the table: each parameter of its path and its
query, each text of its body, its body as it is, and the forms of uploads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from bench.stops_served import Campaign
from groundhook.host.server.api.table import ENDPOINTS
from groundhook.host.server.serving import Endpoint

QUESTION = 250_000  # characters: almost the limit of a conversation
BODY = 1_000_000
LINE = 20_000  # of a path and of the headers
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
FORM = {"content-type": "multipart/form-data; boundary=x"}
HEADERS = ("accept", "cookie", "user-agent", "x-forwarded-for", "x-openwebui-user-id")
UPLOADS = "/api/kb/{collection}/documents"
# What is there, so that no other part of a path ends the request before the part that is pumped.
REAL = {
    "assistant": "open",
    "collection": "notes",
    "document": "word0.md",
    "model": "row",
    "record": "1",
    "tool": "said__say",
    "toolkit": "agents.house.documents",
    "version": "1",
    "name": "source.css",
}
# Ids that nobody can know beforehand; the campaign has a chat.
IDS = ("chat", "turn", "message", "file", "response", "token", "code")
# What a body needs beside the value that is pumped.
BASES: Mapping[str, Mapping[str, Any]] = {
    "/api/turns": {"text": "?"},
    "/api/chats/{chat}/turns": {"text": "?"},
    "/api/chats/{chat}/decisions": {"approved": True},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "?"}]},
    "/v1/responses": {"input": "?"},
}
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
_OPEN = re.compile(r"dict|list|tuple|str|Any")


def pumped(unit: str, size: int) -> str:
    """Return a unit again and again, `size` characters."""
    return unit * (size // len(unit))


def endpoints(campaign: Campaign, unit: str) -> None:
    """Each endpoint, with a text in each of its places."""
    chat = campaign.chat("next", ["How long does tea take?"], "a chat")
    real = {**REAL, "chat": chat}
    for endpoint in ENDPOINTS:
        _addresses(campaign, endpoint, unit, real)
        if endpoint.body is not None:
            _bodies(campaign, endpoint, endpoint.body, unit, real)
        elif endpoint.method != "GET":
            raw = pumped(unit, BODY).encode()
            name = f"{endpoint.path} body {unit!r}"
            path = _address(endpoint, real)
            campaign.attack(name, endpoint.method, path, content=raw, headers=JSON)
    for name in HEADERS:
        value = pumped(unit, LINE).encode("latin-1", "ignore").strip()
        if value and not set(b"\r\n\0") & set(value):
            campaign.attack(f"{name} {unit!r}", "GET", "/api/me", headers={name.encode(): value})
    _forms(campaign, unit)
    exports(campaign, unit)


def exports(campaign: Campaign, unit: str) -> None:
    """All rows of an answer."""
    text = pumped(unit, QUESTION)
    body = {"type": "db", "query": text, "models": ["row"], "assistant": "rows"}
    for query in (text, "all rows"):
        body["query"] = query
        csv = {"accept": "text/csv"}
        campaign.attack(f"rows as CSV {unit!r}", "POST", "/api/search", json=body, headers=csv)


def _addresses(campaign: Campaign, endpoint: Endpoint, unit: str, real: Mapping[str, str]) -> None:
    text = quote(pumped(unit, LINE // len(quote(unit, safe=""))), safe="")
    if endpoint.method in ("GET", "DELETE"):
        for name in _PARAMETER.findall(endpoint.path):
            path = _address(endpoint, {**real, name: text})
            campaign.attack(f"{endpoint.path} {name} {unit!r}", endpoint.method, path)
    for name in [each[0] for each in endpoint.query] or ["x"]:
        path = f"{_address(endpoint, real)}?{name}={text}"
        body = {"json": {"text": "?"}} if endpoint.body else {}
        campaign.attack(f"{endpoint.path} ?{name} {unit!r}", endpoint.method, path, **body)


def _bodies(
    campaign: Campaign,
    endpoint: Endpoint,
    model: type[BaseModel],
    unit: str,
    real: Mapping[str, str],
) -> None:
    path = _address(endpoint, real)
    raw = pumped(unit, BODY).encode()
    campaign.attack(
        f"{endpoint.path} body {unit!r}", endpoint.method, path, content=raw, headers=JSON
    )
    if endpoint.path == "/api/session":
        return
    text = pumped(unit, QUESTION)
    for keys in texts(model):
        body = _with({**_plain(model), **BASES.get(endpoint.path, {})}, keys, text)
        name = f"{endpoint.path} {'.'.join(keys)} {unit!r}"
        campaign.attack(name, endpoint.method, path, json=body)


def upload(campaign: Campaign, name: str, collection: str, text: str) -> None:
    """Add a document to a collection."""
    head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
    path = UPLOADS.replace("{collection}", collection)
    body = head + text.encode() + b"\r\n--x--\r\n"
    campaign.attack(name, "POST", path, content=body, headers=FORM)


def _forms(campaign: Campaign, unit: str) -> None:
    """Forms whose names, headers and files are pumped, and what is no form."""
    text = pumped(unit, LINE).encode()
    head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="'
    forms = {
        "a file": head + b'a.md"\r\n\r\n' + pumped(unit, LINE).encode() + b"\r\n--x--\r\n",
        "a name": head + text[:300] + b'"\r\n\r\ntext\r\n--x--\r\n',
        "a long name": head + text + b'"\r\n\r\ntext\r\n--x--\r\n',
        "a header": head + b'a.md"\r\na: ' + pumped(unit, BODY).encode() + b"\r\n\r\n\r\n--x--",
        "no form": pumped(unit, BODY).encode(),
        "a form that is cut": head + b'a.md"\r\n\r\n' + pumped(unit, BODY).encode(),
    }
    for collection in ("notes", "graph", "kept"):
        path = UPLOADS.replace("{collection}", collection)
        for name, body in list(forms.items())[: None if collection == "notes" else 1]:
            campaign.attack(f"{name} {unit!r}", "POST", path, content=body, headers=FORM)


def _address(endpoint: Endpoint, values: Mapping[str, str]) -> str:
    """Return the path with a value for each of its parameters."""
    return _PARAMETER.sub(lambda found: values.get(found[1], "x"), endpoint.path)


def unknown() -> list[str]:
    """Return the endpoints with a parameter that has no value here: none of what is behind the
    check of that parameter would be attacked."""
    known = {*REAL, *IDS}
    return [each.path for each in ENDPOINTS if not {*_PARAMETER.findall(each.path)} <= known]


def texts(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to the texts and open values of a body."""
    for name, described in model.model_fields.items():
        kind = described.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from texts(kind, (*before, name))
        elif _OPEN.search(str(kind)):
            yield (*before, name)


def _plain(model: type[BaseModel]) -> dict[str, Any]:
    plain = {"assistant": "open", "model": "open", "query": "tea", "type": "kb"}
    return {name: value for name, value in plain.items() if name in model.model_fields}


def _with(body: dict[str, Any], path: Sequence[str], text: str) -> dict[str, Any]:
    value: Any = text
    if path[-1] in ("messages", "input"):
        value = [{"role": "user", "content": text}]
    elif path[-1] in ("metadata", "filter", "calls"):
        value = {"k": text}
    elif path[-1] in ("content", "sources", "wheres", "orders", "aggregates", "about"):
        value = [{"type": "text", "text": text}]
    elif path[-1] == "tools":
        schema = {"type": "object", "properties": {"a": {"description": text, "pattern": text}}}
        value = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    elif path[-1] == "response_format":
        schema = {"type": "object", "properties": {"a": {"pattern": text}}, "required": [text]}
        value = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    for key in reversed(path[1:]):
        value = {key: value}
    if path[0] in ("messages", "content"):
        body.pop("text", None)
    return {**body, path[0]: value}
