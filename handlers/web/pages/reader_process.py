"""The process that parses untrusted pages, one request at a time: `python -m
groundhook.handlers.web.pages.reader_process FD`.

FD is the file descriptor of a socket to the host.

    ready {}                                  → null, after the slow imports
    read {body, media_type, charset, query}   → {title, passage, published, characters}; the
                                                whole text if `query` is null
    robots {text, agent, url}                 → true if robots.txt allows the page

Frames are those of `core.workers`. The host ends the process if a request takes too long.
"""

from __future__ import annotations

import resource
import socket
import sys
from typing import Any

from groundhook.core.errors import HostError, IngestError
from groundhook.core.extras import extra
from groundhook.core.workers import (
    ANSWER,
    HEADER,
    REFUSAL,
    describe,
    pack,
    socket_of_child,
    unpack,
)
from groundhook.handlers.web.pages.extract import extract_page, warm
from groundhook.handlers.web.pages.passages import best_passage

MEMORY = 2 * 1024**3  # bytes of address space; a page that needs more fails


def answer(operation: str, body: dict[str, Any]) -> Any:
    """Return the answer to one request. Raises IngestError for a page that cannot be read."""
    if operation == "ready":
        warm()
        return None
    if operation == "robots":
        with extra("web", "reading pages", IngestError):
            from protego import Protego

        return bool(Protego.parse(body["text"]).can_fetch(body["url"], body["agent"]))
    page = extract_page(body["body"], body["media_type"], body["charset"])
    query = body["query"]
    passage = page.text if query is None else best_passage(page.text, query)
    return {
        "title": page.title,
        "passage": passage,
        "published": page.published,
        "characters": len(page.text),
    }


def serve(channel: socket.socket) -> None:
    """Answer requests until the host closes its end."""
    stream = channel.makefile("rb")
    while head := stream.read(HEADER.size):
        _, id, operation, body = unpack(stream.read(HEADER.unpack(head)[0]))
        try:
            frame = pack(ANSWER, id, "", answer(operation, body))
        except HostError as exc:
            frame = pack(REFUSAL, id, "", describe(exc))
        except Exception as exc:  # noqa: BLE001 - parsers raise anything on untrusted input
            problem = f"it cannot be read: {exc.__class__.__name__}"
            frame = pack(REFUSAL, id, "", describe(IngestError(problem)))
        channel.sendall(frame)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with socket_of_child(sys.argv[1]) as connection:
        serve(connection)
