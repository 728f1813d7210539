"""The ASGI app: the table of endpoints as routes, the order of checks before a handler, and the
life of the server's parts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from groundhook.core.errors import HostError
from groundhook.core.readers.pool import open_readers
from groundhook.core.server_settings import ServerSettings
from groundhook.core.types.turn import Identity
from groundhook.host.app.host import Host
from groundhook.host.app.opening import CHATS_FILE, open_host
from groundhook.host.config.agent_file import read_agent_file, server_settings
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.environment import child_environment
from groundhook.host.output.dialects.places import SOURCES
from groundhook.host.server.api.mcp import METADATA, PATH
from groundhook.host.server.api.table import ENDPOINTS
from groundhook.host.server.edge_middleware import EdgeMiddleware
from groundhook.host.server.ending import drained_by_signals, ended_with_its_parent
from groundhook.host.server.identity.caller import Caller, SignIn
from groundhook.host.server.identity.client_addresses import is_loopback
from groundhook.host.server.identity.fetching import fetch_key_set
from groundhook.host.server.identity.keys import Key, KeyFile, Keyring, configured
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.identity.sessions import Sessions
from groundhook.host.server.identity.tokens import Tokens
from groundhook.host.server.limits import CallerLimits
from groundhook.host.server.logs import Logs
from groundhook.host.server.mcp.http import open_mcp
from groundhook.host.server.metrics import Metrics
from groundhook.host.server.problems import HttpProblem, Refused, Shape, problem_of, response
from groundhook.host.server.serving import Call, Endpoint, Serving
from groundhook.host.server.turns.turns import open_server_turns
from groundhook.host.server.upkeep import keep_up, reload_saved, sync_failed
from groundhook.host.server.warmup import warm_up
from groundhook.host.server.whole_tables import WholeTables

log = logging.getLogger("groundhook.server")


@dataclass(frozen=True, kw_only=True)
class ServerArguments:
    """The arguments with which the processes of a server are started. `local` is the key for this
    machine. `reload`: saved files are read again. `workers` is the number of processes."""

    folder: Path
    host: str
    local: Key | None = None
    reload: bool = False
    workers: int = 1


@asynccontextmanager
async def open_serving(
    host: Host, arguments: ServerArguments, logs: Logs
) -> AsyncIterator[Serving]:
    """Open the parts of a server process over an open host. Raises ConfigError."""
    settings = server_settings(host.app.agent_file)
    fixed = [*configured(settings.auth.keys), *((arguments.local,) if arguments.local else ())]
    state = host.app.state
    keys = Keyring(fixed, KeyFile(state))
    secret = Secret(state)
    secure = settings.public_url.startswith("https:")
    sessions = Sessions(secret, settings.auth.session_h, secure=secure)
    tokens = Tokens(settings.auth.jwt, fetch_key_set)
    limits = CallerLimits(settings.limits)
    async with (
        open_server_turns(host, settings.streams, logs.turn) as turns,
        open_mcp(host, settings, secret) as mcp,
        open_readers(child_environment()) as readers,
    ):
        logs.metrics.follow(host.chats.times)
        yield Serving(
            host=host,
            settings=settings,
            turns=turns,
            keys=keys,
            sign_in=SignIn(
                settings.auth,
                keys,
                tokens,
                sessions,
                is_loopback(arguments.host),
                logs.metrics.ignored_users.inc,
            ),
            sessions=sessions,
            limits=limits,
            metrics=logs.metrics,
            readers=readers,
            tables=WholeTables(host, secret),
            endpoints=ENDPOINTS,
            mcp=mcp,
            prints_key=arguments.local is not None,
            shared=arguments.workers > 1 or bool(host.app.settings.store.url),
        )


def check_settings(settings: ServerSettings) -> None:
    """Raise ConfigError for settings with which no server can start."""
    configured(settings.auth.keys)
    Tokens(settings.auth.jwt, fetch_key_set)
    CallerLimits(settings.limits)


def make_app(arguments: ServerArguments) -> Starlette:
    """Return the ASGI app of a server process. Its lifespan opens the app's host."""
    settings = settings_of(arguments.folder)
    logs = Logs(settings.logs, Metrics())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with (
            ended_with_its_parent(among=arguments.workers),
            open_host(arguments.folder, tune_gc=True, processes=arguments.workers) as host,
            open_serving(host, arguments, logs) as serving,
            # Inside the host: the turns that a signal ends still need it.
            drained_by_signals(serving),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_warm_up_if_set, serving)
            if _has_chats(serving):
                tasks.start_soon(keep_up, host)
            if arguments.reload:
                tasks.start_soon(reload_saved, host, arguments.folder)
            tasks.start_soon(host.syncs.keep, sync_failed)
            yield {"serving": serving}
            tasks.cancel_scope.cancel()

    return Starlette(
        routes=routes(ENDPOINTS),
        lifespan=lifespan,
        middleware=_make_middleware(settings, arguments, logs),
        exception_handlers={HTTPException: _no_route},
    )


def _has_chats(serving: Serving) -> bool:
    """Return whether there may be chats to end or to remove: also those that were kept before they
    were switched off."""
    app = serving.host.app
    file = app.state / CHATS_FILE
    return serving.has("chats") or bool(app.settings.store.url) or file.exists()


