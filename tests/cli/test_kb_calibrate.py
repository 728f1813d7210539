"""`groundhook kb calibrate`: what an embedding's cosines are worth on a collection's own
documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Groundhook
from tests.loopback.embeddings import openai_answer
from tests.loopback.server import Loopback, Reads, serving

THINGS = (
    "pear",
    "quince",
    "medlar",
    "plum",
    "cherry",
    "walnut",
    "almond",
    "fig",
    "olive",
    "mulberry",
    "apricot",
    "peach",
)
SERVICE = {"provider": "service", "model": "text-embedding-3-small", "dimensions": 512}


@pytest.fixture
def service() -> Iterator[Loopback]:
    with serving() as server:
        server.on("/v1/embeddings", Reads(openai_answer))
        yield server


@pytest.fixture
def orchard(shop: Path, service: Loopback) -> Path:
    """The shop with an orchard's documents."""
    configure(shop, service)
    (shop / "docs").mkdir()
    for thing in THINGS:
        text = (
            f"# The {thing} tree\n\nA {thing} tree wants a deep soil and a warm wall to grow"
            f" against. The gardener prunes every {thing} tree in late winter, before the buds of"
            f" the tree open. In autumn the {thing} harvest is brought to the barn, and the {thing}"
            " wood is kept for the carver.\n"
        )
        (shop / f"docs/{thing}.md").write_text(text, encoding="utf-8")
    return shop


def configure(shop: Path, service: Loopback, **curve: float) -> None:
    embedder = {
        "type": "openai",
        "host": service.url + "/v1",
        "key": "k",
        **({"curve": curve} if curve else {}),
    }
    agent = {"connector": "cites", "kb_storage": {"idle_s": 3}, "embedders": {"service": embedder}}
    (shop / "agent/agent.yml").write_text(json.dumps(agent), encoding="utf-8")


def declare(shop: Path, **embedding: object) -> None:
    (shop / "kb").mkdir(exist_ok=True)
    (shop / "kb/notes.kb.yao").write_text(
        json.dumps({"name": "Notes", "embedding": embedding}), encoding="utf-8"
    )


@pytest.mark.parametrize(
    "embedding",
    [{"provider": "builtin"}, {"provider": "hash"}, SERVICE],
    ids=lambda one: one["provider"],
)
def test_related_texts_have_higher_similarities_than_unrelated_ones(
    groundhook: Groundhook, orchard: Path, embedding: dict[str, object]
) -> None:
    declare(orchard, **embedding)
    assert groundhook("kb", "add", "notes", "docs").code == 0
    ran = groundhook("kb", "calibrate", "notes", "--json")
    assert (ran.code, ran.problems) == (0, [])
    [found] = ran.lines
    assert (found["collection"], found["provider"], found["made"]) == (
        "notes",
        embedding["provider"],
        True,
    )
    assert found["questions"] == 12
    assert found["unrelated"][2] < found["balanced"] < found["related"][2]
    assert found["unrelated"][2] < found["curve"]["middle"] < found["related"][2]


def test_the_reported_curve_gives_the_intended_similarities(
    groundhook: Groundhook, orchard: Path, service: Loopback
) -> None:
    declare(orchard, **SERVICE)
    groundhook("kb", "add", "notes", "docs")
    [found] = groundhook("kb", "calibrate", "notes", "--json").lines
    result = groundhook("kb", "calibrate", "notes")
    curve = found["curve"]
    assert result.out.startswith(
        "Measured with 12 questions made from the documents, and 20 built-in off-topic questions.\n"
    )
    assert (
        f"embedders:\n  service:\n    curve: {{middle: {curve['middle']:g}, scale:"
        f" {curve['scale']:g}}}" in result.out
    )
    configure(orchard, service, **curve)
    [again] = groundhook("kb", "calibrate", "notes", "--json").lines
    assert again["in_use"] == pytest.approx([0.27, 0.87], abs=0.02)
    assert found["in_use"] != again["in_use"]


def test_questions_of_ones_own_are_measured(groundhook: Groundhook, orchard: Path) -> None:
    declare(orchard, provider="hash")
    groundhook("kb", "add", "notes", "docs")
    requested = [
        {"question": f"When is the {thing} tree pruned?", "document": f"{thing}.md"}
        for thing in THINGS
    ]
    strange = [{"question": "Who won the regatta?"}]
    (orchard / "questions.jsonl").write_text(
        "\n".join(map(json.dumps, [*requested, *strange])), encoding="utf-8"
    )
    [found] = groundhook(
        "kb", "calibrate", "notes", "--questions", "questions.jsonl", "--json"
    ).lines
    assert (found["questions"], found["made"]) == (12, False)
    assert (found["off_topic"], found["off_topic_built_in"]) == (1, False)
    assert found["unrelated"][0] == found["unrelated"][-1]  # of one question
    result = groundhook("kb", "calibrate", "notes", "--questions", "questions.jsonl")
    assert result.out.startswith(
        "Measured with 12 questions of questions.jsonl, and 1 off-topic question of questions.jsonl.\n"
    )


