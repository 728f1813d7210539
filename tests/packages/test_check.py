"""The check of an app: every finding with its place and the nearest name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.errors import UnknownName
from groundhook.core.types.model_schema import schema_errors
from groundhook.host.check.check import check
from groundhook.host.config.environment import process_environment
from groundhook.host.config.packages import load_app
from tests.conftest import MakeApp

HERE = Path(__file__).parents[2]


def findings(root: Path, assistant: str = "", **more: Any) -> list[str]:
    return [str(problem) for problem in check(load_app(root, {}), assistant, **more)]


def test_a_good_app_has_no_findings(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "# nothing\n",
            "agent/search.yao": "{}",
            "assistants/a/package.yao": (
                """{
              "kb": ["docs", "faq"], "db": {"models": ["order"]}, "connector": "gpt", "prompt_preset": "p",
              "uses": {"keyword": "b", "query": "mcp:files.list", "rerank": "mcp:own"},
              "mcp": {"servers": ["files", {"own": ["x"]}, {"server_id": "files", "tools": ["t"]}]},
              "search": {"web": {"provider": "tavily"}, "kb": {"collections": ["agents.a.docs"]}, "rerank": {"agent": "b"}}
            }"""
            ),
            "assistants/a/kb/docs.kb.yao": "{}",
            "assistants/a/mcps/own.mcp.yao": '{"command": "x"}',
            "assistants/a/models/order.mod.yao": (
                """{
              "table": {"name": "orders"},
              "columns": [{"name": "id", "type": "ID"}, {"name": "customer_id", "type": "integer"}],
              "relations": {"customer": {"type": "hasOne", "model": "customer", "key": "id", "foreign": "customer_id"}},
              "option": {"timestamps": true},
              "values": [{"id": 1, "customer_id": 2, "created_at": "2024-01-01"}]
            }"""
            ),
            "assistants/a/prompts/p.yml": "- content: x\n",
            "assistants/b/package.yao": "{}",
            "connectors/gpt.conn.yao": (
                '{"type": "openai", "options": {"model": "m", "host": "https://models.example"}}'
            ),
            "kb/faq.kb.yao": "{}",
            "mcps/files.mcp.yao": '{"command": "x"}',
            "models/customer.mod.yao": (
                '{"table": {"name": "c"}, "columns": [{"name": "id", "type": "ID"}]}'
            ),
        }
    )

    assert findings(root, providers=("tavily",)) == []


def test_every_file_is_looked_at_however_broken_the_others_are(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "a: [",
            "agent/search.yao": '{"wbe": 1}',
            "agent/prompts.yml": "x",
            "assistants/a/package.yao": "{",
            "assistants/b/package.yao": '{"nam": 1}',
            "assistants/b/locales/de.yml": "a: 1\na: 2\n",
            "connectors/x.conn.yao": '{"typ": "z"}',
            "kb/x.kb.yao": "",
            "mcps/x.mcp.yao": "{]",
            "models/x.mod.yao": "{}",
        }
    )

    assert {finding.split(":")[0] for finding in findings(root)} == {
        "agent/agent.yml",
        "agent/search.yao",
        "agent/prompts.yml",
        "assistants/a/package.yao",
        "assistants/b/package.yao",
        "connectors/x.conn.yao",
        "kb/x.kb.yao",
        "mcps/x.mcp.yao",
        "models/x.mod.yao",
    }


def test_names_that_lead_nowhere_are_placed_with_the_nearest_name(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "connector: extractve\n",
            "assistants/a/package.yao": (
                """{
              "kb": ["dcos"],
              "search": {"db": {"models": ["ordr"]}, "web": {"provider": "tavly"}},
              "uses": {"query": "bb", "rerank": "mcp:fils.rank", "vision": "v", "keyword": "judge"},
              "mcp": [{"fies": ["x"]}],
              "prompt_preset": "p"
            }"""
            ),
            "assistants/a/kb/docs.kb.yao": "{}",
            "assistants/a/models/order.mod.yao": (
                '{"table": {"name": "o"}, "columns": [{"name": "id", "type": "ID"}]}'
            ),
            "mcps/files.mcp.yao": '{"command": "x"}',
        }
    )
    where = "assistants/a/package.yao"

    assert sorted(findings(root, providers=("tavily",))) == [
        "agent/agent.yml:1:12: error: no connector 'extractve' (did you mean 'extractive'?)",
        f"{where}:2:22: error: no collection 'dcos' (did you mean 'docs'?)",
        f"{where}:3:44: error: no model 'ordr' (did you mean 'order'?)",
        f"{where}:3:74: error: no web search provider 'tavly' (did you mean 'tavily'?)",
        f"{where}:4:33: error: no assistant 'bb' (known: a)",
        f"{where}:4:49: error: no MCP server 'fils.rank' (known: files)",
        f"{where}:4:76: error: no assistant 'v' (known: a)",
        f"{where}:4:92: error: no assistant 'judge' (known: a)",
        f"{where}:5:23: error: no MCP server 'fies' (did you mean 'files'?)",
        f"{where}:6:32: error: no prompt preset 'p' (none are known)",
    ]


def test_rows_and_relations_of_a_model_have_to_fit_the_columns(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "models/order.mod.yao": (
                """{
              "table": {"name": "o"},
              "columns": [{"name": "id", "type": "ID"}, {"name": "price", "type": "float"}],
              "relations": {
                "x": {"type": "hasOne", "model": "custmer", "key": "id", "foreign": "id"},
                "y": {"type": "hasOne", "model": "customer", "key": "idd", "foreign": "id"}
              },
              "values": [{"price": 1}, {"prise": 2}]
            }"""
            ),
            "models/customer.mod.yao": (
                '{"table": {"name": "c"}, "columns": [{"name": "id", "type": "ID"}]}'
            ),
        }
    )

    assert findings(root) == [
        "models/order.mod.yao:8:41: error: no column 'prise' (did you mean 'price'?)",
        "models/order.mod.yao:5:50: error: no model 'custmer' (did you mean 'customer'?)",
        "models/order.mod.yao:6:69: error: no column 'idd' of 'customer' (did you mean 'id'?)",
    ]


def test_a_model_names_a_known_database_and_its_relations_stay_in_it(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "databases: {crm: {url: 'sqlite:///c.db'}, bad: {url: 'oracle://x'}}",
            "assistants/a/package.yao": "{}",
            "models/order.mod.yao": (
                """{
              "table": {"name": "o"}, "connection": "cmr",
              "columns": [{"name": "id", "type": "ID"}],
              "relations": {
                "x": {"type": "hasMany", "model": "tag", "key": "id", "foreign": "id",
                      "through": {"model": "tag", "key": "id", "foreign": "idd"}}
              }
            }"""
            ),
            "models/tag.mod.yao": (
                '{"table": {"name": "t"}, "connection": "crm",'
                ' "columns": [{"name": "id", "type": "ID"}]}'
            ),
        }
    )

    assert findings(root) == [
        "agent/agent.yml:1:54: error: 'databases.bad.url': the scheme 'oracle' of the database URL"
        " is not supported (sqlite:///shop.db, postgresql://user@host/database or"
        " mariadb://user@host/database)",
        "models/order.mod.yao:2:53: error: no database 'cmr' (did you mean 'crm'?)",
        "models/order.mod.yao:5:51: error: 'tag' is in another database, and a query reads one",
        "models/order.mod.yao:6:75: error: no column 'idd' of 'tag' (did you mean 'id'?)",
    ]


def test_files_and_folders_that_only_look_as_if_they_counted_are_named(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yaml": "connector: x\n",
            "assistants/a/package.yao": "{}",
            "assistants/a/kb/docs.yao": "{}",
            "assistants/a/locales/de.yaml": "x: y",
            "assistants/a/package.json": "{}",
            "assistants/a/prompts.yaml": "- content: x",
            "assistants/a/prompts/short.yaml": "- content: x",
            "assistants/b/index.ts": "",
            "assistants/c/package.json": "{}",
            "models/order.mod.json": "{}",
        }
    )

    assert findings(root) == [
        (
            "models/order.mod.json: warning: nothing reads this file (names in models/ end with"
            " .mod.yao)"
        ),
        (
            "assistants/a/kb/docs.yao: warning: nothing reads this file (names in kb/ end with"
            " .kb.yao)"
        ),
        (
            "assistants/a/prompts/short.yaml: warning: nothing reads this file (names in prompts/"
            " end with .yml)"
        ),
        (
            "assistants/a/locales/de.yaml: warning: nothing reads this file (names in locales/ end"
            " with .yml)"
        ),
        "assistants/a/prompts.yaml: warning: nothing reads this file (only prompts.yml is read)",
        "assistants/c/package.json: warning: nothing reads this file (only package.yao is read)",
        (
            "agent/agent.yaml: warning: nothing reads this file (only agent/agent.yml,"
            " agent/search.yao, agent/prompts.yml are read)"
        ),
        "assistants/b: warning: a hook without a package.yao: this is not an assistant",
    ]


def test_a_package_where_none_is_searched_is_a_warning(make_app: MakeApp) -> None:
    deep = "/".join("abcdefghi")
    files = {f"assistants/{deep}/{name}": "{}" for name in ("package.yao", "index.ts")}
    root = make_app({**files, "assistants/package.yao": "{}"})
    message = "warning: a package.yao in a folder that is not searched: this is not an assistant"
    assert findings(root) == [
        f"assistants/{deep}: {message} (at most 8 folders below assistants/ are read)",
        f"assistants: {message} (give the package a folder of its own)",
    ]


def test_a_connector_that_no_turn_could_ask_is_an_error(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": '{"connector": ""}',
            "connectors/bare.conn.yao": '{"type": "openai"}',
            "connectors/near.conn.yao": (
                '{"type": "openai", "options": {"model": "m", "host": "localhost:8080/v1"}}'
            ),
            "connectors/later.conn.yao": (
                '{"type": "openai", "options": {"model": "$ENV.MODEL", "host": "$ENV.HOST"}}'
            ),
        }
    )

    assert [finding for finding in findings(root) if "variable" not in finding] == [
        (
            "assistants/a/package.yao:1:15: error: no connector '' (known: bare, extractive, later,"
            " near)"
        ),
        "connectors/bare.conn.yao:1:1: error: names no model (set options.model)",
        (
            "connectors/near.conn.yao:1:54: error: 'options.host': should be an http(s) address,"
            " such as 'https://host:8443/path', not 'localhost:8080/v1'"
        ),
    ]


def test_what_may_be_meant_or_may_be_set_elsewhere_is_a_warning(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": (
                '{"search": {"web": true, "web": {"max_results": 3}}, "connector": "$ENV.X"}'
            ),
            "connectors/x.conn.yao": (
                '{"type": "openai", "options": {"model": "m", "key": "$ENV.KEY"}}'
            ),
        }
    )

    assert findings(root) == [
        (
            "assistants/a/package.yao:1:26: warning: the key 'search.web' occurs twice, first"
            " in line 1; this one counts"
        ),
        (
            "assistants/a/package.yao:1:67: warning: 'connector' needs the environment variable"
            " 'X', which is not set (set X)"
        ),
        (
            "connectors/x.conn.yao:1:53: warning: 'options.key' needs the environment variable"
            " 'KEY', which is not set (set KEY)"
        ),
    ]


def test_one_assistant_is_checked_without_the_others(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{",
            "assistants/a/kb/x.kb.yao": "{",
            "assistants/b/package.yao": '{"nam": 1}',
            "assistants/b/kb/x.kb.yao": '{"nam": 1}',
        }
    )

    assert {finding.split(":")[0] for finding in findings(root, "b")} == {
        "assistants/b/package.yao",
        "assistants/b/kb/x.kb.yao",
    }
    with pytest.raises(UnknownName, match=r"no assistant 'c'"):
        check(load_app(root, {}), "c")


def test_two_folders_of_one_id_are_an_error(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/b/package.yao": "{}", "assistants/a.b/package.yao": "{}"})

    assert len(findings(root)) == 1
    assert "has the same id, 'a.b'" in findings(root)[0]


def test_this_repository_is_an_app_whose_own_files_have_no_errors() -> None:
    found = check(load_app(HERE, {}))

    assert [str(problem) for problem in found if problem.severity == "error"] == []


def test_rerankers_are_looked_up_where_they_are_named(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/search.yao": '{"rerank": {"mcp": "judge.rerank"}}',
            "assistants/a/package.yao": (
                '{"uses": {"rerank": "house"}, "search": {"rerank": {"mcp": "jduge"}}}'
            ),
            "assistants/b/package.yao": (
                '{"uses": {"rerank": "hose"}, "search": {"rerank": {"agent": "aa"}}}'
            ),
            "mcps/judge.mcp.yao": '{"command": "x"}',
        }
    )
    assert sorted(findings(root, rerankers=("score", "house"))) == [
        "assistants/a/package.yao:1:60: error: no MCP server 'jduge' (did you mean 'judge'?)",
        "assistants/b/package.yao:1:21: error: no reranker or assistant 'hose' (did you mean"
        " 'house'?; a plug-in's reranker is known once its package is installed with pip)",
        "assistants/b/package.yao:1:61: error: no assistant 'aa' (did you mean 'a'?)",
    ]


def test_a_server_whose_program_is_not_there_is_a_warning(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "connector: extractive\n",
            "mcps/gone.mcp.yao": '{"command": "no-such-program"}',
            "mcps/here.mcp.yao": '{"command": "sh"}',
            "mcps/own.mcp.yao": '{"command": "./bin/server"}',
            "mcps/lost.mcp.yao": '{"command": "bin/other"}',
            "mcps/dead.mcp.yao": '{"command": "./bin/text"}',
            "mcps/there.mcp.yao": '{"transport": "http", "url": "http://127.0.0.1:1/mcp"}',
            "bin/server": "#!/bin/sh",
            "bin/text": "no program",
        }
    )
    (root / "bin/server").chmod(0o755)
    app = load_app(root, {"PATH": process_environment()["PATH"]})
    hint = "(install it, or name another in 'command')"
    assert [str(problem) for problem in check(app)] == [
        f"mcps/dead.mcp.yao:1:13: warning: the program './bin/text' is not executable {hint}",
        f"mcps/gone.mcp.yao:1:13: warning: the program 'no-such-program' is not on PATH {hint}",
        f"mcps/lost.mcp.yao:1:13: warning: the program 'bin/other' does not exist {hint}",
    ]


def test_a_mistake_in_a_collection_is_reported_with_its_place(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "kb/good.kb.yao": (
                """{
              "fields": {"year": "integer", "tags": {"type": "keyword", "facetable": true}, "note": "text"},
              "rows": {"id": "no", "text": "about"}, "chunk": {"size": 100, "overlap": 20, "by": "page"},
              "tenant_field": "firm", "permission": {"teams": ["legal"], "users": "ann"}
            }"""
            ),
            "kb/bad.kb.yao": (
                """{
              "chunk": {"by": "pages", "overlp": 1},
              "fields": {
                "year": "number",
                "at": {"type": "datetime", "facetable": true},
                "note": {"type": "text", "filterable": true},
                "tag": {"tpye": "keyword"}
              },
              "permission": "users"
            }"""
            ),
            "kb/not.kb.yao": '{"fields": {"or": "integer"}, "chunk": {"size": 64, "overlap": 40}}',
            "kb/own.kb.yao": '{"fields": {"firm": "keyword"},\n "tenant_field": "firm"}',
        }
    )

    found = findings(root)
    assert not [line for line in found if "good.kb.yao" in line]
    for written in (
        (
            "kb/bad.kb.yao:2:31: error: 'chunk.by': should be 'heading', 'paragraph', 'page' or"
            " 'size', not 'pages'"
        ),
        "kb/bad.kb.yao:2:40: error: unknown key 'chunk.overlp' (did you mean 'overlap'?)",
        "kb/bad.kb.yao:4:25: error: 'fields.year",
        "kb/bad.kb.yao:5:23: error: 'fields.at': values of type datetime cannot be counted",
        "kb/bad.kb.yao:6:25: error: 'fields.note': a filter cannot use a text field",
        "kb/bad.kb.yao:7:25: error: unknown key 'fields.tag.tpye' (did you mean 'type'?)",
        "kb/bad.kb.yao:9:29: error: 'permission",
        "kb/not.kb.yao:1:12: error: 'fields': a field cannot be named 'or'",
        "kb/not.kb.yao:1:40: error: 'chunk': overlap must be at most half of size, 32, not 40",
        (
            "kb/own.kb.yao:2:18: error: 'tenant_field': only the host may filter by it, so it"
            " cannot be in 'fields' too: remove 'firm' from 'fields', or name another field here,"
            " not 'firm'"
        ),
    ):
        assert [line for line in found if line.startswith(written)], (written, found)


TABLE: dict[str, Any] = {"name": "t"}
COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "type": "ID"},
    {"name": "name", "type": "string", "length": 40},
]
GOOD = {"table": TABLE, "columns": COLUMNS}


@pytest.mark.parametrize(
    ("written", "finding"),
    [
        ({"columns": COLUMNS}, "error: 'table' is missing"),
        ({**GOOD, "table": "t"}, "error: 'table': should be an object"),
        ({**GOOD, "columns": {}}, "error: 'columns': should be a list"),
        (
            {**GOOD, "columns": [*COLUMNS, {"name": "x", "type": "words"}]},
            "error: 'columns[2].type': should be",
        ),
        ({**GOOD, "indexes": [{"name": "i"}]}, "error: 'indexes[0].columns' is missing"),
        ({**GOOD, "values": [1]}, "error: 'values[0]': should be"),
        # Read all the same: only the published schema sees it.
        (
            {
                **GOOD,
                "description": "x",
                "columns": [*COLUMNS, {"name": "x", "type": "string", "unique": "yes"}],
            },
            "warning: 'columns[2].unique': 'yes' is not of type 'boolean'",
        ),
    ],
)
def test_a_mistake_that_the_published_schema_of_models_refuses_is_reported_once(
    make_app: MakeApp, written: dict[str, Any], finding: str
) -> None:
    root = make_app({"assistants/a/package.yao": "{}", "models/x.mod.yao": json.dumps(written)})
    assert list(schema_errors(written)) != []
    found = findings(root)
    assert len(found) == 1
    assert found[0].startswith("models/x.mod.yao:1:")
    assert finding in found[0]


def test_the_delegate_that_names_the_entities_of_a_collection_is_looked_up(
    make_app: MakeApp,
) -> None:
    root = make_app(
        {
            "assistants/judge/package.yao": "{}",
            "mcps/files.mcp.yao": '{"command": "x"}',
            "kb/a.kb.yao": '{"graph": true, "entities": {"extractor": "jduge"}}',
            "kb/b.kb.yao": '{"graph": true, "entities": {"extractor": "mcp:fils.names"}}',
            "kb/c.kb.yao": '{"graph": true, "entities": {"extractor": "judge"}}',
            "kb/d.kb.yao": '{"graph": true, "entities": {"extractor": "mcp:files.names"}}',
            "kb/f.kb.yao": '{"graph": true, "entities": {"extractor": "spcy:en_core_web_sm"}}',
            "kb/e.kb.yao": (
                '{"graph": true, "entities": {"types": ["Organisation", "tool"], "dictionary":'
                ' {"tool": ["hoe"]}}}'
            ),
        }
    )
    assert findings(root) == [
        "kb/a.kb.yao:1:43: error: no assistant 'jduge' (did you mean 'judge'?)",
        "kb/b.kb.yao:1:43: error: no MCP server 'fils.names' (did you mean 'files'?)",
        "kb/f.kb.yao:1:43: error: no assistant 'spcy:en_core_web_sm' (did you mean 'spacy'?)",
    ]


def test_an_entity_type_that_no_rule_finds_is_reported(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "{}",
            "kb/a.kb.yao": '{"graph": true, "entities": {"types": ["person", "gadget"]}}',
        }
    )
    (found,) = findings(root)
    assert found.startswith(
        "kb/a.kb.yao:1:39: warning: 'entities.types': the rules find no 'gadget' (the rules"
        " know person, "
    )


def test_settings_of_a_server_that_do_less_than_they_seem_to_are_reported(
    make_app: MakeApp,
) -> None:
    agent = """\
