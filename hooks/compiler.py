"""The TypeScript compiler, in an isolate of its own.

Owns where its source comes from (the file that `dukpy` ships) and its one call. It takes 60 MB and
a tenth of a second to load, so it is made when there is something to compile and closed when that
is done. It decides nothing about the files: what may be imported is `hooks/script.py`'s business.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from groundhook.hooks.engine import Isolate, Outcome
from groundhook.host.core.errors import HookCrashed

Done = Callable[[Outcome], None]
HEAP_BYTES = 1024 * 1024 * 1024


class Compiler:
    """One compiler. Close it."""

    def __init__(self) -> None:
        """Raises HookCrashed when the compiler cannot be found or loaded."""
        wrapper = (files("groundhook.hooks") / "transpile.js").read_text(encoding="utf-8")
        source = _services().read_text(encoding="utf-8")
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, Done]] = deque()  # the first of them is under way
        self._isolate = Isolate(f"{source}\n{wrapper}", lambda _: None, heap_bytes=HEAP_BYTES)

    def transpile(self, file: str, source: str, done: Done) -> None:
        """`done` gets the JSON that transpile.js describes, on V8's thread; files wait for each
        other."""
        code = f"__transpile({json.dumps(file)},{json.dumps(source)})"
        with self._lock:
            self._waiting.append((code, done))
            idle = len(self._waiting) == 1
        if idle:
            self._isolate.evaluate(code, self._ended)

    def _ended(self, outcome: Outcome) -> None:
        with self._lock:
            _, done = self._waiting.popleft()
            following = self._waiting[0][0] if self._waiting else None
        if following is not None:
            self._isolate.evaluate(following, self._ended)
        done(outcome)

    def close(self) -> None:
        self._isolate.close()


def _services() -> Path:
    spec = find_spec("dukpy")
    if spec is None or spec.origin is None:
        raise HookCrashed(
            "the TypeScript compiler is missing", hint="install dukpy, which carries it"
        )
    return Path(spec.origin).parent / "jsmodules" / "typescriptServices.js"
