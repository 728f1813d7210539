"""The process that parses strangers' texts, one at a time: `python -m
groundhook.core.readers.process FD`.

FD is the file descriptor of a socket to the host.

    load MODULE                         → null, after its imports and its `warm()`, if it has one
    MODULE:FUNCTION {arguments, named}  → what the function returns

Frames are those of `core.workers`. The host kills the process if a request takes too long.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from groundhook.core.errors import HostError, IngestError
from groundhook.core.workers import (
    ANSWER,
    HEADER,
    REFUSAL,
    describe,
    pack,
    socket_of_child,
    unpack,
)

LOAD = "load"
MEMORY = 2 * 1024**3  # bytes of address space; a text that needs more fails


def name_of(parse: Callable[..., Any]) -> str:
    """Return the name by which the process finds a function."""
    return f"{parse.__module__}:{parse.__qualname__}"


def answer(operation: str, body: Any) -> Any:
    """Return the answer to one request. Raises what the parser raises."""
    if operation == LOAD:
        warm = getattr(import_module(body), "warm", None)
        return warm() if warm else None
    module, _, function = operation.partition(":")
    return getattr(import_module(module), function)(*body["arguments"], **body["named"])


def serve(channel: socket.socket) -> None:
    """Answer requests until the host closes its end."""
    stream = channel.makefile("rb")
    while head := stream.read(HEADER.size):
        _, id, operation, body = unpack(stream.read(HEADER.unpack(head)[0]))
        try:
            frame = pack(ANSWER, id, "", answer(operation, body))
        except Exception as exc:  # noqa: BLE001 - parsers raise anything on untrusted input
            frame = pack(REFUSAL, id, "", describe(_as_error(exc)))
        channel.sendall(frame)


def _as_error(exc: Exception) -> HostError:
    if isinstance(exc, HostError):
        return exc
    if isinstance(exc, RecursionError):
        return IngestError("it is nested too deeply to be read")
    if isinstance(exc, MemoryError):
        return IngestError(f"to read it takes more than {MEMORY >> 30} GB of memory")
    return IngestError(f"it cannot be read: {exc.__class__.__name__}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with socket_of_child(sys.argv[1]) as connection:
        serve(connection)
