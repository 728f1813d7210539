"""A collection on disk, stopped at every point of storing a document: opened again, it shows one
version, whole."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from groundhook.core.errors import ConfigError
from groundhook.handlers.kb.embedded.collection import BATCH, Collection
from groundhook.handlers.kb.embedded.manifest import Manifest
from groundhook.handlers.kb.store.messages import as_mapping, pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    FullDocument,
    Passage,
    VectorAnswer,
    VectorQuestion,
)

MADE = CollectionSettings(provider="test", model="test", dimensions=2, language="english")
PASSAGES = 3 * BATCH


def document(version: str, passages: int = PASSAGES) -> FullDocument:
    made = [
        Passage(
            passage=str(n),
            content=f"{version} {n}",
            text=f"pear {version} {n}",
            vector=pack_vector([1.0, n / 100]),
        )
        for n in range(passages)
    ]
    return FullDocument(document="a.md", title="A", fingerprint=version, passages=tuple(made))


def opened(folder: Path) -> Collection:
    found = Collection.open(folder, "docs")
    assert found is not None
    return found


def ask(collection: Collection, text: str = "pear", limit: int = 1000) -> VectorAnswer:
    return collection.search(VectorQuestion(vector=pack_vector([1.0, 0.5]), text=text, limit=limit))


def seen(collection: Collection) -> dict[str, int]:
    counted: dict[str, int] = {}
    for hit in ask(collection).hits:
        version = hit.content.split()[0]
        counted[version] = counted.get(version, 0) + 1
    return counted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Collection.create(tmp_path / "docs", "docs", MADE, document("old"))
    list(made.put(document("old")))
    made.close()
    return tmp_path / "docs"


def stopped(folder: Path, batches: int, *documents: FullDocument) -> Collection:
    """The collection as it is opened again when putting these was stopped after so many batches;
    the old version is seen."""
    collection = opened(folder)
    writing = collection.put(*documents)
    for _ in range(batches):
        next(writing)
    assert seen(collection) == {"old": PASSAGES}
    collection.close()
    again = opened(folder)
    assert seen(again) == {"old": PASSAGES}
    return again


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_stopped_while_passages_are_written_the_old_version_stays(
    folder: Path, batches: int
) -> None:
    again = stopped(folder, batches, document("new"))
    list(again.put(document("new")))
    assert seen(again) == {"new": PASSAGES}
    again.close()


@pytest.mark.parametrize("batches", [1, 2])
def test_stopped_while_documents_are_written_together_none_of_them_is_there(
    folder: Path, batches: int
) -> None:
    many = [replace(document("new", 1), document=f"{n}.md") for n in range(BATCH)]
    again = stopped(folder, batches, *many, document("new", 5))
    assert [one.document for one in again.document_records(None)] == ["a.md"]
    list(again.put(*many, document("new", 5)))
    assert seen(again) == {"new": BATCH + 5}
    again.close()


def test_stopped_after_the_commit_the_new_version_is_there_and_the_old_one_is_removed(
    folder: Path,
) -> None:
    collection = opened(folder)
    collection.sweep = lambda: None  # type: ignore[method-assign] # as if killed before it
    list(collection.put(document("new", 5)))
    assert seen(collection) == {"new": 5}
    collection.close()
    again = opened(folder)
    assert seen(again) == {"new": 5}
    again.close()
    manifest = Manifest(folder / "manifest.sqlite")
    assert manifest.hidden == set()
    manifest.close()


def test_what_was_put_is_on_the_disk_for_certain_once_nothing_more_is_put(folder: Path) -> None:
    collection = opened(folder)
    list(collection.put(document("new", 5)))
    [generation] = collection._manifest.generations
    collection.written_at = time.monotonic()
    collection.settle()
    assert collection._manifest.last_synced < generation
    collection.written_at -= 1  # a second ago
    collection.settle()
    assert collection._manifest.last_synced == generation
    collection.close()


def test_a_document_whose_passages_were_lost_when_the_power_failed_counts_as_not_there(
    folder: Path, tmp_path: Path
) -> None:
    collection = opened(folder)
    list(collection.put(document("new", 5)))
    collection._shard.delete_generations(sorted(collection._manifest.generations))
    shutil.copytree(folder, tmp_path / "left")
    collection.close()
    left = opened(tmp_path / "left")
    assert left.document_records(None) == []
    list(left.put(document("new", 5)))
    assert seen(left) == {"new": 5}
    left.close()


def test_words_count_in_a_question_of_another_script_where_much_of_it_matches(
    folder: Path,
) -> None:
    collection = opened(folder)
    questions = ("pear 17", "梨 17", "这里有几个又大又甜的梨 17", "zebra")
    answers = [ask(collection, text, 5).lexical for text in questions]
    collection.close()
    assert answers == ["used", "used", "no match", "no match"]


def test_words_lift_a_passage_that_the_vector_alone_would_not_find_first(folder: Path) -> None:
    collection = opened(folder)
    by_meaning, by_words = ask(collection, "zebra", 1).hits[0], ask(collection, "77", 1).hits[0]
    collection.close()
    assert by_meaning.passage == "50"
    assert by_words.passage == "77"
    assert 0 < by_words.cosine < by_meaning.cosine


def test_a_collection_of_an_earlier_analyser_is_refused_with_the_command_that_makes_it_anew(
    folder: Path,
) -> None:
    settings = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    del settings["analyser"]
    (folder / "made.json").write_text(json.dumps(settings), encoding="utf-8")
    collection = opened(folder)
    with pytest.raises(ConfigError, match="version 0 of the analyser") as refused:
        collection.check(as_mapping(MADE))
    assert "groundhook kb rebuild docs" in str(refused.value.hint)
    collection.close()


def test_passages_of_any_length_are_not_all_kept_in_memory(folder: Path) -> None:
    collection = opened(folder)
    blanks = " " * 500_000
    wide = [
        Passage(
            passage=str(n), content=f"plum{blanks}.", text="plum", vector=pack_vector([1.0, 0.5])
        )
        for n in range(24)
    ]
    list(
        collection.put(
            FullDocument(document="wide.md", title="Wide", fingerprint="1", passages=tuple(wide))
        )
    )
    tracemalloc.start()
    lengths = [len(hit.content) for hit in ask(collection, "plum", 24).hits]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    collection.close()
    assert lengths.count(500_005) >= 20
    assert kept < 2_000_000


def test_a_collection_of_a_version_without_languages_is_searched_and_added_to(
    folder: Path,
) -> None:
    [manifest] = folder.glob("manifest*.sqlite")
    with closing(sqlite3.connect(manifest)) as before:
        before.execute("alter table generations drop column languages")
        before.execute("drop table languages")
    collection = opened(folder)
    assert ask(collection).languages == {}
    assert seen(collection) == {"old": PASSAGES}
    list(collection.put(replace(document("new", 3), document="b.md")))
    assert seen(collection) == {"old": PASSAGES, "new": 3}
    collection.close()
