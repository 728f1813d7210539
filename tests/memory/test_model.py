"""A memory behaves like plain dicts under any sequence of calls, turns, reopenings and passing
time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio.from_thread
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from groundhook.core.app_settings import MemorySettings
from groundhook.core.errors import UsageError
from groundhook.core.types.turn import Identity
from groundhook.host.chats.memory.memory import Memory, Namespaces, open_memory
from tests.memory.conftest import Clock

LIMITS = MemorySettings(keys=4)
OWNERS = [
    (Identity(tenant_id=tenant, team_id="t", user_id=user), chat)
    for tenant in "xy"
    for user in "ab"
    for chat in "12"
]
names = st.sampled_from(["user", "team", "chat", "context"])
owners = st.sampled_from(range(len(OWNERS)))
keys = st.sampled_from(["a", "b", "c", "\x00", "A", "é"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)
ttls = st.none() | st.integers(1, 50)
steps = st.integers(-5, 5) | st.sampled_from([0.5, 2**53 - 1])


class MemoryMachine(RuleBasedStateMachine):
    """The real SQLite file beside a dict of dicts: {space: {key: (value, end)}}."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memory-"))
        self.clock = Clock()
        self.model: dict[tuple[str, ...], dict[str, tuple[Any, float]]] = {}
        self.ms = 0.0
        self.portal_scope = anyio.from_thread.start_blocking_portal()
        self.portal = self.portal_scope.__enter__()
        self.open()

    def open(self) -> None:
        self.stack = AsyncExitStack()
        opened = open_memory(self.folder / "memory.sqlite", self.clock, LIMITS)
        self.memory: Memory = self.portal.call(self.stack.enter_async_context, opened)
        self.turns: dict[int, Namespaces] = {}

    def teardown(self) -> None:
        self.portal.call(self.stack.aclose)
        self.portal_scope.__exit__(None, None, None)
        shutil.rmtree(self.folder)

    # ---- the two sides

    def ask(self, owner: int, name: str, call: str, *args: Any) -> Any:
        turn = self.turns.setdefault(owner, self.memory.of(*OWNERS[owner]))
        work: Callable[..., Coroutine[Any, Any, Any]] = getattr(turn.namespace(name), call)
        try:
            return self.portal.call(work, *args)
        except UsageError:
            return UsageError

    def entries(self, owner: int, name: str) -> dict[str, tuple[Any, float]]:
        identity, chat = OWNERS[owner]
        space = {
            "user": (identity.tenant_id, identity.user_id),
            "team": (identity.tenant_id, identity.team_id),
            "chat": (identity.tenant_id, identity.user_id, chat),
            "context": (str(owner),),
        }[name]
        entries = self.model.setdefault((name, *space), {})
        for key in [key for key, (_, end) in entries.items() if end <= self.ms]:
            del entries[key]
        return entries

    # ---- what happens

    @rule(owner=owners, name=names, key=keys, value=values, ttl=ttls)
    def set(self, owner: int, name: str, key: str, value: Any, ttl: int | None) -> None:
        entries = self.entries(owner, name)
        fits = key in entries or len(entries) < LIMITS.keys
        assert self.ask(owner, name, "set", key, value, ttl) == (None if fits else UsageError)
        if fits:
            entries[key] = (value, self.ms + ttl if ttl else float("inf"))

    @rule(owner=owners, name=names, key=keys)
    def get(self, owner: int, name: str, key: str) -> None:
        assert self.ask(owner, name, "get", key) == self.entries(owner, name).get(key, (None,))[0]
        assert self.ask(owner, name, "has", key) == (key in self.entries(owner, name))

    @rule(owner=owners, name=names, key=keys)
    def delete(self, owner: int, name: str, key: str) -> None:
        assert self.ask(owner, name, "delete", key) == (
            self.entries(owner, name).pop(key, None) is not None
        )

    @rule(owner=owners, name=names, key=keys)
    def get_del(self, owner: int, name: str, key: str) -> None:
        assert (
            self.ask(owner, name, "get_del", key) == self.entries(owner, name).pop(key, (None,))[0]
        )

    @rule(owner=owners, name=names)
    def list(self, owner: int, name: str) -> None:
        assert self.ask(owner, name, "keys") == sorted(self.entries(owner, name))
        assert self.ask(owner, name, "length") == len(self.entries(owner, name))

    @rule(owner=owners, name=names)
    def clear(self, owner: int, name: str) -> None:
        entries = self.entries(owner, name)
        assert self.ask(owner, name, "clear") == len(entries)
        entries.clear()

    @rule(owner=owners, name=names, key=keys, by=steps, down=st.booleans())
    def count(self, owner: int, name: str, key: str, by: float, down: bool) -> None:
        entries = self.entries(owner, name)
        answer = self.ask(owner, name, "decr" if down else "incr", key, by)
        value, end = entries.get(key, (0, float("inf")))
        total = None
        if not isinstance(value, bool) and isinstance(value, int | float):
            total = value - by if down else value + by
            if isinstance(total, int) and abs(total) > 2**53 - 1:
                total = None
        if total is None or (key not in entries and len(entries) >= LIMITS.keys):
            assert answer is UsageError
        else:
            assert answer == total
            entries[key] = (total, end)

    @rule(ms=st.integers(1, 60))
    def time_passes(self, ms: int) -> None:
        self.clock.pass_ms(ms)
        self.ms += ms

    @rule()
    def the_host_starts_again(self) -> None:
        self.portal.call(self.stack.aclose)
        self.open()
        for space in [space for space in self.model if space[0] == "context"]:
            del self.model[space]


MemoryMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestAMemoryIsWhatPlainDictsAre = MemoryMachine.TestCase
