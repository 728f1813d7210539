"""Fetching of the pages that a search listed: within limits, from public addresses only, and as
robots.txt allows."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import Any

import anyio
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from groundhook.core.errors import IngestError
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.types.search import Item
from groundhook.handlers.web.pages.extract import decode_text
from groundhook.handlers.web.pages.reader import (
    SIZE,
    best_passage,
    read_page,
    split_passages,
    terms,
)
from tests.loopback.server import Answer, Hang, Html, Json, Loopback, Reply, Trickle, serving
from tests.parts.children import running
from tests.parts.web_asking import Asking

FILLER = "".join(
    f"<p>Paragraph {n} is about parks and gardens, of which the city has a great many, old and"
    " new.</p>"
    for n in range(60)
)
PAGE = f"""<html><head><title>Rivers</title><meta property="article:published_time" content="2026-03-01"></head><body>
<nav>Home About Login</nav><article><h1>Rivers of Berlin</h1>{FILLER}
<p>The river Spree is 400 km long and reaches Berlin from the south-east.</p>{FILLER}</article></body></html>"""
QUESTION = "How long is the river Spree?"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


class Reading(Asking):
    """Searches that fetch pages from the loopback server."""

    def __init__(self, server: Loopback, **pages: Any) -> None:
        hosts = {"hosts": [f"127.0.0.1:{server.port}"], "timeout_ms": 20_000, **pages}
        super().__init__(server, "tavily", pages=hosts, fetch=1, timeout_ms=25_000)
        self.server = server

    def lists(self, *paths: str) -> None:
        objects_of = [
            {"url": f"{self.server.url}{path}", "title": path, "content": "a snippet", "score": 0.9}
            for path in paths
        ]
        self.server.on("/search", Json({"results": objects_of}))

    async def item(self, path: str = "/page") -> Item:
        self.lists(path)
        return (await self.search(QUESTION)).items[0]

    @property
    def requests(self) -> list[str]:
        return [requested.path for requested in self.server.requests if requested.path != "/search"]


async def refused(reading: Reading, path: str = "/page") -> str:
    """Return the warning for a page that was not read, and check that it keeps its snippet."""
    item = await reading.item(path)
    assert (item.status, item.content) == ("listed", "a snippet")
    assert reading.nodes["fetch"].status == "failed"
    (warning,) = reading.warned
    assert f"{reading.server.url}{path}" in warning
    return warning


async def test_the_content_of_a_fetched_page_is_its_best_passage(
    server: Loopback,
) -> None:
    server.on("/page", Html(PAGE))
    reading = Reading(server)
    item = await reading.item()
    assert "The river Spree is 400 km long" in item.content
    assert len(item.content) <= 2 * SIZE
    assert "Login" not in item.content
    assert (item.status, item.title, item.published) == ("fetched", "/page", "2026-03-01")
    assert reading.warned == []
    assert reading.requests == ["/robots.txt", "/page"]
    assert {requested.headers["user-agent"] for requested in server.requests[1:]} == {"groundhook"}


async def test_only_the_first_pages_are_fetched_and_the_request_sets_their_number(
    server: Loopback,
) -> None:
    server.on("/page", Html(PAGE))
    reading = Reading(server)
    reading.lists("/page?1", "/page?2", "/page?3")
    found = await reading.search(QUESTION, fetch=2)
    assert [item.status for item in found.items] == ["fetched", "fetched", "listed"]
    assert reading.requests.count("/robots.txt") == 1
    server.requests.clear()
    assert (await reading.search(QUESTION, fetch=0)).items[0].status == "listed"
    assert reading.requests == []


async def test_a_page_at_a_private_address_is_not_fetched(server: Loopback) -> None:
    server.on("/page", Html(PAGE))
    reading = Reading(server, hosts=[])
    assert "'127.0.0.1' is a loopback address" in (await refused(reading)).replace(
        "127.0.0.1 is", "'127.0.0.1' is"
    )
    assert reading.requests == []


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("http://127.0.0.1:9/", "a loopback address"),
        ("http://169.254.169.254/latest/meta-data/", "a link-local address"),
        ("//10.0.0.1/", "a private address"),
        ("http://localhost:9/", "a loopback address"),
        ("http://[::ffff:127.0.0.1]:9/", "an IPv4-mapped address"),
        ("http://2130706433/", "cannot be requested"),
    ],
)
async def test_a_redirect_to_a_private_address_is_not_followed(
    server: Loopback, to: str, why: str
) -> None:
    server.on("/page", Reply(b"", 302, headers={"location": to}))
    assert why in await refused(Reading(server, robots=False))


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "http://user@:80"]
)
async def test_a_redirect_to_another_scheme_is_not_followed(server: Loopback, to: str) -> None:
    server.on("/page", Reply(b"", 302, headers={"location": to}))
    assert "redirects to" in await refused(Reading(server, robots=False))


async def test_robots_txt_is_checked_for_each_redirect(server: Loopback) -> None:
    server.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /private", content_type="text/plain"))
    server.on("/page", Reply(b"", 301, headers={"location": "/new"}))
    server.on("/new", Html(PAGE))
    reading = Reading(server)
    assert (await reading.item()).status == "fetched"
    server.on("/new", Reply(b"", 302, headers={"location": "/private/x"}))
    assert "robots.txt disallows it" in await refused(Reading(server))
    assert not any("/private" in path for path in reading.requests)
    server.on("/new", Reply(b"", 302, headers={"location": "/page"}))
    assert "redirects more than 5 times" in await refused(Reading(server))


async def test_robots_txt_is_obeyed_unless_the_setting_is_off(server: Loopback) -> None:
    server.on(
        "/robots.txt",
        Reply(
            b"User-agent: groundhook\nDisallow: /\n\nUser-agent: *\nAllow: /",
            content_type="text/plain",
        ),
    )
    server.on("/page", Html(PAGE))
    reading = Reading(server)
    assert "search.web.pages.robots" in await refused(reading)
    assert reading.requests == ["/robots.txt"]
    assert (await Reading(server, robots=False).item()).status == "fetched"


async def test_a_site_whose_robots_txt_is_unavailable_is_not_read(server: Loopback) -> None:
    server.on("/robots.txt", Reply(b"", 503))
    assert "503 for robots.txt" in await refused(Reading(server))
    server.on("/robots.txt", Reply(b"#" * 600_000, content_type="text/plain"))
    assert "robots.txt cannot be fetched" in await refused(Reading(server))


async def test_malicious_robots_rules_do_not_block_the_host(server: Loopback) -> None:
    path = "/" + "a" * 3000
    rule = f"User-agent: *\nDisallow: /{'*a' * 40}b$\n"
    server.on("/robots.txt", Reply(rule.encode() * 50, content_type="text/plain"))
    server.on(path, Html(PAGE))
    reading = Reading(server)
    began = time.thread_time()
    with anyio.fail_after(60):
        await reading.item(path)  # read or not: the call ends, and the event loop computes little
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Html("gone", 404), "answered with status 404"),
        (Reply(b"\x89PNG\r\n", content_type="image/png"), "its type image/png is not supported"),
        (Html("<html><body><script>render()</script></body></html>"), "it has no text"),
        (
            Html("<html><body><p>A page about cooking soup with carrots.</p></body></html>"),
            "match the question",
        ),
        (Reply(b"%PDF-1.7 broken", content_type="application/pdf"), "not a PDF that can be read"),
        (Html("x" * 3_000_000), "more than 2048 kB"),
        (
            Reply(b"x", headers={"content-encoding": "br"}, content_type="text/html"),
            "compressed as 'br'",
        ),
    ],
)
async def test_an_unreadable_page_keeps_its_snippet_and_the_warning_says_why(
    server: Loopback, answer: Answer, why: str
) -> None:
    server.on("/page", answer)
    assert why in await refused(Reading(server))


@pytest.mark.parametrize("answer", [Hang(), Trickle(b"x" * 2000)])
async def test_a_page_that_takes_too_long_does_not_hold_up_the_others(
    server: Loopback, answer: Answer
) -> None:
    server.on("/slow", answer)
    server.on("/page", Html(PAGE))
    reading = Reading(server)
    reading.lists("/page", "/slow")
    await reading.search(QUESTION, fetch=1)
    reading.settings = reading.settings.model_copy(
        update={"web": reading.settings.web.model_copy(update={"timeout_ms": 4000})}
    )
    with anyio.fail_after(60):
        found = await reading.search(QUESTION, fetch=2)
    assert [item.status for item in found.items] == ["fetched", "listed"]
    assert len(reading.warned) == 1
    assert "/slow was not read" in reading.warned[0]


PAGES_OF_CHARSETS = [
    ("text/html; charset=windows-1251", "Длина реки Spree 400 километров.", "windows-1251"),
    ("text/html", '<meta charset="iso-8859-8">אורך הנהר Spree הוא 400 קמ', "iso-8859-8"),
    ("text/html", "L’été, la rivière Spree fait 400 km", "utf-8"),
    ("text/html", "Der Fluß Spree – schön – ist 400 km lang, über Brücken", "utf-16"),
    ("text/plain; charset=latin1", "Der Fluß Spree ist “schön” und 400 km lang", "cp1252"),
    ("text/html; charset=nonsense", "Der Fluß Spree ist 400 km lang", "utf-8"),
]


@pytest.mark.parametrize(("kind", "text", "charset"), PAGES_OF_CHARSETS)
async def test_the_charset_is_detected(
    server: Loopback, kind: str, text: str, charset: str
) -> None:
    body = text if kind.startswith("text/plain") else f"<html><body><p>{text}</p></body></html>"
    if text.startswith("<meta"):
        body = f"<html><head>{text[:27]}</head><body><p>{text[27:]}</p></body></html>"
    server.on("/page", Reply(body.encode(charset), content_type=kind))
    item = await Reading(server).item()
    assert item.status == "fetched"
    assert item.content == text.rpartition(">")[2].strip()


async def test_a_pdf_is_recognized_whatever_its_media_type(server: Loopback) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(80, 700, "The river Spree is 400 km long.")
    canvas.save()
    server.on("/page", Reply(file.getvalue(), content_type="application/octet-stream"))
    assert (await Reading(server).item()).content == "The river Spree is 400 km long."


@pytest.mark.usefixtures("processes_of_its_own")
async def test_a_killed_or_slow_reader_fails_only_its_own_page() -> None:
    readers = ReaderPool()
    page: dict[str, Any] = {
        "body": PAGE.encode(),
        "media_type": "text/html",
        "charset": "",
        "query": "river Spree long",
    }
    assert "400 km" in (await readers.call(read_page, **page))["passage"]
    (reader,) = readers._idle
    psutil.Process(reader.child.pid).kill()
    with pytest.raises(IngestError, match="died"):
        await readers.call(read_page, **page)
    slow = {**page, "body": b"<html><body>" + b"<p><span>x</span> <a href='u'>l</a></p>" * 120_000}
    with anyio.fail_after(60), pytest.raises(IngestError):
        await readers.call(read_page, **slow)
    assert "400 km" in (await readers.call(read_page, **page))["passage"]
    await readers.close()
    assert running("groundhook.core.readers.process") == []


def test_the_best_passage_has_the_words_of_the_question_and_its_neighbours() -> None:
    lines = [f"Line {n} speaks of gardens and of parks in the city." for n in range(200)]
    lines[150] = "The Spree is 400 kilometres long."
    found = best_passage("\n".join(lines), "length in kilometres of the Spree")
    assert lines[150] in found
    assert lines[149] in found
    assert best_passage("\n".join(lines), "volcano") == ""
    assert best_passage("河流很长。施普雷河全长四百公里。" * 3, "施普雷河") != ""


@given(st.text(), st.text())
def test_a_passage_is_part_of_its_page_and_short_enough(text: str, query: str) -> None:
    found = best_passage(text, query)
    assert len(found) <= 2 * SIZE + 100
    assert set(terms(found)) <= set(terms(text)) | set(terms("\n".join(split_passages(text))))


@given(
    st.binary(max_size=300),
    st.sampled_from(["", "utf-8", "rot13", "hex", "utf-7", "\0", "x" * 300, "utf-16", "idna"]),
)
def test_any_bytes_with_any_charset_decode_to_text(body: bytes, charset: str) -> None:
    assert isinstance(decode_text(body, charset), str)
