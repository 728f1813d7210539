"""Parts of the HTTP server without HTTP, for `bench.serve`: the folds of its dialects, keys and
tokens, logs that are read again, and the list of chats."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bench.figures import figure
from groundhook import open_host
from groundhook.core.server_settings import JWTSettings, StreamSettings
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.events import Event
from groundhook.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.app.host import Host
from groundhook.host.chats.ports import ChatPage, RequestKey
from groundhook.host.chats.storage.opening import open_storage
from groundhook.host.chats.tables import owner_key
from groundhook.host.output.dialects import kept
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.server.identity.fetching import fetch_key_set
from groundhook.host.server.identity.keys import Key, KeyFile, Keyring, hash_of, id_of, make_key
from groundhook.host.server.identity.tokens import Tokens
from groundhook.host.server.turns.kept_turns import kept_turn
from groundhook.host.server.turns.running import Logged, LogReader, TurnParameters
from groundhook.host.server.turns.sse import FoldWriter, NativeWriter
from groundhook.host.server.turns.turns import ServerTurns, open_server_turns

EVENTS = 2000  # of a log
CHATS = 10_000
ROUNDS = 40
OWNER = ChatOwner("", "bench")


async def measure_parts(app: Path) -> None:
    """Print the figures. `app` has an assistant `logged`, whose answer is a log of `EVENTS`
    events."""
    await keys_and_tokens(app)
    async with open_host(app, environment={}, tune_gc=True) as host:
        async with open_server_turns(host, StreamSettings(keep_s=3600), lambda _: None) as turns:
            await logs(host, turns)
        await chats(host, app)


async def middle(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    """Milliseconds that the work takes, the median of some rounds after a first one."""
    await work()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


async def keys_and_tokens(app: Path) -> None:
    """A key, and a token whose signature is checked."""
    key = make_key()
    ring = Keyring([Key(id=id_of(key), hash=hash_of(key), name="bench")], KeyFile(app))
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    issuer = JWTSettings(issuer="bench", audience="bench", public_key=public.decode())
    tokens = Tokens([issuer], fetch_key_set)
    claims = {"iss": "bench", "aud": "bench", "sub": "ada", "exp": int(time.time()) + 3600}
    token = jwt.encode(claims, private, algorithm="ES256")

    async def find() -> None:
        assert ring.find(key) is not None

    async def verify() -> None:
        jwt.decode(token, public, algorithms=["ES256"], audience="bench")

    figure("a key is checked, p50", await middle(find, 500) * 1000, "us")
    signature = await middle(verify, 500)
    figure(
        "a token is checked, p50",
        await middle(partial(tokens.read, token), 500),
        "ms",
        signature,
        "its signature, by PyJWT alone",
    )


async def logs(host: Host, turns: ServerTurns) -> None:
    """A log in memory and in the store, from its beginning to the bytes of a stream."""

    @asynccontextmanager
    async def logged(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
        stored = host.conversations.stream(
            OWNER,
            "logged",
            [Message(role="user", content="?")],
            identity=Identity(user_id="bench"),
            options=TurnOptions(),
            request=RequestKey("bench", "bench"),
        )
        async with stored as events:
            yield events

    ask = TurnParameters(owner="bench", assistant_id="logged")
    running = await turns.begin(ask, logged, ExitStack())
    await running.wait_until_over()
    count = len(running.log)

    async def from_memory() -> None:
        with running.reader(0, turns.on_last_reader_gone) as reader:
            await written(reader, count)

    async def from_store() -> None:
        turn = await kept_turn(host, OWNER, running.turn_id)
        with turn.reader(0, turns.on_last_reader_gone) as reader:
            await written(reader, count)

    name = f"{count:,} events read again, p50"
    figure(f"{name}, from memory", await middle(from_memory), "ms")
    figure(f"{name}, from the store", await middle(from_store), "ms")
    folds(running.log)


async def written(reader: LogReader, count: int) -> None:
    """Read a log to its end, as server-sent events."""
    writer, seen = NativeWriter(Audience(author=True), sse=True), 0
    while (events := await reader.next()) is not None:
        seen += len(events)
        assert writer(events)
    assert seen == count, "the log is not whole"


def folds(log: Sequence[Logged]) -> None:
    """The folds of a log, each event by itself."""

    def native() -> None:
        writer = NativeWriter(Audience(), sse=True)
        for each in log:
            writer([each])

    def openai() -> None:
        writer = FoldWriter(OpenAIChat(id="a", model="b", created=1), Audience())
        for each in log:
            writer([each])

    def kept_answer() -> None:
        kept.kept(each.event for each in log)

    floor = least_cpu_us(native) / len(log)
    for name, work in (("OpenAI's chunks", openai), ("the kept answer", kept_answer)):
        cost = least_cpu_us(work) / len(log)
        figure(f"CPU time of a fold, an event: {name}", cost, "us", floor, "native events")


def least_cpu_us(work: Callable[[], object]) -> float:
    """Microseconds of processor time that the work takes, the least of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        work()
        taken.append((time.process_time_ns() - began) / 1000)
    return min(taken)


async def chats(host: Host, app: Path) -> None:
    """The first page of many chats."""
    rows = [
        {"owner": owner_key(OWNER), "id": f"c_{n}", "title": f"Question {n}", "at": n}
        for n in range(CHATS)
    ]
    with (
        open_storage(
            host.app.settings.store, app / ".groundhook/chats.sqlite", [], noun="chats"
        ) as storage,
        storage.writing() as sql,
    ):
        for row in rows:
            sql.change(
                "insert into chats (owner, id, assistant_id, title, folded, made_at, changed_at,"
                " leaf, archived) values (:owner, :id, 'short', :title, :title, :at, :at, '', 0)",
                **row,
            )
    page = partial(host.chats.chats.list, OWNER, ChatPage(limit=50))
    figure(f"50 chats of {CHATS:,}, p50", await middle(page), "ms")
