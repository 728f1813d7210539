"""The graphs of the bundled embedding model, multilingual-e5-small, without its weights.

    python -m tests.kb.embedders.make_encoder

writes encoder-int8.onnx and encoder-exact.onnx into handlers/kb/embedders/e5. Initializers are
declared with their types and shapes; the product hands their data over when it loads a graph.

The model: BERT with the layer norm after each block, erf gelu, 12 layers of 12 heads. The input is
the sum of the word, place and type vectors of one text [1, tokens, 384]; the output is the mean of
the last layer [1, 384].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

from groundhook.handlers.kb.embedders.e5.file import BLOCK
from groundhook.handlers.kb.embedders.e5.session import IN_FLOATS, Arithmetic

FOLDER = Path(__file__).parents[3] / "handlers/kb/embedders/e5"
HIDDEN, INNER, HEADS, LAYERS, EPSILON = 384, 1536, 12, 12, 1e-12
MICROSOFT = "com.microsoft"


def graph(arithmetic: Arithmetic) -> ModelProto:
    return _Graph(arithmetic).made()


class _Graph:
    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._nodes: list[NodeProto] = []
        self._weights: dict[str, TensorProto] = {}
        self._quantised: set[str] = set()

    def made(self) -> ModelProto:
        x = self._node("LayerNormalization", ["embeds", *self._norm("emb.ln")], "x", axis=-1)
        for layer in range(LAYERS):
            x = self._layer(f"l{layer}.", x)
        axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
        self._node("ReduceMean", [x, "axes"], "mean", keepdims=0)
        inputs = helper.make_tensor_value_info("embeds", TensorProto.FLOAT, [1, "tokens", HIDDEN])
        outputs = helper.make_tensor_value_info("mean", TensorProto.FLOAT, [1, HIDDEN])
        initializers = [*self._weights.values(), axes]
        whole = helper.make_graph(
            self._nodes, "multilingual-e5-small", [inputs], [outputs], initializers
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(whole, opset_imports=opsets, ir_version=9)

    def _layer(self, at: str, x: str) -> str:
        qkv = self._linear(x, at + "qkv", HIDDEN, 3 * HIDDEN, at + "qkv.b")
        parts = [at + name for name in "qkv"]
        self._node("Split", [qkv], *parts, axis=-1, num_outputs=3)
        attended = self._node("MultiHeadAttention", parts, at + "a", MICROSOFT, num_heads=HEADS)
        x = self._added(self._linear(attended, at + "ao", HIDDEN, HIDDEN), x, at, "aln", "ao", "y1")
        inner = self._linear(x, at + "fi", HIDDEN, INNER)
        gelu = self._node(
            "BiasGelu", [inner, self._floats(at + "fi.b", INNER)], at + "g", MICROSOFT
        )
        return self._added(self._linear(gelu, at + "fo", INNER, HIDDEN), x, at, "oln", "fo", "y2")

    def _added(self, y: str, x: str, at: str, norm: str, bias: str, to: str) -> str:
        """The norm of x + y + bias."""
        given = [y, x, *self._norm(at + norm), self._floats(f"{at}{bias}.b", HIDDEN)]
        return self._node("SkipLayerNormalization", given, at + to, MICROSOFT)

    def _linear(self, x: str, matrix: str, inputs: int, outputs: int, bias: str = "") -> str:
        biases = [self._floats(bias, outputs)] if bias else []
        if self._arithmetic == "exact" or matrix in IN_FLOATS:
            blocks = inputs // BLOCK
            nibbles = self._weight(
                f"{matrix}.nibbles", TensorProto.UINT8, outputs, blocks, BLOCK // 2
            )
            scales = self._floats(f"{matrix}.scales", outputs * blocks)
            return self._node(
                "MatMulNBits",
                [x, nibbles, scales, *(["", "", *biases] if biases else [])],
                f"{matrix}.y",
                MICROSOFT,
                K=inputs,
                N=outputs,
                bits=4,
                block_size=BLOCK,
                accuracy_level=1,
            )
        if x not in self._quantised:
            self._quantised.add(x)
            self._node("DynamicQuantizeLinear", [x], f"{x}.q", f"{x}.s", f"{x}.z")
        small = self._weight(f"{matrix}.int8", TensorProto.INT8, inputs, outputs)
        scale = self._floats(f"{matrix}.scale", outputs)
        given = [f"{x}.q", small, f"{x}.s", scale, f"{x}.z", *(["", *biases] if biases else [])]
        return self._node("MatMulIntegerToFloat", given, f"{matrix}.y", MICROSOFT)

    def _norm(self, name: str) -> list[str]:
        return [self._floats(f"{name}.{part}", HIDDEN) for part in "wb"]

    def _floats(self, name: str, size: int) -> str:
        return self._weight(name, TensorProto.FLOAT, size)

    def _weight(self, name: str, kind: int, *dimensions: int) -> str:
        tensor = TensorProto(
            name=name, data_type=kind, dims=dimensions, data_location=TensorProto.EXTERNAL
        )
        tensor.external_data.add(key="location", value="given-at-load")
        self._weights[name] = tensor
        return name

    def _node(self, op: str, inputs: list[str], *outputs: str, **options: Any) -> str:
        *made, domain = outputs if outputs[-1] == MICROSOFT else (*outputs, "")
        if op.endswith("LayerNormalization"):
            options["epsilon"] = EPSILON
        name = f"{op}_{made[0]}"
        self._nodes.append(
            helper.make_node(op, inputs, list(made), name=name, domain=domain, **options)
        )
        return made[0]


if __name__ == "__main__":
    for arithmetic in ("int8", "exact"):
        FOLDER.joinpath(f"encoder-{arithmetic}.onnx").write_bytes(
            graph(arithmetic).SerializeToString(deterministic=True)
        )
