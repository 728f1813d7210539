"""No query sees a row that its identity may not see: every answer is that of a database in which the
rows of all others do not exist. Random queries, with groups of
alternatives, relations and figures, on every engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import NotPermitted, SourceError
from groundhook.core.types.model_options import DatabaseModelOptions
from groundhook.core.types.model_spec import (
    CREATED_BY,
    SHARE,
    TEAM,
    TENANT,
    ModelSpec,
)
from groundhook.core.types.turn import Constraints, Identity
from groundhook.handlers.db.database import Database, open_database
from tests.db.conftest import Fresh, Shop

Row = dict[str, Any]
# Tenants that a collation may take for the same.
TENANTS = ["acme", "ACME", "acmé", "acme ", "zeta", ""]


NOTES, FOLDER_COUNT = 192, 24  # most folders have notes that are seen, and others


def rows() -> dict[str, list[Row]]:
    made: dict[str, list[Row]] = {"folder": [], "note": []}
    for number in range(NOTES):
        whose = {
            TENANT: TENANTS[number % 6] or None,
            CREATED_BY: [None, "alice", "bob", "Alice"][number // 6 % 4],
            TEAM: [None, "red", "blue"][number % 3],
            SHARE: [None, "team", "tenant", "private"][number // 3 % 4],
        }
        if number < FOLDER_COUNT:
            made["folder"].append({"id": number + 1, "title": f"folder {number % 5}", **whose})
        moved = {**whose, TENANT: TENANTS[(number * 5 + 1) % 6] or None}
        note = {
            "id": number + 1,
            "title": f"note {number % 7}",
            "pages": number % 9 or None,
            "kind": ["memo", "letter"][number % 2],
            "due": f"2026-{number % 3 + 1:02}-{number % 5 + 10}",
        }
        made["note"].append(
            {
                **note,
                "folder_id": (number * 7 + number // FOLDER_COUNT * 6) % FOLDER_COUNT + 1,
                **(moved if number % 4 == 0 else whose),
            }
        )
    return made


ROWS = rows()


def models(values: Mapping[str, list[Row]]) -> dict[str, ModelSpec]:
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "title", "type": "string"},
        {"name": "pages", "type": "integer", "nullable": True},
        {"name": "kind", "type": "enum", "option": ["memo", "letter"]},
        {"name": "folder_id", "type": "bigInteger", "nullable": True},
        {"name": "due", "type": "date", "nullable": True},
    ]
    folder = {"type": "hasOne", "model": "folder", "key": "id", "foreign": "folder_id"}
    notes = {"type": "hasMany", "model": "note", "key": "folder_id", "foreign": "id"}
    raw: dict[str, dict[str, Any]] = {
        "note": {"columns": columns, "relations": {"folder": folder}},
        "folder": {"columns": columns[:2], "relations": {"notes": notes}},
    }
    shared = {"option": {"permission": True}}
    return {
        name: ModelSpec.model_validate(
            {
                "id": name,
                "name": name,
                "table": {"name": name},
                "values": values[name],
                **shared,
                **model,
            }
        )
        for name, model in raw.items()
    }


WHO = {
    "a user": Identity(user_id="alice", team_id="red", tenant_id="acme"),
    "one with accents": Identity(user_id="bob", team_id="blue", tenant_id="acmé"),
    "a team": Identity(team_id="red", tenant_id="ACME", constraints=Constraints(team_only=True)),
    "no tenant": Identity(user_id="alice"),
}


def seen(row: Row, who: Identity) -> bool:
    """The rules of `handlers.db.permission`, implemented independently."""
    if (row[TENANT] or "") != who.tenant_id:
        return False
    mine = bool(who.user_id) and row[CREATED_BY] == who.user_id
    shared = row[SHARE] == "tenant" or (
        row[SHARE] == "team" and bool(who.team_id) and row[TEAM] == who.team_id
    )
    common = not row[CREATED_BY] and (row[TEAM] or "") in ("", who.team_id)
    return (mine or shared or common) and (
        not who.constraints.team_only or row[TEAM] == who.team_id
    )


@pytest.fixture(scope="session")
async def worlds(fresh_database: Fresh) -> dict[str, tuple[str, str]]:
    """For each identity the URL of everybody's database, and of one that has nothing but what the
    identity may see."""
    whole = await fresh_database()
    async with open_database(whole, 20_000, models(ROWS)) as database:
        await database.load()
    made = {}
    for name, who in WHO.items():
        own = await fresh_database()
        mine = {model: [row for row in listed if seen(row, who)] for model, listed in ROWS.items()}
        assert 0 < len(mine["note"]) < len(ROWS["note"])
        async with open_database(own, 20_000, models(mine)) as database:
            await database.load()
        made[name] = (whole, own)
    return made


TEXTS = [
    "title",
    "kind",
    "folder.title",
    "folder.notes.title",
    "folder.notes.kind",
    TENANT,
    f"folder.{TENANT}",
    CREATED_BY,
]
NUMBERS = ["id", "pages", "folder_id", "folder.id", "folder.notes.pages"]
CONDITIONS = st.one_of(
    st.builds(
        lambda field, op, value: {"field": field, "op": op, "value": value},
        st.sampled_from(TEXTS),
        st.sampled_from(["=", "!=", "like", "<", ">="]),
        st.sampled_from(["note 1", "folder 2", "memo", "acme", "zeta", "%", "o", ""]),
    ),
    st.builds(
        lambda field, op, value: {"field": field, "op": op, "value": value},
        st.sampled_from(NUMBERS),
        st.sampled_from(["=", "!=", "<", ">=", "in", "not in", "between"]),
        st.lists(st.integers(0, 48), min_size=2, max_size=2),
    ).map(
        lambda one: (
            one if one["op"] in ("in", "not in", "between") else {**one, "value": one["value"][0]}
        )
    ),
    st.builds(
        lambda field, op: {"field": field, "op": op},
        st.sampled_from([*TEXTS, *NUMBERS, "folder", "folder.notes"]),
        st.sampled_from(["null", "not null"]),
    ),
    st.builds(
        lambda op, words: {"field": "*", "op": op, "value": words},
        st.sampled_from(["match", "match any", "match none"]),
        st.lists(st.sampled_from(["note", "1", "memo"]), min_size=1, max_size=2),
    ),
)
OPS = st.sampled_from(["=", "!=", ">", ">=", "<", "<="])
OTHERS = st.one_of(
    st.builds(
        lambda one, op, two: {"field": one, "op": op, "other": {"field": two}},
        st.sampled_from(["id", "pages", "folder.id"]),
        OPS,
        st.sampled_from(["folder_id", "folder.id", "pages"]),
    ),
    st.builds(lambda op: {"field": TENANT, "op": op, "other": {"field": f"folder.{TENANT}"}}, OPS),
    st.builds(
        lambda field, op, figure, wheres: {
            "field": field,
            "op": op,
            "other": {**figure, "wheres": wheres},
        },
        st.sampled_from(["id", "pages"]),
        OPS,
        st.sampled_from(
            [
                {"function": "avg", "field": "id", "model": "folder"},
                {"function": "max", "field": "id", "model": "note"},
                {"function": "count", "model": "folder"},
                {"function": "count", "field": TENANT, "distinct": True, "model": "note"},
            ]
        ),
        st.lists(
            st.sampled_from(
                [
                    {"field": "title", "op": "like", "value": "1"},
                    {"field": "id", "op": "!=", "value": 3},
                ]
            ),
            max_size=1,
        ),
    ),
)
QUANTIFIERS = st.one_of(
    st.sampled_from([{}, {"none": True}, {"all": True}]),
    st.builds(lambda op, number: {"count": {op: number}}, OPS, st.integers(0, 3)),
)
# Notes of the same folder, and folders of their own.
NEAR = st.builds(
    lambda wheres, quantifier: {"related": "folder.notes", "wheres": wheres, **quantifier},
    st.lists(CONDITIONS | OTHERS, min_size=1, max_size=2),
    QUANTIFIERS,
)
FOLDERS = st.builds(
    lambda near, none: {
        "related": "folder",
        "wheres": [{**near, "related": "notes"}],
        "none": none,
    },
    NEAR,
    st.booleans(),
)
WHERES = st.recursive(
    CONDITIONS | OTHERS | NEAR | FOLDERS,
    lambda inner: st.builds(
        lambda key, parts: {key: parts}, st.sampled_from(["or", "and"]), st.lists(inner, max_size=3)
    ),
)
SINGLE = ["title", "kind", "pages", "folder.title", f"folder.{TENANT}", TENANT]
RECORDS = st.fixed_dictionaries(
    {"wheres": st.lists(WHERES, max_size=3)},
    optional={
        "select": st.lists(st.sampled_from(SINGLE), max_size=3),
        "orders": st.lists(
            st.builds(lambda field: {"field": field}, st.sampled_from(SINGLE)), max_size=2
        ),
        "limit": st.integers(1, 100),
    },
)
TIES = st.builds(
    lambda request, field: {**request, "orders": [{"field": field}], "ties": True},
    RECORDS,
    st.sampled_from(SINGLE),
)
PAGES = st.builds(lambda request, offset: {**request, "offset": offset}, RECORDS, st.integers(1, 9))
DISTINCT = st.builds(
    lambda wheres, select: {"wheres": wheres, "select": select, "distinct": True},
    st.lists(WHERES, max_size=2),
    st.lists(st.sampled_from(SINGLE), min_size=1, max_size=2, unique=True),
)
FIGURES = st.fixed_dictionaries(
    {
        "wheres": st.lists(WHERES, max_size=3),
        "group_by": st.lists(
            st.sampled_from([*SINGLE, {"field": "due", "by": "month"}]), max_size=2, unique_by=str
        ),
        "aggregates": st.lists(
            st.sampled_from(
                [
                    {"function": "count"},
                    {"function": "sum", "field": "pages"},
                    {"function": "max", "field": "folder.title"},
                    {"function": "count", "field": TENANT, "distinct": True},
                    {"function": "avg", "field": "folder.id"},
                ]
            ),
            min_size=1,
            max_size=2,
            unique_by=str,
        ),
    },
    optional={
        "havings": st.lists(
            st.builds(
                lambda field, op, value: {"field": field, "op": op, "value": value},
                st.sampled_from(["count", "sum_pages", "avg_folder_id"]),
                OPS,
                st.integers(0, 20),
            ),
            max_size=2,
        ),
        "ties": st.booleans(),
        "limit": st.integers(1, 4),
    },
)


REQUESTS = st.one_of(RECORDS, FIGURES, TIES, PAGES, DISTINCT)


async def answer(database: Database, who: Identity, requested: Mapping[str, Any]) -> Any:
    try:
        found = await Shop(database, "").search(
            "list all notes", "note", identity=who, **{"limit": 100, **requested}
        )
    except SourceError as exc:
        return type(exc), exc.message
    return [(item.title, item.record_id, item.data) for item in found.items], found.total


@pytest.mark.parametrize("name", WHO)
@settings(
    max_examples=2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(queries=st.lists(REQUESTS, min_size=4, max_size=4))
async def test_every_result_equals_that_of_a_database_with_only_the_visible_rows(
    worlds: dict[str, tuple[str, str]], name: str, queries: list[dict[str, Any]]
) -> None:
    whole, own = worlds[name]
    async with (
        open_database(whole, 20_000, models(ROWS)) as everybodys,
        open_database(own, 20_000, models(ROWS)) as mine,
    ):
        for requested in queries:
            assert await answer(everybodys, WHO[name], requested) == await answer(
                mine, WHO[name], requested
            )


COUNT_FOLDERS = {"function": "count", "model": "folder"}


async def test_without_an_identity_relations_and_figures_are_not_permitted_either(
    worlds: dict[str, tuple[str, str]],
) -> None:
    closed = models(ROWS)
    open_notes = {
        **closed,
        "note": closed["note"].model_copy(update={"option": DatabaseModelOptions()}),
    }
    async with open_database(worlds["a user"][0], 20_000, open_notes) as database:
        assert (await answer(database, Identity(), {}))[1] == NOTES
        asking: list[dict[str, Any]] = [
            {"wheres": [{"field": "folder.title", "value": "folder 1"}]},
            {"wheres": [{"or": [{"field": "id", "value": 1}, {"field": "folder", "op": "null"}]}]},
            {"select": ["folder.title"]},
            {"orders": [{"field": "folder.title"}]},
            {"aggregates": [{"function": "max", "field": "folder.title"}]},
            {"group_by": ["folder.title"]},
            {"distinct": True, "select": ["folder.title"]},
            {"wheres": [{"related": "folder"}]},
            {"wheres": [{"related": "folder", "none": True}]},
            {"wheres": [{"or": [{"related": "folder.notes", "count": {">=": 0}}]}]},
            {"wheres": [{"field": "id", "op": ">", "other": {"field": "folder.id"}}]},
            {"wheres": [{"field": "id", "op": ">", "other": COUNT_FOLDERS}]},
            {
                "wheres": [
                    {
                        "field": "id",
                        "other": {
                            "function": "count",
                            "wheres": [{"field": "id", "other": COUNT_FOLDERS}],
                        },
                    }
                ]
            },
        ]
        for requested in asking:
            assert (await answer(database, Identity(), requested))[0] is NotPermitted, requested
        # An identity that may see only other folders gets nothing of these.
        stranger = Identity(user_id="eve", tenant_id="elsewhere")
        assert (
            await answer(
                database, stranger, {"aggregates": [{"function": "count", "field": "folder.id"}]}
            )
        )[0][0][2] == {"count_folder_id": 0}
