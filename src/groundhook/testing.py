"""Tests of assistants in Python: the runner of `groundhook test`, and a source that answers
from a table.

    from groundhook.testing import Result, open_runner

    async with open_runner("path/to/app") as runner:
        async for result in runner.run(["shop"]): ...

docs/testing.md shows both. As in `groundhook`, each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundhook.host.testing.canned import CannedSource as CannedSource
    from groundhook.host.testing.canned import canned_item as canned_item
    from groundhook.host.testing.runner import FileEnd as FileEnd
    from groundhook.host.testing.runner import Result as Result
    from groundhook.host.testing.runner import Runner as Runner
    from groundhook.host.testing.runner import open_runner as open_runner

_HOMES = {
    "groundhook.host.testing.canned": ("CannedSource", "canned_item"),
    "groundhook.host.testing.runner": ("FileEnd", "Result", "Runner", "open_runner"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if not TYPE_CHECKING:  # which would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
