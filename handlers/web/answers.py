"""What a provider's answer means, good or bad: one reading for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from host.errors import SourceError, SourceMalformed, SourceRateLimited, SourceRefused, SourceTimeout

TOO_MANY = 429
PLAN_USED_UP = (432, 433)  # Tavily's: the plan's limit, the pay-as-you-go limit


def judge(provider: str, variable: str, status: int, content_type: str, body: bytes) -> dict[str, Any]:
    """The JSON object of a good answer. `variable` is the environment variable that holds the key.

    Raises SourceRefused (401, 403, other 4xx), SourceRateLimited (429, a used-up plan), SourceError (5xx, redirects) or
    SourceMalformed (no JSON object).
    """
    if status != 200:
        raise _refusal(provider, variable, status, _said(body))
    try:
        answer = json.loads(body)
    except ValueError as exc:
        kind = content_type.partition(";")[0].strip() or "text"
        raise SourceMalformed(f"{provider!r} answered with {kind} that is not JSON", hint=_HOST_HINT) from exc
    if not isinstance(answer, dict):
        raise SourceMalformed(f"{provider!r} answered with JSON that is not an object", hint=_HOST_HINT)
    return answer


def listed(provider: str, answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The list of objects under `key`. Raises SourceMalformed when it is missing or something else: an empty object
    is not an answer that found nothing."""
    found = answer.get(key)
    if not isinstance(found, list):
        raise SourceMalformed(f"{provider!r} answered without a list of {key!r}", hint=_HOST_HINT)
    if not all(isinstance(entry, Mapping) for entry in found):
        raise SourceMalformed(f"{provider!r} answered with {key!r} that are not objects", hint=_HOST_HINT)
    return found


def text_of(entry: Mapping[str, Any], *keys: str) -> str:
    """The first of these keys that holds text."""
    return next((value for key in keys if isinstance(value := entry.get(key), str) and value.strip()), "")


def late(provider: str, seconds: float) -> SourceTimeout:
    return SourceTimeout(f"{provider!r} did not answer within {seconds:g} s", hint="search.web.timeout_ms sets how long")


def unreachable(provider: str, host: str, exc: Exception) -> SourceError:
    reason = str(exc) or exc.__class__.__name__
    return SourceError(f"{provider!r} cannot be reached at {host}: {reason}")


_HOST_HINT = "search.web.host, if set, must be the address of the provider's API"


def _refusal(provider: str, variable: str, status: int, said: str) -> SourceError:
    if status in (401, 403):
        return SourceRefused(f"{provider!r} refused the key ({status}){said}", hint=f"check {variable}")
    if status == TOO_MANY:
        return SourceRateLimited(f"{provider!r} has had too many requests ({status}){said}", hint="try again later")
    if status in PLAN_USED_UP or (status == 400 and "credit" in said.lower()):
        return SourceRateLimited(f"the plan's quota at {provider!r} is used up ({status}){said}")
    if 400 <= status < 500:
        return SourceRefused(f"{provider!r} refused the request ({status}){said}")
    return SourceError(f"{provider!r} failed ({status}){said}")


def _said(body: bytes) -> str:
    """What the provider says about its refusal, in one line: Tavily's `detail.error`, Serper's `message`."""
    try:
        answer = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(answer, dict):
        return ""
    for place in (answer.get("detail"), answer.get("error"), answer):
        if isinstance(place, dict):
            place = text_of(place, "error", "message")
        if isinstance(place, str) and place:
            return f": {' '.join(place.split())[:300]}"
    return ""
