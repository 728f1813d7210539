"""Fixtures every area shares: the asyncio backend, and apps written file by file into a temporary
folder."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import settings

# Two busy cores make single examples slow by chance; the timeout of a whole test still holds.
settings.register_profile("groundhook", deadline=None)
settings.load_profile("groundhook")

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start and
# stop by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MakeApp = Callable[[Mapping[str, str]], Path]


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
