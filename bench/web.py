"""The web source: the time that the host adds to a search, and a hundred concurrent turns, with a
local provider.

    make bench NAME=web

Prints JSON lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} and nothing else on
standard output.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import anyio

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.host.llm.scripted import ScriptedConnector

ROUNDS = 200
TOGETHER = 7
DELAY = 0.3  # seconds that the slow provider takes
# In a process of its own, so that what it does is not on the host's event loop.
PROVIDER = """
import asyncio, json, sys
hits = [
    {"title": f"Page {n}", "url": f"https://example.com/{n}", "content": "Text. " * 40}
    for n in range(10)
]
body = json.dumps({"results": hits}).encode()
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\n"
head += b"content-length: %d\\r\\n\\r\\n" % len(body)
async def serve(reader, writer):
    try:
        while True:
            request = (await reader.readuntil(b"\\r\\n\\r\\n")).decode("latin-1").lower()
            size = request.partition("content-length:")[2].split()
            await reader.readexactly(int(size[0]) if size else 0)
            if "/slow/" in request.split("\\r\\n")[0]:
                await asyncio.sleep(DELAY)
            writer.write(head + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def provider() -> Iterator[str]:
    """A SearXNG that answers at once, or below `/slow/` after a while → its address."""
    program = PROVIDER.replace("DELAY", str(DELAY))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def searches() -> None:
    with provider() as url, tempfile.TemporaryDirectory() as folder:
        app = Path(folder)
        for name, path in (("fast", "/"), ("slow", "/slow/")):
            web = {"provider": "searxng", "host": url + path, "cache": False}
            package = app / "assistants" / name / "package.yao"
            package.parent.mkdir(parents=True)
            package.write_text(
                json.dumps({"connector": "script", "search": {"web": web}}), encoding="utf-8"
            )
        model = ScriptedConnector(
            ConnectorSpec(
                id="script",
                type="scripted",
                options=ConnectorOptions(script=({"text": "Yes.", "times": 0},)),
            )
        )
        async with open_host(app, environment={}, connectors={"script": model}) as host:
            await added(host, url)
            await together(host, url)


async def added(host: Host, url: str) -> None:
    """The host's searches and a bare client's calls, one after the other in turns."""
    ours, bare = [], []
    async with aiohttp.ClientSession(url) as client:
        for number in range(ROUNDS + 20):
            query = f"rivers of Berlin {number}"
            began = time.perf_counter()
            await bare_call(client, "/search", query)
            between = time.perf_counter()
            result = await host.search({"type": "web", "query": query}, assistant="fast")
            assert len(result.items) == 10, result.error
            ended = time.perf_counter()
            if number >= 20:
                bare.append((between - began) * 1000)
                ours.append((ended - between) * 1000)
    floor = statistics.median(bare)
    figure(
        "web search through the host, p50",
        statistics.median(ours),
        "ms",
        floor,
        "a bare client's call, same provider",
    )
    figure("  of that, added by the host", statistics.median(ours) - floor, "ms")


async def bare_call(client: aiohttp.ClientSession, path: str, query: str) -> None:
    """With the library that the host uses, and nothing around it."""
    async with client.get(path, params={"q": query, "format": "json"}) as answer:
        assert len(json.loads(await answer.read())["results"]) == 10


async def together(host: Host, url: str) -> None:
    """A hundred turns at once, each with a search of its own that the provider takes 300 ms for;
    compared with a hundred bare calls."""
    async with aiohttp.ClientSession(url) as client:

        async def call(number: int) -> None:
            await bare_call(client, "/slow/search", f"rivers {number}")

        async def turn(number: int) -> None:
            async with host.stream("slow", f"rivers of Berlin {number}") as events:
                found = [event async for event in events if event.type == "search_result"]
            assert len(found) == 10

        bare, ours = await p95_of_hundred(call), await p95_of_hundred(turn)
    figure(
        "100 turns at once with a web search each, p95",
        ours,
        "ms",
        bare,
        "100 bare calls at once, p95; the provider takes 300 ms",
    )


async def p95_of_hundred(work: Callable[[int], Awaitable[None]]) -> float:
    """Of a hundred at once, in milliseconds: the median of `TOGETHER` rounds behind a first one,
    which opens connections."""
    taken: list[float] = []
    rounds: list[float] = []

    async def one(number: int) -> None:
        began = time.perf_counter()
        await work(number)
        taken.append((time.perf_counter() - began) * 1000)

    for round in range(1 + TOGETHER):
        taken.clear()
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number + 1000 * round)
        rounds.append(sorted(taken)[94])
    return statistics.median(rounds[1:])


if __name__ == "__main__":
    anyio.run(searches)
