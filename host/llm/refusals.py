"""Translates an endpoint's refusal into an error, by its status and its text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from groundhook.core.concealed import shortened
from groundhook.core.errors import ModelContextExceeded, ModelError, ModelRefused
from groundhook.core.retry_after import retry_after_s

AGAIN = frozenset({408, 409, 429})  # and every 5xx: the same request may succeed later
_READ = 20_000  # characters of a refusal; a megabyte takes a tenth of a second
LONGEST_WAIT = 60.0  # seconds; a request that would have to wait longer is not tried again

_OVERFLOW = re.compile(
    r"context[ _](?:length|size|window)|exceed_context|maximum (?:context|sequence|prompt) length"
    r"|(?:prompt|input|request) is too (?:long|large)|too many (?:input )?tokens|max_model_len"
    r"|reduce the length of|longer than the model",
    re.I,
)
_SYSTEM_ROLE = re.compile(r"system (?:role|message|prompt)|role[^.]{0,20}system", re.I)

OVERFLOW_HINT = (
    "fewer sources (search.rerank.top_k), less room for the answer (options.max_tokens), a shorter"
    " conversation, or a model with a larger context"
)


def refusal(
    name: str, status: int, body: Any, headers: Mapping[str, str], *, keyless: bool
) -> ModelError:
    """Return the error for a response with a status other than 2xx."""
    text = words(body)
    detail = f": {text}" if text else ""
    if status in (400, 413, 422, 500) and is_overflow(f"{text} {body}"):
        return overflow(name, detail)
    error = _status_error(name, status, detail, keyless)
    error.after = retry_after_s(headers)
    error.again = (status in AGAIN or status >= 500) and (error.after or 0) <= LONGEST_WAIT
    return error


def is_overflow(text: str) -> bool:
    return _OVERFLOW.search(text[:_READ]) is not None


def overflow(name: str, detail: str) -> ModelContextExceeded:
    return ModelContextExceeded(
        f"the request is longer than the context of model {name!r}{detail}", hint=OVERFLOW_HINT
    )


def words(body: Any) -> str:
    """Return the endpoint's own message, in one line."""
    if isinstance(body, Mapping):
        text = str(body.get("message") or body.get("detail") or "")
    else:
        # A page of HTML, as proxies send it, is not a message.
        text = body if isinstance(body, str) and not body.lstrip().startswith("<") else ""
    return shortened(text, 300)


def _status_error(name: str, status: int, detail: str, keyless: bool) -> ModelError:
    if status in (401, 403):
        hint = (
            "no key is set; see options.key of the connector"
            if keyless
            else "check options.key of the connector"
        )
        return ModelRefused(f"model {name!r} refused the key ({status}){detail}", hint=hint)
    if status == 429:
        return ModelRefused(
            f"model {name!r} refused for now: rate limit or quota (429){detail}",
            hint="try again later",
        )
    if status == 404:
        return ModelRefused(
            f"model {name!r} was not found (404){detail}",
            hint="check options.model and options.host of the connector",
        )
    if status >= 500:
        return ModelError(f"model {name!r} failed ({status}){detail}")
    hint = (
        'options.system: "none" of the connector sends no system message'
        if _SYSTEM_ROLE.search(detail)
        else ""
    )
    return ModelRefused(f"model {name!r} refused the request ({status}){detail}", hint=hint)
