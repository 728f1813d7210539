"""Connections to judged addresses: a name is looked up once, and the connection goes to an address
that was judged.

It stands where the HTTP library opens its sockets, so there is no way around it and no second
look-up. TLS and the `Host` header speak of the name as before.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
import httpcore2

from groundhook.host.core.errors import NotPermitted, SourceError
from groundhook.host.core.types.hosts import Address, Declared, Host, parse_host, reachable, special

Resolve = Callable[
    [str, int], Awaitable[Sequence[str]]
]  # name, port → addresses as text, best first

STAGGER = (
    0.25  # seconds until the next address is tried beside the one before (RFC 8305, section 5)
)
FAILURES = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


async def look_up(name: str, port: int) -> Sequence[str]:
    """The addresses of a name, by the resolver of the machine. Raises SourceError."""
    try:
        found = await anyio.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise SourceError(f"the host {name!r} cannot be found: {exc}") from exc
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections to addresses that were judged, and to nothing else."""

    def __init__(self, rules: Sequence[Declared], resolve: Resolve) -> None:
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
        addresses = await self._judged(parse_host(host), port)
        return await self._fastest(addresses, port, socket_options)

    async def _judged(self, host: Host, port: int) -> list[Address]:
        texts = await self._resolve(host, port) if isinstance(host, str) else [str(host)]
        found = [ipaddress.ip_address(text) for text in texts]
        if not found:
            raise SourceError(f"the host {host!r} cannot be found: it has no address")
        judged = [address for address in found if reachable(self._rules, host, address, port)]
        if not judged:
            shown, kind = str(found[0]), special(found[0])
            leads = f"{host!r} leads to {shown}," if isinstance(host, str) else f"{shown} is"
            raise NotPermitted(
                f"{leads} {kind} address",
                hint=f"add {shown!r} to http.hosts in package.yao as well, if it is meant",
            )
        return judged

    async def _fastest(
        self, addresses: Sequence[Address], port: int, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address that takes one; each has a head start over the next."""
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
            over.set()

        try:
            async with anyio.create_task_group() as tasks:
                for address in addresses:
                    over = anyio.Event()
                    tasks.start_soon(attempt, address, over)
                    with anyio.move_on_after(STAGGER):
                        await over.wait()
            won = open_[0] if open_ else None
        finally:
            for late in (stream for stream in open_ if stream is not won):
                with anyio.move_on_after(1, shield=True):
                    await late.aclose()
        if won is None:
            raise failures[0]
        return won
