"""Errors as clients see them: a status, a code and a sentence, in the format of RFC 9457 and in
OpenAI's. A code that is not in the table, and an exception that is not a HostError, is status 500
without the exception's message, which only the log has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.responses import JSONResponse, Response

from groundhook.core.concealed import LONG
from groundhook.core.errors import (
    AlreadyDecided,
    ChatBusy,
    ConfigError,
    HostError,
    ModelNotConfigured,
    NotSupported,
    RequestRepeated,
    StorageError,
    TooManyTurns,
    UnknownName,
    UsageError,
)

Shape = Literal["problem", "openai"]
# Messages about a part of a request begin with its path: `messages[0].content: should be text`.
_PATH = re.compile(r"([A-Za-z_][\w.\[\]-]{0,200}): ", re.ASCII)


@dataclass(frozen=True)
class ProblemKind:
    """The meaning of a code: its status, its title, and a sentence for its page."""

    status: int
    title: str
    about: str


KINDS: Mapping[str, ProblemKind] = {
    "usage": ProblemKind(
        400, "Invalid request", "The request is not one that the endpoint accepts."
    ),
    "unsupported_value": ProblemKind(
        400, "Not offered", "The request is understood, but this server does not offer it."
    ),
    "unauthenticated": ProblemKind(
        401, "Not signed in", "The request has no key or token, or one that is not valid."
    ),
    "not_permitted": ProblemKind(
        403, "Not permitted", "The key does not have the scope that this needs."
    ),
    "needs_user": ProblemKind(
        403, "A user is needed", "Chats belong to a user, and the key has none."
    ),
    "wrong_origin": ProblemKind(
        403, "Wrong origin", "A browser sent the request from a page of another site."
    ),
    "unknown_name": ProblemKind(404, "Not found", "It does not exist, or belongs to another user."),
    "previous_response_not_found": ProblemKind(
        400, "Not kept", "The response that the request continues is not kept, or another user's."
    ),
    "not_allowed": ProblemKind(405, "Wrong method", "The address accepts other methods."),
    "unknown_url": ProblemKind(404, "No such address", "The server has no such address."),
    "chat_busy": ProblemKind(409, "The chat is busy", "A turn of the chat is under way."),
    "already_decided": ProblemKind(
        409, "Decided already", "No call of the answer waits for the user's approval any more."
    ),
    "sync_busy": ProblemKind(409, "The sync is running", "A sync of the toolkit is under way."),
    "idempotency_busy": ProblemKind(
        409, "Under way", "The first request with this Idempotency-Key has not begun its turn yet."
    ),
    "too_large": ProblemKind(413, "Too large", "The body is larger than the server accepts."),
    "wrong_type": ProblemKind(415, "Wrong type", "The body must be JSON in UTF-8, not compressed."),
    "wrong_host": ProblemKind(421, "Wrong host", "The server does not answer under this name."),
    "idempotency_mismatch": ProblemKind(
        422, "Another request", "The Idempotency-Key was used with another body or address."
    ),
    "contract_broken": ProblemKind(
        422, "Not in the demanded form", "The answer does not have the form that was demanded."
    ),
    "rate_limited": ProblemKind(
        429, "Too many requests", "Try again after the time in Retry-After."
    ),
    "internal": ProblemKind(500, "Internal error", "The server's log has the reason, by the id."),
    "config": ProblemKind(
        503, "Not available", "The assistant cannot be used at the moment; its files are invalid."
    ),
    "storage": ProblemKind(503, "Not available", "Stored data cannot be read or written now."),
    "full": ProblemKind(
        503, "Busy", "The server's limit of concurrent turns or open streams is reached."
    ),
    "draining": ProblemKind(503, "Shutting down", "The server is about to stop."),
}
UNAVAILABLE = "this assistant cannot be used at the moment"
INTERNAL = "something went wrong on the server"


def failure_status(code: str) -> int:
    """Return the status of a turn that failed. Clients repeat a request on 5xx, and what a second
    turn would break too is none: its contract."""
    status = KINDS.get(code, KINDS["internal"]).status
    return status if status >= 500 or code == "contract_broken" else KINDS["internal"].status


class Refused(HostError):
    """The server refuses a request; `code` is one of KINDS."""

    def __init__(
        self, code: str, message: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.headers = dict(headers or {})


class WrongRequest(UsageError):
    """A request is wrong. All words of the message are the caller's or ours: values of variables
    are not replaced in it, since the replacement would confirm a guess."""

    _concealed_from = LONG


@dataclass(frozen=True, kw_only=True)
class HttpProblem:
    """An error in the form for a client. `noun`: what a name that is not known should name."""

    code: str
    detail: str
    noun: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.code].status


def problem_of(error: BaseException) -> HttpProblem:
    """Return what a client may know about an error."""
    match error:
        case Refused():
            return HttpProblem(code=error.code, detail=_sentence(error), headers=error.headers)
        case UnknownName():  # the hint would list names that the caller may not know
            return HttpProblem(code="unknown_name", detail=error.message, noun=error.noun)
        case NotSupported():
            return HttpProblem(code="unsupported_value", detail=_sentence(error))
        case UsageError():
            return HttpProblem(code="usage", detail=_sentence(error))
        case ChatBusy():
            return HttpProblem(
                code="chat_busy", detail=error.message, more={"turn_id": error.turn_id}
            )
        case AlreadyDecided():
            return HttpProblem(code="already_decided", detail=_sentence(error))
        case RequestRepeated():
            return HttpProblem(code="idempotency_busy", detail=_sentence(error))
        case TooManyTurns():
            return HttpProblem(
                code="full", detail="too many turns are under way", headers={"retry-after": "2"}
            )
        case StorageError():
            return HttpProblem(code="storage", detail="stored data cannot be used at the moment")
        case ConfigError() | ModelNotConfigured():
            return HttpProblem(code="config", detail=UNAVAILABLE)
        case _:
            return HttpProblem(code="internal", detail=INTERNAL)


def _sentence(error: HostError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def response(problem: HttpProblem, shape: Shape, request_id: str) -> Response:
    """Return the response for an error, in the format of the endpoint."""
    headers = dict(problem.headers)
    if problem.status == 401:
        headers.setdefault("www-authenticate", "Bearer")
    if shape == "openai":
        if problem.status not in (429, 503):
            headers["x-should-retry"] = "false"  # SDKs repeat a failed turn twice by themselves
        return JSONResponse(_openai(problem), problem.status, headers)
    kind = KINDS[problem.code]
    document = {
        "type": f"/problems/{problem.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "code": problem.code,
        "request": request_id,
        **problem.more,
    }
    return JSONResponse(document, kind.status, headers, media_type="application/problem+json")


def _openai(problem: HttpProblem) -> dict[str, Any]:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = "server_error" if problem.status >= 500 else "invalid_request_error"
    about = _PATH.match(problem.detail) if problem.status == 400 else None
    code = _openai_code(problem)
    error = {
        "message": problem.detail,
        "type": kinds.get(problem.status, kind),
        "param": "model" if code == "model_not_found" else about[1] if about else None,
        "code": code,
    }
    return {"error": error}


def _openai_code(problem: HttpProblem) -> str:
    """Return the code that OpenAI's API has, on which its clients decide; else our own."""
    match problem.code:
        case "unknown_name":  # assistants are its models
            return f"{'model' if problem.noun in ('', 'assistant') else problem.noun}_not_found"
        case "unauthenticated":
            return "invalid_api_key"
        case "rate_limited":
            return "rate_limit_exceeded"
        case own:
            return own
