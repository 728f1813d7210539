"""A server over collections: of the app, with tenants, and of an assistant that a key does not
list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.conftest import APP, OTHER, READER, Served, serving, settings, write

FILES = {
    **APP,
    "kb/notes.kb.yao": '{ "name": "Notes", "embedding": { "provider": "hash" } }',
    "kb/asked.kb.yao": '{ "name": "Asked", "embedding": { "provider": "hash" } }',
    "kb/own.kb.yao": (
        '{ "name": "Own", "embedding": { "provider": "hash" }, "tenant_field": "tenant" }'
    ),
    "assistants/late/kb/secret.kb.yao": (
        '{ "name": "Secret", "embedding": { "provider": "hash" } }'
    ),
    "assistants/tea/package.yao": (
        '{ "name": "Tea", "connector": "cites", "kb": { "collections": ["notes", "own"] } }'
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
