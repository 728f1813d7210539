"""Entities that a language model names, behind a service that behaves like one."""

from __future__ import annotations

import json

import anyio

from groundhook import open_host
from groundhook.core.types.collection_spec import EntitySpec
from groundhook.handlers.kb.graph.extract import Extraction
from tests.conftest import MakeApp
from tests.loopback.chat import answer
from tests.loopback.server import Reads, Received, Sse, serving

ALDER = "Alder grows beside the Birch at Long Pond."
PUMP = "The Pump P-204 was built by Anna Berg."
NAMED = {
    "entities": [
        {"name": "Alder", "type": "Tree", "description": "Grows by water."},
        {"name": "Birch", "type": "tree"},
        {"name": "Long Pond", "type": "place"},
    ],
    "relations": [
        {"source": "Alder", "target": "Birch", "relation": "grows beside"},
        {"source": "Alder", "target": "Long Pond", "relation": "grows at"},
    ],
}


async def test_a_language_model_names_entities_and_the_rules_step_in_where_it_fails(
    make_app: MakeApp,
) -> None:
    def reply(request: Received) -> Sse:
        return Sse(answer("A pump." if PUMP in request.body.decode() else json.dumps(NAMED)))

    spec = EntitySpec(extractor="connector:namer", types=("tree", "term"))
    with serving() as model:
        model.on("/v1/chat/completions", Reads(reply))
        options = {"model": "m", "host": f"{model.url}/v1", "key": "sk-names", "retries": 0}
        connector = json.dumps({"type": "openai", "options": options})
        app = make_app({"assistants/a/package.yao": "{}", "connectors/namer.conn.yao": connector})
        with anyio.fail_after(60):
            async with open_host(app, environment={}) as host:
                extraction = Extraction(spec=spec, language="en", delegates=host.delegates())
                alder, pump = await extraction.extract([ALDER, PUMP], "Field notes", {})
        requests = [each.json["messages"] for each in model.requests]
        keys = {each.headers["authorization"] for each in model.requests}

    assert {mention.name: (mention.kind, mention.description) for mention in alder.mentions} == {
        "Alder": ("tree", "Grows by water."),
        "Birch": ("tree", ""),
        "Field notes": ("term", ""),  # the subject of the document stays
    }
    (link,) = alder.relations  # Long Pond is of no declared kind
    assert (link.source, link.words, link.target) == ("alder", "grows beside", "birch")

    assert [mention.name for mention in pump.mentions] == ["Anna Berg", "Field notes", "Pump P-204"]
    (link,) = pump.relations  # as the rules have it
    assert (link.source, link.words, link.target) == ("pump p-204", "was built by", "anna berg")
    (warning,) = extraction.warnings
    assert "connector:namer" in warning
    assert warning.endswith("the rules of the built-in extractor were used")

    assert keys == {"Bearer sk-names"}
    system, asked = requests[0][:2]
    assert system["content"].startswith("You extract the entities of a passage")
    assert json.loads(asked["content"]) == {
        "text": ALDER,
        "types": ["tree", "term"],
        "language": "en",
    }
    assert len(requests) == 3  # an answer that is no JSON is asked for once more
