"""The port of the engine that runs test files of packages: the tests of a file, what they may call,
and how one failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from groundhook.core.errors import Place
from groundhook.core.hook_engine import HookScript
from groundhook.core.settings import HookLimits

UNCAUGHT = "hook_uncaught"  # code of the warning of an error in a callback, or not awaited


@dataclass(frozen=True)
class DeclaredTest:
    """A test as its file declares it."""

    name: str
    place: Place
    skipped: bool = False


@dataclass(frozen=True)
class Fault:
    """The failure of a test. `expected` and `actual` are text, both empty where nothing was
    compared; `callers` are the places that lead to `place`."""

    message: str
    place: Place
    expected: str = ""
    actual: str = ""
    callers: tuple[str, ...] = ()


class SuiteServices(Protocol):
    """The services of a test file, in place of those of a hook. `uncaught` collects errors of
    promises and callbacks that the file does not await."""

    uncaught: list[tuple[str, Place | None]]

    async def turn(self, message: Any, options: Any, /) -> Mapping[str, Any]:
        """Run one turn of the assistant and return its outcome. Raises HostError when the test
        cannot continue."""
        ...

    async def log(self, level: str, message: str, /) -> None:
        """Record a line of the console."""
        ...

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None:
        """Record a warning; `place` is its cause in a file."""
        ...


class Suite(Protocol):
    """One file of tests."""

    async def tests(self, stage: SuiteServices, /) -> list[DeclaredTest]:
        """Return the tests. Raises HookError when the file does not compile or load."""
        ...

    async def run(self, index: int, stage: SuiteServices, /) -> Fault | None:
        """Run one test of the file; return None when it passed."""
        ...


class SuiteEngine(Protocol):
    """Compiles test files and runs each test in an isolate of its own."""

    def suite(
        self, script: HookScript, /, *, now: datetime, seed: int, limits: HookLimits
    ) -> Suite:
        """Return the tests of a file, with the clock and the random seed that they see."""
        ...
