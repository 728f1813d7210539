"""Files in messages: read as sources of the turn, whole or searched, and cited."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.errors import UsageError
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource
from groundhook.plugins import Plugin, Plugins
from tests.conftest import MakeApp
from tests.parts.docx_files import packed
from tests.parts.pdf_files import pdf
from tests.parts.turns import app_with, end, kb, of, run, scripted

PDF = "application/pdf"
PLAIN = '{"name": "A", "connector": "script"}'
SEARCHING = (
    '{"name": "A", "connector": "script", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'
)


def url(data: bytes, kind: str = "") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def file(name: str, data: Any, kind: str = "") -> dict[str, Any]:
    content = url(data, kind) if isinstance(data, bytes) else data
    return {"type": "file", "file": {"filename": name, "file_data": content}}


def asked(text: str, *files: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, *files]}


def sent(model: ScriptedConnector) -> str:
    """The last message that the model was sent."""
    return model.calls[-1].messages[-1].text


LEASE = pdf(
    "The tenant pays 900 crowns on the first day of each month.",
    "The notice period is three months.",
)
# Longer than what the model gets whole.
MANUAL = "\n\n".join(
    f"# Part {n}\n\nPump number {n} is checked every week. "
    + f"The operator of station {n} writes the pressure into the log. " * 5
    for n in range(100)
).replace("Pump number 73 is", "The flux capacitor of pump 73 is blue and is")


async def test_a_short_file_reaches_the_model_whole_and_is_cited_by_page(
    make_app: MakeApp,
) -> None:
    model = scripted("Three months {ref:1}.")
    events = await run(
        app_with(make_app, PLAIN),
        [asked("How long is the notice period?", file("lease.pdf", LEASE, PDF))],
        connector=model,
    )
    prompt = sent(model)
    assert "The tenant pays 900 crowns" in prompt
    assert "The notice period is three months." in prompt
    assert "[attached file lease.pdf: its text is among the sources]" in prompt
    assert "base64" not in prompt
    titles = [event.item.title for event in of(events, "search_result")]
    assert titles == ["lease.pdf, p. 1", "lease.pdf, p. 2"]
    (cited,) = end(events).citations
    assert (cited.title, cited.verdict) == ("lease.pdf, p. 2", "ok")
    assert not of(events, "warning")


@pytest.mark.parametrize(
    ("name", "kind", "data", "expected"),
    [
        (
            "prices.docx",
            "",
            packed("<w:p><w:r><w:t>Tea costs four crowns.</w:t></w:r></w:p>"),
            "Tea costs four crowns.",
        ),
        ("prices", "text/html", b"<p>Tea costs <b>four</b> crowns.", "Tea costs **four** crowns."),
        ("prices.csv", "text/csv", b"name,price\ntea,4\n", "tea,4"),
        ("prices.py", "", b"TEA = 4\n", "TEA = 4"),
        ("C:\\docs\\prices.md", "", b"# Tea\n\nTea costs four.", "Tea costs four."),
    ],
)
async def test_files_of_many_kinds_are_read(
    make_app: MakeApp, name: str, kind: str, data: bytes, expected: str
) -> None:
    model = scripted("Fine.")
    await run(
        app_with(make_app, PLAIN), [asked("prices?", file(name, data, kind))], connector=model
    )
    assert expected in sent(model)
    assert 'title="prices' in sent(model)


async def test_bytes_are_a_file_in_python(make_app: MakeApp) -> None:
    model = scripted("Fine.")
    part = {"type": "file", "file": {"filename": "lease.pdf", "file_data": LEASE}}
    await run(app_with(make_app, PLAIN), [asked("?", part)], connector=model)
    assert "900 crowns" in sent(model)


def app_of_words(make_app: MakeApp, **attachments: Any) -> Path:
    """An app that embeds files by their words, which takes no time."""
    app = app_with(make_app, PLAIN)
    (app / "agent").mkdir(exist_ok=True)
    settings = {"embedding": {"provider": "hash"}, **attachments}
    (app / "agent/agent.yml").write_text(json.dumps({"attachments": settings}))
    return app


async def test_a_long_file_is_searched_for_the_question(make_app: MakeApp) -> None:
    model = scripted("Blue.")
    events = await run(
        app_of_words(make_app),
        [asked("Which colour has the flux capacitor?", file("manual.md", MANUAL.encode()))],
        connector=model,
    )
    prompt = sent(model)
    assert "flux capacitor of pump 73 is blue" in prompt
    assert "long, searched for the question: " in prompt
    assert len(prompt) < 20_000
    first = of(events, "search_result")[0].item
    assert "Part 73" in first.title
    assert len(of(events, "search_result")) <= 6


async def test_a_long_file_without_words_of_the_question_shows_its_beginning(
    make_app: MakeApp,
) -> None:
    model = scripted("Fine.")
    await run(
        app_of_words(make_app),
        [asked("Zusammenfassung bitte", file("manual.md", MANUAL.encode()))],
        connector=model,
    )
    assert "Pump number 0 is checked" in sent(model)
    assert "Pump number 50 is checked" not in sent(model)


async def test_the_newest_short_file_is_whole_where_both_are_not(make_app: MakeApp) -> None:
    app = app_of_words(make_app, whole_characters=60, embedding_ms=0)
    model = scripted("Fine.")
    await run(
        app,
        [
            asked("?", file("old.txt", b"The old tariff is seven crowns for each box.")),
            {"role": "assistant", "content": "Yes."},
            asked("Is it cheap?", file("new.txt", b"The new tariff is nine crowns per box.")),
        ],
        connector=model,
    )
    prompt = "\n".join(each.text for each in model.calls[-1].messages)
    assert "nine crowns" in prompt
    assert "seven crowns" not in prompt  # it has no word of the question
    assert "[attached file old.txt: long, searched" in prompt


async def test_what_is_attached_is_not_searched_for_and_stops_no_search(
    make_app: MakeApp,
) -> None:
    library = kb()
    many = pdf(*(f"Page {n} of the contract." for n in range(12)))
    events = await run(
        app_with(make_app, SEARCHING),
        [asked("Does it follow our policy?", file("contract.pdf", many, PDF))],
        sources={"kb": library, "web": CannedSource({}), "db": CannedSource({})},
    )
    assert [request.query for request in library.requests] == ["Does it follow our policy?"]
    found = [event.item.collection for event in of(events, "search_result")]
    assert found.count("attached") == 12


async def test_every_passage_of_a_short_file_reaches_the_model(make_app: MakeApp) -> None:
    model = scripted("Fine.")
    many = pdf(*(f"Page {n} of the contract." for n in range(14)))
    await run(
        app_with(make_app, SEARCHING),
        [asked("?", file("contract.pdf", many, PDF))],
        connector=model,
    )
    assert all(f"Page {n} of the contract." in sent(model) for n in range(14))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (file("a.zip", b"PK\x03\x04\xff\xfe\x00"), "'a.zip' was not read: files ending in '.zip'"),
        (file("a.pdf", b"%PDF-1.4 broken", PDF), "'a.pdf' was not read"),
        (file("a.txt", "data:text/plain;base64,%%%"), "'a.txt' is not valid base64"),
        (file("a.txt", "http://example.org/a.txt"), "'a.txt' must begin with https://"),
        (file("a.txt", "https://127.0.0.1/a.txt"), "not permitted"),
        ({"type": "file", "file": {"filename": "a.txt"}}, "a file part has no content"),
    ],
)
async def test_a_file_that_cannot_be_read_is_a_warning(
    make_app: MakeApp, part: dict[str, Any], words: str
) -> None:
    events = await run(app_with(make_app, PLAIN), [asked("What does it say?", part)])
    assert end(events).content == "Fine."
    assert any(words in event.message for event in of(events, "warning"))


async def test_limits_are_named(make_app: MakeApp) -> None:
    app = app_with(make_app, PLAIN)
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("attachments: {files: 2, file_mb: 0.01}\n")
    small, large = file("a.txt", b"tea"), file("b.txt", b"tea " * 5000)
    async with open_host(app, environment={}, connectors={"script": scripted("Fine.")}) as host:
        with pytest.raises(UsageError, match=r"3 files, more than the limit of 2.*attachments\.fi"):
            host.stream("a", [asked("?", small, small, small)])
        with pytest.raises(UsageError, match=r"'b.txt' is larger than 0.01 MB.*attachments\.file_"):
            host.stream("a", [asked("?", large)])


async def test_a_file_is_parsed_once(make_app: MakeApp, tmp_path: Path) -> None:
    app = app_with(make_app, PLAIN)
    question = [asked("?", file("lease.pdf", LEASE, PDF))]
    model = scripted("Fine.", "Fine.")
    with anyio.fail_after(60):
        async with open_host(app, environment={}, connectors={"script": model}) as host:
            for _ in range(2):
                async with host.stream("a", question) as events:
                    _ = [event async for event in events]
            reader = host.runtime.attachments()
            first = await reader.read("lease.pdf", PDF, LEASE)
            assert await reader.read("lease.pdf", PDF, LEASE) is first


class Meanings:
    """An embedding model that knows what two words mean. `awake`: how many texts it takes before
    it answers no more."""

    provider, model, dimensions = "meanings", "two", 3

    def __init__(self, awake: int = 1000) -> None:
        self.awake, self.texts = awake, list[str]()

    async def embed_query(self, text: str, /) -> list[float]:
        cold = any(word in text.lower() for word in ("refrigerat", "fridge", "chilled"))
        return [1.0, 0.0, 0.0] if cold else [0.0, 1.0, 0.0]

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        self.texts += texts
        if len(self.texts) > self.awake:
            await anyio.sleep_forever()
        return [await self.embed_query(text) for text in texts]

    def similarity(self, cosine: float, /) -> float:
        return cosine


RECIPES = "\n\n".join(
    f"# Recipe {n}\n\nThe dough rests, and the cook of recipe {n} waits for it patiently."
    for n in range(40)
).replace("The dough rests, and the cook of recipe 31", "It keeps chilled for a week, and the cook")


class Searched:
    """Turns about a file that is longer than what the model gets whole."""

    def __init__(self, make_app: MakeApp, meanings: Meanings, **settings: Any) -> None:
        own = {"embedding": {"provider": "meanings"}, "whole_characters": 100, **settings}
        self.app, self.model = app_of_words(make_app, **own), scripted("Fine.", "Fine.")

        def register(plugins: Plugins) -> None:
            plugins.embedders.add("meanings", lambda _, __: meanings)

        self.plugin = Plugin(register, requires=1)

    async def __call__(self, question: str, times: int = 1) -> list[Any]:
        """The labels and data of the searches of the last turn."""
        given = {"script": self.model}
        messages = [asked(question, file("recipes.md", RECIPES.encode()))]
        with anyio.fail_after(60):
            async with open_host(
                self.app, environment={}, connectors=given, plugins=[self.plugin]
            ) as host:
                for _ in range(times):
                    async with host.stream("a", messages) as events:
                        nodes = {
                            each.node.id: each.node async for each in events if each.type == "trace"
                        }
        return [
            (each.label, each.data["embedded"])
            for each in nodes.values()
            if each.type == "attached_search"
        ]


async def test_a_long_file_is_searched_by_meaning_too_and_embedded_once(
    make_app: MakeApp,
) -> None:
    meanings = Meanings()
    searched = Searched(make_app, meanings)
    assert await searched("Must I refrigerate it?", times=2) == [("words and meaning", 40)]
    assert "It keeps chilled for a week" in sent(searched.model)
    assert len(meanings.texts) == 40


async def test_words_alone_rank_a_file_whose_vectors_are_late(make_app: MakeApp) -> None:
    searched = Searched(make_app, Meanings(awake=20), embedding_ms=50)
    ((by, embedded),) = await searched("Which recipe keeps for a week?")
    assert (by, embedded < 40) == ("words", True)
    assert "It keeps chilled for a week" in sent(searched.model)
    meanings = Meanings()
    searched = Searched(make_app, meanings, embedding_ms=0)
    assert await searched("Which recipe keeps for a week?") == [("words", 0)]
    assert meanings.texts == []
