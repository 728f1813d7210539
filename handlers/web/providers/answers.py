"""Interpretation of a provider's HTTP answer: its JSON or the error. Shared by
all providers; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.concealed import shortened
from groundhook.core.errors import (
    SourceError,
    SourceMalformed,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.retry_after import retry_after_s

TOO_MANY = 429
MOST_OBJECTS = 500  # results of an answer that are read; a search has at most 100
PLAN_USED_UP = (432, 433)  # Tavily's: the plan's limit, the pay-as-you-go limit
PASSING = (500, 502, 503, 504)  # transient; a search has no side effects, so a retry is safe


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """An HTTP answer with a decompressed body and lower-case header names."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        """The media type without parameters, "text" if the header is missing."""
        return self.headers.get("content-type", "").partition(";")[0].strip() or "text"


def parse_answer(provider: str, variable: str, reply: HttpReply) -> dict[str, Any]:
    """Return the JSON object of an answer with status 200. `variable` is the environment variable
    that holds the key, for error messages.

    Raises SourceRefused (401, 403, other 4xx), SourceRateLimited (429, a used-up plan), SourceError
    (5xx, redirects) or SourceMalformed (not a JSON object). Transient errors have `again` set and,
    if the provider says when, `after` in seconds.
    """
    if reply.status != 200:
        raise _status_error(provider, variable, reply)
    try:
        answer = read_json(reply.body, nan=True)
    except NotJson as exc:
        raise SourceMalformed(
            f"{provider!r} answered with {reply.media_type} that is not JSON", hint=_HOST_HINT
        ) from exc
    if not isinstance(answer, dict):
        raise SourceMalformed(
            f"{provider!r} answered with JSON that is not an object", hint=_HOST_HINT
        )
    return answer


def objects_of(provider: str, answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of objects under `key`, the first MOST_OBJECTS of it. Raises SourceMalformed
    when it is missing or of another shape: only an empty list means that nothing was found."""
    found = answer.get(key)
    if not isinstance(found, list):
        raise SourceMalformed(f"{provider!r} answered without a list of {key!r}", hint=_HOST_HINT)
    found = found[:MOST_OBJECTS]
    if not all(isinstance(entry, Mapping) for entry in found):
        raise SourceMalformed(
            f"{provider!r} answered with {key!r} that are not objects", hint=_HOST_HINT
        )
    return found


def text_of(entry: Mapping[str, Any], *keys: str) -> str:
    """Return the first non-blank text among the values of these keys, or ""."""
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def timeout_error(provider: str, seconds: float) -> SourceTimeout:
    """Return the error for a provider that did not answer in time."""
    return SourceTimeout(
        f"{provider!r} did not answer within {seconds:g} s",
        hint="raise search.web.timeout_ms",
    )


def unreachable_error(provider: str, host: str, exc: Exception) -> SourceError:
    """Return the retryable error for a connection that failed."""
    reason = str(exc) or exc.__class__.__name__
    return _mark_retryable(SourceError(f"{provider!r} cannot be reached at {host}: {reason}"))


def too_large_error(provider: str, max_bytes: int) -> SourceError:
    """Return the error for a body beyond `max_bytes`."""
    return SourceError(
        f"{provider!r} answered with more than {max_bytes >> 20} MB", hint=_HOST_HINT
    )


_HOST_HINT = "search.web.host, if set, must be the address of the provider's API"


def _status_error(provider: str, variable: str, reply: HttpReply) -> SourceError:
    status, reason, after = reply.status, _reason(reply.body), retry_after_s(reply.headers)
    if status in (401, 403):
        return SourceRefused(
            f"{provider!r} refused the key ({status}){reason}", hint=f"check {variable}"
        )
    if status == TOO_MANY:
        hint = "try again later" if after is None else f"try again in {after:g} s"
        return _mark_retryable(
            SourceRateLimited(
                f"{provider!r} received too many requests ({status}){reason}", hint=hint
            ),
            after,
        )
    if status in PLAN_USED_UP or (status == 400 and "credit" in reason.lower()):
        return SourceRateLimited(f"the plan's quota at {provider!r} is used up ({status}){reason}")
    if 300 <= status < 400:
        # Without its query, in which a provider may repeat the key.
        where = reply.headers.get("location", "another address").partition("?")[0][:200]
        return SourceError(
            f"{provider!r} redirects ({status}) to {where!r}, which is not followed",
            hint=_HOST_HINT,
        )
    if 400 <= status < 500:
        return SourceRefused(f"{provider!r} refused the request ({status}){reason}")
    failed = SourceError(f"{provider!r} failed ({status}){reason}")
    return _mark_retryable(failed, after) if status in PASSING else failed


def _mark_retryable(error: SourceError, after: float | None = None) -> SourceError:
    """Mark an error as one that a retry may solve, after `after` seconds if given."""
    error.again, error.after = True, after
    return error


def _reason(body: bytes) -> str:
    """Return the provider's reason in one line, with ": " before it, or "": Tavily's
    `detail.error`, Serper's `message`."""
    try:
        answer = read_json(body)
    except NotJson:
        return ""
    if not isinstance(answer, dict):
        return ""
    for place in (answer.get("detail"), answer.get("error"), answer):
        if isinstance(place, dict):
            place = text_of(place, "error", "message")
        if isinstance(place, str) and place:
            return f": {shortened(place, 300)}"
    return ""
