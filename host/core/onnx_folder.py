"""A model of one's own: a folder with an ONNX graph and the `tokenizer.json` of the package
`tokenizers`, laid out as sentence-transformers and Optimum write them. One text, or one pair of
texts, is computed at a time, in the thread that calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundhook.host.core.onnx_runtime import OnnxModel, Unusable

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRAPHS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_FEW = 512  # tokens, where the folder does not say how many the model reads
_LONG = 32  # characters of a token, beyond which no text needs to be looked at
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}


class ModelFolder:
    """What the folder says about its model; the model itself is loaded by `Computing`."""

    def __init__(self, path: Path) -> None:
        """Raises Unusable where a file is missing or cannot be read."""
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
        """A JSON file of the folder; {} where it is not there. Raises Unusable."""
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
        """How many tokens the model reads, with the marks of both ends."""
        places = self.config.get("max_position_embeddings")
        if isinstance(places, int) and "roberta" in str(self.config.get("model_type")):
            places -= 2  # RoBERTa numbers places from 2 on
        said = (
            self.read("sentence_bert_config.json").get("max_seq_length"),
            self.read("tokenizer_config.json").get("model_max_length"),
            places,
        )
        return next(
            (int(most) for most in said if isinstance(most, int) and 8 <= most < 1 << 20), _FEW
        )


class Computing:
    """The model of a folder, loaded. Usable from any thread."""

    def __init__(self, folder: ModelFolder, outputs: Sequence[str] = ()) -> None:
        """`outputs`: which of the graph's is computed, the first that is there; else its first.
        Raises Unusable."""
        try:
            import tokenizers
        except ImportError as exc:
            raise Unusable(
                "the package 'tokenizers' is not installed: pip install 'groundhook[onnx]'"
            ) from exc
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder.tokenizer))
        except Exception as exc:
            raise Unusable(
                f"tokenizer.json of the folder {folder.path.name!r} cannot be read: {exc}"
            ) from exc
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._most = folder.most_tokens
        self._model = OnnxModel(folder.graph)
        if unknown := [name for name in self._model.inputs if name not in _INPUTS]:
            raise Unusable(
                f"the model in {folder.path.name!r} wants {', '.join(map(repr, unknown))}, and only"
                f" {', '.join(_INPUTS)} can be given"
            )
        there = [name for name in outputs if name in self._model.outputs]
        self.output = (there or self._model.outputs)[0]

    def count(self, text: str) -> int:
        """Tokens of a text, without the marks of both ends."""
        return len(self._encoded(text, len(text)).ids)

    def run(self, text: str, beside: str | None = None) -> NDArray[Any]:
        """The output for a text or a pair of texts, cut to what the model reads: the first to half
        of it, the second to the rest. Raises Unusable."""
        import numpy as np

        room = self._most - self._tokenizer.num_special_tokens_to_add(beside is not None)
        first = self._encoded(text)
        first.truncate(room if beside is None else room // 2)
        second = None
        if beside is not None:
            second = self._encoded(beside)
            second.truncate(room - len(first.ids))
        whole = self._tokenizer.post_process(first, second, True)
        given = {
            name: np.array([getattr(whole, _INPUTS[name])], np.int64) for name in self._model.inputs
        }
        [made] = self._model.run([self.output], given)
        return made

    def _encoded(self, text: str, longest: int = 0) -> Any:
        cut = text[: longest or self._most * _LONG].encode(errors="replace").decode()
        return self._tokenizer.encode(cut, add_special_tokens=False)
