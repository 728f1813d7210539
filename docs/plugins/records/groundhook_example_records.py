"""A search source in place of the built-in database: the records of a model are the rows of
`rows/<model>.json` in the app's folder. A row with `user_id` is for that user alone.

It implements three ports: `Handler` serves searches of type db, `Records` serves hooks that read
records by conditions (`Process("models.<id>.Get")`), and `FollowsDeclarations` gives it the app's
models again after a reload.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundhook import Item, NotSupported, SearchRequest, SourceError
from groundhook.plugins import (
    CollectionSpec,
    ModelSpec,
    Plugin,
    PluginContext,
    Plugins,
    RecordQuery,
    Scope,
    Source,
    SourceResult,
)


class Rows:
    def __init__(self, root: Path, models: Mapping[str, ModelSpec]) -> None:
        self.root, self.models = root, models

    def with_declarations(
        self, collections: Mapping[str, CollectionSpec], models: Mapping[str, ModelSpec], /
    ) -> "Rows":
        """The same rows, read by the models of after a reload."""
        return Rows(self.root, models)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """The rows that have a word of the question."""
        words = request.query.lower().split()
        items = [
            Item(
                type="db",
                key=f"{model}:{row['id']}",
                title=str(row.get("name", row["id"])),
                content=json.dumps(row),
                score=0.5,
                model=model,
                record_id=row["id"],
                data=row,
            )
            for model in request.models or ()
            for row in self._rows(model, scope)
            if any(word in str(row).lower() for word in words)
        ]
        return SourceResult(items=tuple(items[: request.limit]), total=len(items))

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """The rows of a model, or the one of an id."""
        if query.wheres or query.orders:
            raise NotSupported("rows are read without conditions and orders")
        rows = self._rows(query.model, scope)
        if query.record_id is not None:
            rows = [row for row in rows if row["id"] == query.record_id]
        return rows[: query.limit]

    def _rows(self, model: str, scope: Scope) -> list[dict[str, Any]]:
        fields = {column.name for column in self.models[model].columns}
        file = self.root / "rows" / f"{model}.json"
        try:
            every = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise SourceError(f"the rows of {model!r} cannot be read") from exc
        return [
            {name: value for name, value in row.items() if name in fields}
            for row in every
            if row.get("user_id", scope.identity.user_id) == scope.identity.user_id
        ]


def make_rows(context: PluginContext) -> Rows:
    return Rows(context.root, context.models)


def register(plugins: Plugins) -> None:
    plugins.sources.replace("db", Source(type="db", make=make_rows))


plugin = Plugin(register, requires=1)
