"""The port of the engine that runs hooks: the script of a package, the hooks of a turn, their
session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from groundhook.core.errors import Place
from groundhook.core.settings import HookLimits
from groundhook.core.types.turn import CreateReturn, Message, NextPayload, NextReturn

if TYPE_CHECKING:
    # Modules that read packages import this one; they do not need these types at run time.
    from groundhook.core.hook_services import HookServices
    from groundhook.core.types.events import HookJournal


@dataclass(frozen=True, kw_only=True)
class HookScript:
    """A package's hook: the entry file and the folder that imports must stay inside. With a
    `next_entry`, Next is in that file and only Create in `entry`. `by_name`: the host calls the
    functions of the file by their names, and neither Create nor Next. `functions` are the names in
    the files of hooks that have other ones: (("Next", "afterwards"),).

    `shown` is the folder's name in messages (`assistants/docs`). `paths` are aliases of files, as
    in TypeScript's option of that name: patterns with at most one star, each with paths below the
    folder. A script with a `revision` keeps its first compilation even if its files change."""

    entry: Path
    root: Path
    shown: str
    next_entry: Path | None = None
    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    revision: int = 0
    by_name: bool = False
    functions: tuple[tuple[str, str], ...] = ()

    @property
    def shown_entry(self) -> str:
        """The entry file's name in messages: `assistants/docs/index.ts`."""
        return f"{self.shown}/{self.entry.relative_to(self.root).as_posix()}"

    def mentions(self, name: str) -> bool:
        """Return whether a script in the folder has this text. Reads files."""
        scripts = (path for kind in ("*.ts", "*.js") for path in self.root.rglob(kind))
        return any(
            name in path.read_text(encoding="utf-8", errors="replace")
            for path in scripts
            if path.is_file()
        )

    @property
    def entries(self) -> tuple[Path, ...]:
        """The files in which the host looks for its functions."""
        return (self.entry,) if self.next_entry is None else (self.entry, self.next_entry)


@dataclass(frozen=True, kw_only=True)
class ScriptFunction:
    """A function at the top level of a script, as its source declares it.

    `parameters` is the JSON Schema of its arguments by name. `order` names them in the order in
    which the function takes them; None: it takes them as one object. `rest`: the last one is a list
    of the arguments that follow. `takes` is the number of its parameters, `context` the index of
    the one that is `ctx` (-1: none). `unread` are types that have no JSON Schema here, with their
    places; `computed` is the place of a part of its entry in `schemas` that is not a literal: the
    types count then."""

    name: str
    exported: bool
    description: str
    parameters: Mapping[str, Any]
    order: tuple[str, ...] | None
    takes: int
    context: int
    place: Place
    unread: tuple[tuple[str, Place], ...] = ()
    computed: Place | None = None
    rest: bool = False


@dataclass(frozen=True, kw_only=True)
class WrittenName:
    """A name in the text of a script: of a collection or a model, as a literal in a call of
    `ctx.search`; of an exported generator, or class with static methods; or one that the script's
    `schemas` describes."""

    noun: Literal["collection", "model", "generator", "class", "schema"]
    name: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class HookTurn:
    """The input for the hooks of one turn: the script, the scalar fields of `ctx`, the services of
    the host, and the limits. `now` fixes the clock of JavaScript, `seed` its random numbers.
    `trace_id` is `ctx.trace.id`. A `journal` has the calls of the hooks before the question that
    one of them asked, and `reply` the user's answer: it then goes on behind it, and makes none of
    them again."""

    script: HookScript
    context: Mapping[str, Any]
    services: HookServices
    limits: HookLimits = field(default_factory=HookLimits)
    now: datetime | None = None
    seed: int | None = None
    trace_id: str = ""
    journal: HookJournal = ()
    reply: HookReply | None = None


@dataclass(frozen=True)
class HookReply:
    """The user's answer to `ctx.Ask`; `text` is None where the user declined."""

    text: str | None


class HookAsked(Exception):
    """Ends Create or Next, which asks the user a question: its answer comes with another turn. The
    last call of the `journal` is the question."""

    def __init__(self, question: str, choices: Sequence[str]) -> None:
        super().__init__(question)
        self.question = question
        self.choices = tuple(choices)
        self.journal: HookJournal = ()


class HookSession(Protocol):
    """The isolate of one turn: it runs Create and then Next, and is freed when the session is
    left."""

    async def create(
        self, messages: Sequence[Message], options: Mapping[str, Any], /
    ) -> CreateReturn | None:
        """Run Create and return its result; None without a Create or without a result. Raises
        HookError, and HookAsked where it asks the user."""
        ...

    @property
    def journal(self) -> HookJournal:
        """The calls of Create so far, if it has asked the user; else none."""
        ...

    @property
    def resumes_next(self) -> bool:
        """Whether Next asked the user: it goes on with the answer that it had, and no model is
        asked."""
        ...

    async def next(
        self,
        payload: NextPayload,
        options: Mapping[str, Any],
        /,
        context: Mapping[str, Any] | None = None,
    ) -> NextReturn | None:
        """Run Next and return its result; None without a Next or without a result. `context` are
        fields of `ctx` that have changed since Create; `payload` is not read where Next goes on
        behind a question. Raises HookError, and HookAsked where it asks the user."""
        ...

    async def call(
        self, function: ScriptFunction, arguments: Mapping[str, Any] | Sequence[Any], /
    ) -> Any:
        """Call a function of a script `by_name`, with its arguments by name or in their order, and
        return the JSON value that it returned; None for nothing. `ctx` is put where the function
        takes it. Raises HookError."""
        ...


class HookEngine(Protocol):
    """Compiles hooks and runs each turn's in an isolate of its own."""

    def open(self, turn: HookTurn, /) -> AbstractAsyncContextManager[HookSession]:
        """Return a context manager that enters the isolate of a turn. Entering raises HookError."""
        ...

    async def check(self, script: HookScript, /) -> None:
        """Compile and link without running the script. Raises HookSyntaxError."""
        ...

    async def functions(self, script: HookScript, /) -> Sequence[ScriptFunction]:
        """Return the functions of a script's entry file, without running it. Raises
        HookSyntaxError."""
        ...

    async def names(self, script: HookScript, /) -> Sequence[WrittenName]:
        """Return the names in a script and in the files that it imports, without running it. Raises
        HookSyntaxError."""
        ...

    def keep_compiler(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that keeps a compiler loaded inside its block, for repeated
        compilation."""
        ...
