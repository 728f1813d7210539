"""The port of the engine that runs hooks: the script of a package, the hooks of a turn, their
session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from groundhook.host.core.settings import HookLimits
from groundhook.host.core.types.turn import CreateReturn, Message, NextPayload, NextReturn

if TYPE_CHECKING:
    # What reads packages knows their scripts, and nothing of what hooks call.
    from groundhook.host.core.hook_services import HookServices


@dataclass(frozen=True, kw_only=True)
class HookScript:
    """A package's hook: the entry file and the folder that imports must stay inside. `shown` is the
    folder as messages name it (`assistants/docs`). `paths` are other names for files in it, as
    TypeScript's option of that name has them: patterns with at most one star, each with places
    below the folder. A script with a `revision` is what it was when it was first compiled, whatever
    becomes of its files."""

    entry: Path
    root: Path
    shown: str
    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    revision: int = 0

    @property
    def shown_entry(self) -> str:
        """The entry file as messages name it: `assistants/docs/index.ts`."""
        return f"{self.shown}/{self.entry.relative_to(self.root).as_posix()}"


@dataclass(frozen=True, kw_only=True)
class HookTurn:
    """One turn's hooks: which script, the scalar fields of `ctx`, the host behind it, and the
    limits. `now` and `seed` fix what JavaScript takes for the time of day and where its random
    numbers begin."""

    script: HookScript
    context: Mapping[str, Any]
    services: HookServices
    limits: HookLimits = field(default_factory=HookLimits)
    now: datetime | None = None
    seed: int | None = None


class HookSession(Protocol):
    """The isolate of one turn; it serves Create and then Next, and is gone when the session is
    left."""

    async def create(
        self, messages: Sequence[Message], options: Mapping[str, Any], /
    ) -> CreateReturn | None:
        """Raises HookError. None when there is no Create or it returned nothing."""
        ...

    async def next(
        self, payload: NextPayload, options: Mapping[str, Any], /
    ) -> NextReturn | None: ...


class HookEngine(Protocol):
    def open(self, turn: HookTurn, /) -> AbstractAsyncContextManager[HookSession]: ...

    async def check(self, script: HookScript, /) -> None:
        """Compile and link without running. Raises HookSyntaxError."""
        ...

    def keep_compiler(self) -> AbstractAsyncContextManager[None]:
        """Keep a compiler that is ready, for as long as the block lasts: for those who compile
        again and again."""
        ...
