"""Fixtures every area shares: the asyncio backend, and apps written file by file into a temporary
folder."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from groundhook.core import concealed
from groundhook.core.app_settings import DatabaseSettings
from groundhook.core.channel import Channel
from groundhook.core.errors import HostError
from groundhook.core.types.events import Event
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import Database, DatabaseAddress
from groundhook.host.config.layers import DEFAULTS
from tests.keys import NEVER_SHOWN
from tests.loopback.databases import NotThere, serving
from tests.parts import compiling, forks
from tests.parts.skips import summary

# Two busy cores make single examples slow by chance, and a fresh clone makes its table of characters
# within the first; the timeout of a whole test still holds.
settings.register_profile("groundhook", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("groundhook")

# A busy machine is not late: deadlines of searches, of host calls and of statements that no test
# sets are minutes. Those of the product are written in its documents, and compared there.
PATIENT_MS = 300_000


def make_patient(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if isinstance(value, dict):
            make_patient(value)
        elif name in ("timeout_ms", "call_ms", "wall_ms"):
            settings[name] = PATIENT_MS


make_patient(cast(dict[str, Any], DEFAULTS.data))
_open_database = Database.__init__


def _open_patient_database(
    self: Database, addresses: Mapping[str, DatabaseAddress], models: Mapping[str, ModelSpec]
) -> None:
    usual = DatabaseSettings().timeout_ms
    patient = {
        name: replace(each, timeout_ms=PATIENT_MS) if each.timeout_ms == usual else each
        for name, each in addresses.items()
    }
    _open_database(self, patient, models)


Database.__init__ = _open_patient_database  # type: ignore[method-assign]


forks.patch()
compiling.patch()


# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start and
# stop by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MakeApp = Callable[[Mapping[str, str]], Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kills",
        type=int,
        default=3,
        help="how often a sync, a chat and a server are killed in the tests of that",
    )
    parser.addoption(
        "--full",
        action="store_true",
        help="attack the server with thousands of readers and guesses, not with hundreds",
    )


def pytest_collection_finish() -> None:
    """The garbage collector need not look at ten thousand tests again, half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether attacks have their full sizes."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def shown() -> Iterator[list[str]]:
    """Messages of errors, and events, that show a key which a test planted."""
    found: list[str] = []
    make, note = HostError.__init__, Channel.send_nowait

    def making(self: HostError, message: str, *rest: object, **more: object) -> None:
        make(self, message, *rest, **more)  # type: ignore[arg-type]
        if NEVER_SHOWN in str(self):
            found.append(str(self))

    def noting(self: Channel, event: Event) -> None:
        note(self, event)
        if NEVER_SHOWN in repr(event):
            found.append(repr(event))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostError, "__init__", making)
        patch.setattr(Channel, "send_nowait", noting)
        yield found


@pytest.fixture(autouse=True)
def no_message_shows_a_key(shown: list[str]) -> Iterator[None]:
    """In every test: keys that tests plant with `tests.keys` are in no error and in no event."""
    shown.clear()
    yield
    assert shown == []


def _forget_new_values() -> Iterator[None]:
    """Values of variables are concealed in the whole process; "secret" of one test is a word of
    another's message."""
    before = dict(concealed._variables)
    yield
    concealed._variables.clear()
    concealed._variables.update(before)


@pytest.fixture(scope="module", autouse=True)
def values_of_other_modules_are_forgotten() -> Iterator[None]:
    yield from _forget_new_values()


@pytest.fixture(autouse=True)
def values_of_other_tests_are_forgotten() -> Iterator[None]:
    yield from _forget_new_values()


@pytest.fixture(scope="module")
def processes_of_its_own() -> Iterator[None]:
    """The product starts its processes as it does for its users, and each app has a compiler: for
    tests of these, and for those that look at children of this process."""
    with forks.started_not_forked(), compiling.of_their_own():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for title, text in report.sections:
        if NEVER_SHOWN in text:
            report.outcome, report.longrepr = "failed", f"a planted key is in: {title}\n{text}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if skipped := terminalreporter.stats.get("skipped"):
        terminalreporter.write_line(summary(report.longrepr for report in skipped))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def make_app(tmp_path: Path) -> MakeApp:
    """Writes {path: text} (indentation common to a text's lines is dropped) and returns the app's
    folder."""

    def make(files: Mapping[str, str]) -> Path:
        app = tmp_path / "app"
        app.mkdir(exist_ok=True)
        for name, text in files.items():
            path = app / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return app

    return make


@pytest.fixture(scope="session")
def postgresql(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a PostgreSQL server, shared by the workers of a run."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    try:
        with serving("postgresql", shared) as server:
            yield server.url
    except NotThere as reason:
        pytest.skip(f"no PostgreSQL to test with: {reason}")