def test_without_off_topic_questions_of_ones_own_the_built_in_are_measured(
    groundhook: Groundhook, orchard: Path
) -> None:
    declare(orchard, provider="hash")
    groundhook("kb", "add", "notes", "docs")
    requested = [
        {"question": f"When is the {thing} tree pruned?", "document": f"{thing}.md"}
        for thing in THINGS
    ]
    (orchard / "questions.jsonl").write_text(
        "\n".join(map(json.dumps, requested)), encoding="utf-8"
    )
    result = groundhook("kb", "calibrate", "notes", "--questions", "questions.jsonl")
    assert result.out.startswith(
        "Measured with 12 questions of questions.jsonl, and 20 built-in off-topic questions.\n"
    )


def test_a_model_that_nobody_measured_is_said_when_documents_are_added_and_measured(
    groundhook: Groundhook, orchard: Path, service: Loopback
) -> None:
    declare(orchard, **{**SERVICE, "model": "acme-embed-2", "dimensions": 1536})
    added = groundhook("kb", "add", "notes", "docs")
    assert added.code == 0
    assert "It is analysed as English; no search of it can be sure." in added.out
    told = " ".join(added.err.split())
    assert "nobody measured the similarities of the embedding model 'acme-embed-2'" in told
    assert "`groundhook kb calibrate notes`" in told
    found = groundhook("kb", "calibrate", "notes")
    assert "Until it is set, no search with acme-embed-2 is sure" in " ".join(found.out.split())
    configure(orchard, service, middle=0.4, scale=0.1)
    (orchard / "docs/pear.md").write_text("# Pears\n\nThey are ripe in autumn.", encoding="utf-8")
    again = groundhook("kb", "add", "notes", "docs")
    assert "nobody measured" not in again.err
    assert "It is analysed as English; searches of it can be sure." in again.out
    assert "Until it is set" not in groundhook("kb", "calibrate", "notes").out


def test_a_curve_of_published_examples_is_said_when_documents_are_added(
    groundhook: Groundhook, orchard: Path, service: Loopback
) -> None:
    declare(orchard, **{**SERVICE, "model": "text-embedding-3-small", "dimensions": 1536})
    added = groundhook("kb", "add", "notes", "docs")
    said = " ".join(added.out.split())
    assert "rests on published examples of its model" in said
    assert "`groundhook kb calibrate notes` measures" in said
    assert "nobody measured" not in added.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"question": "When?", "document": "pare.md"}',
            "no document 'pare.md' (did you mean 'pear.md'",
        ),
        (
            '{"question": 7}',
            "questions.jsonl:1 is not a question with the document that answers it",
        ),
        ("[]", "questions.jsonl:1 is not a question"),
        ('{"question": "When?", "documents": "pear.md"}', "questions.jsonl:1 is not a question"),
        ("", "questions.jsonl is empty: it has no questions (a line for each, such as"),
        (
            '{"question": "Who won?"}\n' * 12,
            "all 12 questions are off-topic, and 10 that name a document which",
        ),
        (
            '{"question": "When?", "document": "pear.md"}',
            "there is 1 question for collection 'notes', and 10 are needed",
        ),
    ],
)
def test_unusable_questions_are_reported(
    groundhook: Groundhook, orchard: Path, line: str, message: str
) -> None:
    declare(orchard, provider="hash")
    groundhook("kb", "add", "notes", "docs")
    (orchard / "questions.jsonl").write_text(line, encoding="utf-8")
    ran = groundhook("kb", "calibrate", "notes", "--questions", "questions.jsonl")
    assert ran.code == 1
    assert message in ran.err


def test_an_empty_collection_says_so_and_how_to_fill_it(
    groundhook: Groundhook, orchard: Path
) -> None:
    declare(orchard, provider="hash")
    ran = groundhook("kb", "calibrate", "notes")
    assert ran.code == 1
    assert (
        "'notes' is empty: there is nothing to measure on (fill it with `groundhook kb add notes"
        " PATH…`" in ran.err
    )


def test_the_help_of_kb_names_it(groundhook: Groundhook) -> None:
    assert "export, import and calibrate" in " ".join(groundhook("kb", "--help").out.split())
