"""The address of a client: behind proxies, over IPv6, and where a client invents one."""

from __future__ import annotations

import httpx
import pytest

from groundhook.host.server.identity.client_addresses import (
    client_behind,
    is_loopback,
    network,
    plain,
    within,
)
from tests.server.conftest import Serve

PROXIES = ["127.0.0.0/8", "10.0.0.0/8", "2001:db8:1::/64"]


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "10.0.0.1"),
        (["203.0.113.9"], "203.0.113.9"),
        (["6.6.6.6", "203.0.113.9"], "203.0.113.9"),
        (["6.6.6.6", "203.0.113.9, 10.1.1.1"], "203.0.113.9"),
        (["203.0.113.9:4711"], "203.0.113.9"),
        (["[2001:db8:2::7]:4711"], "2001:db8:2::7"),
        (["::ffff:203.0.113.9"], "203.0.113.9"),
        (["6.6.6.6, 2001:db8:2::7, 2001:db8:1::1"], "2001:db8:2::7"),
        (["10.0.0.7, 10.0.0.8"], "10.0.0.7"),
        (["6.6.6.6, unknown"], "unknown"),
        (["", " , "], "10.0.0.1"),
    ],
)
def test_the_client_is_the_rightmost_address_of_all_lines_that_is_no_proxy(
    forwarded: list[str], client: str
) -> None:
    assert client_behind(PROXIES, "10.0.0.1", forwarded) == client


def test_what_a_sender_that_is_no_proxy_says_of_itself_does_not_count() -> None:
    assert client_behind(PROXIES, "203.0.113.9", ["6.6.6.6"]) == "203.0.113.9"
    assert client_behind([], "127.0.0.1", ["6.6.6.6"]) == "127.0.0.1"


def test_a_client_of_ipv4_is_the_same_on_a_socket_for_both_versions() -> None:
    assert plain("::ffff:203.0.113.9") == "203.0.113.9"
    assert within("::ffff:10.1.1.1", PROXIES)
    assert is_loopback("::ffff:127.0.0.1")
    # Limits count it alone, not together with every other client of IPv4.
    assert network("::ffff:203.0.113.9") == network("203.0.113.9") == "203.0.113.9"
    assert network("2001:db8::1") == network("2001:db8::2") != network("2001:db8:0:1::1")


def test_a_client_behind_a_proxy_that_adds_a_line_of_its_own_chooses_no_address(
    serve: Serve,
) -> None:
    def signs_in(client: httpx.Client, claimed: int) -> int:
        lines = [
            ("x-forwarded-for", f"203.0.113.{claimed}"),
            ("x-forwarded-for", "198.51.100.1"),
            ("content-type", "application/json"),
        ]
        return client.post("/api/session", json={"key": "gh_no"}, headers=lines).status_code

    with serve(proxies=["127.0.0.0/8"]) as served, served.client("") as client:
        statuses = [signs_in(client, n) for n in range(25)]
    assert statuses.count(401) in (10, 11)  # one more where a minute of the counter ends
    assert statuses.count(429) == 25 - statuses.count(401)
