"""`groundhook kb add` that is stopped in the middle, by Ctrl-C or by `kill -9`: what was embedded
is not embedded again, and documents that were whole are there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from groundhook.handlers.kb.ingest.throttle import CORES
from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook
from tests.loopback.embeddings import openai_answer
from tests.loopback.server import Fixed, Hang, Loopback, Reads, Received, serving

PATH = "/v1/embeddings"
PARAGRAPHS = 4  # each is a chunk
Stop = Callable[[int], list[list[str]]]


@pytest.fixture
def service() -> Iterator[Loopback]:
    with serving() as server:
        server.on(PATH, Reads(openai_answer))
        yield server


@pytest.fixture
def shop(shop: Path, service: Loopback) -> Path:
    """The shop with a collection that a service embeds."""
    embedding = {"provider": "service", "model": "text-embedding-3-small", "dimensions": 32}
    (shop / "kb").mkdir()
    spec = {"name": "Notes", "embedding": embedding, "chunk": {"size": 32, "overlap": 0}}
    (shop / "kb/notes.kb.yao").write_text(json.dumps(spec), encoding="utf-8")
    written = {
        "embedders": {"service": {"type": "openai", "host": service.url + "/v1", "key": "k"}}
    }
    (shop / "agent/agent.yml").write_text(
        json.dumps({"connector": "cites", "kb_storage": {"idle_s": 3}, **written}), encoding="utf-8"
    )
    (shop / "docs").mkdir()
    return shop


@pytest.fixture(params=[signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def stopped(request: pytest.FixtureRequest, shop: Path, service: Loopback) -> Stop:
    """Starts an add and stops it when the service gets more requests than it answers; the texts of
    each answered call."""

    def stop(answers: int) -> list[list[str]]:
        reached = threading.Event()

        def hang(_: Received) -> Fixed:
            reached.set()
            return Hang()

        service.on(PATH, *[Reads(openai_answer)] * answers, Reads(hang))
        command = [str(COMMAND), "kb", "add", "notes", "docs"]
        with subprocess.Popen(
            command, cwd=shop, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
        ) as child:
            assert reached.wait(60)
            child.send_signal(request.param)
            _, err = child.communicate(timeout=60)
        if request.param == signal.SIGINT:
            assert child.returncode == 130
            assert "the same command continues with the rest" in err
        service.on(PATH, Reads(openai_answer))
        embedded = [received.json["input"] for received in service.requests[:answers]]
        service.requests.clear()
        return embedded

    return stop


def texts(requests: Sequence[Received]) -> list[str]:
    return [text for received in requests for text in received.json["input"]]


def paragraphs(number: int, of: str) -> str:
    written = "says that pear {n} is sweet, and keeps well for {n} days in a cool place"
    return "\n\n".join(f"Paragraph {n} of {of} {written.format(n=n)}." for n in range(number))


def test_only_the_batch_under_way_of_a_long_document_is_embedded_again(
    groundhook: Groundhook, shop: Path, service: Loopback, stopped: Stop
) -> None:
    (shop / "docs/long.txt").write_text(paragraphs(100, "the book"), encoding="utf-8")
    calls = stopped(4)
    before = {text for call in calls for text in call}
    under_way = (os.cpu_count() or 1) * max(len(call) for call in calls)  # a batch on each core
    added = groundhook("kb", "add", "notes", "docs")
    assert (added.code, added.problems) == (0, [])
    [listed] = groundhook("kb", "list", "--json").lines[0]["documents"]
    after = set(texts(service.requests))
    assert 0 < len(before) < listed["chunks"] == len(before | after)
    assert len(before & after) <= under_way


def test_documents_that_were_whole_are_there(
    groundhook: Groundhook, shop: Path, service: Loopback, stopped: Stop
) -> None:
    for number in range(24):
        (shop / f"docs/{number:02}.txt").write_text(
            paragraphs(PARAGRAPHS, f"document {number}"), encoding="utf-8"
        )
    before = stopped(5)
    listed = {
        each["document"]: each["chunks"]
        for each in groundhook("kb", "list", "--json").lines[0]["documents"]
    }
    assert 0 < len(listed) < 24
    assert len(set(listed.values())) == 1
    added = groundhook("kb", "add", "notes", "docs", "--json")
    outcomes = [line["outcome"] for line in added.lines]
    assert outcomes.count("unchanged") >= len(listed)
    assert outcomes.count("added") == 24 - outcomes.count("unchanged")
    every = sum(each["chunks"] for each in groundhook("kb", "list", "--json").lines[0]["documents"])
    again = len(texts(service.requests)) - (every - sum(map(len, before)))
    # The answer to another core's call may have been under way.
    assert 0 <= again <= (CORES - 1) * max(map(len, before))


@pytest.mark.parametrize("command", ["add", "import"])
def test_ctrl_c_is_heard_while_the_feed_pauses(
    groundhook: Groundhook, shop: Path, command: str
) -> None:
    for name in ("plain", "copy"):
        written = {"name": name, "embedding": {"provider": "hash", "dimensions": 64}}
        (shop / f"kb/{name}.kb.yao").write_text(json.dumps(written), encoding="utf-8")
    rows = "".join(
        json.dumps({"id": f"{number:03}", "text": f"pear number {number}"}) + "\n"
        for number in range(100)
    )
    if command == "import":
        groundhook("kb", "add", "plain", "-", stdin=rows)
        rows = groundhook("kb", "export", "plain", "-").out.rpartition('{"end"')[0]
    child = subprocess.Popen(
        [str(COMMAND), "kb", command, "copy", "-"],
        cwd=shop,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    with child:
        child.stdin.write(rows)
        child.stdin.flush()
        while not (there := groundhook("kb", "list", "copy", "--json").lines[0]["documents"]):
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr is not None
        assert "the same command continues with the rest" in child.stderr.read()
    assert 0 < len(there) < 100
    again = groundhook(
        "kb", command, "copy", "-", stdin=rows + ('{"end": 100}\n' if command == "import" else "")
    )
    assert again.code == 0
    assert len(groundhook("kb", "list", "copy", "--json").lines[0]["documents"]) == 100
