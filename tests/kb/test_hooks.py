"""Hooks search a real collection: filters, facets and whole documents from JavaScript, and what is
wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.embedded.client import KBClient
from tests.conftest import MakeApp

HOOK = """
function Next(ctx) {
  const ask = (options) => {
    const result = ctx.search.KB("ripe pears", { threshold: 0, ...options });
    return result.error || { found: result.items.map((item) => [item.document_id, item.data]), facets: result.facets };
  };
  let thrown = "";
  try { ctx.search.KB("ripe pears", { filter: { year: { gtee: 1 } } }); } catch (error) { thrown = error.message; }
  const [whole, none] = [ctx.search.Document("docs", "goods.csv#2"), ctx.search.Document("docs", "goods.csv#3")];
  return { data: {
    some: ask({ filter: { year: [2021, 2022], tenant_note: null }, facets: ["year"] }),
    wrong: ask({ filter: { yaer: 2021 } }),
    tenant: ask({ filter: { firm: "other" } }),
    once: ask({ groups: true, limit: 5 }).found.length,
    whole: whole.items.map((item) => item.content),
    none: none.error,
    thrown,
  } };
}
"""
FILES = {
    "agent/agent.yml": "kb_storage:\n  idle_s: 5\n",
    "assistants/a/package.yao": '{"name": "A", "connector": "script", "kb": ["docs"]}',
    "assistants/a/index.js": HOOK,
    "assistants/a/kb/docs.kb.yao": (
        """{
      "embedding": {"provider": "hash"}, "tenant_field": "firm",
      "fields": {"year": {"type": "integer", "facetable": true}, "tenant_note": "keyword"}
    }"""
    ),
    "connectors/script.conn.yao": (
        '{"type": "scripted", "options": {"script": [{"text": "Fine."}]}}'
    ),
    "goods.csv": (
        "id,text,year,firm\n1,ripe pears,2020,acme\n2,ripe pears and plums,2021,acme\n3,ripe"
        " pears,2021,other\n"
    ),
}


async def data_of(app: Path) -> dict[str, Any]:
    async with open_host(app, environment={}) as host:
        await host.kb.add("docs", [app / "goods.csv"])
        with anyio.fail_after(60):
            async with host.stream(
                "a", "question", search=False, identity=Identity(tenant_id="acme")
            ) as events:
                ended = [event async for event in events][-1]
    assert ended.type == "stream_end"
    return json.loads(json.dumps(ended.data))  # type: ignore[no-any-return]


async def test_a_hook_filters_counts_and_reads_documents_of_its_own_tenant(
    make_app: MakeApp,
) -> None:
    app = make_app(FILES)
    try:
        data = await data_of(app)
    finally:
        client = KBClient(app / ".groundhook", idle_s=5)
        await client.stop_worker()
        await client.aclose()
    assert data["some"] == {
        "found": [["goods.csv#2", {"year": 2021}]],
        "facets": {"year": [{"value": 2021, "count": 1}]},
    }
    assert "has no filterable field 'yaer' (did you mean 'year'?)" in data["wrong"]
    assert "has no filterable field 'firm'" in data["tenant"]
    assert data["once"] == 2
    assert data["whole"] == ["ripe pears and plums"]
    assert "has no document 'goods.csv#3'" in data["none"]
    assert (
        "ctx.search.KB: option filter: year: no operator 'gtee' (did you mean 'gte'?)"
        in data["thrown"]
    )
