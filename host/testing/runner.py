"""Runs the tests of an app's assistants: finds the files, opens the host, and yields a result for
each test.

Every file has a cassette of its own and every test an isolate of its own; they share the host and
its workers. Results come in the order of the files, each as soon as it is known.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from groundhook.core.errors import ConfigErrors, HostError, Place, UnknownName, UsageError
from groundhook.core.hook_engine import HookScript
from groundhook.core.hook_tests import DeclaredTest, Fault, Suite, SuiteEngine
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host, open_suite_engine
from groundhook.host.chats.memory.memory import open_memory
from groundhook.host.config.package import Package
from groundhook.host.testing.cassette import SUFFIX, Cassette
from groundhook.host.testing.stage import Stage

_Status = Literal["passed", "failed", "skipped"]
ENDINGS = (".test.ts", ".test.js")


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one test, or of a file that cannot be run (`name` is then empty). `console` are
    the lines that it wrote to the console; `duration_ms` is in milliseconds."""

    assistant: str
    file: str
    name: str
    status: _Status
    place: Place
    fault: Fault | None = None
    duration_ms: float = 0.0
    console: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FileEnd:
    """The end of a file. `written`: its cassette was written; `unused`: the number of recordings
    that no test used."""

    file: str
    cassette: str
    written: bool = False
    unused: int = 0


@dataclass
class Runner:
    """The tests of an open host."""

    host: Host
    engine: SuiteEngine
    record_at: datetime | None = None

    async def run(self, assistants: Sequence[str] = ()) -> AsyncGenerator[Result | FileEnd]:
        """Run the tests of these assistants, or of all, and yield the results. Raises UnknownName
        for an unknown assistant, UsageError if there are no tests."""
        app = self.host.app
        for id in assistants:
            if id not in app.packages:
                raise UnknownName("assistant", id, app.packages)
        found = [
            (id, path)
            for id in assistants or app.packages
            for path in test_files(folder_of(app.root, id))
        ]
        if not found:
            where = (
                " or ".join(f"assistants/{id.replace('.', '/')}/tests" for id in assistants)
                or "assistants/*/tests"
            )
            raise UsageError(
                f"no tests in {where}", hint=f"files of tests end with {' or '.join(ENDINGS)}"
            )
        for id, path in found:
            async with aclosing(self._run_file(id, path)) as results:
                async for result in results:
                    yield result

    async def _run_file(self, id: str, path: Path) -> AsyncGenerator[Result | FileEnd]:
        """Run the tests of one file and yield their results, then the end of the file."""
        shown = path.relative_to(self.host.app.root).as_posix()
        began = time.perf_counter()

        def failed(fault: Fault) -> Result:
            return Result(
                assistant=id,
                file=shown,
                name="",
                status="failed",
                place=fault.place,
                fault=fault,
                duration_ms=_milliseconds_since(began),
            )

        try:
            package = self.host.app.package(id)
            cassette = self._make_cassette(path)
            file = self._open(package, path, cassette)
            async with self._open_stage(id, cassette) as stage:
                tests = await file.tests(stage)
        except HostError as exc:
            for error in exc.errors if isinstance(exc, ConfigErrors) else [exc]:
                yield failed(
                    Fault(
                        error.message,
                        error.place or Place(shown),
                        callers=(error.hint,) if error.hint else (),
                    )
                )
            return
        if not tests:
            yield failed(
                Fault('there is no test in this file: test("name", () => {…})', Place(shown))
            )
        passed = True
        for index, test in enumerate(tests):
            result = await self._run_test(id, shown, file, index, test, cassette)
            passed = passed and result.status == "passed"
            yield result
        written = self.record_at is not None and cassette.save()
        yield FileEnd(
            file=shown,
            cassette=cassette.shown,
            written=written,
            unused=cassette.unused if passed else 0,
        )

    async def _run_test(
        self, id: str, shown: str, file: Suite, index: int, test: DeclaredTest, cassette: Cassette
    ) -> Result:
        began = time.perf_counter()
        async with self._open_stage(id, cassette) as stage:
            fault = None if test.skipped else await file.run(index, stage)
        return Result(
            assistant=id,
            file=shown,
            name=test.name,
            status="skipped" if test.skipped else "passed" if fault is None else "failed",
            place=test.place if fault is None else fault.place,
            fault=fault,
            duration_ms=_milliseconds_since(began),
            console=tuple(stage.console),
        )

    @asynccontextmanager
    async def _open_stage(self, id: str, cassette: Cassette) -> AsyncIterator[Stage]:
        limits = self.host.app.settings.memory
        with TemporaryDirectory(prefix="groundhook-test-") as folder:
            async with open_memory(
                Path(folder) / "memory.sqlite", lambda: cassette.now, limits
            ) as memory:
                yield Stage(self.host, id, cassette, memory)

    def _make_cassette(self, path: Path) -> Cassette:
        place = path.with_name(cassette_name(path.name))
        root = self.host.app.root
        shown, home = place.relative_to(root).as_posix(), root.resolve().as_posix()
        return Cassette.load(place, shown, record_at=self.record_at, home=home)

    def _open(self, package: Package, path: Path, cassette: Cassette) -> Suite:
        limits = self.host.app.settings_for(package).settings.hooks.limits
        paths = package.hook.paths if package.hook else ()
        script = HookScript(entry=path, root=package.folder, shown=package.shown, paths=paths)
        return self.engine.suite(script, now=cassette.now, seed=cassette.seed, limits=limits)


@asynccontextmanager
async def open_runner(
    root: str | Path, *, record: bool = False, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Runner]:
    """Return a context manager that opens the app in a folder and yields the runner of its tests.
    `record`: use the real sources and models, and write new cassettes. Raises ConfigError."""
    async with (
        open_host(root, environment=environment) as host,
        open_suite_engine(host.app) as engine,
    ):
        yield Runner(host, engine, host.runtime.now() if record else None)


def cassette_name(file: str) -> str:
    """Return the name of a file's cassette: `first.test.ts` → `first.cassette.json`."""
    for ending in ENDINGS:
        file = file.removesuffix(ending)
    return file + SUFFIX


def test_files(folder: Path) -> Iterator[Path]:
    """Yield the files of tests in an assistant's folder, by name."""
    tests = folder / "tests"
    yield from (
        sorted(path for path in tests.glob("*") if path.name.endswith(ENDINGS))
        if tests.is_dir()
        else ()
    )


def folder_of(root: Path, id: str) -> Path:
    """Return the folder of an assistant."""
    return root / "assistants" / id.replace(".", "/")


def _milliseconds_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
