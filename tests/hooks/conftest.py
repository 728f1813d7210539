"""Engines, packages written into a temporary folder, and the services of a turn, which record
their calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import pytest

from groundhook.core.errors import Place
from groundhook.core.hook_engine import (
    HookEngine,
    HookScript,
    HookTurn,
)
from groundhook.core.settings import HookLimits
from groundhook.core.types.search import Item, SearchRequest, SearchResult
from groundhook.core.types.turn import CreateReturn, Message, NextPayload, NextReturn
from groundhook.hooks.runner import open_engine
from tests.loops import in_a_task_of_its_own
from tests.parts import forks

Answer = Callable[[SearchRequest], Awaitable[SearchResult]]


async def one_item(request: SearchRequest) -> SearchResult:
    item = Item(
        type=request.type, title=f"about {request.query}", content="text", key=request.query
    )
    return SearchResult(type=request.type, query=request.query, items=(item,), total=1)


@dataclass
class Services:
    """Answers every search by `answer`; remembers searches, log lines and warnings."""

    answer: Answer = one_item
    requests: list[SearchRequest] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    output: Any = None
    trace: Any = None
    calls: Any = None
    memory: Any = None
    chat: Any = None
    web: Any = None
    records: Any = None
    servers: Any = None
    tools: Any = None
    scripts: Any = None

    async def search(self, request: SearchRequest, /) -> SearchResult:
        self.requests.append(request)
        return await self.answer(request)

    async def search_many(
        self, requests: Sequence[SearchRequest], mode: Literal["all", "any", "race"], /
    ) -> list[SearchResult]:
        self.modes.append(mode)
        results = [await self.search(request) for request in requests]
        return results if mode == "all" else results[:1]

    async def log(self, level: str, message: str, /) -> None:
        self.lines.append((level, message))

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None:
        self.warnings.append((code, message))
        self.places += [str(place)] if place else []


@dataclass
class Hooks:
    """Runs hooks on one engine; a hook is given as the text of index.ts or as {path: text}."""

    engine: HookEngine
    folder: Path
    made: int = 0

    def script(self, files: str | Mapping[str, str]) -> HookScript:
        self.made += 1
        root = self.folder / f"p{self.made}"
        for name, text in ({"index.ts": files} if isinstance(files, str) else files).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return HookScript(entry=root / "index.ts", root=root, shown="assistants/x")

    def turn(
        self, files: str | Mapping[str, str], services: Services | None = None, **limits: int
    ) -> HookTurn:
        context = {"chat_id": "c1", "assistant_id": "x", "locale": "en"}
        return HookTurn(
            script=self.script(files),
            context=context,
            services=services or Services(),
            limits=HookLimits.model_validate(limits),
        )

    async def create(
        self,
        files: str | Mapping[str, str],
        services: Services | None = None,
        options: dict[str, Any] | None = None,
        **limits: int,
    ) -> CreateReturn | None:
        async with self.engine.open(self.turn(files, services, **limits)) as session:
            return await session.create([Message(role="user", content="hello")], options or {})

    async def value(self, expression: str, services: Services | None = None, **limits: int) -> Any:
        """What a JavaScript expression is worth inside Create, where `ctx` is known."""
        source = (
            f"function Create(ctx, messages, options) {{ return {{ metadata: {{ value: {expression}"
            " } }; }"
        )
        returned = await self.create(source, services, None, **limits)
        assert returned is not None
        assert returned.metadata is not None
        return returned.metadata["value"]

    async def next(self, files: str | Mapping[str, str], payload: NextPayload) -> NextReturn | None:
        async with self.engine.open(self.turn(files)) as session:
            return await session.next(payload, {})


@pytest.fixture(scope="module", autouse=True)
def processes_are_started() -> Iterator[None]:
    """What starts and ends processes is tried here. Modules about the compiler ask for
    `processes_of_its_own`: a compiler is loaded for each script that is compiled."""
    with forks.started_not_forked():
        yield


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module", params=[2, 0], ids=["workers", "in-process"])
async def engine(request: pytest.FixtureRequest, cache: Path) -> AsyncIterator[HookEngine]:
    async with in_a_task_of_its_own(open_engine(workers=request.param, cache=cache)) as engine:
        yield engine


@pytest.fixture(scope="module")
async def workers(cache: Path) -> AsyncIterator[HookEngine]:
    async with in_a_task_of_its_own(open_engine(workers=2, cache=cache)) as engine:
        yield engine


@pytest.fixture
def hooks(engine: HookEngine, tmp_path: Path) -> Hooks:
    return Hooks(engine, tmp_path)


@pytest.fixture
def in_workers(workers: HookEngine, tmp_path: Path) -> Hooks:
    return Hooks(workers, tmp_path)
