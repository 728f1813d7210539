"""Visible rows: each rule, and a property over random rows, identities and queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import NotPermitted, SourceError
from groundhook.core.types.model_spec import (
    CREATED_BY,
    SHARE,
    TEAM,
    TENANT,
    UPDATED_BY,
    ModelSpec,
)
from groundhook.core.types.query_language import Where
from groundhook.core.types.turn import Constraints, Identity
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Fresh, Shop

ALICE = Identity(user_id="alice", team_id="red", tenant_id="acme")


def row(
    title: str,
    user: str | None,
    team: str | None,
    tenant: str | None,
    share: Any = None,
    edited: str | None = None,
) -> Any:
    return {
        "title": title,
        CREATED_BY: user,
        TEAM: team,
        TENANT: tenant,
        SHARE: share,
        UPDATED_BY: edited,
    }


ROWS = [
    row("alice's", "alice", None, "acme", edited="alice"),
    row("alice's of red", "alice", "red", "acme", edited="bob"),
    row("alice's of blue", "alice", "blue", "acme"),
    row("bob's of red", "bob", "red", "acme"),
    row("bob's for red", "bob", "red", "acme", share="team", edited="alice"),
    row("bob's for blue", "bob", "blue", "acme", share="team"),
    row("bob's for all", "bob", "blue", "acme", share="tenant"),
    row("red's", None, "red", "acme"),
    row("blue's", None, "blue", "acme"),
    row("acme's", None, None, "acme"),
    row("other alice's", "alice", "red", "zeta", share="tenant"),
    row("nobody's", None, None, None, share="tenant"),
    row("alice's alone", "alice", None, None),
]


@pytest.fixture
async def found_by(tmp_path: Path, spec: Callable[..., ModelSpec]) -> Any:
    model = spec(values=ROWS, option={"permission": True})

    async def find(identity: Identity | None, query: str = "notes", **request: Any) -> set[str]:
        async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
            await database.load()
            found = await Shop(database, "").search(
                query, "note", identity=identity, limit=100, **request
            )
        assert found.total == len(found.items)
        return {item.title for item in found.items}

    return find


async def test_without_an_identity_nothing_is_permitted_which_is_not_the_same_as_no_rows(
    found_by: Any,
) -> None:
    with pytest.raises(NotPermitted, match="not permitted"):
        await found_by(None)
    assert await found_by(Identity(user_id="carol", tenant_id="empty")) == set()


async def test_own_shared_and_common_rows_of_the_tenant_are_visible(found_by: Any) -> None:
    assert await found_by(ALICE) == {
        "alice's",
        "alice's of red",
        "alice's of blue",
        "bob's for red",
        "bob's for all",
        "red's",
        "acme's",
    }


async def test_a_tenant_without_a_user_sees_what_is_common_to_it(found_by: Any) -> None:
    assert await found_by(Identity(tenant_id="acme")) == {"bob's for all", "acme's"}


async def test_without_a_tenant_only_rows_without_one_are_seen(found_by: Any) -> None:
    assert await found_by(Identity(user_id="alice")) == {"nobody's", "alice's alone"}


@pytest.mark.parametrize(
    ("limits", "seen"),
    [
        ({"creator_only": True}, {"alice's", "alice's of red", "alice's of blue"}),
        ({"owner_only": True}, {"alice's", "alice's of red"}),
        ({"editor_only": True}, {"alice's", "bob's for red"}),
        ({"team_only": True}, {"alice's of red", "bob's for red", "red's"}),
        ({"team_only": True, "creator_only": True}, {"alice's of red"}),
        ({"extra": {"title": ["alice's", "blue's"], "no_such_field": 1}}, {"alice's"}),
    ],
)
async def test_constraints_limit_the_visible_rows(
    found_by: Any, limits: dict[str, Any], seen: set[str]
) -> None:
    assert await found_by(ALICE.model_copy(update={"constraints": Constraints(**limits)})) == seen


@pytest.mark.parametrize("limit", ["owner_only", "creator_only", "editor_only", "team_only"])
async def test_a_constraint_that_needs_a_missing_id_is_not_permitted(
    found_by: Any, limit: str
) -> None:
    with pytest.raises(NotPermitted, match=limit):
        await found_by(Identity(tenant_id="acme", constraints=Constraints(**{limit: True})))


async def test_values_of_invisible_rows_are_not_used_in_questions(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(values=[row("Secretproject", "eve", None, "zeta")], option={"permission": True})
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        notes = Shop(database, "")
        mine = await notes.search("notes Secretproject", "note", identity=ALICE)
        hers = await notes.search(
            "notes Secretproject", "note", identity=Identity(user_id="eve", tenant_id="zeta")
        )
        again = await notes.search("notes Secretproject", "note", identity=ALICE)
    assert [item.title for item in hers.items] == ["Secretproject"]
    assert mine == again
    assert (mine.items, mine.dsl, mine.account.unread) == ((), None, ("Secretproject",))


async def test_an_open_model_answers_beside_one_that_is_not_permitted(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    closed = spec(values=[row("a", "alice", None, "acme")], option={"permission": True})
    opened = spec(id="memo", name="Memo", table={"name": "memo"}, values=[{"title": "a"}])
    async with open_database(
        f"sqlite:///{tmp_path}/n.db", 5000, {"note": closed, "memo": opened}
    ) as database:
        await database.load()
        both = Shop(database, "")
        found = await both.search("all memos", "note", "memo")
        assert {item.model for item in found.items} == {"memo"}
        closed_one = await both.search("all notes", "note", "memo")
        assert both.warnings[0][0] == "not_permitted"
        assert (closed_one.items, closed_one.account.unread) == ((), ("notes",))
        with pytest.raises(NotPermitted):
            await both.search("all notes", "note")


async def test_permission_columns_are_neither_returned_nor_searched(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(values=[row("x", "alice", "red", "acme")], option={"permission": True})
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        notes = Shop(database, "")
        (item,) = (await notes.search("notes", "note", identity=ALICE)).items
        assert item.data is not None
        assert not [name for name in item.data if name.startswith("__")]
        found = await notes.search("notes acme", "note", identity=ALICE)
        assert (found.items, found.account.unread) == ((), ("acme",))


NAMES = st.sampled_from(["", "a", "b"])
MAYBE = st.sampled_from([None, "", "a", "b"])
STORED = st.builds(
    row,
    st.just("x"),
    MAYBE,
    MAYBE,
    MAYBE,
    st.sampled_from([None, "private", "team", "tenant", True]),
    MAYBE,
)
FIELDS = ["id", "title", "pages", "kind", "done", CREATED_BY, TEAM, TENANT, SHARE]
WHERES = st.builds(
    lambda field, op, value: Where(field=field, op=op, value=value),
    st.sampled_from(FIELDS),
    st.sampled_from(
        ["=", "!=", "like", "in", "not in", "null", "not null", ">=", "<", "match none"]
    ),
    st.sampled_from(["", "a", "b", "x", "%", 0, 1, True, None, ["a", "b"], ["x"], []]),
)
IDENTITIES = st.builds(
    Identity,
    user_id=NAMES,
    team_id=NAMES,
    tenant_id=NAMES,
    constraints=st.builds(
        Constraints, owner_only=st.booleans(), team_only=st.booleans(), editor_only=st.booleans()
    ),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(STORED, min_size=1, max_size=12),
    requested=st.lists(st.tuples(IDENTITIES, st.lists(WHERES, max_size=3)), min_size=1, max_size=6),
)
async def test_no_query_ever_returns_a_row_of_another_tenant(
    tmp_path: Path,
    spec: Callable[..., ModelSpec],
    rows: list[dict[str, Any]],
    requested: list[tuple[Identity, list[Where]]],
) -> None:
    path = tmp_path / "n.db"
    path.unlink(missing_ok=True)
    stored = [{**one, "id": number} for number, one in enumerate(rows, 1)]
    model = spec(values=stored, option={"permission": True})
    async with open_database(f"sqlite:///{path}", 5000, {"note": model}) as database:
        await database.load()
        for identity, wheres in requested:
            try:
                found = await Shop(database, "").search(
                    "notes", "note", identity=identity, wheres=wheres, limit=100
                )
            except SourceError:
                continue  # not permitted, or an operator that does not fit its field
            for item in found.items:
                seen = stored[item.record_id - 1]
                assert (seen[TENANT] or "") == identity.tenant_id
                mine = (seen[CREATED_BY] or "") == identity.user_id != ""
                shared = seen[SHARE] == "tenant" or (
                    seen[SHARE] in ("team", True) and seen[TEAM] == identity.team_id != ""
                )
                common = not seen[CREATED_BY] and (seen[TEAM] or "") in ("", identity.team_id)
                assert mine or shared or common


async def test_declared_permission_columns_limit_rows_on_every_engine(
    fresh_database: Fresh,
) -> None:
    """As a table of another program has them: the user a number, the tenant a text."""
    model = ModelSpec.model_validate(
        {
            "id": "bill",
            "table": {"name": "bill"},
            "columns": [
                {"name": "id", "type": "ID"},
                {"name": "title", "type": "string"},
                {"name": "owner", "type": "bigInteger", "nullable": True},
                {"name": "unit", "type": "string", "nullable": True},
                {"name": "firm", "type": "string"},
            ],
            "option": {"permission": {"user": "owner", "team": "unit", "tenant": "firm"}},
            "values": [
                {"title": "seven's", "owner": 7, "unit": None, "firm": "acme"},
                {"title": "of red", "owner": 8, "unit": "red", "firm": "acme"},
                {"title": "seven's of red", "owner": 7, "unit": "red", "firm": "acme"},
                {"title": "of Red", "owner": 8, "unit": "Red", "firm": "acme"},
                {"title": "nobody's", "owner": None, "unit": None, "firm": "acme"},
                {"title": "elsewhere", "owner": 7, "unit": "red", "firm": "zeta"},
            ],
        }
    )

    async with open_database(await fresh_database(), 20_000, {"bill": model}) as database:
        await database.load()

        async def found(limits: Constraints | None = None, **who: str) -> set[str]:
            identity = Identity(**who, constraints=limits or Constraints())
            answer = await Shop(database, "").search(
                "bills",
                "bill",
                identity=identity,
                wheres=[{"or": [{"field": "id", "op": ">", "value": 0}]}],
            )
            return {item.title for item in answer.items}

        assert await found(user_id="7", tenant_id="acme") == {"seven's", "seven's of red"}
        assert await found(user_id="7", team_id="red", tenant_id="acme") == {
            "seven's",
            "of red",
            "seven's of red",
        }
        assert await found(user_id="seven", tenant_id="acme") == set()
        assert await found(
            Constraints(owner_only=True), user_id="7", team_id="red", tenant_id="acme"
        ) == {
            "seven's",
            "seven's of red",
        }
        assert await found(
            Constraints(team_only=True), user_id="7", team_id="red", tenant_id="acme"
        ) == {
            "of red",
            "seven's of red",
        }
        for nobody in ({"user_id": "7"}, {"tenant_id": "acme"}):
            with pytest.raises(NotPermitted):
                await found(None, **nobody)


def test_permission_columns_must_be_declared(spec: Callable[..., ModelSpec]) -> None:
    with pytest.raises(ValueError, match="'owner', which is not declared"):
        spec(option={"permission": {"user": "owner"}})
    with pytest.raises(ValueError, match="at least one"):
        spec(option={"permission": {}})


async def test_related_records_that_the_identity_may_not_see_are_not_counted(
    tmp_path: Path,
) -> None:
    def model(id: str, *columns: str, **more: Any) -> ModelSpec:
        made = [{"name": name, "type": "integer" if "_" in name else "string"} for name in columns]
        return ModelSpec.model_validate(
            {
                "id": id,
                "name": id,
                "table": {"name": id},
                "columns": [{"name": "id", "type": "ID"}, *made],
                **more,
            }
        )

    owners = (("alice", "acme"), ("bob", "acme"), ("alice", "zeta"))
    patient = model(
        "patient",
        "name",
        option={"permission": True},
        values=[
            {"id": i, "name": f"P{i}", CREATED_BY: user, TENANT: tenant}
            for i, (user, tenant) in enumerate(owners, 1)
        ],
    )
    visit = model(
        "visit",
        "reason",
        "patient_id",
        relations={
            "patient": {
                "type": "hasOne",
                "model": "patient",
                "key": "id",
                "foreign": "patient_id",
            }
        },
        values=[{"reason": "flu", "patient_id": i} for i in (1, 1, 2, 3)],
    )
    models = {"patient": patient, "visit": visit}
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, models) as database:
        await database.load()
        (found,) = (
            await Shop(database, "").search("number of different patients", "visit", identity=ALICE)
        ).items
    assert list((found.data or {}).values()) == [1]
