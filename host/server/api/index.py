"""What a visitor finds at the address of the server: its endpoints, and how to ask. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from groundhook.host.server.serving import Endpoint

DOCS = "groundhook docs http"
SIGN_IN = (
    "send `Authorization: Bearer <key>`;"
    " `groundhook serve` prints a key, `groundhook keys` adds one"
)


def index_document(endpoints: Sequence[Endpoint], url: str) -> dict[str, Any]:
    """Return the index of a server at an address, for programs."""
    return {
        "name": "Groundhook",
        "docs": DOCS,
        "openapi": f"{url}/openapi.json",
        "sign_in": SIGN_IN,
        "example": _example(url),
        "endpoints": [
            {
                "method": each.method,
                "path": _path(each),
                "scope": None if each.open else each.scope or "any",
                "about": each.about,
            }
            for each in endpoints
        ],
    }


def index_page(endpoints: Sequence[Endpoint], url: str) -> str:
    """Return the same as a page for browsers: without scripts and styles, which the server's
    Content-Security-Policy forbids."""
    rows = "".join(
        f"<tr><td><code>{each.method} {escape(_path(each))}</code></td>"
        f"<td>{escape(_plain(each.about))}</td></tr>\n"
        for each in endpoints
    )
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Groundhook</title></head>
<body>
<h1>Groundhook</h1>
<p>This is a server for programs; it has no page to chat on.</p>
<p>Ask an assistant, with its name and your key:</p>
<pre>{escape(_example(url))}</pre>
<p>Documentation: <code>{DOCS}</code>, and <a href="/openapi.json">OpenAPI</a>.</p>
<table>
<tr><th>Endpoint</th><th>What it does</th></tr>
{rows}</table>
</body>
</html>
"""


def _example(url: str) -> str:
    return (
        f'curl -N {url}/api/turns -H "Authorization: Bearer $KEY" -H \'Content-Type:'
        ' application/json\' -d \'{"assistant": "NAME", "text": "What can you help me with?"}\''
    )


def _path(endpoint: Endpoint) -> str:
    return endpoint.path.replace(":path", "")


def _plain(about: str) -> str:
    """Return a sentence of the table without the signs of Markdown."""
    return re.sub(r"[`*]", "", about)
