"""Runs files of tests in an app written for the occasion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from groundhook.host.testing.runner import FileEnd, Result, open_runner
from tests.conftest import MakeApp

PACKAGE = (
    '{"name": "A", "connector": "parrot", "kb": {"collections": ["docs"]}, "search": {"kb": true}}'
)
PARROT = """{"label": "Parrot", "type": "scripted", "options": {"script": [{"text": "Said by the real one.", "times": 0}]}}"""
BARE = {
    "assistants/a/package.yao": PACKAGE,
    "connectors/parrot.conn.yao": PARROT,
    "kb/docs.kb.yao": '{"name": "Docs", "embedding": {"provider": "hash"}}',
}


@dataclass(frozen=True)
class Ran:
    app: Path
    results: list[Result]
    ends: list[FileEnd]

    @property
    def outcome(self) -> dict[str, str]:
        return {result.name: result.status for result in self.results}

    def why(self, name: str = "") -> str:
        """The whole report of the failed test: the only one, or the one of that name."""
        (result,) = [
            each for each in self.results if each.status == "failed" and name in ("", each.name)
        ]
        fault = result.fault
        assert fault is not None
        return "\n".join(
            [str(fault.place), fault.message, fault.expected, fault.actual, *fault.callers]
        )


RunTests = Callable[..., Awaitable[Ran]]


@pytest.fixture
def run_tests(make_app: MakeApp) -> RunTests:
    """Writes `test` as the file `tests/first.test.ts` of the assistant `a`, with `files` beside it,
    and runs it."""

    async def run(
        test: str, *, record: bool = False, assistants: tuple[str, ...] = (), **files: str
    ) -> Ran:
        named = {path.replace("__", "/").replace("_", "."): text for path, text in files.items()}
        written = {f"assistants/a/{path}": text for path, text in named.items()}
        app = make_app({**BARE, "assistants/a/tests/first.test.ts": dedent(test), **written})
        return await rerun(app, record=record, assistants=assistants)

    return run


async def rerun(app: Path, *, record: bool = False, assistants: tuple[str, ...] = ()) -> Ran:
    results, ends = list[Result](), list[FileEnd]()
    with anyio.fail_after(60):
        async with open_runner(app, record=record, environment={}) as runner:
            async for result in runner.run(assistants):
                (results if isinstance(result, Result) else ends).append(result)  # type: ignore[arg-type]
    return Ran(app, results, ends)
