"""The shop's models in a real SQLite file and on real servers, and what a search needs beside its
request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from shutil import copyfile
from typing import Any

import pytest

from groundhook.core.ports import Scope, SourceResult
from groundhook.core.settings import QuerySettings, SearchSettings, UsesSettings
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import Database, open_database
from groundhook.host.config.documents import read_document
from tests.loopback.databases import Databases, NotThere, serving

NOW = datetime(2026, 11, 12, 10, 0, tzinfo=UTC)  # a Thursday
SHOP = Path(__file__).parents[2] / "assistants/shop/models"


def shop_models() -> dict[str, ModelSpec]:
    """The sample assistant's models, by their file names."""
    models = {}
    for name in ("product", "order", "customer"):
        path = SHOP / f"{name}.mod.yao"
        models[name] = ModelSpec.model_validate({**read_document(path, path.name).data, "id": name})
    return models


@dataclass
class Shop:
    """A database and the warnings of its searches."""

    database: Database
    url: str
    warnings: list[tuple[str, str]] = field(default_factory=list)

    async def search(
        self,
        query: str,
        *models: str,
        identity: Identity | None = None,
        strict: bool = False,
        **request: Any,
    ) -> SourceResult:
        """Search these models, or all three of the shop."""
        raw = {
            "type": "db",
            "query": query,
            "models": models or ("product", "order", "customer"),
            "limit": 10,
            **request,
        }
        return await self.database.search(
            SearchRequest.model_validate(raw), self.scope(identity, strict)
        )

    def scope(self, identity: Identity | None = None, strict: bool = False) -> Scope:
        async def warn(code: str, message: str) -> None:
            self.warnings.append((code, message))

        return Scope(
            identity=identity or Identity(),
            assistant_id="shop",
            settings=SearchSettings(query=QuerySettings(strict=strict)),
            uses=UsesSettings(),
            now=lambda: NOW,
            warn=warn,
        )


@pytest.fixture(scope="session")
def shop_specs() -> dict[str, ModelSpec]:
    return shop_models()


@pytest.fixture(scope="session")
async def loaded(
    tmp_path_factory: pytest.TempPathFactory, shop_specs: dict[str, ModelSpec]
) -> Path:
    """The shop's database as loading leaves it."""
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    async with open_database(f"sqlite:///{path}", 5000, shop_specs) as database:
        await database.load()
    return path


@pytest.fixture
async def shop(
    tmp_path: Path, loaded: Path, shop_specs: dict[str, ModelSpec]
) -> AsyncIterator[Shop]:
    """A copy of the shop's database, of this test alone."""
    path = tmp_path / "state/shop.db"
    path.parent.mkdir()
    copyfile(loaded, path)
    async with open_database(f"sqlite:///{path}", 5000, shop_specs) as database:
        yield Shop(database, f"sqlite:///{path}")


@pytest.fixture
def spec() -> Callable[..., ModelSpec]:
    """A small model: `spec(values=[…], option={…})`."""

    def make(**raw: Any) -> ModelSpec:
        whole: dict[str, Any] = {
            "id": "note",
            "name": "Note",
            "table": {"name": "note"},
            "columns": [
                {"name": "id", "type": "ID"},
                {"name": "title", "type": "string", "label": "Title"},
                {"name": "body", "type": "text", "nullable": True},
                {"name": "pages", "type": "integer", "nullable": True},
                {"name": "price", "type": "decimal", "precision": 12, "scale": 4, "nullable": True},
                {"name": "kind", "type": "enum", "option": ["memo", "letter"], "default": "memo"},
                {"name": "done", "type": "boolean", "default": False},
                {"name": "due", "type": "date", "nullable": True},
                {"name": "seen", "type": "datetime", "nullable": True},
                {"name": "extra", "type": "json", "nullable": True},
            ],
        }
        return ModelSpec.model_validate({**whole, **raw})

    return make


# ------------------------------------------------------------------------------------- every engine

ENGINES = ("sqlite", "postgresql", "mariadb")
Fresh = Callable[[], Awaitable[str]]


@pytest.fixture(scope="session", params=ENGINES)
def kind(request: pytest.FixtureRequest) -> str:
    """The engines, one after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def server(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases | None]:
    """The server of an engine that has one; it is shared by the workers of a run. Skips, with the
    reason, where there is none."""
    if kind == "sqlite":
        yield None
        return
    base = tmp_path_factory.getbasetemp()
    try:
        with serving(
            kind, base.parent if hasattr(request.config, "workerinput") else base
        ) as there:
            yield there
    except NotThere as reason:
        pytest.skip(f"no {kind} to test with: {reason}")


@pytest.fixture(scope="session")
async def fresh_database(
    server: Databases | None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Fresh]:
    """Makes an empty database → its URL."""
    made: list[str] = []

    async def make() -> str:
        made.append(f"groundhook_{token_hex(4)}")
        return (
            f"sqlite:///{tmp_path_factory.mktemp('new')}/x.db"
            if server is None
            else await server.create(made[-1])
        )

    yield make
    if server is not None:
        for name in made:
            await server.drop(name)


@pytest.fixture(scope="session")
async def shop_url(fresh_database: Fresh, shop_specs: dict[str, ModelSpec]) -> str:
    """The shop as loading leaves it, on the engine; for tests that only read."""
    url = await fresh_database()
    async with open_database(url, 20_000, shop_specs) as database:
        await database.load()
    return url


@pytest.fixture
async def everywhere(shop_url: str, shop_specs: dict[str, ModelSpec]) -> AsyncIterator[Shop]:
    async with open_database(shop_url, 20_000, shop_specs) as database:
        yield Shop(database, shop_url)
