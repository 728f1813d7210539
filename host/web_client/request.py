"""Validation of an HTTP request before it is sent, and of the request that follows a redirect.
Pure.

Scheme, host, port, method and headers are validated and normalized here, so that later checks see
exactly what is sent.
"""

from __future__ import annotations

import json as json_format
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpcore2
import httpx2

from groundhook.core.errors import SourceMalformed, UsageError
from groundhook.core.types.hosts import HostOrAddress, parse_host

DEFAULT_PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Headers that set the target or the framing of a request; only the client may set them.
RESERVED = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "accept-encoding",
        "proxy-authorization",
        "proxy-connection",
    }
)
# Headers without information about the caller; only these are sent to another host after a
# redirect.
CROSS_HOST_HEADERS = frozenset({"accept", "accept-language", "user-agent", "content-type"})

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_FIELD = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, kw_only=True)
class OutgoingRequest:
    """A valid request. `url` has the host in the spelling of `host`; names of `headers` are in
    lower case."""

    method: str
    url: httpx2.URL
    host: HostOrAddress
    headers: Mapping[str, str]
    content: bytes | None

    @classmethod
    def made(
        cls,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None,
        query: Mapping[str, Any] | None,
        body: str | bytes | None,
        json: Any,
    ) -> OutgoingRequest:
        """Build a request. Raises UsageError if it is invalid."""
        try:
            parsed, host = _parse_url(url)
            if query:
                parsed = parsed.copy_merge_params(_check_query(query))
        except (ValueError, httpx2.InvalidURL) as exc:
            raise UsageError(f"{url!r} cannot be requested: {exc}"[:500]) from exc
        checked = _check_headers(headers or {})
        content = _make_content(body, json, checked)
        return cls(
            method=_check_method(method), url=parsed, host=host, headers=checked, content=content
        )

    @property
    def port(self) -> int:
        return self.url.port or DEFAULT_PORTS[self.url.scheme]

    @property
    def declaration(self) -> str:
        """The entry of `http.hosts` that would allow this request."""
        return self.url.netloc.decode("ascii")

    def request(self) -> httpcore2.Request:
        """Return the request for the HTTP library."""
        defaults = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "groundhook"}
        made = httpx2.Request(
            self.method,
            self.url,
            headers=_encode_headers({**defaults, **self.headers}),
            content=self.content,
        )
        # From the parts of the checked URL: another parser might read the text differently.
        target = httpcore2.URL(
            scheme=self.url.raw_scheme,
            host=self.url.raw_host,
            port=self.url.port,
            target=self.url.raw_path,
        )
        return httpcore2.Request(
            self.method, target, headers=made.headers.raw, content=made.content
        )


def redirected(before: OutgoingRequest, response: httpx2.Response) -> OutgoingRequest | None:
    """Return the request that an answer redirects to, or None if it does not redirect. Method and
    body follow the Fetch standard (https://fetch.spec.whatwg.org/#http-redirect-fetch, steps
    12-14). Raises SourceMalformed."""
    location = response.headers.get("location")
    if response.status_code not in REDIRECTS or location is None:
        return None
    try:
        url, host = _parse_url(str(before.url.join(location)))
    except (ValueError, httpx2.InvalidURL) as exc:
        raise SourceMalformed(
            f"{str(before.host)!r} redirects to {location[:200]!r}, which cannot be requested:"
            f" {exc}"
        ) from exc
    onward = replace(before, url=url, host=host)
    if _loses_body(before.method, response.status_code):
        kept = {
            name: value for name, value in onward.headers.items() if not name.startswith("content-")
        }
        onward = replace(onward, method="GET", headers=kept, content=None)
    # Another origin must not get the caller's keys and cookies; also a change from https to http.
    if (url.scheme, host, onward.port) != (before.url.scheme, before.host, before.port):
        onward = replace(
            onward,
            headers={
                name: value for name, value in onward.headers.items() if name in CROSS_HOST_HEADERS
            },
        )
    return onward


def _loses_body(method: str, status: int) -> bool:
    return (status in (301, 302) and method == "POST") or (
        status == 303 and method not in ("GET", "HEAD")
    )


def _parse_url(text: str) -> tuple[httpx2.URL, HostOrAddress]:
    """Return a URL with a normalized host, and the host. Raises ValueError or InvalidURL."""
    if not isinstance(text, str):
        raise ValueError("a URL must be text")
    url = httpx2.URL(text)
    if url.scheme not in DEFAULT_PORTS:
        raise ValueError("its scheme is not http or https")
    if url.userinfo:  # would be in logs, traces and error messages
        raise ValueError("it contains a user; send credentials in the 'Authorization' header")
    if url.port is not None and not 0 < url.port < 65536:
        raise ValueError("a port must be between 1 and 65535")
    host = parse_host(url.raw_host.decode("ascii"))
    return url.copy_with(host=str(host), fragment=None), host


def _check_method(method: str) -> str:
    if (
        not isinstance(method, str)
        or not _TOKEN.fullmatch(method)
        or method.upper() in ("CONNECT", "TRACE")  # tunnels, and repeats the request's headers
    ):
        raise UsageError(
            f"{method!r} is not an allowed request method",
            hint="use GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS",
        )
    return method.upper()


def _check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise UsageError(f"{name!r} is not a valid header name")
        if name.lower() in RESERVED:
            raise UsageError(f"the header {name!r} cannot be set: Groundhook sets it itself")
        if not isinstance(value, str) or not _FIELD.fullmatch(value):
            raise UsageError(
                f"the value of the header {name!r} must be one line of characters up to U+00FF"
            )
        # One spelling of each name, so that checks of redirects and defaults find it.
        checked[name.lower()] = value.strip()
    return checked


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]


def _check_query(query: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in query.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is not None and not isinstance(each, str | int | float | bool):
                raise ValueError(
                    f"the query's {name!r} must be text, a number, a boolean, or a list of these"
                )
    return dict(query)


def _make_content(body: str | bytes | None, json: Any, headers: dict[str, str]) -> bytes | None:
    """Return the body's bytes, and set its content type in `headers` unless it is set."""
    if body is not None and json is not None:
        raise UsageError("a request has either 'body' or 'json', not both")
    if json is not None:
        headers.setdefault("content-type", "application/json")
        try:
            return json_format.dumps(json, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as exc:
            raise UsageError(f"the request's 'json' is not JSON: {exc}") from exc
    if isinstance(body, str):
        headers.setdefault("content-type", "text/plain; charset=utf-8")
        return body.encode("utf-8", "replace")  # JavaScript text may have half of a surrogate pair
    if body is not None and not isinstance(body, bytes):
        raise UsageError("a request's 'body' must be text or bytes; send other values as 'json'")
    return body
