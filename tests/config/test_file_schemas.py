"""JSON Schemas of the files that authors write: true for every file of the sample app, and the
reference that is made from the same models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from groundhook import open_host
from groundhook.host.cli.main import run
from groundhook.host.config.documents import parse_document, read_document
from groundhook.host.config.file_schemas import KINDS, file_schema
from scripts.package_doc import DOCUMENT, document
from tests.conftest import MakeApp

ROOT = Path(__file__).parents[2]
GLOBS = {
    "package": "assistants/**/package.yao",
    "agent": "agent/agent.yml",
    "search": "agent/search.yao",
    "model": "assistants/**/*.mod.yao",
    "kb": "assistants/**/*.kb.yao",
    "connector": "**/connectors/*.conn.yao",
    "api": "**/apis/*.api.yao",
    "mcp": "**/mcps/*.mcp.yao",
    "toolkit": "assistants/**/*.toolkit.yao",
}


def problems(kind: str, data: Any) -> list[str]:
    found = Draft202012Validator(file_schema(kind)).iter_errors(data)
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_file_fits_its_schema(kind: str) -> None:
    Draft202012Validator.check_schema(file_schema(kind))
    for folder in ("assistants", "agent", "connectors", "mcps"):
        for path in sorted((ROOT / folder).rglob(GLOBS[kind].rpartition("/")[2])):
            shown = path.relative_to(ROOT).as_posix()
            assert problems(kind, read_document(path, shown).data) == [], shown


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("package", '{"search": {"web": true}, "db": ["order"], "mcp": "files"}'),
        ("package", '{"search": false, "options": {"temperature": "$ENV.WARMTH"}}'),
        ("search", '{"rerank": {"topK": 3}, "kb": {"collections": "docs"}}'),
        ("mcp", '{"command": "python", "arguments": ["server.py"]}'),
        ("mcp", '{"transport": "process", "tools": {"a": "scripts.tools.a"}}'),
    ],
)
def test_what_a_file_may_say_in_another_form_fits_the_schema(kind: str, text: str) -> None:
    data = parse_document(text.encode(), f"a.{kind}.yao").data

    assert problems(kind, data) == []


def test_a_wrong_key_and_a_wrong_value_do_not_fit() -> None:
    assert problems("package", {"conector": "x"})
    assert problems("kb", {"chunk": {"size": "big"}})
    assert problems("mcp", {"transport": "carrier pigeon"})


async def test_a_file_may_name_its_schema(make_app: MakeApp) -> None:
    schema = '"$schema": "../schema.json"'
    root = make_app(
        {
            "agent/agent.yml": '$schema: "../schema.json"\nlocale: en\n',
            "assistants/a/package.yao": f'{{{schema}, "name": "A"}}',
            "models/p.mod.yao": (
                f'{{{schema}, "table": {{"name": "p"}},'
                ' "columns": [{"name": "id", "type": "ID"}]}'
            ),
            "kb/k.kb.yao": f"{{{schema}}}",
        }
    )

    async with open_host(root, environment={}) as host:
        assert await host.check() == []


def test_the_command_prints_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "kb"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "kb/<name>.kb.yao"


def test_the_reference_is_that_of_the_models() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == document(), "make docs writes it"
