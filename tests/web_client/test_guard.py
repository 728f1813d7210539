"""Attempts to bypass the list of hosts, all of which fail."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from groundhook.core.errors import (
    HostError,
    NotPermitted,
    SourceError,
    SourceMalformed,
    UsageError,
)
from groundhook.core.settings import HttpSettings
from groundhook.host.web_client.client import GuardedClient
from tests.loopback.server import Json, Loopback
from tests.web_client.conftest import Names


async def test_an_undeclared_host_is_an_error_with_the_entry_to_add(
    server: Loopback, names: Names
) -> None:
    async with names.client() as client:
        with pytest.raises(
            NotPermitted, match=f"'127.0.0.1' is not declared on port {server.port}"
        ) as caught:
            await client.request("GET", server.url)
        assert f"'127.0.0.1:{server.port}' to http.hosts" in caught.value.hint
        with pytest.raises(
            NotPermitted,
            match=(
                r"the host 'api.example.org' is not declared \(to allow it, add"
                r" 'api.example.org' to http.hosts"
            ),
        ):
            await client.request("GET", "https://api.example.org/")

    assert (server.requests, names.resolved) == ([], [])


async def test_an_undeclared_port_is_an_error(server: Loopback, other: Loopback) -> None:
    async with GuardedClient(HttpSettings(hosts=(f"127.0.0.1:{server.port}",))) as client:
        with pytest.raises(NotPermitted, match=f"on port {other.port}"):
            await client.request("GET", other.url)

    assert other.requests == []


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "a loopback"),
        ("::1", "a loopback"),
        ("10.0.0.1", "a private"),
        ("172.16.5.5", "a private"),
        ("192.168.1.1", "a private"),
        ("fd00::1", "a private"),
        ("fec0::1", "a private"),
        ("169.254.169.254", "a link-local"),
        ("fe80::1", "a link-local"),
        ("fe80::1%1", "a link-local"),
        ("100.64.0.1", "a carrier's shared"),
        ("224.0.0.1", "a multicast"),
        ("ff02::1", "a multicast"),
        ("0.0.0.0", "an unspecified"),
        ("::", "an unspecified"),
        ("255.255.255.255", "a reserved"),
        ("240.0.0.1", "a reserved"),
        ("::ffff:7f00:1", "an IPv4-mapped"),
        ("::ffff:808:808", "an IPv4-mapped"),
        ("::7f00:1", "a reserved"),
        ("64:ff9b::7f00:1", "a NAT64"),
        ("64:ff9b:1::7f00:1", "a NAT64"),
        ("2002:7f00:1::", "a 6to4"),
        ("2001::1", "a Teredo"),
        ("198.18.0.1", "a benchmarking"),
        ("203.0.113.7", "a documentation"),
        ("4000::1", "a reserved"),
    ],
)
async def test_a_declared_name_must_not_resolve_to_a_private_address(
    names: Names, address: str, kind: str
) -> None:
    names.leads["api.example.org"] = [[address]]
    for declared in ("api.example.org", "*.example.org", "*"):
        async with names.client(declared) as client:
            with pytest.raises(NotPermitted, match=r"'api.example.org' resolves to ") as caught:
                await client.request("GET", "http://api.example.org/")
            assert f"{kind} address" in caught.value.message
            assert str(ip_address(address)) in caught.value.hint


async def test_a_declared_name_may_resolve_to_a_declared_address(
    server: Loopback, names: Names
) -> None:
    server.on("/", Json("inside"))
    names.leads["intranet.example"] = [["127.0.0.1"]]
    for address in ("127.0.0.1", f"127.0.0.1:{server.port}", "127.0.0.0/8"):
        async with names.client("intranet.example", address) as client:
            assert (
                await client.request("GET", f"http://intranet.example:{server.port}/")
            ).value == "inside"
    async with names.client("intranet.example", "127.0.0.1:1") as client:
        with pytest.raises(NotPermitted, match=r"resolves to 127.0.0.1"):
            await client.request("GET", f"http://intranet.example:{server.port}/")

    assert {requested.headers["host"] for requested in server.requests} == {
        f"intranet.example:{server.port}"
    }


async def test_localhost_declared_by_name_is_this_machine(server: Loopback, names: Names) -> None:
    server.on("/", Json("here"))
    names.leads["localhost"] = [["127.0.0.1"]]
    async with names.client("localhost") as client:
        assert (await client.request("GET", f"http://LocalHost.:{server.port}/")).value == "here"
    async with names.client("*") as client:
        with pytest.raises(NotPermitted, match=r"a loopback address"):
            await client.request("GET", f"http://localhost:{server.port}/")


async def test_only_the_allowed_ones_of_several_addresses_are_used(
    server: Loopback, names: Names
) -> None:
    server.on("/", Json("ok"))
    names.leads["api.example.org"] = [["10.0.0.1", "169.254.169.254", "127.0.0.1"]]
    async with names.client("api.example.org", "127.0.0.1") as client:
        assert (await client.request("GET", f"http://api.example.org:{server.port}/")).value == "ok"


async def test_after_a_refused_connection_the_next_address_is_tried(
    server: Loopback, names: Names
) -> None:
    server.on("/", Json("ok"))
    names.leads["api.example.org"] = [["::1", "127.0.0.1"]]
    async with names.client("api.example.org", "127.0.0.1", "::1") as client:
        assert (await client.request("GET", f"http://api.example.org:{server.port}/")).value == "ok"


async def test_a_name_is_resolved_once_for_a_connection(server: Loopback, names: Names) -> None:
    server.on("/", Json("ok"))
    names.leads["api.example.org"] = [["127.0.0.1"], ["10.0.0.1"]]
    async with names.client("api.example.org", "127.0.0.1") as client:
        for _ in range(2):
            assert (
                await client.request("GET", f"http://api.example.org:{server.port}/")
            ).value == "ok"
        assert names.resolved == ["api.example.org"]

    async with names.client("api.example.org", "127.0.0.1") as client:
        with pytest.raises(NotPermitted, match=r"10\.0\.0\.1"):
            await client.request("GET", f"http://api.example.org:{server.port}/")


async def test_after_dns_rebinding_the_connection_goes_to_the_checked_address(
    server: Loopback, names: Names
) -> None:
    names.leads["api.example.org"] = [["93.184.215.14"], ["127.0.0.1"]]
    url = f"http://api.example.org:{server.port}/"
    async with names.client("api.example.org") as client:
        # The network of the tests ends at loopback: that the public address was tried is seen by
        # its being blocked.
        with pytest.RaisesGroup(
            pytest.RaisesExc(Exception, match=r"93\.184\.215\.14"), flatten_subgroups=True
        ):
            await client.request("GET", url)
        assert names.resolved == ["api.example.org"]
        with pytest.raises(NotPermitted, match=r"resolves to 127.0.0.1, a loopback address"):
            await client.request("GET", url)

    assert server.requests == []


@pytest.mark.parametrize(
    "spelling",
    [
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0",
        "0x",
        "127.0.0.1.",
        "127.000.000.001",
        "127.0.0.1%00",
        "%31%32%37.0.0.1",
        "①27.0.0.1",
        "127。0。0。1",
        "١٢٧.0.0.1",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "ⓛocalhost",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "[fe80::1%lo]",
        "::1",
    ],
)
async def test_no_spelling_of_a_private_address_is_allowed_by_a_star(
    server: Loopback, spelling: str
) -> None:
    async with GuardedClient(HttpSettings(hosts=("*",))) as client:
        with pytest.raises((NotPermitted, UsageError)):
            await client.request("GET", f"http://{spelling}:{server.port}/")

    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org@{inner}/",
        "http://api.example.org:80@{inner}/",
        "http://api.example.org%40{inner}/",
        "http://api.example.org\\@{inner}/",
        "http://{inner}#@api.example.org/",
        "http://{inner}?@api.example.org/",
        "http://{inner}/@api.example.org/",
        "http://{inner}\\.api.example.org/",
        "http://{inner};api.example.org/",
        "http:{inner}/api.example.org",
        "http:///{inner}/",
        "//{inner}/",
        "http://api.example.org\t@{inner}/",
        "http://api.example.org\x00.{inner}/",
        "http://[{inner}]/",
    ],
)
async def test_no_spelling_of_a_url_reaches_another_host(
    server: Loopback, names: Names, url: str
) -> None:
    names.leads["api.example.org"] = [["127.0.0.1"]]
    async with names.client("api.example.org") as client:
        with pytest.raises((NotPermitted, UsageError)):
            await client.request("GET", url.format(inner=f"127.0.0.1:{server.port}"))

    assert (server.requests, names.resolved) == ([], [])


# ---- redirects


async def test_redirects_are_followed_and_the_answer_has_the_final_url(
    server: Loopback,
) -> None:
    server.on("/a", Json({}, 301, location="b?x=1"))
    server.on("/b", Json({}, 308, location=f"{server.url}/c#part"))
    server.on("/c", Json("there"))
    async with GuardedClient(HttpSettings(hosts=(f"127.0.0.1:{server.port}",))) as client:
        answer = await client.request("GET", f"{server.url}/a")

    assert (answer.value, answer.url) == ("there", f"{server.url}/c")
    assert [requested.path for requested in server.requests] == ["/a", "/b?x=1", "/c"]


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://evil.example/",
        "//evil.example/",
        "http://[::1]/",
    ],
)
async def test_a_redirect_to_an_undeclared_host_is_an_error(
    server: Loopback, names: Names, location: str
) -> None:
    server.on("/", Json({}, 302, location=location))
    async with names.client(f"127.0.0.1:{server.port}") as client:
        with pytest.raises(
            NotPermitted, match=r"'127.0.0.1' redirects to '.*', which is not declared"
        ):
            await client.request("GET", server.url)

    assert names.resolved == []


async def test_a_redirect_to_a_declared_name_with_a_private_address_is_an_error(
    server: Loopback, other: Loopback, names: Names
) -> None:
    names.leads["cdn.example.org"] = [["127.0.0.1"]]
    server.on("/", Json({}, 302, location=f"http://cdn.example.org:{other.port}/"))
    async with names.client(f"127.0.0.1:{server.port}", "*.example.org") as client:
        with pytest.raises(NotPermitted, match=r"'cdn.example.org' resolves to 127.0.0.1"):
            await client.request("GET", server.url)

    assert other.requests == []


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "gopher://x/",
        "http://u:p@127.0.0.1/",
        "http://2130706433/",
        "http://[",
    ],
)
async def test_a_redirect_to_an_invalid_url_is_malformed(server: Loopback, location: str) -> None:
    server.on("/", Json({}, 302, location=location))
    async with GuardedClient(HttpSettings(hosts=("*", "127.0.0.1"))) as client:
        with pytest.raises(SourceMalformed, match=r"cannot be requested"):
            await client.request("GET", server.url)


async def test_the_number_of_redirects_is_limited(server: Loopback) -> None:
    server.on("/", Json({}, 302, location="/"))
    async with GuardedClient(HttpSettings(hosts=("127.0.0.1",), redirects=3)) as client:
        with pytest.raises(SourceError, match=r"redirected more than 3 times"):
            await client.request("GET", server.url)
    assert len(server.requests) == 4

    async with GuardedClient(HttpSettings(hosts=("127.0.0.1",), redirects=0)) as client:
        answer = await client.request("GET", server.url)
    assert (answer.status, answer.headers["location"]) == (302, "/")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_method_and_body_after_a_redirect_are_those_of_the_fetch_standard(
    server: Loopback, status: int, method: str
) -> None:
    server.on("/", Json({}, status, location="/next"))
    server.on("/next", Json({}))
    async with GuardedClient(HttpSettings(hosts=("127.0.0.1",))) as client:
        await client.request(method, server.url, json=None if method == "GET" else {"a": 1})

    becomes_get = status == 303 or (status in (301, 302) and method == "POST")
    requested = server.requests[1]
    assert requested.method == ("GET" if becomes_get else method)
    assert requested.body == (b"" if becomes_get or method == "GET" else b'{"a": 1}')
    assert ("content-type" in requested.headers) == bool(requested.body)


async def test_headers_are_not_sent_to_another_host_after_a_redirect(
    server: Loopback, other: Loopback
) -> None:
    secret = {"Authorization": "Bearer k", "Cookie": "s=1", "X-Api-Key": "k", "Accept": "text/x"}
    server.on("/here", Json({}, 307, location="/same"))
    server.on("/same", Json({}, 307, location=other.url))
    other.on("/", Json({}, 307, location=f"{server.url}/back"))
    server.on("/back", Json({}))
    async with GuardedClient(HttpSettings(hosts=("127.0.0.1",))) as client:
        await client.request("GET", f"{server.url}/here", headers=secret)

    here, same, back = (requested.headers for requested in server.requests)
    for name in ("authorization", "cookie", "x-api-key"):
        assert (here[name], same[name]) == (secret[name.title()], secret[name.title()])
        assert name not in other.requests[0].headers
        assert name not in back
    assert other.requests[0].headers["accept"] == "text/x"


async def test_every_failure_is_a_host_error(server: Loopback, names: Names) -> None:
    names.leads["odd.example"] = [["127.0.0.1"]]
    async with names.client("odd.example") as client:
        for url in ("http://odd.example/", "http://other.example/", "x:"):
            with pytest.raises(HostError):
                await client.request("GET", url)
