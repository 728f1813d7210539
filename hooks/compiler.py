"""The TypeScript compiler, in an isolate of its own. Its source is the file that `dukpy` ships.
Loading takes 60 MB and a tenth of a second, so a compiler is made when there is something to
compile and closed after that. `hooks/script.py` decides what may be imported.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from groundhook.core.errors import HookCrashed
from groundhook.hooks.engine import Isolate, IsolateOutcome

_Done = Callable[[IsolateOutcome], None]
HEAP_BYTES = 1024 * 1024 * 1024


class ScriptCompiler:
    """One compiler in an isolate. Close it."""

    def __init__(self) -> None:
        """Load the compiler. Raises HookCrashed if it cannot be found or loaded."""
        package = files("groundhook.hooks")
        scripts = ("declared.js", "signatures.js", "named.js", "transpile.js")
        wrapper = "\n".join((package / name).read_text(encoding="utf-8") for name in scripts)
        source = _compiler_source().read_text(encoding="utf-8")
        self._lock = threading.Lock()
        self._queue: deque[tuple[str, _Done]] = deque()  # the first one is being compiled
        self._isolate = Isolate(f"{source}\n{wrapper}", lambda _: None, heap_bytes=HEAP_BYTES)

    def transpile(self, file: str, source: str, others: Mapping[str, Any], done: _Done) -> None:
        """Compile a file; `done` is called on V8's thread with the JSON that transpile.js
        describes. Files are compiled one after another."""
        code = f"__transpile({','.join(json.dumps(each) for each in (file, source, others))})"
        with self._lock:
            self._queue.append((code, done))
            idle = len(self._queue) == 1
        if idle:
            self._isolate.evaluate(code, self._on_outcome)

    def _on_outcome(self, outcome: IsolateOutcome) -> None:
        with self._lock:
            _, done = self._queue.popleft()
            following = self._queue[0][0] if self._queue else None
        if following is not None:
            self._isolate.evaluate(following, self._on_outcome)
        done(outcome)

    def close(self) -> None:
        self._isolate.close()


def _compiler_source() -> Path:
    spec = find_spec("dukpy")
    if spec is None or spec.origin is None:
        raise HookCrashed(
            "the TypeScript compiler is missing", hint="install dukpy, which carries it"
        )
    return Path(spec.origin).parent / "jsmodules" / "typescriptServices.js"
