"""Endpoints about the server: health, who is asking, assistants, search, signing in.

What a program finds at the address of the server: its endpoints, and how to ask. Pure.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from anyio import to_thread
from pydantic import Field
from starlette.responses import JSONResponse, PlainTextResponse, Response

from groundhook.core.errors import ConfigError, HostError, SourceError, UsageError
from groundhook.core.json_lines import line
from groundhook.core.problems import Problem
from groundhook.core.types.base import Value
from groundhook.core.types.search import SEARCH_TYPES, SearchRequest
from groundhook.host.config.introduction import first_assistant
from groundhook.host.config.locales import texts_of
from groundhook.host.config.tree import assistants as assistants_in
from groundhook.host.config.variables import Values
from groundhook.host.output.dialects.native import readable
from groundhook.host.server import request_body
from groundhook.host.server.api import page_files
from groundhook.host.server.api.openapi import openapi_document
from groundhook.host.server.api.sources import csv_answer
from groundhook.host.server.identity import sign_in_link
from groundhook.host.server.identity.caller import of_key
from groundhook.host.server.identity.client_addresses import is_loopback, network
from groundhook.host.server.problems import KINDS, Refused
from groundhook.host.server.serving import Call, Endpoint

log = logging.getLogger("groundhook.server")

DOCS = "groundhook docs http"
SIGN_IN = (
    "send `Authorization: Bearer <key>`;"
    " `groundhook serve` prints a key, `groundhook keys` adds one"
)


def index_document(endpoints: Sequence[Endpoint], url: str) -> dict[str, Any]:
    """Return the index of a server at an address, for programs."""
    return {
        "name": "Groundhook",
        "docs": DOCS,
        "openapi": f"{url}/openapi.json",
        "sign_in": SIGN_IN,
        "example": _example(url),
        "endpoints": [
            {
                "method": each.method,
                "path": _path(each),
                "scope": None if each.open else each.scope or "any",
                "about": each.about,
            }
            for each in endpoints
        ],
    }


def _example(url: str) -> str:
    return (
        f'curl -N {url}/api/turns -H "Authorization: Bearer $KEY" -H \'Content-Type:'
        ' application/json\' -d \'{"assistant": "NAME", "text": "What can you help me with?"}\''
    )


def _path(endpoint: Endpoint) -> str:
    return endpoint.path.replace(":path", "")


class AssistantInfo(Value):
    """An assistant, for clients."""

    id: str
    name: str = ""
    description: str = ""
    avatar: str = ""
    placeholder: Any = None
    tags: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    searches: tuple[str, ...] = Field(default=(), description="Types that it searches: web, kb, db")
    files: int = Field(default=0, description="Most files of a message")
    file_mb: float = Field(default=0, description="Largest file of a message, in MB")


class SearchAsk(SearchRequest):
    """A search, with an assistant's settings or the app's."""

    assistant: str | None = Field(
        default=None, max_length=1000, description="Its settings, collections and models are used"
    )


class SignInRequest(Value):
    """The way in which a page signs in: one of the two."""

    key: str = Field(default="", max_length=300, description="A key of the server")
    link: str = Field(
        default="",
        max_length=300,
        description="What the link that `groundhook serve` prints has behind its `#`",
    )


async def index(call: Call) -> Response:
    """Return the page to a browser, and to a program what the server offers."""
    if call.wants_page and call.serving.has("page"):
        return page_files.index(call.serving.prints_key)
    return JSONResponse(index_document(call.serving.offered_endpoints(), call.public_url))


async def asset(call: Call) -> Response:
    """Return a file of the page."""
    wanted = call.request.path_params
    return page_files.asset(wanted["version"], wanted["name"])


async def widget(call: Call) -> Response:
    """Return the module that defines the conversation for pages of other sites."""
    return page_files.widget()


async def openapi(call: Call) -> Response:
    """Return the table of endpoints as OpenAPI 3.1, without the parts that are switched off."""
    text = await to_thread.run_sync(_openapi_text, tuple(call.serving.offered_endpoints()))
    return Response(text, media_type="application/json")


@lru_cache(maxsize=8)
def _openapi_text(endpoints: tuple[Endpoint, ...]) -> str:
    # Anybody may ask for it, and making it takes a tenth of a second where it builds validators.
    return line(openapi_document(endpoints))


async def healthz(call: Call) -> Response:
    """Return that the process answers."""
    return JSONResponse({"ok": True})


async def readyz(call: Call) -> Response:
    """Return whether new turns are accepted, the app's files are valid, and chats can be kept."""
    why = ""
    if call.serving.draining:
        why = "draining"
    elif not call.serving.warm:
        why = "starting"
    else:
        try:
            call.serving.host.settings()
        except HostError:
            why = "the app's files cannot be read"
        keeps = call.serving.has("chats")
        if not why and keeps and not await call.serving.store.fine():
            why = "chats cannot be kept"
    body = {"ready": not why, **({"why": why} if why else {})}
    return JSONResponse(body, 503 if why else 200)


