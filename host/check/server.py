"""Checks of the section `server` of `agent/agent.yml`: settings that a server starts with, and that
do not do what their author expects."""

from __future__ import annotations

from collections.abc import Iterator

from groundhook.core.errors import HostError, UnknownName
from groundhook.core.problems import Problem, problems_of
from groundhook.core.server_settings import ServerSettings
from groundhook.host.config.agent_file import server_settings
from groundhook.host.config.locations import Path
from groundhook.host.config.packages import App
from groundhook.host.config.validate import ValidDocument

LOOPBACK = ("http://127.", "http://localhost", "http://[::1]")


def server_problems(app: App, file: ValidDocument) -> Iterator[Problem]:
    """Yield the problems with the settings of the server; none where they are invalid, which is
    reported elsewhere."""
    if not file.data.get("server") or file.errors:
        return
    settings = server_settings(file)
    yield from _check_written_keys(settings, file)
    yield from _check_assistants(app, settings, file)
    yield from _check_addresses(settings, file)
    yield from _check_processes(settings, file)
    yield from _check_public_collections(app, settings, file)


def _make_warning(message: str, file: ValidDocument, path: Path, hint: str) -> Problem:
    return Problem("warning", message, file.place(path), hint)


def _check_written_keys(settings: ServerSettings, file: ValidDocument) -> Iterator[Problem]:
    for n, key in enumerate(settings.auth.keys):
        for name in ("key", "jwt_secret"):
            path = ("server", "auth", "keys", n, name)
            text = file.document.at(file.normal.written(path), "")
            if text and "$ENV." not in str(text):
                message = f"the {name} of {key.name!r} is written in the file"
                yield _make_warning(message, file, path, "name a variable: $ENV.NAME")


def _check_assistants(app: App, settings: ServerSettings, file: ValidDocument) -> Iterator[Problem]:
    listed: list[tuple[Path, tuple[str, ...]]] = [
        (("server", "assistants"), settings.assistants or ())
    ]
    listed += [
        (("server", "auth", "keys", n, "assistants"), key.assistants or ())
        for n, key in enumerate(settings.auth.keys)
    ]
    for path, names in listed:
        for n, name in enumerate(names):
            if name not in app.packages:
                place = file.place((*path, n))
                yield from problems_of(UnknownName("assistant", name, app.packages, place=place))


def _check_addresses(settings: ServerSettings, file: ValidDocument) -> Iterator[Problem]:
    url, path = settings.public_url, ("server", "public_url")
    if url.startswith("http:") and not url.startswith(LOOPBACK):
        message = "keys and cookies cross the network in plain text: 'server.public_url' is http"
        yield _make_warning(message, file, path, "put a proxy with https in front")
    if url.startswith("https:") and not settings.proxies:
        message = "'server.public_url' is https, and 'server.proxies' lists no proxy"
        hint = (
            "list the proxy's address, or limits count all its clients as one; with `groundhook"
            " serve --certificate` there is none"
        )
        yield _make_warning(message, file, path, hint)


def _check_processes(settings: ServerSettings, file: ValidDocument) -> Iterator[Problem]:
    if settings.workers > 1 and settings.limits.storage == "memory":
        message = "each process counts its limits alone: 'server.limits.storage' is memory"
        yield _make_warning(
            message, file, ("server", "workers"), "`redis://…` counts them together"
        )


def _check_public_collections(
    app: App, settings: ServerSettings, file: ValidDocument
) -> Iterator[Problem]:
    """Report public assistants with collections that only callers who signed in may search."""
    if not settings.auth.anonymous:
        return
    path = ("server", "auth", "anonymous")
    public = False
    for id in app.packages:
        try:
            package = app.package(id)
            if not package.info.get("public"):
                continue
            public = True
            names = app.settings_for(package).settings.kb.collections
            collections = [app.resolve_collection(id, name) for name in names]
        except HostError:  # which is reported where it is written
            continue
        for collection in collections:
            if collection.permission.named != "anyone":
                message = (
                    f"{id!r} is public, but callers who are not signed in find nothing in"
                    f" {collection.id!r}"
                )
                yield _make_warning(message, file, path, "its `permission` names who may search it")
    if not public:
        message = "callers who are not signed in reach no assistant: none has `public: true`"
        yield _make_warning(message, file, path, "set `public: true` in its package.yao")
