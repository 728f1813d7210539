"""One run: an isolate with the prelude, the limits of its CPU time and heap, and its reports. It is
in the same process as the isolate. It evaluates code and reports host calls and outcomes to its
owner; `hooks/session.py`, on the other side, decides what they mean.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from groundhook.hooks.engine import Isolate, IsolateOutcome

UNITS = 32_768  # of the bridge's buffer: 64 KB
# scripts that few runs need, each loaded when the prelude requests it
LAZY_SCRIPTS = {"!web_globals\n": "web_globals.js", "!objects\n": "objects.js"}
LAZY_GLOBALS = "!lazy_globals\n"
# evaluated again, once the microtasks of what was invoked have run, as long as it returns "~"
LATER = "__groundhook.later()"

# ("call", request, "") or ("done", kind of outcome or "limit", text)
_Report = Callable[[str, str, str], None]


def _ignore(_kind: str, _first: str, _second: str) -> None:
    """Report nothing: no turn owns the isolate yet."""


@dataclass(frozen=True)
class Prelude:
    """The JavaScript that every isolate begins with: the script, and the lazy globals that it loads
    when they are first used."""

    script: str
    lazy_globals: str


class HookRun:
    """An isolate with only the prelude, so that it can be made in advance; `begin` makes it the run
    of a turn."""

    def __init__(self, prelude: Prelude) -> None:
        """Start the engine. Raises HookCrashed if it does not start."""
        self._report: _Report = _ignore
        self._cpu_seconds = 0.0
        self._setup = ""
        self._began = 0.0
        self.busy = False  # between `invoke` and its "done"
        self.closing: threading.Thread | None = None
        self._ended: tuple[str, str] | None = None
        self._lock = threading.Lock()
        self._lazy_globals = prelude.lazy_globals
        self._isolate = Isolate(prelude.script, self._on_call)

    def begin(self, setup: str, heap_mb: int, cpu_ms: int, report: _Report) -> None:
        """Make it the run of a turn. `setup` is the prelude's JSON {context, limits, fixed}.
        `report` is called from V8's thread or from `watch`, once with "done" for each `invoke`, and
        must not wait."""
        self._report = report
        self._cpu_seconds = cpu_ms / 1000
        self._setup = f"__groundhook.begin({json.dumps(setup)});"
        self._isolate.limit_heap(heap_mb * 1024 * 1024)

    def invoke(self, code: str) -> None:
        """Evaluate code and return at once."""
        self._began = self._isolate.cpu_seconds()
        self.busy = True
        if self._ended is not None:
            self._finish(*self._ended)
        setup, self._setup = self._setup, ""
        self._isolate.evaluate(setup + code, self._on_outcome)

    def reply(self, text: str) -> None:
        """Answer the host call that was reported last."""
        self._isolate.reply(text)

    def watch(self) -> float | None:
        """End the run if it has used up its CPU time or its heap; else return the seconds until the
        next check is due. None: nothing to watch."""
        if self._ended is not None or not (self.busy or self._isolate.has_cpu_clock):
            return None
        left = self._cpu_seconds - (self._isolate.cpu_seconds() - self._began)
        if left > 0:
            if self.busy and self._isolate.heap_is_full():
                self._end("heap", "")
            return max(left, 0.005)
        left_behind = not self.busy
        self._end("limit", "cpu_ms")
        if left_behind and self.closing is None:
            # Only closing ends a microtask, and V8 may be slow to stop.
            self.closing = threading.Thread(target=self._isolate.close, daemon=True)
            self.closing.start()
        return None

    def close(self) -> None:
        """Stop and free the isolate."""
        if self.closing is None:
            self._isolate.close()
        else:
            self.closing.join()

    def _on_call(self, request: str) -> None:
        if request == LAZY_GLOBALS:
            self._isolate.reply(self._lazy_globals)
        elif request in LAZY_SCRIPTS:
            self._isolate.reply(_read_script(LAZY_SCRIPTS[request]))
        else:
            self._report("call", request, "")

    def _on_outcome(self, outcome: IsolateOutcome) -> None:
        if outcome.kind == "value" and outcome.text == "~":
            self._isolate.evaluate(LATER, self._on_outcome)
        else:
            self._finish(outcome.kind, outcome.text)

    def _end(self, kind: str, text: str) -> None:
        self._ended = (kind, text)
        self._isolate.stop()
        self._finish(kind, text)

    def _finish(self, kind: str, text: str) -> None:
        with self._lock:
            reported, self.busy = not self.busy, False
        if not reported:
            self._report("done", kind, text)


@cache
def _read_script(name: str) -> str:
    return (files("groundhook.hooks") / name).read_text(encoding="utf-8")
