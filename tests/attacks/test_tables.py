"""Nobody has a query run that a search did not return to them: not all rows of a table, and not a
reading that somebody else was named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import unquote

import pytest

from groundhook import open_host
from groundhook.core.errors import UnknownName
from groundhook.core.types.events import SearchComplete
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import LongTable
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.whole_tables import WholeTables
from tests.conftest import MakeApp
from tests.db.conftest import Shop

ANN, BOB = Identity(user_id="ann", tenant_id="acme"), Identity(user_id="bob", tenant_id="zeta")


def model(id: str, column: str, *, owned: bool = False) -> dict[str, object]:
    rows = [
        {"id": 1, column: "Iron Maiden", "owner": "ann"},
        {"id": 2, column: "Egg", "owner": "bob"},
    ]
    columns = [
        {"name": "id", "type": "ID"},
        *({"name": each, "type": "string"} for each in (column, "owner")),
    ]
    option = {"permission": {"user": "owner"}} if owned else {}
    named = {"name": id.title(), "table": {"name": f"attack_{id}"}}
    return {**named, "columns": columns, "option": option, "values": rows}


async def test_all_rows_of_a_table_are_for_the_caller_whose_search_returned_a_part(
    make_app: MakeApp,
) -> None:
    app = make_app(
        {
            "agent/agent.yml": "",
            "models/note.mod.yao": json.dumps(model("note", "title", owned=True)),
        }
    )
    day = 20_000
    async with open_host(app, environment={}) as host:
        await host.database.load()
        tables = WholeTables(host, Secret(host.app.state), lambda: day * 86_400.0)
        table = of('{"model": "note", "select": ["title"]}')
        token = tables.token(table, ANN)
        assert (await tables.read(token, ANN)).rows == (("Iron Maiden",),)
        refused = []
        for asked, identity in (
            (token, BOB),
            (token, Identity()),
            *((token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :], ANN) for at in (0, 40)),
            *((each, ANN) for each in ("", "é", "rows", "A" * 64, token[:-8], table.id)),
            (Secret(host.app.state).seal("mcp-web", json.dumps(["", table.id])), ANN),
            # Sealed, and none of a search: no query, an unknown model, no identity.
            (tables.token(of("{"), ANN), ANN),
            (tables.token(of('{"model": "x"}'), ANN), ANN),
            (tables.token(table, Identity()), Identity()),
        ):  # fmt: skip
            with pytest.raises(UnknownName) as error:
                await tables.read(asked, identity)
            refused.append(str(error.value))
        day += 1
        assert (await tables.read(token, ANN)).total == 1
        day += 1  # the end of the address
        with pytest.raises(UnknownName) as error:
            await tables.read(token, ANN)
        refused.append(str(error.value))
        assert len(set(refused)) == 1


def of(query: str) -> LongTable:
    return LongTable(id=query, name="Notes", rows=1, total=2)


def test_the_condition_of_a_hook_is_in_no_id_or_address_that_a_reader_gets(tmp_path: Path) -> None:
    secret = Secret(tmp_path)
    queries = [json.dumps({"model": "note", "salary": salary}) for salary in (1, 2)]
    first, other = (
        Audience(public_url="https://x", seal=lambda table: secret.seal("rows", table.id)).of(
            SearchComplete(search_id="s1", total=2, duration_ms=1, tables=(of(query),))
        )
        for query in queries
    )
    assert isinstance(first, SearchComplete)
    assert isinstance(other, SearchComplete)
    for event in (first, other):
        text = unquote(event.model_dump_json())
        decoded = base64.urlsafe_b64decode(event.tables[0].csv.rpartition("/")[2] + "==")
        assert "salary" not in text
        assert b"salary" not in decoded
    assert first.tables[0].id != other.tables[0].id


async def test_the_sentence_of_a_reading_chooses_nothing_for_another_identity(
    tmp_path: Path,
) -> None:
    models = {
        id: ModelSpec.model_validate({"id": id, **model(id, column, owned=True)})
        for id, column in (("album", "title"), ("artist", "name"))
    }
    url = f"sqlite:///{tmp_path}/attack.sqlite"
    async with open_database(url, 60_000, models) as database:
        await database.load()
        shop = Shop(database, url)
        asked = await shop.search("Iron Maiden", *models, identity=ANN)
        sentence = asked.account.readings[0].read_as
        mine = await shop.search(sentence, *models, identity=ANN)
        theirs = await shop.search(sentence, *models, identity=BOB)
    assert (mine.total, mine.account.certainty) == (1, "sure")
    assert (theirs.items, theirs.account.certainty, theirs.account.read_as) == ((), "none", "")
