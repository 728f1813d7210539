"""Connections to checked addresses: a name is resolved once, and the connection goes to an address
that passed the check.

The guard is the network backend of the HTTP library, so every connection passes through it and no
second look-up happens. TLS and the `HostOrAddress` header still use the name.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
import httpcore2

from groundhook.core.errors import NotPermitted, SourceError
from groundhook.core.types.hosts import (
    Address,
    HostOrAddress,
    HostRule,
    parse_host,
    reachable,
    special,
)

# name, port → addresses as text, best first
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

# Seconds before the next address is tried while the previous one is pending (RFC 8305, section 5).
STAGGER = 0.25
FAILURES = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


async def look_up(name: str, port: int) -> Sequence[str]:
    """Return the addresses of a name by the machine's resolver. Raises SourceError."""
    try:
        entries = await anyio.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise SourceError(f"the host {name!r} cannot be found: {exc}") from exc
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in entries))


class Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections to addresses that `rules` allow, and to no others."""

    def __init__(self, rules: Sequence[HostRule], resolve: Resolve) -> None:
        self._rules = rules
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the library's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        # `timeout` is unused: the client has one deadline around the whole request.
        addresses = await self.allowed_addresses(parse_host(host), port)
        return await self._connect_first(addresses, port, socket_options)

    async def allowed_addresses(self, host: HostOrAddress, port: int) -> list[Address]:
        """Resolve a host and return its allowed addresses. Raises SourceError, and NotPermitted if
        none is allowed."""
        texts = await self._resolve(host, port) if isinstance(host, str) else [str(host)]
        found = [ipaddress.ip_address(text) for text in texts]
        if not found:
            raise SourceError(f"the host {host!r} cannot be found: it has no address")
        # An attacker's name may have public and private addresses: only the public ones are tried.
        allowed = [address for address in found if reachable(self._rules, host, address, port)]
        if not allowed:
            shown, kind = str(found[0]), special(found[0])
            subject = f"{host!r} resolves to {shown}," if isinstance(host, str) else f"{shown} is"
            raise NotPermitted(
                f"{subject} {kind} address",
                hint=f"to allow it, add {shown!r} to http.hosts in package.yao as well",
            )
        return allowed

    async def _connect_first(
        self, addresses: Sequence[Address], port: int, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to the first address that accepts; each address has a head start over
        the next."""
        open_: list[httpcore2.AsyncNetworkStream] = []
        won: httpcore2.AsyncNetworkStream | None = None
        failures: list[Exception] = []

        async def attempt(address: Address, over: anyio.Event) -> None:
            try:
                stream = await self._network.connect_tcp(str(address), port, socket_options=options)
            except FAILURES as exc:
                failures.append(exc)
            else:
                open_.append(stream)
                tasks.cancel_scope.cancel()
            over.set()  # an address that fails early does not use up its head start

        try:
            async with anyio.create_task_group() as tasks:
                for address in addresses:
                    over = anyio.Event()
                    tasks.start_soon(attempt, address, over)
                    with anyio.move_on_after(STAGGER):
                        await over.wait()
            won = open_[0] if open_ else None
        finally:
            # Two may have connected before the cancellation; and all of them if the caller was
            # cancelled.
            for unused in (stream for stream in open_ if stream is not won):
                with anyio.move_on_after(1, shield=True):
                    await unused.aclose()
        if won is None:
            raise failures[0]  # of the preferred address
        return won