server:
  public_url: https://tea.example
  workers: 2
  assistants: [a, be]
  auth:
    anonymous: true
    keys:
      - { name: web, key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk, assistants: [b] }
      - { name: app, key: $ENV.APP_KEY }
"""
    files = {
        "agent/agent.yml": agent,
        "assistants/a/package.yao": '{"name": "A", "public": true, "kb": ["docs"]}',
        "assistants/b/package.yao": '{"name": "B"}',
        "kb/docs.kb.yao": '{"permission": "tenant"}',
    }
    root = make_app(files)
    found = [str(each).partition(" (")[0] for each in check(load_app(root, {"APP_KEY": "k" * 40}))]
    assert found == [
        "agent/agent.yml:8:27: warning: the key of 'web' is written in the file",
        "agent/agent.yml:4:19: error: no assistant 'be'",
        "agent/agent.yml:2:15: warning: 'server.public_url' is https, and 'server.proxies' lists no"
        " proxy",
        "agent/agent.yml:3:12: warning: each process counts its limits alone:"
        " 'server.limits.storage' is memory",
        "agent/agent.yml:6:16: warning: 'a' is public, but callers who are not signed in find nothing"
        " in 'docs'",
    ]
    plain = agent.replace("https", "http").replace("workers: 2", "proxies: [10.0.0.1]")
    (root / "agent/agent.yml").write_text(plain, encoding="utf-8")
    shown = "\n".join(findings(root))
    assert "'server.public_url' is http" in shown
    assert "server.limits.storage" not in shown


def test_a_deadline_longer_than_its_turn_is_pointed_out(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/agent.yml": "turn_timeout_ms: 90000\n",
            "assistants/a/package.yao": '{"connector": "slow"}',
            "connectors/slow.conn.yao": (
                '{"type": "openai", "options": {"model": "m", "key": "k",'
                ' "first_token_timeout": 240, "timeout": 60}}'
            ),
            "mcps/far.mcp.yao": '{"transport": "http", "url": "https://m.example", "timeout": 91}',
        }
    )
    assert [str(problem) for problem in check(load_app(root, {}))] == [
        (
            "connectors/slow.conn.yao:1:81: warning: 'options.first_token_timeout': 240 s is longer"
            " than a turn, which ends after 90 s (raise turn_timeout_ms in agent/agent.yml, or"
            " lower this)"
        ),
        (
            "mcps/far.mcp.yao:1:62: warning: 'timeout': 91 s is longer than a turn, which ends"
            " after 90 s (raise turn_timeout_ms in agent/agent.yml, or lower this)"
        ),
    ]
