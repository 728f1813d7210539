"""Computes models in the ONNX format on the CPU. The only module that imports onnxruntime, when a
model is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ERRORS = (  # onnxruntime's errors have no common base
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "RuntimeException",
)
# Of onnxruntime's messages, which begin with it. Looked for everywhere, `.*` would read all that
# follows at each place.
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (?:Load model from .* failed: ?)?")


class Unusable(Exception):
    """A model cannot be loaded or computed; the message is the reason, in one line."""


class OnnxModel:
    """A loaded model. It computes in the calling thread; any number of threads may call it."""

    def __init__(
        self, model: Path | bytes, *, weights: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """`weights` are the external initialisers of the graph, by name. Raises Unusable, also if
        onnxruntime itself cannot be loaded."""
        with _translate_errors(model if isinstance(model, Path) else None):
            # onnxruntime would keep an identifier of the machine in the home folder and report its
            # use to its maker. It reads the variable while it is imported.
            os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # noqa: TID251 (set, not read)
            import onnxruntime

            options = onnxruntime.SessionOptions()
            # onnxruntime would also write to stderr what it raises
            options.log_severity_level = 4
            # With several threads for one call, those that wait use a core in a busy loop. Calls
            # share the cores instead: each is computed in one thread.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.enable_cpu_mem_arena = False  # it would keep the memory of the longest text
            self._weights = dict(weights or {})  # read in place as long as the session lives
            if self._weights:
                values = map(onnxruntime.OrtValue.ortvalue_from_numpy, self._weights.values())
                options.add_external_initializers(list(self._weights), list(values))
            self._session: Any = onnxruntime.InferenceSession(
                model if isinstance(model, bytes) else str(model),
                options,
                providers=["CPUExecutionProvider"],
            )
        self.inputs = tuple(given.name for given in self._session.get_inputs())
        self.outputs = tuple(made.name for made in self._session.get_outputs())

    def run(self, outputs: Sequence[str], inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the values of `outputs`, in their order. Raises Unusable."""
        with _translate_errors():
            made: list[NDArray[Any]] = self._session.run(list(outputs), dict(inputs))
            return made


@contextmanager
def _translate_errors(file: Path | None = None) -> Iterator[None]:
    """Turn errors of onnxruntime into Unusable. Messages have the file's name without its folder:
    paths of the server are not for clients."""
    try:
        yield
    except (ImportError, OSError) as exc:  # OSError: a library that it needs is missing
        raise Unusable(f"onnxruntime cannot be loaded: {_line(exc)}") from exc
    except Exception as exc:  # all but those of `_ERRORS` go on
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        if not isinstance(exc, tuple(getattr(state, name) for name in _ERRORS)):
            raise
        line = _PREFIX.sub("", _line(exc))
        raise Unusable(line if file is None else line.replace(str(file), file.name)) from exc


def _line(exc: Exception) -> str:
    return " ".join(str(exc).split())[:400]
