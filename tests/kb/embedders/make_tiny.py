"""Tiny models in ONNX that tests make: an encoder that looks its vectors up in a table, and a
cross-encoder that counts pears; with their tokenizers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tokenizers
from onnx import TensorProto, helper, numpy_helper
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = ["[UNK]", "[CLS]", "[SEP]", "query", "passage", "a", "ripe", "pear", "apple", "is", "red"]
HIDDEN = 6
TABLE = np.random.default_rng(3).normal(size=(len(WORDS), HIDDEN)).astype(np.float32)


def encoder(
    folder: Path,
    config: Mapping[str, Any] | None = None,
    operator: str = "Gather",
    hidden: int = HIDDEN,
) -> Path:
    """A folder with an encoder of `hidden` dimensions; `operator` replaces the one that looks
    vectors up."""
    node = helper.make_node(operator, ["table", "input_ids"], ["last_hidden_state"])
    shape: list[str | int] = [1, "tokens", hidden]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)
    _write(folder, [node], ["input_ids", "attention_mask"], output, {"table": TABLE[:, :hidden]})
    _json(folder / "config.json", {"hidden_size": hidden, **(config or {})})
    return folder


def cross_encoder(folder: Path, values: int = 1) -> Path:
    """A folder with a cross-encoder: 2 for each pear of the second text, less 1."""
    worth = np.array([2.0 if word == "pear" else 0.0 for word in WORDS], np.float32)
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["each"]),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["each", "second"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "axes"], ["sum"], keepdims=1),
        helper.make_node("Sub", ["sum", "less"], ["logits"]),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, values])
    weights = {
        "worth": worth,
        "axes": np.array([1], np.int64),
        "less": np.ones((1, values), np.float32),
    }
    _write(folder, nodes, ["input_ids", "token_type_ids"], output, weights)
    return folder


def _write(
    folder: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[str],
    output: onnx.ValueInfoProto,
    weights: Mapping[str, Any],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    given = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, "tokens"]) for n in inputs]
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "tiny", given, [output], tensors)
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    tokenizer = tokenizers.Tokenizer(
        WordLevel({word: id for id, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
