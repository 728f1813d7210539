"""Runs test files in V8, with the same compiler, isolates and limits as hooks, and other host
calls. Lists the tests of a file, runs each in an isolate of its own, and maps failures to the
author's lines. `host/testing` decides what the turns of a test run on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache as once
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from groundhook.core.errors import HookError, Place
from groundhook.core.hook_engine import (
    HookScript,
    HookTurn,
)
from groundhook.core.hook_services import HookServices
from groundhook.core.hook_tests import DeclaredTest, Fault, SuiteServices
from groundhook.core.settings import HookLimits
from groundhook.hooks import faults
from groundhook.hooks.api import logs, testing
from groundhook.hooks.api.table import Dialect
from groundhook.hooks.runner import InProcessEngine, WorkerEngine, open_engine
from groundhook.hooks.session import IsolateSession

TURN_MS = 120_000  # a test waits for whole turns, a hook only for one call


@dataclass(frozen=True)
class FileSuite:
    """Implements `core.hook_tests.Suite`."""

    engine: WorkerEngine | InProcessEngine
    script: HookScript
    now: datetime
    seed: int
    limits: HookLimits

    async def tests(self, stage: SuiteServices, /) -> list[DeclaredTest]:
        """Return the tests. Raises HookError when the file does not compile or does not load."""
        async with self._session(stage) as session:
            found: list[dict[str, Any]] = await session.invoke("Tests", [])
            return [
                DeclaredTest(test["name"], _place_of(test["stack"], session), test["skip"])
                for test in found
            ]

    async def run(self, index: int, stage: SuiteServices, /) -> Fault | None:
        """Run one test of the file; return None when it passed."""
        try:
            async with self._session(stage) as session:
                raw = await session.invoke("Test", [index])
                if raw is None and stage.uncaught:
                    message, place = stage.uncaught[0]
                    return Fault(message, place or Place(self.script.shown))
                return None if raw is None else _to_fault(raw, session)
        except HookError as exc:
            return Fault(exc.message, exc.place or Place(self.script.shown))

    @asynccontextmanager
    async def _session(self, stage: SuiteServices) -> AsyncIterator[IsolateSession]:
        limits = self.limits.model_copy(update={"wall_ms": TURN_MS, "call_ms": TURN_MS})
        services = cast(HookServices, stage)  # the rows of this dialect use nothing else of it
        turn = HookTurn(
            script=self.script,
            context={},
            services=services,
            limits=limits,
            now=self.now,
            seed=self.seed,
        )
        async with self.engine.session(turn) as session:
            yield session


@dataclass(frozen=True)
class FileSuites:
    """Implements `core.hook_tests.SuiteEngine`."""

    engine: WorkerEngine | InProcessEngine

    def suite(
        self, script: HookScript, /, *, now: datetime, seed: int, limits: HookLimits
    ) -> FileSuite:
        """Return the tests of a file, with the clock and the random seed that they see."""
        return FileSuite(self.engine, script, now, seed, limits)


@asynccontextmanager
async def open_suites(*, cache: Path, environment: Mapping[str, str]) -> AsyncIterator[FileSuites]:
    """Yield an engine for test files; its isolates have no `ctx`."""
    async with open_engine(
        workers=1, cache=cache, environment=environment, dialect=_dialect()
    ) as engine:
        yield FileSuites(engine)


@once
def _dialect() -> Dialect:
    return Dialect(
        (*logs.ROWS, *testing.ROWS),
        (files("groundhook.hooks") / "testing.js").read_text(encoding="utf-8"),
    )


def _place_of(stack: str, session: IsolateSession) -> Place:
    frames = faults.frames_of(stack, session.program)
    return frames[0][1] if frames else Place(session.program.modules[0].file)


def _to_fault(raw: dict[str, str], session: IsolateSession) -> Fault:
    frames = faults.frames_of(raw["stack"], session.program)
    expectation = raw["name"] == "ExpectationFailed"
    kind = "" if expectation or raw["name"] in ("", "Error", "Exception") else f"{raw['name']}: "
    code = f" (code {raw['code']})" if raw["code"] and raw["name"] == "Exception" else ""
    fault = Fault(
        message=f"expected {raw['message']}" if expectation else f"{kind}{raw['message']}{code}",
        place=frames[0][1] if frames else Place(session.program.modules[0].file),
        callers=tuple(
            f"{place} in {where}" if where.isidentifier() else str(place)
            for where, place in frames[1:]
        ),
    )
    return replace(fault, expected=raw["expected"], actual=raw["actual"]) if expectation else fault
