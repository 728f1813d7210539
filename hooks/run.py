"""One run: an isolate with the prelude in it, the clock of its CPU time, and the words it says to
its owner.

Lives in whichever process the isolate lives in. It evaluates what it is given and tells what comes
of it; what a host call or a hook's result means is decided on the other side (`hooks/session.py`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from groundhook.hooks.engine import Isolate, Outcome

UNITS = 32_768  # of the bridge's buffer: 64 KB
SCRIPTS = {
    "!platform\n": "platform.js",
    "!objects\n": "objects.js",
}  # what few runs need is asked for, as is the prelude's rest
SELDOM = "!seldom\n"
# evaluated when the microtasks of what was invoked have run, as long as it says "~"
LATER = "__groundhook.later()"

Tell = Callable[
    [str, str, str], None
]  # ("call", request, "") or ("done", kind of outcome or "limit", text)


def _nobody(_kind: str, _first: str, _second: str) -> None:
    """Hears what an isolate says that is nobody's yet: nothing."""


@dataclass(frozen=True)
class Prelude:
    """What every isolate begins with: the script, and what it asks for when it is needed.
    JavaScript."""

    script: str
    seldom: str


class Run:
    """Made with the prelude only, so that it may be made ahead; `begin` makes it the run of
    somebody."""

    def __init__(self, prelude: Prelude) -> None:
        """Raises HookCrashed when the engine does not start."""
        self._tell: Tell = _nobody
        self._cpu_seconds = 0.0
        self._setup = ""
        self._began = 0.0
        self.busy = False  # between `invoke` and its "done"
        self.closing: threading.Thread | None = None
        self._ended: tuple[str, str] | None = None
        self._lock = threading.Lock()
        self._seldom = prelude.seldom
        self._isolate = Isolate(prelude.script, self._called)

    def begin(self, setup: str, heap_mb: int, cpu_ms: int, tell: Tell) -> None:
        """Make it the run of a turn. `setup` is the prelude's JSON {context, limits, fixed}. `tell`
        is called from V8's thread or from `watch`, once with "done" for each `invoke`, and must not
        wait."""
        self._tell = tell
        self._cpu_seconds = cpu_ms / 1000
        self._setup = f"__groundhook.begin({json.dumps(setup)});"
        self._isolate.limit_heap(heap_mb * 1024 * 1024)

    def invoke(self, code: str) -> None:
        self._began = self._isolate.cpu_seconds()
        self.busy = True
        if self._ended is not None:
            self._done(*self._ended)
        setup, self._setup = self._setup, ""
        self._isolate.evaluate(setup + code, self._evaluated)

    def reply(self, text: str) -> None:
        self._isolate.reply(text)

    def watch(self) -> float | None:
        """End the run if it has used up its CPU time; else the seconds until that could be so.
        None: nothing to watch."""
        if self._ended is not None or not (self.busy or self._isolate.has_cpu_clock):
            return None
        left = self._cpu_seconds - (self._isolate.cpu_seconds() - self._began)
        if left > 0:
            if self.busy and self._isolate.heap_is_full():
                self._over("heap", "")
            return max(left, 0.005)
        left_behind = not self.busy
        self._over("limit", "cpu_ms")
        if (
            left_behind and self.closing is None
        ):  # only closing ends what runs as a microtask, and V8 may be slow to stop
            self.closing = threading.Thread(target=self._isolate.close, daemon=True)
            self.closing.start()
        return None

    def close(self) -> None:
        if self.closing is None:
            self._isolate.close()
        else:
            self.closing.join()

    def _called(self, request: str) -> None:
        if request == SELDOM:
            self._isolate.reply(self._seldom)
        elif request in SCRIPTS:
            self._isolate.reply(_script(SCRIPTS[request]))
        else:
            self._tell("call", request, "")

    def _evaluated(self, outcome: Outcome) -> None:
        if outcome.kind == "value" and outcome.text == "~":
            self._isolate.evaluate(LATER, self._evaluated)
        else:
            self._done(outcome.kind, outcome.text)

    def _over(self, kind: str, text: str) -> None:
        self._ended = (kind, text)
        self._isolate.stop()
        self._done(kind, text)

    def _done(self, kind: str, text: str) -> None:
        with self._lock:
            told, self.busy = not self.busy, False
        if not told:
            self._tell("done", kind, text)


@cache
def _script(name: str) -> str:
    return (files("groundhook.hooks") / name).read_text(encoding="utf-8")
