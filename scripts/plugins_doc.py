"""Writes the section "Ports" of `docs/plugins.md` from the ports themselves: what an author has to
implement, with every signature.

`python -m scripts.plugins_doc` writes the file; a test compares the section with `section()`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from groundhook.core.ports import Connector, Embedder, Handler, Ranked, Reranker
from groundhook.core.sync_source import SyncSource
from groundhook.core.tool_ports import Toolkit
from groundhook.core.types import documents
from groundhook.core.types.web_providers import WebEngine, WebHit, WebQuery

DOCUMENT = Path("docs/plugins.md")
BEGIN, END = "## Ports\n", "\n## Versions\n"

_INTRODUCTION = """\
What a part has to have, as `groundhook.plugins` exports it; no base class is needed.
"""
_PORTS: dict[str, tuple[type, ...]] = {
    "A source": (Handler,),
    "A web provider's engine": (WebEngine, WebQuery, WebHit),
    "A reranker": (Reranker, Ranked),
    "A connector": (Connector,),
    "An embedder": (Embedder,),
    "A toolkit, and what its `sync()` returns": (Toolkit, SyncSource),
}


def section() -> str:
    """Return the section, from its heading to the next one."""
    parts = [BEGIN, _INTRODUCTION]
    for title, ports in _PORTS.items():
        source = "\n\n\n".join(inspect.getsource(port).rstrip() for port in ports)
        parts.append(f"{title}:\n\n```python\n{source}\n```\n")
    parts.append(f"A reader:\n\n```python\n{_alias('Reader')}\n```\n")
    return "\n".join(parts)


def _alias(name: str) -> str:
    """Return the line of a type alias with the comment before it."""
    lines = inspect.getsource(documents).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith(f"{name} = "))
    first = at
    while lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : at + 1])


def document(text: str) -> str:
    """Return the text of the page with this section in place of its own."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{section()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
