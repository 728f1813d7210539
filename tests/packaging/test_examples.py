"""The example plug-ins of docs/plugins.md, each installed from its wheel and used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packaging.conftest import Built, Environment, run
from tests.parts.plugin_examples import APP, EXAMPLES

pytestmark = pytest.mark.packaging

PROGRAM = """\
import json
from groundhook.sync import open_host

with open_host(".", environment={"PAGES_API_KEY": "k"}) as host:
    added = host.add_documents("docs", ["today.log"])
    kb = {"type": "kb", "query": "Which tenant oiled the isolate?", "collections": ["docs"]}
    joined = host.search(kb)
    web = host.search({"type": "web", "query": "pears"})
    judged = host.search(kb | {"rerank": {"top_k": 1}}, assistant="a")
    with host.stream("a", "What is a tenant?") as events:
        content = [event.content for event in events if event.type == "stream_end"]
    with host.stream("b", "Which pens?") as events:
        metadata = [event.metadata for event in events if event.type == "stream_end"]
    print(json.dumps({
        "reader, embedder": added.counts,
        "source": [item.title for item in joined.items],
        "web_provider": [web.provider, *(item.title for item in web.items)],
        "reranker": [item.title for item in judged.items],
        "connector": content,
        "records": metadata,
    }))
"""


def test_every_example_is_installed_from_its_wheel_and_used(
    built: Built, environment: Environment, tmp_path: Path
) -> None:
    assert len(built.examples) == len([path for path in EXAMPLES.iterdir() if path.is_dir()])
    python = environment(built.wheel, *built.examples)
    for name, text in APP.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    result = json.loads(run([python, "program.py"], tmp_path))
    assert set(result.pop("source")) == {"tenant", "isolate", "today"}
    assert result == {
        "reader, embedder": {"added": 1},
        "web_provider": ["pages", "Pears"],
        "reranker": ["today"],
        "connector": ["Echo: What is a tenant?"],
        "records": [{"pens": [{"id": 1}]}],
    }
    assert "No mistakes" in run([python.parent / "groundhook", "check"], tmp_path)
