"""Answers of Voyage's own client, bounded: it reads any body whole and parses it on the event loop.

The client asks for a session of its HTTP library; the one here has answers with an end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from groundhook.core.error_bodies import MOST_BYTES
from groundhook.core.json_text import count_values


class AnswerTooLarge(Exception):
    """An answer with more bytes or values than it can need; the message says of which."""


@asynccontextmanager
async def bounded_answers(most_bytes: int, most_values: int) -> AsyncIterator[None]:
    """Return a block in which answers to requests of the client raise AnswerTooLarge beyond a size.
    The connections are closed with it."""
    import aiohttp
    import voyageai

    class Bounded(aiohttp.ClientResponse):
        whole: bytes | None = None

        async def read(self) -> bytes:
            if self.whole is None:
                body = bytearray()
                async for piece in self.content.iter_any():
                    body += piece
                    if self.status >= 300 and len(body) >= MOST_BYTES:
                        self.close()
                        break
                    if len(body) > most_bytes:
                        self.close()
                        raise AnswerTooLarge(f"more than {most_bytes // 1024} kB")
                if count_values(body) > most_values:
                    raise AnswerTooLarge("far more values than were asked for")
                self.whole = bytes(body)
            return self.whole

    async with aiohttp.ClientSession(response_class=Bounded) as session:
        before = voyageai.aiosession.set(session)
        try:
            yield
        finally:
            voyageai.aiosession.reset(before)
