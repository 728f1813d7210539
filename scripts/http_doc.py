"""Writes `docs/http.md` from `http_head.txt`, the table of endpoints, the models of requests, the
table of errors and the settings, so that the document always matches the program.

`python -m scripts.http_doc` writes the file; a test compares it with `document()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from groundhook.core.server_settings import ServerSettings
from groundhook.core.types.chats import Feedback
from groundhook.host.server.api.chats import Again, ChatChanges, ChatTurn, NewChat
from groundhook.host.server.api.meta import SearchAsk, SignInRequest
from groundhook.host.server.api.openai import ChatRequest, Extension
from groundhook.host.server.api.table import ENDPOINTS
from groundhook.host.server.problems import KINDS
from groundhook.host.server.request_body import AskedData, AskOptions, TurnRequest
from groundhook.host.server.serving import Endpoint

DOCUMENT = Path("docs/http.md")
BODIES: tuple[type[BaseModel], ...] = (
    TurnRequest,
    AskOptions,
    AskedData,
    SearchAsk,
    NewChat,
    ChatChanges,
    ChatTurn,
    Again,
    Feedback,
    SignInRequest,
    ChatRequest,
    Extension,
)

HEAD = Path(__file__).with_name("http_head.txt")


def document() -> str:
    """Return the whole document."""
    return "\n".join(
        [
            HEAD.read_text(encoding="utf-8"),
            "## Endpoints\n",
            *_endpoints(),
            "\n## Requests\n",
            "Unknown keys are refused under `/api`, and named in the header `X-Groundhook-Ignored`"
            " under `/v1`.\n",
            *(row for model in BODIES for row in _body(model)),
            "## Errors\n",
            "Under `/api` an error is a problem document (RFC 9457): `type`, `title`, `status`,"
            " `detail`, `code`, and `request`, the id that the log has as well. Under `/v1` it is"
            " OpenAI's `error`, with `x-should-retry: false` where trying again is no use. Once a"
            " stream has begun, errors are events.\n",
            *_errors(),
            "\n## Settings\n",
            "The section `server` of `agent/agent.yml`. An unknown key anywhere in a file with this"
            " section is an error.\n",
            "| key | default | |\n|---|---|---|",
            *_settings(ServerSettings, ""),
            "",
        ]
    )


def _endpoints() -> Iterator[str]:
    yield "| method, path | scope | |\n|---|---|---|"
    for endpoint in ENDPOINTS:
        query = "".join(f"<br>`?{name}=`: {about}" for name, about in endpoint.query)
        path = endpoint.path.replace(":path", "")
        yield f"| {endpoint.method} `{path}` | {_scope(endpoint)} | {endpoint.about}{query} |"


def _scope(endpoint: Endpoint) -> str:
    return "–" if endpoint.open else endpoint.scope or "any"


def _body(model: type[BaseModel]) -> Iterator[str]:
    yield f"`{model.__name__}`: {_sentence(model)}\n"
    yield "| key | default | |\n|---|---|---|"
    fields = sorted(model.model_fields.items(), key=lambda field: not field[1].is_required())
    for name, info in fields:
        default = "" if info.is_required() else _written(info.default)
        yield f"| `{name}` | {default} | {info.description or ''} |"
    yield ""


def _sentence(model: type[BaseModel]) -> str:
    used = [f"{e.method} `{e.path}`" for e in ENDPOINTS if e.body is model]
    text = (model.__doc__ or "").strip()
    return f"{text} {', '.join(used)}".strip()


def _errors() -> Iterator[str]:
    yield "| code | status | |\n|---|---|---|"
    for code, kind in KINDS.items():
        yield f"| `{code}` | {kind.status} | {kind.about} |"


def _settings(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        default: Any = info.default
        if isinstance(default, BaseModel):
            yield from _settings(type(default), f"{path}{name}.")
        else:
            required = info.is_required()
            shown = "" if required else _written(default)
            yield f"| `server.{path}{name}` | {shown} | {info.description or ''} |"


def _written(value: Any) -> str:
    if value is None or value == "" or value == () or value == {}:
        return ""
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
