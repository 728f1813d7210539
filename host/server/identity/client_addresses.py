"""Addresses of clients and of proxies between them and the server. Pure.

One client has one address, however it is written: a socket for both versions of IP names a client
of IPv4 `::ffff:192.0.2.1`, which is `192.0.2.1`, and some proxies add a port, which is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_PORT = re.compile(r"(\[.*\]|[^:]*):\d{1,5}")
LONGEST = 100  # characters of what is no address


def plain(text: str) -> str:
    """Return the address in its one form; what is no address stays as it is, cut."""
    text = text.strip()
    if with_port := _PORT.fullmatch(text):
        text = with_port[1]
    ip = _ip(text.strip("[]"))
    return str(ip) if ip is not None else text[:LONGEST]


def is_loopback(address: str) -> bool:
    """Return whether an address or host name is this machine's own."""
    ip = _ip(address.strip("[]"))
    return ip.is_loopback if ip is not None else address == "localhost"


def within(address: str, networks: Iterable[str]) -> bool:
    """Return whether an address is in one of the networks."""
    ip = _ip(address)
    return ip is not None and any(ip in ip_network(each, strict=False) for each in networks)


def network(address: str) -> str:
    """Return the address that limits count by: of IPv6 the network of 64 bits."""
    ip = _ip(address)
    if isinstance(ip, IPv6Address):
        return str(ip_network((ip, 64), strict=False))
    return address if ip is None else str(ip)


def client_behind(proxies: Sequence[str], sender: str, forwarded: Iterable[str]) -> str:
    """Return the address of a client. `forwarded` are all X-Forwarded-For lines of its request, to
    which each proxy adds the address that it was reached from. So the client is the rightmost one
    that is not a trusted proxy: what is left of it may be the client's own invention."""
    if not within(sender, proxies):
        return sender
    for hop in reversed(",".join(forwarded).split(",")):
        if hop := plain(hop):
            sender = hop
        if not within(sender, proxies):
            break
    return sender


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        ip = ip_address(text)
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip
