"""A collection of another program with a tenant field: nothing of one tenant reaches another."""

from __future__ import annotations

import json
from typing import Any

from groundhook import open_host
from tests.conftest import MakeApp
from tests.loopback.foreign_qdrant import foreign_qdrant
from tests.parts.foreign_collections import HASH, fill

ROWS: list[dict[str, Any]] = [
    {"text": "Acme's pears ripen late.", "title": "Acme", "org": "acme", "kind": "a"},
    {"text": "Globex's pears ripen early.", "title": "Globex", "org": "globex", "kind": "g"},
    {"text": "Nobody's pears ripen.", "title": "Nobody"},
    {"text": "Pears of number seven.", "title": "Seven", "org": 7},
]
GUESSES: list[dict[str, Any]] = [
    {},
    {"document": "2"},
    {"filter": {"document_id": ["1", "2", "3", "4"]}},
    {"filter": {"kind": "g"}},
    {"filter": {"or": [{"kind": "g"}, {"kind": None}, {"kind": {"not": "x"}}]}},
    {"facets": ["kind"], "threshold": 0},
    {"limit": 1, "offset": 1},
]


async def test_a_tenant_field_of_another_programs_collection_holds_in_every_read(
    make_app: MakeApp,
) -> None:
    with foreign_qdrant() as server:
        fill(server, "rows", ROWS, text="text")
        declared = {
            "embedding": HASH,
            "tenant_field": "org",
            "fields": {"kind": {"type": "keyword", "facetable": True}},
            "existing": {"url": server.url, "collection": "rows"},
        }
        app = make_app(
            {
                "assistants/a/package.yao": '{"kb": ["rows"]}',
                "kb/rows.kb.yao": json.dumps(declared),
            }
        )
        async with open_host(app, environment={}) as host:
            seen: dict[str, set[str]] = {}
            shown = ""
            for tenant in ("acme", "7", "other", ""):
                found: set[str] = set()
                for guess in GUESSES:
                    request = {"type": "kb", "query": "pears", "collections": ["rows"], **guess}
                    result = await host.search(
                        {"threshold": 0, **request}, identity={"tenant_id": tenant}, assistant="a"
                    )
                    found |= {item.title for item in result.items}
                    if tenant == "acme":
                        shown += result.model_dump_json()
                        assert result.total <= 1
                    if not tenant:
                        assert "not permitted" in str(result.error)
                seen[tenant] = found
            counted = await host.collections(identity={"tenant_id": "acme"}).count("rows")
    assert seen == {"acme": {"Acme"}, "7": {"Seven"}, "other": set(), "": set()}
    assert counted == 1
    assert "lobex" not in shown
    assert '"g"' not in shown.replace('"kind":"g"', "")
