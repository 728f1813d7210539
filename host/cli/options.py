"""Options that several commands share."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from groundhook.core.errors import UsageError
from groundhook.core.json_text import DEEPEST, NestedTooDeeply, NotJson, read_json
from groundhook.core.types.serialisation import is_language_tag, no_language_tag

if TYPE_CHECKING:
    from groundhook.core.types.turn import Identity

F = TypeVar("F", bound=Callable[..., Any])


class MomentOption(click.ParamType[datetime]):
    """A date or time in ISO 8601; UTC when it has no time zone."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is not a date or time such as 2026-03-01 or 2026-03-01T09:30:00+02:00",
                param,
                ctx,
            )
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class TextOption(click.ParamType[str]):
    """Text; with `needed` it must not be empty. Rejects bytes from the shell that are not UTF-8."""

    name = "text"

    def __init__(self, *, needed: bool = False) -> None:
        self._needed = needed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(text)[:40]
            self.fail(f"{shown!r} is not UTF-8 text", param, ctx)
        if self._needed and not text.strip():
            self.fail("it is empty", param, ctx)
        return text


class LanguageTag(TextOption):
    """A language tag of BCP 47."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = super().convert(value, param, ctx)
        if not is_language_tag(text):
            self.fail(no_language_tag(text), param, ctx)
        return text


def json_of(what: str, text: str, example: str) -> Any:
    """Return the value of JSON from the command line. Raises click.UsageError, which names `what`
    and shows the example."""
    try:
        return read_json(text)
    except NestedTooDeeply as exc:
        raise click.UsageError(f"{what}: nested too deeply: at most {DEEPEST} levels") from exc
    except NotJson as exc:
        raise click.UsageError(f"{what}: not JSON: {exc} (such as {example})") from exc


def common(command: F) -> F:
    """Add --app, --json and --debug."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    command = click.option(
        "--debug", is_flag=True, help="Show the log, and the traceback of a bug."
    )(command)
    command = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON: one event or result per line."
    )(command)
    return click.option(
        "--app",
        type=folder,
        default=".",
        metavar="DIR",
        help="Folder of the app (default: the current one).",
    )(command)


def identity_options(command: F) -> F:
    """Add --user, --team and --tenant: the identity of the request."""
    command = click.option(
        "--tenant", type=TextOption(), default="", metavar="T", help="Id of the user's tenant."
    )(command)
    command = click.option(
        "--team", type=TextOption(), default="", metavar="T", help="Id of the user's team."
    )(command)
    return click.option(
        "--user", type=TextOption(), default="", metavar="U", help="Id of the user."
    )(command)


class JsonObject(click.ParamType[dict[str, Any]]):
    """A JSON object."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        parsed = (
            json_of(param.opts[0] if param else "it", value, """'{"channel": "web"}'""")
            if isinstance(value, str)
            else value
        )
        if not isinstance(parsed, dict):
            self.fail('it must be a JSON object, such as \'{"channel": "web"}\'', param, ctx)
        return parsed


def message_options(command: F) -> F:
    """Add --chat, --locale and --metadata: the values that a client sends with a message."""
    command = click.option(
        "--metadata",
        type=JsonObject(),
        metavar="JSON",
        help="JSON object that hooks get as ctx.metadata.",
    )(command)
    command = click.option(
        "--locale",
        type=LanguageTag(),
        metavar="L",
        help="Language of the user, such as en or pt-BR.",
    )(command)
    return click.option(
        "--chat",
        type=TextOption(),
        metavar="ID",
        help="Id of the chat.",
    )(command)


def clock(command: F) -> F:
    """Add --now."""
    return click.option(
        "--now", type=MomentOption(), metavar="T", help="Use T (ISO 8601) as the current time."
    )(command)


def identity(*, user: str = "", team: str = "", tenant: str = "") -> Identity | None:
    """Return the identity of the request; None without one of the options."""
    if not (user or team or tenant):
        return None
    # Imported here because commands that only read files have no request.
    from groundhook.core.types.turn import Identity

    return Identity(user_id=user, team_id=team, tenant_id=tenant)


def request_arguments(
    *, user: str, team: str, tenant: str, chat: str | None, locale: str | None, metadata: Any
) -> dict[str, Any]:
    """Return the identity and the options of a request as arguments for `Host.stream`."""
    given = {"chat_id": chat, "locale": locale, "metadata": metadata}
    options = {name: value for name, value in given.items() if value is not None}
    return {"identity": identity(user=user, team=team, tenant=tenant), "options": options}


def with_files(text: str, files: Sequence[Path]) -> str | list[dict[str, Any]]:
    """Return a question with files as its parts; the text alone without files. Raises
    UsageError for a file that cannot be read."""
    if not files:
        return text
    return [{"type": "text", "text": text}, *map(_file_part, files)]


def _file_part(path: Path) -> dict[str, Any]:
    # Imported here because most commands attach nothing.
    from groundhook.core.types.attached import data_url

    try:
        data = path.read_bytes()
    except OSError as exc:
        raise UsageError(f"{str(path)!r} cannot be read: {exc.strerror or exc}") from exc
    kind = mimetypes.guess_type(path.name)[0] or ""
    content = data_url(data, kind)
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": content, "filename": path.name}}
    return {"type": "file", "file": {"filename": path.name, "file_data": content}}
