"""What a program finds at the address of the server: its endpoints, and how to ask. Pure."""

from __future__ import annotations

from collections.abc import Sequence
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


def _example(url: str) -> str:
    return (
        f'curl -N {url}/api/turns -H "Authorization: Bearer $KEY" -H \'Content-Type:'
        ' application/json\' -d \'{"assistant": "NAME", "text": "What can you help me with?"}\''
    )


def _path(endpoint: Endpoint) -> str:
    return endpoint.path.replace(":path", "")
