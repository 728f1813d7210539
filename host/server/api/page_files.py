"""The files of the page and of the widget, which the package brings. Their addresses have the hash
of all of them, so browsers keep them for ever; the page and the widget name the current ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.responses import Response

from groundhook.host.server.problems import Refused

FOLDER = Path(__file__).parents[1] / "page"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# No script but the server's own files, and no text that becomes markup: Trusted Types of no name
# make `innerHTML` an error.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "public, no-cache",
}
# The widget's modules are loaded by pages of other sites. They are the same for everyone.
_SHARED_HEADERS = {
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
}


@dataclass(frozen=True)
class _Files:
    version: str
    contents: dict[str, bytes]


@cache
def _files() -> _Files:
    contents = {
        file.name: file.read_bytes()
        for file in sorted(FOLDER.iterdir())
        if file.suffix in (*TYPES, ".html")
    }
    joined = b"\0".join(name.encode() + b"\0" + body for name, body in contents.items())
    return _Files(sha256(joined).hexdigest()[:16], contents)


def address(name: str) -> str:
    """Return the address of a file of the page."""
    return f"/assets/{_files().version}/{name}"


def index(prints_key: bool) -> Response:
    """Return the page; its sign-in says whether `groundhook serve` prints a key."""
    body = _files().contents["index.html"].replace(b"{assets}", address("").encode())
    body = body.replace(b"{key}", b"printed" if prints_key else b"")
    return Response(body, media_type="text/html", headers=_PAGE_HEADERS)


def widget() -> Response:
    """Return the module for pages of other sites."""
    body = f'export * from ".{address("chat.js")}";\n'
    headers = {**_SHARED_HEADERS, "cache-control": "public, no-cache"}
    return Response(body, media_type="text/javascript", headers=headers)


def asset(version: str, name: str) -> Response:
    """Return a file. Raises Refused for one that is not there, or of another version."""
    files = _files()
    body = files.contents.get(name) if version == files.version else None
    type = TYPES.get(Path(name).suffix)
    if body is None or type is None:
        raise Refused("unknown_name", "there is no such file; load the page again")
    headers = {**_SHARED_HEADERS, "cache-control": "public, max-age=31536000, immutable"}
    return Response(body, media_type=type, headers=headers)
