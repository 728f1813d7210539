"""Keys that tests plant in the environment of a host. Each holds a text that no message may show:
tests/conftest.py looks for it in all errors, events, output and logs of the suite."""

from __future__ import annotations

NEVER_SHOWN = "never-shown"


def key(name: str = "key") -> str:
    return f"{name}-{NEVER_SHOWN}"
