"""Calls on a cassette: each is played from its recording, or made and recorded.

Errors are recorded as well. A cancelled call is also recorded: it is played as one that never ends.
What a recorded call itself calls is a part of its recording, such as the language model that reads
the question of a search. The parts of a host whose calls go through a tape are in `taped_sources`,
`taped_rerankers`, `taped_models` and `outside`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel

from groundhook.core import errors
from groundhook.core.errors import HostError
from groundhook.host.testing.cassette import Cassette

TapedAnswer = dict[str, Any]


def _kinds(of: type[HostError]) -> dict[str, type[HostError]]:
    kinds = {of.code: of}
    for inner in of.__subclasses__():
        kinds |= _kinds(inner)
    return kinds


_INSIDE = ContextVar("inside a recorded call", default=False)
_ERRORS = {kind.code: kind for kind in reversed(_kinds(errors.HostError).values())}


@dataclass(frozen=True)
class Tape:
    """A cassette, and the `moment` of a test that replaces the cassette's."""

    cassette: Cassette
    moment: str = ""

    async def ask(
        self, call: str, request: Mapping[str, Any], real: Callable[[], Awaitable[TapedAnswer]]
    ) -> TapedAnswer:
        """Return the recorded or real answer to a call. Raises the error of the real call, or
        NotRecorded."""
        if self.is_inside:
            return await real()
        key = self.request(request)
        if not self.cassette.recording:
            return await replay(self.cassette.play(call, key))
        outside = _INSIDE.set(True)
        try:
            answer = await real()
        except HostError as exc:
            self.cassette.keep(call, key, failure(exc))
            raise
        except anyio.get_cancelled_exc_class():
            self.cassette.keep(call, key, {"cancelled": True})
            raise
        finally:
            _INSIDE.reset(outside)
        self.cassette.keep(call, key, answer)
        return answer

    @property
    def is_inside(self) -> bool:
        """Whether this runs as a part of a call that is being recorded."""
        return _INSIDE.get()

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request under which a call is recorded: only the keys that are set."""
        fields = {key: value for key, value in request.items() if value not in (None, {}, [], ())}
        return {**fields, "now": self.moment} if self.moment else fields


async def replay(answer: TapedAnswer) -> TapedAnswer:
    """Return a recorded answer, raise its error, or never return if the call was cancelled."""
    # Lets other tasks run, as a real call does.
    await anyio.lowlevel.checkpoint()
    if answer.get("cancelled"):
        await anyio.sleep_forever()
    if "error" in answer:
        raise error_of(answer["error"])
    return answer


def failure(exc: HostError) -> TapedAnswer:
    """Return an error in the form in which it is recorded."""
    fields = {"code": exc.code, "message": exc.message, "hint": exc.hint}
    return {"error": {key: value for key, value in fields.items() if value}}


def error_of(recorded: Mapping[str, str]) -> HostError:
    """Return the error of a recording."""
    kind = _ERRORS.get(recorded.get("code", ""), errors.SourceError)
    # Without the constructor: some kinds have arguments of their own, which are not recorded; the
    # message is complete without them.
    error = kind.__new__(kind)
    HostError.__init__(error, recorded.get("message", ""), hint=recorded.get("hint", ""))
    return error