async def me(call: Call) -> Response:
    """Return the identity and the scopes of the caller."""
    caller = call.caller
    limits = call.serving.limits
    left = {
        "requests": await limits.remaining("requests", caller.owner),
        "turns": await limits.remaining("turns", caller.owner),
    }
    document = {
        "name": caller.name,
        "user": caller.identity.user_id,
        "team": caller.identity.team_id,
        "tenant": caller.identity.tenant_id,
        "scopes": sorted(caller.scopes),
        "anonymous": caller.anonymous,
        "left_this_minute": left,
    }
    return JSONResponse(document)


async def assistants(call: Call) -> Response:
    """Return the assistants that the caller may use, and the one that a newcomer asks first."""
    offered = call.serving.offered(call.caller)
    listed = [assistant_info(call, id) for id in offered]
    first = first_assistant(call.serving.host.app, offered)
    return Response(line({"assistants": listed, "first": first}), media_type="application/json")


async def assistant(call: Call) -> Response:
    """Return one assistant."""
    id = call.request.path_params["assistant"]
    call.serving.package(call.caller, id)
    return Response(line(assistant_info(call, id)), media_type="application/json")


def assistant_info(call: Call, id: str) -> AssistantInfo:
    """Return an assistant with its texts in the language of the request; its id alone if its files
    are invalid."""
    host = call.serving.host
    try:
        package = host.app.package(id)
        search = host.settings(id).search
    except HostError:
        return AssistantInfo(id=id)
    types = [type for type in SEARCH_TYPES if getattr(search, type).enabled]
    info, limits = package.info, host.app.settings.attachments
    try:
        texts = texts_of(package.locales, info.get("locales") or {}, _locale(call))
    except ConfigError:  # a damaged file: a turn in its language reports it
        texts = {}
    values = Values(now=host.runtime.now(), context={}, texts=texts)
    return AssistantInfo(
        id=id,
        name=values.fill(package.name),
        description=values.fill(package.description),
        avatar=str(info.get("avatar") or ""),
        placeholder=_filled(info.get("placeholder"), values),
        tags=tuple(info.get("tags") or ()),
        locales=tuple(package.locales),
        searches=tuple(types),
        files=limits.files,
        file_mb=min(limits.file_mb, call.serving.settings.limits.image_mb),
    )


def _locale(call: Call) -> str:
    """Return the language that a client wants its texts in."""
    given = call.request.query_params.get("locale", "")
    accepted = call.request.headers.get("accept-language", "")
    return (given or re.split("[,;]", accepted)[0].strip())[:60]


def _filled(value: Any, values: Values) -> Any:
    """Return a value whose texts have their variables replaced."""
    match value:
        case str():
            return values.fill(value)
        case Mapping():
            return {key: _filled(each, values) for key, each in value.items()}
        case list() | tuple():
            return [_filled(each, values) for each in value]
        case _:
            return value


async def search(call: Call) -> Response:
    """Run one search, without a language model; with `Accept: text/csv` return all rows of a
    database's answer as CSV."""
    wanted = request_body.validate_strictly(SearchAsk, await call.json())
    if wanted.assistant is not None:
        call.serving.package(call.caller, wanted.assistant)
    elif not call.caller.reaches_all:
        raise UsageError("assistant: name one, whose collections and models are searched")
    fields = wanted.model_dump(exclude={"assistant"}, exclude_unset=True)
    if "text/csv" in call.request.headers.get("accept", ""):
        return await _csv(call, fields, wanted.assistant)
    result = await call.serving.host.search(
        fields, identity=call.caller.identity, assistant=wanted.assistant
    )
    return Response(line(readable(result, call.audience())), media_type="application/json")


