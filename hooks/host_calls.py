"""Answers the host calls of one run. Enforces the limits on calls (number, time, size of the
answer), keeps the replay log, and turns errors into values that JavaScript throws.
`hooks/api/table.py` defines the calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from groundhook.core.errors import HookCrashed, HookLimit, HostError, Place, UsageError
from groundhook.core.hook_engine import HookAsked, HookTurn
from groundhook.core.hook_services import HookServices
from groundhook.hooks import faults
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.journal import ASK, Journal
from groundhook.hooks.program import HookProgram
from groundhook.hooks.replay_log import ReplayLog
from groundhook.hooks.wire import from_v8

ELSEWHERE = (
    f"{ASK}: only in Create and Next: an answer comes with the next message of the chat, and what a"
    " model or a hook has called cannot wait for it; let the user approve the call (`confirm`)"
)
# requests of the prelude itself, which are not in the table and which no hook can make
PRELUDE_REQUESTS = ("!limit", "!late", "!wait", "!uncaught", "!lost", "!absent", "!no_hook")


class HostCalls:
    """Answers the calls of one turn's hooks. `hook` is the name of the hook that runs."""

    def __init__(self, turn: HookTurn, program: HookProgram, table: Mapping[str, HostCall]) -> None:
        self.hook = ""
        self.log = ReplayLog()
        self.journal = Journal(turn)
        self._turn = turn
        self._program = program
        self._table = table
        self._count = 0
        self._late = ""  # the call that took too long

    async def answer(self, request: str) -> str:
        """Return the answer: empty for undefined, "=" and a JSON value, or "!" and the JSON of an
        error to throw. Raises HookLimit for a limit that ends the run, and HookCrashed for a
        request that is not a call."""
        name, _, text = request.partition("\n")
        if name in PRELUDE_REQUESTS:
            return await self._answer_prelude(name, text)
        known = self.log.replay(request)
        if known is not None:
            return known
        self._count += 1
        if self._count > self._turn.limits.calls:
            raise self._limit_error("calls")
        call = self._table.get(name)
        if call is None:
            # The prelude sends only names of the table: the script has broken out of it.
            raise HookCrashed(
                f"{self.hook} called {name[:80]!r} on the host, which does not exist",
                place=Place(self._program.modules[0].file),
            )
        answer = self._answer_of_earlier_turn(call, request)
        if answer is not None:
            self.log.add(request, answer, effect=False)
            return answer
        answer = await self._run_or_ask(call, request, text)
        if len(answer) > self._turn.limits.result_kb * 1024:
            raise self._limit_error("result_kb")
        effect = call.effect if isinstance(call.effect, bool) else call.effect(text)
        self.log.add(request, answer, effect=effect)
        if self._can_ask:
            self.journal.add(call, request, answer)
        return answer

    @property
    def _can_ask(self) -> bool:
        return self.hook in ("Create", "Next") and not self._turn.script.by_name

    def _answer_of_earlier_turn(self, call: HostCall, request: str) -> str | None:
        """Return the answer that a call had before the user was asked; None for a new call."""
        if not self._can_ask:
            return None
        return self.journal.kept_answer(call, request, Place(self._program.modules[0].file))

    async def _run_or_ask(self, call: HostCall, request: str, text: str) -> str:
        """Run a call. Raises HookAsked with the calls so far for a question to the user."""
        if call.js == ASK:
            problem = self.journal.why_no_question() if self._can_ask else ELSEWHERE
            if problem:
                return _describe_error("TypeError", UsageError(problem))
        try:
            return await self._run(call, text)
        except HookAsked as asked:
            asked.journal = self.journal.with_question(request)
            raise

    async def _answer_prelude(self, name: str, text: str) -> str:
        if name == "!limit":
            raise self._limit_error(text)
        if name == "!late":  # which the prelude sends with its stack, for the line
            stack = from_v8(text)["stack"]
            raise faults.late_call_error(
                self._late, stack, self._limit_error("call_ms"), self._program
            )
        if name == "!wait":  # until the next timer is due
            await anyio.sleep(float(text) / 1000)
        else:
            code, error = faults.prelude_warning(name, self.hook, text, self._program)
            hint = f" ({error.hint})" if error.hint else ""
            await self._turn.services.warn(code, f"{error.message}{hint}", error.place)
        return ""

    async def _run(self, call: HostCall, text: str) -> str:
        """Run a call under its deadline."""
        limits = self._turn.limits
        try:
            arguments = self._parse_arguments(call, text)
            allowed = limits.call_ms + _start_ms(call, self._turn.services, arguments)
            with anyio.move_on_after(allowed / 1000) as scope:
                value = await call.run(call, self._turn.services, arguments)
        except UsageError as exc:
            return _describe_error("TypeError", exc)
        except HostError as exc:
            return _describe_error("Error", exc)
        if scope.cancelled_caught:
            about = faults.describe_call(call.js, arguments)
            if call.answer_late is None:
                self._late = about
                return "?"
            hint = self._limit_error("call_ms").hint
            try:
                value = call.answer_late(
                    arguments, f"no answer in {allowed} ms to {about} ({hint})"
                )
            except HostError as exc:
                return _describe_error("Error", exc)
        return f"={value}" if value else ""

    def _limit_error(self, limit: str) -> HookLimit:
        return faults.limit_error(
            limit, self.hook, self._turn.limits, self._program.modules[0].file
        )

    def _parse_arguments(self, call: HostCall, text: str) -> Sequence[Any]:
        try:
            arguments = from_v8(text)
        except ValueError as exc:
            raise UsageError(f"{call.js}: the arguments are {exc}") from exc
        if not isinstance(arguments, list):
            raise UsageError(f"{call.js}: the arguments are not a list")
        # a stack trace that a hook logs shows its own files; most lines hold none
        if call.prints and "hook:" in text:
            return [
                faults.map_places(value, self._program) if isinstance(value, str) else value
                for value in arguments
            ]
        return arguments


def _start_ms(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> int:
    """Return the time that MCP servers have to start, which does not count as the call's."""
    if not call.js.startswith("ctx.mcp."):
        return 0
    return max(map(services.servers.start_ms, faults.call_targets(arguments)), default=0)


def _describe_error(name: str, error: HostError) -> str:
    return "!" + json.dumps({"name": name, "message": str(error), "code": error.code})
