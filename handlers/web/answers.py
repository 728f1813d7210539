"""What a provider's answer means, good or bad: one reading for all of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from groundhook.host.core.errors import (
    SourceError,
    SourceMalformed,
    SourceRateLimited,
    SourceRefused,
    SourceTimeout,
)

TOO_MANY = 429
PLAN_USED_UP = (432, 433)  # Tavily's: the plan's limit, the pay-as-you-go limit
PASSING = (500, 502, 503, 504)  # a search has no effects, so it may be tried again


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer as it came over the wire, decompressed; names of `headers` are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip() or "text"


def judge(provider: str, variable: str, reply: Reply) -> dict[str, Any]:
    """The JSON object of a good answer. `variable` is the environment variable that holds the key.

    Raises SourceRefused (401, 403, other 4xx), SourceRateLimited (429, a used-up plan), SourceError
    (5xx, redirects) or SourceMalformed (no JSON object). Those that may pass say that they may be
    tried again, and when.
    """
    if reply.status != 200:
        raise _refusal(provider, variable, reply)
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError) as exc:
        raise SourceMalformed(
            f"{provider!r} answered with {reply.kind} that is not JSON", hint=_HOST_HINT
        ) from exc
    if not isinstance(answer, dict):
        raise SourceMalformed(
            f"{provider!r} answered with JSON that is not an object", hint=_HOST_HINT
        )
    return answer


def listed(provider: str, answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The list of objects under `key`. Raises SourceMalformed when it is missing or something else:
    an empty object is not an answer that found nothing."""
    found = answer.get(key)
    if not isinstance(found, list):
        raise SourceMalformed(f"{provider!r} answered without a list of {key!r}", hint=_HOST_HINT)
    if not all(isinstance(entry, Mapping) for entry in found):
        raise SourceMalformed(
            f"{provider!r} answered with {key!r} that are not objects", hint=_HOST_HINT
        )
    return found


def text_of(entry: Mapping[str, Any], *keys: str) -> str:
    """The first of these keys that holds text."""
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def late(provider: str, seconds: float) -> SourceTimeout:
    return SourceTimeout(
        f"{provider!r} did not answer within {seconds:g} s",
        hint="search.web.timeout_ms sets how long",
    )


def unreachable(provider: str, host: str, exc: Exception) -> SourceError:
    reason = str(exc) or exc.__class__.__name__
    return _again(SourceError(f"{provider!r} cannot be reached at {host}: {reason}"))


def too_large(provider: str, most: int) -> SourceError:
    return SourceError(f"{provider!r} answered with more than {most >> 20} MB", hint=_HOST_HINT)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks to wait (RFC 9110, section 10.2.3). A date is read against
    the answer's own `Date`."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(min(int(said[:9]), 86_400))
    try:
        until, now = parsedate_to_datetime(said), parsedate_to_datetime(headers.get("date", ""))
        return min(max((until - now).total_seconds(), 0.0), 86_400.0)
    except (
        ValueError,
        TypeError,
        OverflowError,
    ):  # no date, or one with a zone against one without
        return None


_HOST_HINT = "search.web.host, if set, must be the address of the provider's API"


def _refusal(provider: str, variable: str, reply: Reply) -> SourceError:
    status, said, after = reply.status, _said(reply.body), retry_after(reply.headers)
    if status in (401, 403):
        return SourceRefused(
            f"{provider!r} refused the key ({status}){said}", hint=f"check {variable}"
        )
    if status == TOO_MANY:
        hint = "try again later" if after is None else f"try again in {after:g} s"
        return _again(
            SourceRateLimited(
                f"{provider!r} has had too many requests ({status}){said}", hint=hint
            ),
            after,
        )
    if status in PLAN_USED_UP or (status == 400 and "credit" in said.lower()):
        return SourceRateLimited(f"the plan's quota at {provider!r} is used up ({status}){said}")
    if 300 <= status < 400:
        where = reply.headers.get("location", "somewhere else")[:200]
        return SourceError(
            f"{provider!r} redirects ({status}) to {where!r}, which is not followed",
            hint=_HOST_HINT,
        )
    if 400 <= status < 500:
        return SourceRefused(f"{provider!r} refused the request ({status}){said}")
    failed = SourceError(f"{provider!r} failed ({status}){said}")
    return _again(failed, after) if status in PASSING else failed


def _again(error: SourceError, after: float | None = None) -> SourceError:
    error.again, error.after = True, after
    return error


def _said(body: bytes) -> str:
    """What the provider says about its refusal, in one line: Tavily's `detail.error`, Serper's
    `message`."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(answer, dict):
        return ""
    for place in (answer.get("detail"), answer.get("error"), answer):
        if isinstance(place, dict):
            place = text_of(place, "error", "message")
        if isinstance(place, str) and place:
            return f": {' '.join(place.split())[:300]}"
    return ""