async def _csv(call: Call, fields: Mapping[str, Any], assistant: str | None) -> Response:
    try:
        found = await call.serving.host.export(
            fields, identity=call.caller.identity, assistant=assistant
        )
    except SourceError as exc:
        log.warning("rows are not exported: %s", exc)
        raise Refused("storage", "the search failed") from exc
    return await csv_answer(found)


async def explain(call: Call) -> Response:
    """Return every setting of an assistant, with the layer, file and line that set it."""
    id = call.request.path_params["assistant"]
    call.serving.package(call.caller, id)
    settings = [
        {
            "key": each.key,
            "value": each.value,
            "layer": each.layer,
            "place": str(each.place) if each.place else "",
        }
        for each in call.serving.host.explain(id)
    ]
    return Response(line({"settings": settings}), media_type="application/json")


async def check(call: Call) -> Response:
    """Return the problems with the app's files; for a key that lists its assistants, those in their
    folders."""
    found = await call.serving.host.check()
    if not call.caller.reaches_all:
        offered = set(call.serving.offered(call.caller))
        folders = {place.shown: place.id for place in assistants_in(call.serving.host.app.root)}
        found = [each for each in found if _assistant_of(each, folders) in offered]
    problems = [
        {
            "severity": each.severity,
            "code": each.code,
            "message": each.message,
            "place": str(each.place) if each.place else "",
            "hint": each.hint,
        }
        for each in found
    ]
    return JSONResponse({"problems": problems})


def _assistant_of(problem: Problem, folders: Mapping[str, str]) -> str | None:
    """Return the assistant in whose folder a problem is."""
    file = PurePosixPath(problem.place.file if problem.place else "")
    return next((folders[str(each)] for each in file.parents if str(each) in folders), None)


async def metrics(call: Call) -> Response:
    """Return the figures for Prometheus."""
    serving, allowed = call.serving, call.serving.settings.metrics
    if allowed == "off":
        raise Refused("unknown_name", "there are no metrics here (server.metrics)")
    forwarded = "x-forwarded-for" in call.request.headers
    if allowed == "scope" or forwarded or not is_loopback(call.address):
        caller = await serving.sign_in.caller(call.request, call.address)
        if "metrics" not in caller.scopes:
            raise Refused("not_permitted", "this needs the scope 'metrics'")
    serving.metrics.streams.set(serving.limits.streams)
    serving.metrics.running.set(serving.turns.under_way)
    return serving.metrics.response()


async def problem(call: Call) -> Response:
    """Return the meaning of an error's code."""
    code = call.request.path_params["code"]
    if code not in KINDS:
        raise Refused("unknown_name", "there is no error with this code")
    kind = KINDS[code]
    return PlainTextResponse(f"{code} ({kind.status}): {kind.title}\n\n{kind.about}\n")


async def sign_in(call: Call) -> Response:
    """Exchange a key, or a link that is used once, for a cookie."""
    # By address: a caller without a key has no other name.
    await call.serving.limits.count("sign-ins", network(call.address))
    wanted = request_body.validate_strictly(SignInRequest, await call.json())
    if bool(wanted.key) == bool(wanted.link):
        raise UsageError("give `key` or `link`")
    if wanted.link:
        state = call.serving.host.app.state
        id = await to_thread.run_sync(sign_in_link.redeem, state, wanted.link)
        key = call.serving.keys.by_id(id) if id else None
    else:
        key = call.serving.keys.find(wanted.key)
    if key is None:
        used = "the link was used or has ended; `groundhook serve` prints a new one"
        raise Refused("unauthenticated", used if wanted.link else "the key is not valid")
    caller = of_key(key)
    answer = JSONResponse({"name": caller.name, "scopes": sorted(caller.scopes)})
    secure = call.public_url.startswith("https:")
    call.serving.sessions.set_cookie(call.request, answer, key.id, secure=secure)
    return answer


async def sign_out(call: Call) -> Response:
    """Remove the cookie."""
    answer = Response(status_code=204)
    cookie = call.serving.sessions.cookie(call.request)
    answer.delete_cookie(cookie, secure=call.public_url.startswith("https:"))
    return answer
