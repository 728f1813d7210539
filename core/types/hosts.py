"""Hosts of the web: parsing, lists of declared hosts, and special-purpose addresses.

Pure: nothing here resolves a name. A host is a DNS name in lower case and ASCII, without a dot at
its end, or an IP address. Spellings of an address that only some programs accept (`127.1`,
`0x7f.0.0.1`, `2130706433`) are errors.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

import idna

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
HostOrAddress = str | ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"(.*?)(?::([0-9]{1,5}))?", re.DOTALL)

# The special-purpose registries of IANA (RFC 6890 and its successors), and the networks whose
# addresses contain another address. Addresses outside 2000::/3 are not in use on the internet.
_SPECIAL: dict[str, tuple[str, ...]] = {
    "an unspecified": ("0.0.0.0/8", "::/128"),
    "a loopback": ("127.0.0.0/8", "::1/128"),
    "a private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "a carrier's shared": ("100.64.0.0/10",),
    "a link-local": ("169.254.0.0/16", "fe80::/10"),
    "a multicast": ("224.0.0.0/4", "ff00::/8"),
    "an IPv4-mapped": ("::ffff:0:0/96",),
    "a NAT64": ("64:ff9b::/96", "64:ff9b:1::/48"),
    "a 6to4": ("2002::/16", "192.88.99.0/24"),
    "a Teredo": ("2001::/32",),
    "a reserved": ("192.0.0.0/24", "240.0.0.0/4", "2001::/23", "5f00::/16"),
    "a documentation": (
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:db8::/32",
        "3fff::/20",
    ),
    "a benchmarking": ("198.18.0.0/15",),
}
_KINDS = tuple(
    (kind, ipaddress.ip_network(text)) for kind, texts in _SPECIAL.items() for text in texts
)
_GLOBAL = ipaddress.ip_network("2000::/3")


@dataclass(frozen=True)
class HostRule:
    """One entry of a list of hosts.

    `api.example.org` is that host, `*.example.org` every name below `example.org` (without itself),
    `*` every host. `10.1.2.3`, `[::1]` and `10.0.0.0/8` are addresses: they are allowed themselves,
    and as addresses of declared names. An entry with `:8080` is for that port alone.
    """

    host: str | Network
    port: int | None = None

    def covers(self, host: HostOrAddress, port: int) -> bool:
        """Return whether a request to this host and port is allowed."""
        if self.port not in (None, port):
            return False
        if not isinstance(self.host, str):
            return not isinstance(host, str) and host in self.host
        if self.host == "*":
            return True
        if self.host.startswith("*."):
            return isinstance(host, str) and host.endswith(self.host[1:])
        return host == self.host


def parse_host(text: str) -> HostOrAddress:
    """Return the host of a URL. Raises ValueError."""
    if text.startswith("[") and text.endswith("]"):
        return _address(text[1:-1], ipaddress.IPv6Address)
    if ":" in text:
        return _address(text, ipaddress.IPv6Address)
    name = text.lower() if text.isascii() else _ascii(text)
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _address(name, ipaddress.IPv4Address)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{text!r} is not a host name")
    return name


def parse_host_rule(text: str) -> HostRule:
    """Return an entry of a list of hosts. Raises ValueError with a message for the author."""
    if "//" in text:
        raise ValueError(f"{text!r} is a URL; write the host alone, such as 'api.example.org'")
    if "/" in text:
        try:
            return HostRule(ipaddress.ip_network(text))
        except ValueError as exc:
            raise ValueError(
                f"{text!r} is neither a host nor a network such as '10.0.0.0/8': {exc}"
            ) from None
    written, port = _split_port(text)
    if written == "*":
        return HostRule("*", port)
    if written.startswith("*."):
        below = parse_host(written[2:])
        if not isinstance(below, str):
            raise ValueError(
                f"{text!r} has a star before an address; write a network such as '10.0.0.0/8'"
            )
        return HostRule(f"*.{below}", port)
    host = parse_host(written)
    return HostRule(host if isinstance(host, str) else ipaddress.ip_network(host), port)


def declares(rules: Iterable[HostRule], host: HostOrAddress, port: int) -> bool:
    """Return whether one of the rules covers the host and port."""
    return any(rule.covers(host, port) for rule in rules)


def special(address: Address) -> str | None:
    """Return the kind of an address outside the public internet (`a loopback`, `a private`, …);
    None for a public one."""
    for kind, network in _KINDS:
        if address in network:
            return kind
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL:
        return "a reserved"
    return None


def reachable(rules: Iterable[HostRule], host: HostOrAddress, address: Address, port: int) -> bool:
    """Return whether a connection for a declared `host` may go to `address`: a public address, a
    declared one, or a loopback address for `localhost`, declared by name."""
    if special(address) is None:
        return True
    for rule in rules:
        if not isinstance(rule.host, str) and rule.covers(address, port):
            return True
        if (
            rule.host != "*"
            and _is_localhost(host)
            and address.is_loopback
            and rule.covers(host, port)
        ):
            return True
    return False


def _is_localhost(host: HostOrAddress) -> bool:
    # RFC 6761, section 6.3: these names never leave the machine.
    return isinstance(host, str) and (host == "localhost" or host.endswith(".localhost"))


def _split_port(text: str) -> tuple[str, int | None]:
    if text.count(":") > 1 and not text.startswith("["):
        return text, None
    match = _PORT.fullmatch(text)
    assert match is not None
    written, port = match.groups()
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} has no port between 1 and 65535")
    return written, int(port) if port else None


def _address(text: str, kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> Address:
    try:
        address = kind(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a host name nor an address in the usual notation"
        ) from None
    if getattr(address, "scope_id", None):
        raise ValueError(
            f"{text!r} names a network interface, which only link-local addresses have"
        )
    return address


def _ascii(text: str) -> str:
    try:
        return idna.encode(text.lower()).decode("ascii")
    except idna.IDNAError as exc:
        raise ValueError(f"{text!r} is not a host name: {exc}") from None
