"""TLS connections: the certificate must be for the name, whatever address it resolves to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import trustme

from groundhook.core.errors import SourceError
from groundhook.core.settings import HttpSettings
from groundhook.host.web_client.client import GuardedClient, authorities
from tests.web_client.conftest import Names


@dataclass
class Encrypted:
    """A server with a certificate for api.example.org, and the requests that it received."""

    authority: trustme.CA
    port: int = 0
    named: list[str | None] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    def trust(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.authority.configure_trust(context)
        return context

    def remember(self, _: object, name: str | None, __: object) -> None:
        self.named.append(name)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()


@pytest.fixture
async def encrypted() -> AsyncIterator[Encrypted]:
    server = Encrypted(trustme.CA())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.authority.issue_cert("api.example.org").configure_cert(context)
    context.sni_callback = server.remember
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0, ssl=context) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def test_the_certificate_of_the_checked_address_must_be_for_the_name(
    encrypted: Encrypted, names: Names
) -> None:
    names.leads["api.example.org"] = [["127.0.0.1"]]
    settings = HttpSettings(hosts=("api.example.org", "127.0.0.1"))
    async with GuardedClient(settings, resolve=names, trust=encrypted.trust()) as client:
        answer = await client.request("GET", f"https://API.example.org.:{encrypted.port}/")

    assert answer.text == "ok"
    assert encrypted.named == ["api.example.org"]
    assert f"host: api.example.org:{encrypted.port}\r\n" in encrypted.heads[0].lower()
    assert names.resolved == ["api.example.org"]


async def test_a_certificate_for_another_name_is_rejected(
    encrypted: Encrypted, names: Names
) -> None:
    names.leads["other.example.org"] = [["127.0.0.1"]]
    settings = HttpSettings(hosts=("*.example.org", "127.0.0.1"))
    async with GuardedClient(settings, resolve=names, trust=encrypted.trust()) as client:
        with pytest.raises(
            SourceError, match=r"'other.example.org' could not be reached.*Hostname mismatch"
        ):
            await client.request("GET", f"https://other.example.org:{encrypted.port}/")
    assert encrypted.heads == []


async def test_an_authority_that_only_the_environment_trusts_is_not_trusted(
    encrypted: Encrypted, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.leads["api.example.org"] = [["127.0.0.1"]]
    with encrypted.authority.cert_pem.tempfile() as file:
        monkeypatch.setenv("SSL_CERT_FILE", file)
        authorities.cache_clear()  # read anew, now that the environment names others
        async with names.client("api.example.org", "127.0.0.1") as client:
            with pytest.raises(
                SourceError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"
            ):
                await client.request("GET", f"https://api.example.org:{encrypted.port}/")
    assert encrypted.heads == []
