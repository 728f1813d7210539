"""A linked program: the compiled modules of one hook. Wraps modules for the isolate, and maps their
places to the author's files. Pure. `hooks/script.py` links them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.errors import HookSyntaxError, Place
from groundhook.core.hook_engine import ScriptFunction, WrittenName
from groundhook.hooks.sourcemap import find_original

# The runtime's own module (`@yao/runtime`) has the globals under their names.
RUNTIME_MODULE = """module.exports = new Proxy({}, {
  get(_, name) {
    if (name === "default") return module.exports;
    if (name === "__esModule") return true;
    if (name in globalThis) return globalThis[name];
    if (typeof name === "symbol" || name === "then") return undefined;
    throw new Error(name + " is not offered by this host, so it cannot be imported");
  },
});"""
BEFORE, AFTER = "(function (exports, require, module) {\n", "\n})\n//# sourceURL=hook:"
HOOKS = ("Create", "Next")
_RESERVED = re.compile(
    "await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export"
    "|extends|false|finally|for|function|if|implements|import|in|instanceof|interface|let|new|null"
    "|package|private|protected|public|return|static|super|switch|this|throw|true|try|typeof|var"
    "|void|while|with|yield"
)


@dataclass(frozen=True)
class Module:
    """One file of a program. `requires` maps the names that the emitted code requires to positions
    in `HookProgram.modules`."""

    file: str
    code: str
    mappings: str
    requires: Mapping[str, int]


@dataclass(frozen=True)
class HookProgram:
    """The linked modules of a hook, the entry first. `text` is what the prelude's `compile` takes,
    `literal` the same as a JavaScript literal."""

    modules: tuple[Module, ...]
    text: str
    literal: str
    functions: tuple[ScriptFunction, ...] = ()  # of the entries
    names: tuple[WrittenName, ...] = ()  # of all modules

    def place(self, index: int, line: int, column: int) -> Place:
        """Return the source of a place in the script `hook:<index>`; lines and columns from 1."""
        module = self.modules[index]
        found = find_original(module.mappings, line - 2, column - 1)  # the wrapper adds a line
        return (
            Place(module.file, found[0] + 1, found[1] + 1)
            if found
            else Place(module.file, max(line - 1, 1), column)
        )


def link_text(
    modules: Sequence[Module],
    entries_count: int = 1,
    called: Sequence[str] = (),
    functions: Mapping[str, str] | None = None,
) -> str:
    """Return the modules as the JSON list that the prelude's `compile` takes. The first
    `entries_count` are those in which the host looks for its functions, the hooks or those that are
    `called`; of two, the second has Next alone. `functions` are the names of hooks in the files,
    where they have others."""
    written = functions or {}
    names = (
        f'{name}: typeof {name} === "undefined" ? undefined : {name}'
        for name in (*(called or HOOKS), *written.values())
        if _is_identifier(name)
    )
    pick = f"\nreturn {{{', '.join(names)}}};"
    entries = []
    for index, module in enumerate(modules):
        # The runtime's own module is not a file of the package: its frames must not be taken for
        # one, so that an error is located where the module is used.
        end = AFTER + ("runtime" if module.code == RUNTIME_MODULE else str(index))
        code = BEFORE + module.code + (pick if index < entries_count else "") + end
        named = {"functions": written} if written and index < entries_count else {}
        entries.append({"code": code, "requires": module.requires, **named})
    if entries_count == 2:
        entries[1]["serves"] = "Next"
    return json.dumps(entries)


def _is_identifier(name: str) -> bool:
    """Return whether a name can be that of a variable. Others (`delete`, `default`, `"a-b"`) are
    names of exports alone, which the prelude finds among the exports."""
    return name.replace("$", "_").isidentifier() and not _RESERVED.fullmatch(name)


def non_function_error(name: str, kind: str, place: Place) -> HookSyntaxError:
    """Return the error of a hook's name that is bound to a value."""
    article = "an" if kind[0] in "aeiou" else "a"
    hint = f"the host calls {name}: make it a function, or give the {kind} another name"
    return HookSyntaxError(f"{name} is {article} {kind}, not a function", place=place, hint=hint)


def function_of(read: Mapping[str, Any], file: str) -> ScriptFunction:
    """Return a function as signatures.js describes it."""
    order, computed = read["order"], read["computed"]
    return ScriptFunction(
        name=read["name"],
        exported=read["exported"],
        description=read["description"],
        parameters=read["parameters"],
        order=None if order is None else tuple(order),
        rest=read["rest"],
        takes=read["takes"],
        context=read["context"],
        place=Place(file, read["line"] + 1, read["column"] + 1),
        unread=tuple(
            (each["type"], Place(each.get("file", file), each["line"] + 1, each["column"] + 1))
            for each in read["unread"]
        ),
        computed=(
            None if computed is None else Place(file, computed["line"] + 1, computed["column"] + 1)
        ),
    )


def name_of(read: Mapping[str, Any], file: str) -> WrittenName:
    """Return a name as named.js describes it."""
    place = Place(file, read["line"] + 1, read["column"] + 1)
    return WrittenName(noun=read["noun"], name=read["name"], place=place)
