"""Searches and documents on a cassette."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.ports import Documents, Handler, Scope, SourceResult
from groundhook.core.types.search import (
    GraphNode,
    Item,
    Row,
    SearchAccount,
    SearchRequest,
    SearchType,
    Table,
)
from groundhook.host.testing.cassette import joined, lines
from groundhook.host.testing.tape import Tape, TapedAnswer


@dataclass(frozen=True)
class TapedSource:
    """A `Handler` whose answers are recorded."""

    tape: Tape
    type: SearchType
    real: Handler

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        async def real() -> TapedAnswer:
            return recorded_found(await self.real.search(request, scope))

        fields = request.model_dump(mode="json", exclude={"type"}, exclude_none=True)
        identity = scope.identity.model_dump(exclude_defaults=True)
        return found_of(
            await self.tape.ask(f"{self.type} search", {**fields, "identity": identity}, real)
        )


@dataclass(frozen=True)
class TapedDocuments:
    """`Documents` whose answers are recorded."""

    tape: Tape
    real: Documents

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        async def real() -> TapedAnswer:
            return recorded_found(await self.real.fetch_document(collection, document_id, scope))

        request = {
            "collection": collection,
            "document_id": document_id,
            "identity": scope.identity.model_dump(exclude_defaults=True),
        }
        return found_of(await self.tape.ask("document", request, real))


def recorded_found(found: SourceResult) -> TapedAnswer:
    """Return the result of a source in the form in which it is recorded."""
    tables = list({item.row.table.id: item.row.table for item in found.items if item.row}.values())
    places = {table.id: place for place, table in enumerate(tables)}
    answer: TapedAnswer = {"items": [_record_item(item, places) for item in found.items]}
    if tables:
        answer["tables"] = [
            table.model_dump(mode="json", exclude_defaults=True) for table in tables
        ]
    if found.account != SearchAccount():
        answer["account"] = found.account.model_dump(mode="json", exclude_defaults=True)
    if found.total is not None:
        answer["total"] = found.total
    if found.graph_nodes is not None:
        answer["graph_nodes"] = [
            node.model_dump(mode="json", exclude_defaults=True) for node in found.graph_nodes
        ]
    if found.dsl is not None:
        answer["dsl"] = found.dsl
    return answer


def found_of(answer: TapedAnswer) -> SourceResult:
    """Return the result of a recording that `recorded_found` made."""
    nodes = answer.get("graph_nodes")
    tables = [Table.model_validate(table) for table in answer.get("tables", ())]
    return SourceResult(
        items=tuple(_restore_item(raw, tables) for raw in answer["items"]),
        account=SearchAccount.model_validate(answer.get("account", {})),
        total=answer.get("total"),
        graph_nodes=None
        if nodes is None
        else tuple(GraphNode.model_validate(node) for node in nodes),
        dsl=answer.get("dsl"),
    )


def _record_item(item: Item, tables: Mapping[str, int]) -> TapedAnswer:
    raw = {"key": item.key, **item.model_dump(mode="json", exclude_defaults=True)}
    if item.row:
        raw["row"] = {"table": tables[item.row.table.id], "cells": list(item.row.cells)}
    return {key: lines(value) if key == "content" else value for key, value in raw.items()}


def _restore_item(raw: Mapping[str, Any], tables: Sequence[Table]) -> Item:
    fields = {**raw, "content": joined(raw.get("content", ""))}
    if row := raw.get("row"):
        fields["row"] = Row(table=tables[row["table"]], cells=tuple(row["cells"]))
    return Item.model_validate(fields)
