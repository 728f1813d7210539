"""`http`: requests to the hosts that the assistant's settings declare.

Defines the order of the arguments, which existing packages use (`http.Post(url, body, files, query,
headers)`), and the shape of the answer. The host enforces the declared hosts and the limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.hooks.api.row import HostCall, RunCall, kind_of, pad, quote

FORM = "application/x-www-form-urlencoded"
TYPES = """\
/** The response, whatever its status. `code` is `status`; names of `headers` are in lower case;
 * `data` is the JSON value of a body of type JSON, else text; `message` is empty for a success,
 * else the status as text. */
interface HttpAnswer {
  status: number;
  code: number;
  message: string;
  url: string;
  headers: Record<string, string>;
  data: any;
}

type HttpQuery = string | Record<string, any> | (string | Record<string, any>)[];
type HttpHeaders = Record<string, string | number> | Record<string, string | number>[];
"""


def _run(method: str, names: tuple[str, ...]) -> RunCall:
    """Return the function of a call. `names` are its arguments in order; if they include `method`,
    that argument is the method."""

    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        given = dict(zip(names, pad(arguments, len(names)), strict=True))
        verb, url = given.get("method", method), given["url"]
        for noun, value in (("method", verb), ("url", url)):
            if not isinstance(value, str) or not value:
                raise UsageError(
                    f"{call.js}: the {noun} must be text that is not empty, not {quote(value)}"
                )
        if given.get("files"):
            raise UsageError(
                f"{call.js}: files cannot be sent",
                hint="a hook has none; send text or JSON as the body",
            )
        headers = _parse_headers(call.js, given.get("headers"))
        query, body = (
            _parse_query(call.js, given.get("query")),
            _parse_body(call.js, given.get("body"), headers),
        )
        try:
            answer = await services.web.request(verb, url, query=query, headers=headers, body=body)
        except UsageError as exc:
            # The client does not know by which call it was reached.
            raise UsageError(f"{call.js}: {exc.message}", hint=exc.hint) from exc
        return json.dumps(answer)

    return run


def _parse_query(where: str, raw: Any) -> dict[str, list[Any]]:
    """Return every name with its values, of text (`a=1&b=2`), an object, or a list of either."""
    query: dict[str, list[Any]] = {}
    for part in raw if isinstance(raw, list) else [] if raw is None else [raw]:
        if isinstance(part, str):
            pairs: list[tuple[str, Any]] = list(
                parse_qsl(part.removeprefix("?"), keep_blank_values=True)
            )
        elif isinstance(part, Mapping):
            pairs = [
                (name, one)
                for name, value in part.items()
                for one in (value if isinstance(value, list) else [value])
            ]
        else:
            raise UsageError(
                f"{where}: the query must be an object, text, or a list of these, not"
                f" {kind_of(part)}"
            )
        for name, value in pairs:
            if value is not None:  # hooks leave out a parameter by setting it to null
                query.setdefault(name, []).append(value)
    return query


def _parse_headers(where: str, raw: Any) -> dict[str, str]:
    headers: dict[str, str] = {}
    for part in raw if isinstance(raw, list) else [] if raw is None else [raw]:
        if not isinstance(part, Mapping):
            raise UsageError(
                f"{where}: the headers must be an object, or a list of these, not {kind_of(part)}"
            )
        for name, value in part.items():
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                raise UsageError(
                    f"{where}: the header {name!r} must be text or a number, not {kind_of(value)}"
                )
            headers[name] = str(value)
    return headers


def _parse_body(where: str, raw: Any, headers: Mapping[str, str]) -> Any:
    """Return the body: text unchanged, an object as a form if the headers have that content type,
    any other value to be sent as JSON."""
    content_type = next(
        (value for name, value in headers.items() if name.lower() == "content-type"), ""
    )
    # The boundary in the header would have to be in the body, which is a text or JSON here.
    if content_type.lower().startswith("multipart/"):
        raise UsageError(
            f"{where}: a body in several parts cannot be sent", hint="send text, JSON or a form"
        )
    if isinstance(raw, Mapping) and content_type.partition(";")[0].strip().lower() == FORM:
        return urlencode(
            {name: value for name, value in raw.items() if value is not None}, doseq=True
        )
    return raw


def _make_row(name: str, doc: str, names: tuple[str, ...], *, effect: bool = True) -> HostCall:
    types = {
        "method": "method: string",
        "url": "url: string",
        "body": "body?: any",
        "files": "files?: null",
        "query": 'query?: import("groundhook").HttpQuery | null',
        "headers": 'headers?: import("groundhook").HttpHeaders | null',
    }
    ts = f'({", ".join(types[each] for each in names)}): import("groundhook").HttpAnswer'
    return HostCall(
        js=f"http.{name}", doc=doc, run=_run(name.upper(), names), ts=ts, types=TYPES, effect=effect
    )


WITH_BODY = ("url", "body", "query", "headers")

# Requests that only read are no effects: a run that made them may be repeated.
ROWS: tuple[HostCall, ...] = (
    _make_row(
        "Get",
        "Send a GET request to a declared host; return its response.",
        ("url", "query", "headers"),
        effect=False,
    ),
    _make_row(
        "Post",
        "Send a POST request to a declared host; return its response.",
        ("url", "body", "files", "query", "headers"),
    ),
    _make_row("Put", "Send a PUT request to a declared host; return its response.", WITH_BODY),
    _make_row("Patch", "Send a PATCH request to a declared host; return its response.", WITH_BODY),
    _make_row(
        "Delete", "Send a DELETE request to a declared host; return its response.", WITH_BODY
    ),
    _make_row(
        "Head",
        "Send a HEAD request to a declared host; return its response.",
        WITH_BODY,
        effect=False,
    ),
    _make_row(
        "Send",
        "Send a request with any method to a declared host; return its response.",
        ("method", *WITH_BODY),
    ),
)
