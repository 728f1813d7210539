"""Spelling and declaration of hosts, and public addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.settings import HttpSettings
from groundhook.core.types.hosts import (
    Address,
    declares,
    parse_host,
    parse_host_rule,
    reachable,
    special,
)

labels = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)
ports = st.integers(1, 65535)
addresses = st.ip_addresses()
networks = st.sampled_from(
    [
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "224.0.0.0/4",
        "192.88.99.0/24",
        "8.8.0.0/16",
        "::/96",
        "::ffff:0:0/96",
        "64:ff9b::/96",
        "2002::/16",
        "2001::/16",
        "2000::/3",
        "fc00::/7",
        "fe80::/9",
        "ff00::/8",
    ]
)


def inside(text: str) -> st.SearchStrategy[Address]:
    network = ipaddress.ip_network(text)
    return st.integers(0, network.num_addresses - 1).map(lambda n: network[n])


@given(hosts, ports)
def test_a_declared_name_covers_itself_in_any_spelling_and_on_every_port(
    name: str, port: int
) -> None:
    rule = parse_host_rule(name)

    for spelling in (name, name.upper(), f"{name}.", name.title()):
        assert rule.covers(parse_host(spelling), port)
    assert parse_host_rule(name.upper() + ".") == rule


@given(hosts, hosts, ports)
def test_a_star_covers_subdomains_and_neither_the_name_itself_nor_a_common_suffix(
    name: str, below: str, port: int
) -> None:
    rule = parse_host_rule(f"*.{name}")

    assert rule.covers(parse_host(f"{below}.{name}"), port)
    assert not rule.covers(parse_host(name), port)
    assert not rule.covers(parse_host(f"{below}{name}"), port)
    assert not rule.covers(parse_host(f"{name}.{below}x"), port) or f"{name}.{below}x".endswith(
        f".{name}"
    )


@given(hosts, hosts, ports, ports)
def test_a_name_covers_no_other_and_a_port_no_other(
    name: str, other: str, port: int, another: int
) -> None:
    rule = parse_host_rule(f"{name}:{port}")

    assert rule.covers(parse_host(other), another) == (name == other and port == another)


@given(addresses, ports)
def test_an_address_is_covered_in_every_spelling_of_it_and_no_name_is(
    address: Address, port: int
) -> None:
    written = f"[{address}]" if address.version == 6 else str(address)
    exploded = f"[{address.exploded}]" if address.version == 6 else f"{address}."

    for text in (written, f"{written}:{port}", str(address), f"{address}/{address.max_prefixlen}"):
        assert declares([parse_host_rule(text)], parse_host(exploded), port)
        assert not declares([parse_host_rule(text)], "name.example", port)


@given(st.text(max_size=20) | st.from_regex(r"[0-9a-fx:.\[\]%/*@]{1,20}", fullmatch=True))
@example("1.2.3.4.5")
@example("[::1")
@example("xn--a")
@example("a..b")
@example("*")
def test_any_text_is_a_normalized_host_or_an_error(text: str) -> None:
    for parse in (parse_host, parse_host_rule):
        try:
            parse(text)
        except ValueError:
            continue
    try:
        host = parse_host(text)
    except ValueError:
        return
    assert parse_host(str(host)) == host
    assert isinstance(host, ipaddress.IPv4Address | ipaddress.IPv6Address) or (
        host.isascii()
        and host == host.lower()
        and not host.endswith(".")
        and not host.rpartition(".")[2].isdigit()
    )


@given(addresses | networks.flatmap(inside))
def test_public_addresses_are_public_for_the_standard_library_as_well(address: Address) -> None:
    if special(address) is None:
        assert address.is_global
        assert not address.is_multicast
        for name in ("ipv4_mapped", "sixtofour", "teredo"):
            assert getattr(address, name, None) is None


@given(
    st.ip_addresses(v=4)
    | st.sampled_from(["8.0.0.0/8", "172.0.0.0/8", "192.0.0.0/8", "100.0.0.0/8"]).flatmap(inside)
)
def test_no_public_ipv4_address_is_refused(address: Address) -> None:
    relay = ipaddress.ip_network("192.88.99.0/24")
    # Two of the protocol assignments (anycast of PCP and TURN) are called global; nothing on the
    # web is there.
    assignments = ipaddress.ip_network("192.0.0.0/24")
    if (
        address.is_global
        and not address.is_multicast
        and address not in relay
        and address not in assignments
    ):
        assert special(address) is None


@given(addresses | networks.flatmap(inside), hosts, ports)
def test_only_public_or_declared_addresses_can_be_reached(
    address: Address, name: str, port: int
) -> None:
    star, named = parse_host_rule("*"), parse_host_rule(f"{name}")
    own = parse_host_rule(f"{address}/{address.max_prefixlen}")

    public = special(address) is None
    assert reachable([star, named], name, address, port) == (
        public or (name == "localhost" and address.is_loopback)
    )
    assert reachable([star, named, own], name, address, port)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("https://api.example.org", "is a URL; write the host alone"),
        ("api.example.org/v1", "neither a host nor a network"),
        ("10.0.0.1/8", "has host bits set"),
        ("api.example.org:0", "no port between 1 and 65535"),
        ("api.example.org:http", "not a host name|usual notation"),
        ("*.10.0.0.1", "a star before an address"),
        ("*api.example.org", "not a host name"),
        ("api.*.org", "not a host name"),
        ("user@api.example.org", "not a host name"),
        ("2130706433", "usual notation"),
        ("", "not a host name"),
        ("-.org", "not a host name"),
        ("a" * 64 + ".org", "not a host name"),
    ],
)
def test_an_invalid_entry_is_an_error_at_its_position(entry: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HttpSettings(hosts=("ok.example", entry))


def test_names_beyond_ascii_are_declared_and_requested_in_either_spelling() -> None:
    assert parse_host_rule("*.Bücher.example") == parse_host_rule("*.xn--bcher-kva.example")
    assert parse_host("bücher。example") == "xn--bcher-kva.example"


def test_nothing_is_declared_by_default() -> None:
    assert HttpSettings().hosts == ()
