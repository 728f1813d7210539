"""Embedding models of one's own: what their folder says is kept to, and each mistake in it has a
message."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError, HostError
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embedders.onnx import own_model
from tests.kb.embedders.make_tiny import HIDDEN, TABLE, WORDS, encoder


def model(root: Path, **fields: Any) -> Embedder:
    return own_model(root, EmbeddingSpec(provider="onnx", path="tiny", **fields))


def written(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def rows(text: str) -> Any:
    return TABLE[[WORDS.index(word) for word in text.split()]]


def unit(vector: Any) -> list[float]:
    return list(vector / np.linalg.norm(vector))


@pytest.mark.parametrize(
    ("pooling", "made"),
    [
        ({}, rows("[CLS] a pear [SEP]").mean(0)),
        ({"pooling_mode_cls_token": True}, rows("[CLS]")[0]),
        ({"pooling_mode_lasttoken": True}, rows("[SEP]")[0]),
        ({"pooling_mode_max_tokens": True}, rows("[CLS] a pear [SEP]").max(0)),
    ],
)
async def test_a_vector_is_pooled_as_the_folder_says(
    tmp_path: Path, pooling: dict[str, bool], made: Any
) -> None:
    encoder(tmp_path / "tiny")
    written(tmp_path / "tiny/1_Pooling/config.json", pooling)
    [vector] = await model(tmp_path).embed_documents(["a pear"])
    assert vector == pytest.approx(unit(made), abs=1e-6)


async def test_questions_and_passages_have_the_prefixes_of_the_folder(tmp_path: Path) -> None:
    encoder(tmp_path / "tiny")
    prompts = {"query": "query ", "passage": "passage "}
    written(tmp_path / "tiny/config_sentence_transformers.json", {"prompts": prompts})
    question = await model(tmp_path).embed_query("pear")
    [passage] = await model(tmp_path).embed_documents(["pear"])
    assert question == pytest.approx(unit(rows("[CLS] query pear [SEP]").mean(0)), abs=1e-6)
    assert passage == pytest.approx(unit(rows("[CLS] passage pear [SEP]").mean(0)), abs=1e-6)


async def test_a_vector_may_be_cut_to_the_sizes_that_the_model_was_trained_for(
    tmp_path: Path,
) -> None:
    encoder(tmp_path / "tiny", {"matryoshka_dimensions": [2, 4]})
    small = model(tmp_path, dimensions=4)
    [vector] = await small.embed_documents(["a pear"])
    assert small.dimensions == len(vector) == 4
    assert vector == pytest.approx(unit(rows("[CLS] a pear [SEP]").mean(0)[:4]), abs=1e-6)
    for other in (3, 8):
        with pytest.raises(ConfigError, match=f"not of {other}"):
            model(tmp_path, dimensions=other)


async def test_a_text_is_read_as_far_as_the_model_reads(tmp_path: Path) -> None:
    encoder(tmp_path / "tiny", {"max_position_embeddings": 8})
    long, short = await model(tmp_path).embed_documents(["pear " * 1_000_000, "pear " * 6])
    assert long == short
    assert math.isclose(sum(value * value for value in long), 1.0, abs_tol=1e-6)
    assert len(long) == HIDDEN


async def refusal(root: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        await model(root).embed_query("a pear")
    assert str(root) not in str(caught.value)  # where a server keeps its files is nobody's business
    return str(caught.value)


async def test_each_thing_that_a_folder_lacks_is_named(tmp_path: Path) -> None:
    assert "'tiny' does not exist" in await refusal(tmp_path)
    folder = encoder(tmp_path / "tiny")
    for name in ("tokenizer.json", "model.onnx"):
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        assert name in await refusal(tmp_path)
        (folder / name).write_bytes(whole[: len(whole) // 2])
        assert f"{name} of the folder 'tiny' cannot be" in await refusal(tmp_path)
        (folder / name).write_bytes(whole)
    written(folder / "config.json", {})
    assert "hidden_size" in await refusal(tmp_path)
    written(folder / "config.json", {"hidden_size": 12})
    assert "vectors of 6 dimensions, not of 12" in await refusal(tmp_path)
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert "config.json" in await refusal(tmp_path)


async def test_an_operator_that_the_runtime_lacks_is_named(tmp_path: Path) -> None:
    encoder(tmp_path / "tiny", operator="Divine")
    assert "Divine" in await refusal(tmp_path)


async def test_an_app_embeds_with_a_model_of_its_own_and_check_finds_what_is_wrong(
    tmp_path: Path,
) -> None:
    encoder(tmp_path / "encoders/tiny")
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/agent.yml").write_text("kb_storage:\n  idle_s: 1\n", encoding="utf-8")
    embedding = {"provider": "onnx", "path": "encoders/tiny"}
    written(tmp_path / "kb/docs.kb.yao", {"embedding": embedding})
    for name, text in (("a", "a ripe pear"), ("b", "apple is red")):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    async with open_host(tmp_path, environment={}) as host:
        await host.kb.add("docs", [tmp_path / "a.txt", tmp_path / "b.txt"])
        found = await host.search({"type": "kb", "query": "a pear", "collections": ["docs"]})
        assert not found.error
        assert found.items[0].content == "a ripe pear"
        [unmeasured] = await host.check()
        assert unmeasured.severity == "warning"
        assert "nobody measured the similarities" in unmeasured.message
    (tmp_path / "encoders/tiny/tokenizer.json").unlink()
    async with open_host(tmp_path, environment={}) as host:
        problems = [each for each in await host.check() if each.severity == "error"]
        assert "tokenizer.json" in problems[0].message
        with pytest.raises(HostError, match=r"tokenizer\.json"):
            await host.kb.add("docs", [tmp_path / "b.txt"])


async def test_a_folder_whose_vectors_have_another_size_than_the_collection_is_refused(
    tmp_path: Path,
) -> None:
    encoder(tmp_path / "encoders/tiny")
    written(tmp_path / "agent/agent.yml", {"kb_storage": {"idle_s": 1}})
    written(
        tmp_path / "kb/docs.kb.yao", {"embedding": {"provider": "onnx", "path": "encoders/tiny"}}
    )
    (tmp_path / "a.txt").write_text("a ripe pear", encoding="utf-8")
    async with open_host(tmp_path, environment={}) as host:
        await host.kb.add("docs", [tmp_path / "a.txt"])
    encoder(tmp_path / "encoders/tiny", hidden=4)
    async with open_host(tmp_path, environment={}) as host:
        [problem] = [each for each in await host.check() if each.severity == "error"]
        found = await host.search({"type": "kb", "query": "a pear", "collections": ["docs"]})
        with pytest.raises(HostError, match="dimensions") as refused:
            await host.kb.add("docs", [tmp_path / "a.txt"])
        for told in (f"{problem.message} {problem.hint}", str(found.error), str(refused.value)):
            assert "of 6 dimensions, and is declared with" in told
            assert "groundhook kb rebuild docs" in told
        await host.kb.rebuild("docs")
        assert [each.severity for each in await host.check()] == ["warning"]  # its curve is unknown
        found = await host.search({"type": "kb", "query": "a pear", "collections": ["docs"]})
        assert found.items[0].content == "a ripe pear"
