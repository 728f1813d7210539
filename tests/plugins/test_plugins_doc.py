"""docs/plugins.md shows each port as it is."""

from __future__ import annotations

import re

import groundhook.plugins
from scripts.plugins_doc import BEGIN, DOCUMENT, END, section


def test_the_page_shows_every_port_with_its_signature() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = BEGIN + text.partition(BEGIN)[2].partition(END)[0]
    assert shown == section(), "run `make docs`"


def test_every_port_of_the_page_can_be_imported_from_plugins() -> None:
    named = re.findall(r"^(?:class (\w+)|(\w+) = )", section(), re.M)
    names = {name or alias for name, alias in named}
    assert {"Handler", "WebEngine", "Reranker", "Connector", "Embedder", "Toolkit"} < names
    assert {"Reader", "SyncSource"} < names
    assert [name for name in names if name not in groundhook.plugins.__all__] == []
