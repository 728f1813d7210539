"""docs/hooks.md names every call of the table, in the section that names its group, and every call
has a sentence that says what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groundhook.hooks.api.process import PROCESSES
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.api.table import CALLS, LAZY_GLOBALS

PAGE = (Path(__file__).parents[2] / "docs/hooks.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
VERBS = re.compile(
    "Add|Append|Begin|Call|Do|End|Fill|Keep|Mark|Merge|Query|Read|Remove|Replace|Return|Run|Search"
    "|Send|Set|Stop|Subtract|Wait|Write"
)
# Others are for the JavaScript side alone.
FOR_AUTHORS = [call for call in CALLS if call.js.replace(".", "").isidentifier()]


def is_named(call: HostCall) -> bool:
    """By its full name, or by its own in the section that names its group."""
    group, _, name = call.js.rpartition(".")
    if group in ("", "ctx"):
        return f"`{call.js}" in PAGE
    own = (section for section in SECTIONS if re.search(rf"`{re.escape(group)}\b", section))
    return any(re.search(rf"`(?:{re.escape(group)}\.)?{name}\b", section) for section in own)


@pytest.mark.parametrize("call", FOR_AUTHORS, ids=lambda call: call.js)
def test_a_call_is_named(call: HostCall) -> None:
    assert is_named(call), f"docs/hooks.md lacks {call.js}"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.js)
def test_the_sentence_of_every_call_begins_with_what_it_does(call: HostCall) -> None:
    verb = call.doc.partition(" ")[0]
    assert VERBS.fullmatch(verb), call.doc
    assert call.doc.endswith(".")


@pytest.mark.parametrize("name", [*LAZY_GLOBALS, *(f'Process("{name}"' for name in PROCESSES)])
def test_a_global_or_process_is_named(name: str) -> None:
    assert f"`{name}" in PAGE
