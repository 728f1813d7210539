"""The server that `bench.serve` compares with: bare starlette, and a stream of Groundhook in it.

    python -m bench.bare_server

Prints a line with its address, and runs until it is killed.
"""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any, cast

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from groundhook.core.server_settings import StreamSettings
from groundhook.core.types.events import Event, StreamEnd, StreamStart, Text
from groundhook.host.app.host import Host
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.server.turns.running import TurnParameters
from groundhook.host.server.turns.sse import SSE, NativeWriter, StreamAnswer
from groundhook.host.server.turns.turns import ServerTurns, open_server_turns

EVENTS_A_SECOND = 50
SECONDS = 2  # of a stream
BLOCK = b'id: 1\nevent: text\ndata: {"turn_id":"t_000000000000","at_ms":1,"delta":"abcdef"}\n\n'


async def bare_post(request: Request) -> Response:
    await request.json()
    return Response(b"{}", media_type="application/json")


async def bare_stream(request: Request) -> Response:
    """`n` blocks, `joined` together in a write."""
    n, joined = (int(request.query_params[name]) for name in ("n", "joined"))

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(n // joined):
            yield BLOCK * joined

    return StreamingResponse(blocks(), media_type="text/event-stream")


def phase() -> float:
    """Where a stream begins to tick, by chance: models do not write in step, and streams that do
    queue behind each other."""
    return random.random() / EVENTS_A_SECOND


def moment() -> str:
    return f"{time.monotonic():.6f}"


async def bare_ticks(request: Request) -> Response:
    async def ticks() -> AsyncIterator[bytes]:
        await anyio.sleep(phase())
        for _ in range(EVENTS_A_SECOND * SECONDS):
            await anyio.sleep(1 / EVENTS_A_SECOND)
            yield f'event: text\ndata: {{"delta":"{moment()}"}}\n\n'.encode()

    return StreamingResponse(ticks(), media_type="text/event-stream")


async def bare_idle(request: Request) -> Response:
    async def nothing() -> AsyncIterator[bytes]:
        yield b": \n\n"
        await anyio.sleep(3600)

    return StreamingResponse(nothing(), media_type="text/event-stream")


@asynccontextmanager
async def ticking(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
    async def events() -> AsyncIterator[Event]:
        turn = f"t_{time.monotonic_ns()}"
        yield StreamStart(assistant_id="").stamped(turn, 0)
        await anyio.sleep(phase())
        for _ in range(EVENTS_A_SECOND * SECONDS):
            await anyio.sleep(1 / EVENTS_A_SECOND)
            yield Text(delta=moment()).stamped(turn, 0)
        yield StreamEnd().stamped(turn, 0)

    yield events()


async def our_ticks(request: Request) -> ASGIApp:
    """The same ticks through a pump, a log and a reader."""
    turns: ServerTurns = request.state.turns
    running = await turns.begin(
        TurnParameters(owner="bench", assistant_id=""), ticking, ExitStack()
    )
    return StreamAnswer(
        open=lambda: running.reader(0, turns.on_last_reader_gone),
        writer=NativeWriter(Audience(), sse=True),
        media_type=SSE,
        settings=turns.settings,
        headers={},
        on_slow_reader=lambda: None,
    )


class _Route:
    def __init__(self, handler: Any) -> None:
        self._handler = handler

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = await self._handler(Request(scope, receive, send))
        await answer(scope, receive, send)


def bare_app() -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        settings = StreamSettings()
        async with open_server_turns(cast(Host, None), settings, lambda _: None) as turns:
            yield {"turns": turns}

    routes = [
        Route("/post", bare_post, methods=["POST"]),
        Route("/stream", bare_stream),
        Route("/ticks", bare_ticks),
        Route("/idle", bare_idle),
        Route("/ours", _Route(our_ticks)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        print(json.dumps({"url": f"http://127.0.0.1:{sock.getsockname()[1]}"}), flush=True)
        config = uvicorn.Config(bare_app(), access_log=False, log_level="critical", http="h11")
        uvicorn.Server(config).run([sock])


if __name__ == "__main__":
    main()
