"""A server over collections: of the app, with tenants, and of an assistant that a key does not
list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import APP, OTHER, READER, Served, serving, settings, write

_MEMORY = json.loads(
    (Path(__file__).parents[2] / "assistants/memory/kb/qa.kb.yao").read_text(encoding="utf-8")
)
_RECORD = '{"id": 1, "collection": "all", "title": "Milk", "content": "Milk comes on Mondays."}\n'


def _synced(folder: str, name: str) -> dict[str, str]:
    """Return the files of a toolkit that is synced into a collection of its own."""
    made = {
        key: value for key, value in _MEMORY.items() if key not in ("tenant_field", "permission")
    }
    toolkit = {
        "type": "memory",
        "owner": "app",
        "collections": {"all": name},
        "source": {"file": "records"},
    }
    return {
        f"{folder}kb/{name}.kb.yao": json.dumps({**made, "embedding": {"provider": "hash"}}),
        f"{folder}toolkits/{name}.toolkit.yao": json.dumps(toolkit),
        f"{folder}records/all.jsonl": _RECORD,
    }


FILES = {
    **APP,
    **_synced("", "shared"),
    **_synced("assistants/late/", "private"),
    "assistants/late/toolkits/lost.toolkit.yao": json.dumps(
        {
            "type": "memory",
            "owner": "app",
            "collections": {"all": "shared"},
            "source": {"file": "no"},
        }
    ),
    "kb/notes.kb.yao": '{ "name": "Notes", "embedding": { "provider": "hash" } }',
    "kb/asked.kb.yao": '{ "name": "Asked", "embedding": { "provider": "hash" } }',
    "kb/own.kb.yao": (
        '{ "name": "Own", "embedding": { "provider": "hash" }, "tenant_field": "tenant" }'
    ),
    "assistants/late/kb/secret.kb.yao": (
        '{ "name": "Secret", "embedding": { "provider": "hash" } }'
    ),
    "assistants/tea/package.yao": (
        '{ "name": "Tea", "connector": "cites", "kb": { "collections": ["notes", "own"] },'
        ' "tools": ["shared"] }'
    ),
}
TEA = "# Tea\n\nBlack tea takes boiling water and four minutes.\n"
COFFEE = "# Coffee\n\nCoffee takes three minutes of hot water.\n"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    app = tmp_path_factory.mktemp("knowledge") / "app"
    scopes = ["chat", "kb"]
    keys = [
        {"name": "reader", "key": READER, "user": "reader", "scopes": ["chat"]},
        {
            "name": "acme",
            "key": OTHER,
            "user": "ann",
            "tenant": "acme",
            "scopes": scopes,
            "assistants": ["tea"],
        },
    ]
    write(app, {**FILES, "agent/agent.yml": settings(auth={"keys": keys})})
    with serving(app) as server:
        yield server
