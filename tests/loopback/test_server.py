"""The server that other tests lean on does what it is scripted to do."""

from __future__ import annotations

import httpx2
import pytest

from tests.loopback.server import Cut, Html, Json, Trickle, serving


async def test_replies_to_a_path_come_in_order_and_the_last_one_stays() -> None:
    with serving() as server:
        server.on("/a", Json({"n": 1}), Html("two", 500))
        async with httpx2.AsyncClient(base_url=server.url) as client:
            answers = [await client.post("/a", json={"try": n}) for n in range(3)]
        assert [answer.status_code for answer in answers] == [200, 500, 500]
        assert [received.json["try"] for received in server.requests] == [0, 1, 2]


async def test_a_broken_promise_of_length_reaches_the_client_as_an_error() -> None:
    with serving() as server:
        server.on("/a", Cut(b"half"))
        async with httpx2.AsyncClient(base_url=server.url) as client:
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get("/a")


async def test_a_trickling_body_arrives_whole_for_who_waits() -> None:
    with serving() as server:
        server.on("/a", Trickle(b"[1, 2]", pause=0.001))
        async with httpx2.AsyncClient(base_url=server.url) as client:
            assert (await client.get("/a")).json() == [1, 2]
