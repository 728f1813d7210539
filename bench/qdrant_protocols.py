"""Compare the two protocols of a Qdrant server, HTTP and gRPC: filling a collection, and hybrid
search.

    python -m bench.qdrant_protocols [URL] [--grpc-port 6334] [--key KEY]

Without a URL the server is the loopback one of the tests, in a separate process; then only the CPU
time of this process is meaningful, since that server is not Qdrant. Collections of the bench begin
with `bench-` and are removed. Figures are JSON lines on standard output.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from bench.figures import figure
from groundhook.core.app_settings import QdrantSettings
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.store import ServerStore
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorQuestion,
)
from tests.loopback.qdrant import qdrant
from tests.loopback.qdrant_grpc import grpc_door

MADE = CollectionSettings(provider="bench", model="random", dimensions=384, language="english")
DOCUMENTS, PASSAGES, SEARCHES = 40, 20, 60
SERVE = "serve"


def document(number: int) -> FullDocument:
    passages = []
    for ordinal in range(PASSAGES):
        text = f"Ripe pears and apples of the winter {number} {ordinal}. " * 20
        passages.append(Passage(passage=f"p{ordinal}", content=text, text=text, vector=vector()))
    return FullDocument(
        document=f"d{number}", title=f"Document {number}", fingerprint="1", passages=tuple(passages)
    )


def vector() -> bytes:
    return pack_vector([random.gauss(0, 1) for _ in range(MADE.dimensions)])


async def measure(settings: QdrantSettings) -> None:
    way = "gRPC" if settings.prefer_grpc else "HTTP"
    store = ServerStore(ServerConnection(settings), f"bench-{way}.")
    if without := await store.grpc_problem():
        print(without, file=sys.stderr)
        return
    documents = [document(number) for number in range(DOCUMENTS)]
    began, worked = time.perf_counter(), time.process_time()
    await store.put("docs", MADE, *documents)
    passages = DOCUMENTS * PASSAGES
    figure(f"server.put.{way}.rate", passages / (time.perf_counter() - began), "passages/s")
    figure(
        f"server.put.{way}.work",
        (time.process_time() - worked) / passages * 1e3,
        "ms of this process a passage",
    )
    question = VectorQuestion(vector=vector(), text="winter pears", limit=10)
    await store.search("docs", MADE, question)
    took, worked = [], time.process_time()
    for _ in range(SEARCHES):
        began = time.perf_counter()
        await store.search("docs", MADE, question)
        took.append(time.perf_counter() - began)
    figure(f"server.search.{way}.p50", sorted(took)[SEARCHES // 2] * 1e3, "ms")
    figure(
        f"server.search.{way}.work",
        (time.process_time() - worked) / SEARCHES * 1e3,
        "ms of this process a search",
    )
    await store.remove("docs", None, None)
    await store.aclose()


@contextmanager
def loopback() -> Iterator[tuple[str, int]]:
    """A server in a child process: its address and its gRPC port."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.qdrant_protocols", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        url, port = child.stdout.readline().decode().split()
        yield url, int(port)
        child.communicate()


def serve() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        qdrant(Path(folder) / "qdrant") as server,
        grpc_door(server) as port,
    ):
        print(server.url, port, flush=True)
        sys.stdin.read()


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("url", nargs="?", default="")
    arguments.add_argument("--grpc-port", type=int, default=6334)
    arguments.add_argument("--key", default="")
    given = arguments.parse_args()
    if given.url == SERVE:
        serve()
    elif given.url:
        run(given.url, given.grpc_port, given.key)
    else:
        with loopback() as (url, port):
            run(url, port, "")


def run(url: str, port: int, key: str) -> None:
    # In turns: machines differ from minute to minute.
    for prefer_grpc in (False, True, False, True):
        anyio.run(
            measure, QdrantSettings(url=url, api_key=key, prefer_grpc=prefer_grpc, grpc_port=port)
        )


if __name__ == "__main__":
    main()