async def _warm_up_if_set(serving: Serving) -> None:
    """Warm up the offered assistants unless `server.warmup` is off; then the server is ready."""
    if serving.settings.warmup:
        offered = serving.settings.assistants
        await warm_up(serving.host, list(offered or serving.host.assistants()))
    serving.warm = True
    log.info("ready")


def settings_of(folder: Path) -> ServerSettings:
    """Return the server's settings of the app in a folder. Raises ConfigError."""
    return server_settings(read_agent_file(folder, app_environment(folder)))


def _make_middleware(
    settings: ServerSettings, arguments: ServerArguments, logs: Logs
) -> list[Middleware]:
    made = [Middleware(EdgeMiddleware, settings=settings, host=arguments.host, logs=logs)]
    if settings.origins:
        made.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.origins),
                allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                # Clients in browsers send headers of their own (`x-stainless-*`,
                # `mcp-protocol-version`), and none permits anything without a key.
                allow_headers=["*"],
                expose_headers=[
                    "groundhook-total",
                    "mcp-protocol-version",
                    "mcp-session-id",
                    "retry-after",
                    "www-authenticate",
                    "x-groundhook-certainty",
                    "x-groundhook-ignored",
                    "x-groundhook-resume",
                    "x-groundhook-turn",
                    "x-request-id",
                    "x-should-retry",
                ],
            )
        )
    return made


def routes(endpoints: Sequence[Endpoint]) -> list[Route]:
    """Return the routes of a table."""
    return [
        Route(endpoint.path, _Handling(endpoint), methods=[endpoint.method])
        for endpoint in endpoints
    ]


class _Handling:
    """An endpoint as an ASGI app: the checks before its handler, and its errors as answers."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        scope["groundhook.endpoint"] = self._endpoint.path
        try:
            answer = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as exc:  # noqa: BLE001 - the outermost edge of a request
            answer = self._answer_error(request, exc)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Any:
        endpoint = self._endpoint
        serving: Serving = request.state.serving
        if not serving.has(endpoint.part):
            code = "unknown_url" if endpoint.shape == "openai" else "unknown_name"
            raise Refused(code, "this is switched off here")
        address = request.scope["groundhook.address"]
        caller = None if endpoint.open else await serving.sign_in.caller(request, address)
        if caller is not None:
            request.scope["groundhook.caller"] = caller.name
            if endpoint.scope is not None and endpoint.scope not in caller.scopes:
                raise Refused("not_permitted", f"this needs the scope {endpoint.scope!r}")
            await serving.limits.count("requests", caller.owner)
        call = Call(
            serving=serving,
            request=request,
            caller=caller or NOBODY,
            request_id=request.scope["groundhook.request"],
            address=address,
        )
        return await endpoint.handler(call)

    def _answer_error(self, request: Request, exc: Exception) -> Response:
        problem = problem_of(exc)
        if problem.status == 401 and self._leads_to_page(request):
            # A person who opens a link to a source signs in first.
            where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/#to={quote(where, safe='')}", 303)
        request_id = request.scope["groundhook.request"]
        # Without a service to sign in at, a client would look for one here.
        signs_in = bool(request.state.serving.settings.auth.jwt)
        if self._endpoint.path == PATH and problem.status == 401 and signs_in:
            where = request.state.serving.settings.public_url or str(request.base_url).rstrip("/")
            challenge = {"www-authenticate": f'Bearer resource_metadata="{where}{METADATA}"'}
            problem = replace(problem, headers={**problem.headers, **challenge})
        if problem.status >= 500 and not isinstance(exc, Refused):
            known = isinstance(exc, HostError)
            log.error("request %s failed: %s", request_id, exc, exc_info=None if known else exc)
        return response(problem, self._endpoint.shape, request_id)

    def _leads_to_page(self, request: Request) -> bool:
        """Return whether a browser opened the address of a source, and there is a page to sign in
        on."""
        opens = "text/html" in request.headers.get("accept", "") and request.method == "GET"
        serving: Serving = request.state.serving
        return opens and self._endpoint.path.startswith(SOURCES) and serving.has("page")


NOBODY = Caller(identity=Identity(), name="", scopes=frozenset(), anonymous=True)


# Where clients of MCP with an OAuth provider register if no issuer is announced.
_REGISTRATION = "/register"


async def _no_route(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    path = request.url.path
    shape: Shape = "openai" if path == "/v1" or path.startswith("/v1/") else "problem"
    if exc.status_code == 405:
        code, detail = "not_allowed", "the address accepts other methods"
    else:
        code, detail = "unknown_url" if shape == "openai" else "unknown_name", "no such address"
    offered = request.state.serving.offered_endpoints()
    of_openai = [endpoint for endpoint in offered if endpoint.shape == "openai"]
    if f"/v1{path}" in {endpoint.path for endpoint in of_openai}:
        detail += f": did you mean /v1{path}? The address of clients ends with /v1"
    elif shape == "openai":
        detail += f"; there are {', '.join(map(_shown, of_openai))}"
    else:
        detail += " (GET / lists the endpoints)"
    more = {}
    if path == _REGISTRATION:
        detail = "nobody signs in here: send a key, as `Authorization: Bearer KEY`"
        more = {"error": "invalid_request", "error_description": detail}  # as RFC 7591 says
    problem = HttpProblem(code=code, detail=detail, headers=exc.headers or {}, more=more)
    return response(problem, shape, request.scope.get("groundhook.request", ""))


def _shown(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path.replace(':path', '')}"
