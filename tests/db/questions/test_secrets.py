"""What an identity may not see is in no sentence, near word or reading of a decline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.model_spec import CREATED_BY, TENANT, ModelSpec
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop

ALICE = Identity(user_id="alice", tenant_id="acme")
EVE = Identity(user_id="eve", tenant_id="zeta")


def _model(id: str, columns: list[dict[str, Any]], **more: Any) -> ModelSpec:
    whole = {"id": id, "name": id.capitalize(), "table": {"name": f"secret_{id}"}, **more}
    return ModelSpec.model_validate({**whole, "columns": [{"name": "id", "type": "ID"}, *columns]})


def _row(name: str, owner: str, tenant: str) -> dict[str, Any]:
    return {"name": name, CREATED_BY: owner, TENANT: tenant}


MODELS = {
    "project": _model(
        "project",
        [{"name": "name", "type": "string", "label": "Name"}],
        option={"permission": True},
        values=[_row("Bluebird", "alice", "acme"), _row("Nightingale", "eve", "zeta")],
    ),
    "payroll": _model(
        "payroll",
        [
            {"name": "name", "type": "string"},
            {"name": "severance", "type": "integer", "nullable": True},
        ],
        option={"permission": True},
        values=[_row("Nightingale", "eve", "zeta")],
    ),
    "room": _model("room", [{"name": "name", "type": "string"}], values=[{"name": "Attic"}]),
}


@pytest.fixture
async def secrets(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_database(f"sqlite:///{tmp_path}/s.db", 60_000, MODELS) as database:
        await database.load()
        yield Shop(database, "")


@pytest.mark.parametrize(
    "question",
    [
        "projects called Nightingale",
        "projects Nightingail",
        "project Nightingale",
        "how many projects Nightingal",
        "Nightingale",
        "projects like Nightingale or Bluebird",
    ],
)
async def test_values_of_other_tenants_are_told_to_nobody(secrets: Shop, question: str) -> None:
    theirs = await secrets.search(question, "project", identity=ALICE)
    told = theirs.account.model_dump_json() + str(theirs.dsl) + str(theirs.items)
    for word in question.split():
        told = told.replace(word, "")  # what was typed may be repeated
    assert "Nightingale" not in told
    assert theirs.items == ()


async def test_the_owner_finds_what_others_do_not(secrets: Shop) -> None:
    mine = await secrets.search("projects called Nightingale", "project", identity=EVE)
    assert [item.title for item in mine.items] == ["Nightingale"]


async def test_a_model_that_the_identity_may_not_see_is_not_named_in_a_decline(
    secrets: Shop,
) -> None:
    # Without an identity nothing of a model with permissions may be seen.
    found = await secrets.search("severances above 100", "payroll", "room", identity=Identity())
    told = found.account.model_dump_json()
    assert (found.items, found.account.certainty) == ((), "none")
    assert found.account.unread == ("severances above",)
    assert "Payroll" not in told
    assert "Severance" not in told
