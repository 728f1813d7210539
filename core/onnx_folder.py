"""A user's model in a folder: an ONNX graph and the `tokenizer.json` of the package `tokenizers`,
as sentence-transformers and Optimum write them. One text, or one pair of texts, is computed at a
time, in the calling thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundhook.core.onnx_runtime import OnnxModel, Unusable

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRAPHS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_FEW = 512  # tokens, if no file of the folder has the model's limit
_LONG = 32  # characters for each token that the model reads; longer text is cut before
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}


class ModelFolder:
    """The files of a model's folder; `Computing` loads the model."""

    def __init__(self, path: Path) -> None:
        """Find the files. Raises Unusable if a file is missing or cannot be read."""
        if not path.is_dir():
            raise Unusable(f"the folder {path.name!r} does not exist")
        graph = next((path / name for name in GRAPHS if (path / name).is_file()), None)
        if graph is None:
            raise Unusable(f"the folder {path.name!r} has no {GRAPHS[0]} (nor {GRAPHS[1]})")
        self.path, self.graph, self.tokenizer = path, graph, path / "tokenizer.json"
        if not self.tokenizer.is_file():
            raise Unusable(f"the folder {path.name!r} has no tokenizer.json")
        self.config = self.read("config.json")

    def read(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file of the folder; {} without the file. Raises Unusable."""
        file = self.path / name
        if not file.is_file():
            return {}
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise Unusable(
                f"{name} of the folder {self.path.name!r} cannot be read: {exc}"
            ) from exc
        if not isinstance(value, dict):
            raise Unusable(f"{name} of {self.path.name!r} is not a JSON object")
        return value

    @property
    def most_tokens(self) -> int:
        """The largest number of tokens that the model reads, with its special tokens."""
        places = self.config.get("max_position_embeddings")
        if isinstance(places, int) and "roberta" in str(self.config.get("model_type")):
            places -= 2  # RoBERTa counts positions from 2
        limits = (
            self.read("sentence_bert_config.json").get("max_seq_length"),
            self.read("tokenizer_config.json").get("model_max_length"),
            places,
        )
        return next(
            (int(most) for most in limits if isinstance(most, int) and 8 <= most < 1 << 20), _FEW
        )


class Computing:
    """The model of a folder, loaded. Any thread may use it."""

    def __init__(self, folder: ModelFolder, outputs: Sequence[str] = ()) -> None:
        """`outputs` are names of the graph's outputs in order of preference; without a match the
        graph's first output is computed. Raises Unusable."""
        try:
            import tokenizers
        except ImportError as exc:
            raise Unusable(
                "the package 'tokenizers' is not installed: pip install 'groundhook[onnx]'"
            ) from exc
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder.tokenizer))
        except Exception as exc:  # tokenizers raises nothing more specific
            raise Unusable(
                f"tokenizer.json of the folder {folder.path.name!r} cannot be read: {exc}"
            ) from exc
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._most = folder.most_tokens
        try:
            self._model = OnnxModel(folder.graph)
        except Unusable as exc:
            graph = folder.graph.relative_to(folder.path)
            raise Unusable(
                f"{graph} of the folder {folder.path.name!r} cannot be loaded: {exc}"
            ) from exc
        if unknown := [name for name in self._model.inputs if name not in _INPUTS]:
            raise Unusable(
                f"the model in {folder.path.name!r} needs"
                f" {', '.join(map(repr, unknown))}; the supported inputs are {', '.join(_INPUTS)}"
            )
        there = [name for name in outputs if name in self._model.outputs]
        self.output = (there or self._model.outputs)[0]

    def count(self, text: str) -> int:
        """Return the number of tokens in a text, without special tokens."""
        return len(self._encode(text, len(text)).ids)

    def run(self, text: str, beside: str | None = None) -> NDArray[Any]:
        """Return the output for a text or a pair of texts, cut to the tokens that the model reads:
        the first of a pair to half of them, the second to the rest. Raises Unusable."""
        import numpy as np

        room = self._most - self._tokenizer.num_special_tokens_to_add(beside is not None)
        first = self._encode(text)
        first.truncate(room if beside is None else room // 2)
        second = None
        if beside is not None:
            second = self._encode(beside)
            second.truncate(room - len(first.ids))
        whole = self._tokenizer.post_process(first, second, True)
        given = {
            name: np.array([getattr(whole, _INPUTS[name])], np.int64) for name in self._model.inputs
        }
        [made] = self._model.run([self.output], given)
        return made

    def _encode(self, text: str, longest: int = 0) -> Any:
        cut = text[: longest or self._most * _LONG].encode(errors="replace").decode()
        return self._tokenizer.encode(cut, add_special_tokens=False)
