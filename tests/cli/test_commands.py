"""`groundhook search`, `db`, `check` and `config` from the shell."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.search import SearchResult
from tests.cli.conftest import Groundhook, run_in
from tests.parts.workbooks import workbook


def test_db_load_fills_empty_tables_once(groundhook: Groundhook, shop: Path) -> None:
    shutil.rmtree(shop / ".groundhook")
    first, again = groundhook("db", "load"), groundhook("db", "load", "--json")
    assert (first.code, first.err) == (0, "")
    assert re.search(r"^product +product +created +2 +0", first.out, re.MULTILINE)
    assert [
        (line["model"], line["created"], line["rows"], line["had"]) for line in again.lines
    ] == [("product", False, 0, 2)]


def test_the_file_of_a_relative_database_url_is_in_the_apps_folder_wherever_the_command_runs(
    shop: Path, tmp_path: Path
) -> None:
    (shop / "agent/agent.yml").write_text("connector: cites\ndatabase:\n  url: sqlite:///own.db\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run_in(elsewhere, "db", "load", "--app", str(shop)).code == 0
    assert (shop / "own.db").exists()
    assert list(elsewhere.rglob("*.db")) == []
    assert run_in(shop, "db", "check").code == 0


def test_db_import_writes_a_model_for_each_table_that_has_none(
    groundhook: Groundhook, shop: Path
) -> None:
    with sqlite3.connect(shop / "other.db") as connection:
        connection.execute("create table Visit (id integer primary key, seen_on date not null)")
        connection.execute("create table log (line text)")
    connection.close()
    url = f"sqlite:///{shop / 'other.db'}"
    first, again = groundhook("db", "import", url), groundhook("db", "import", url, "--json")
    assert (first.code, first.err) == (0, "")
    assert re.search(r"^visit +Visit +written", first.out, re.MULTILINE)
    assert re.search(r"log +skipped +its primary key is missing", first.out)
    assert '"db": { "models": ["visit"] }' in first.out
    assert [(line["model"], line["done"]) for line in again.lines] == [
        ("visit", "as it was"),
        ("", "skipped"),
    ]
    (shop / "agent/agent.yml").write_text(f"connector: cites\ndatabase:\n  url: {url}\n")
    compared = groundhook("db", "check", "--json").lines
    assert [line["model"] for line in compared] == ["product"]  # of another database
    own = groundhook("db", "import", "--json")
    assert [(line["model"], line["done"]) for line in own.lines] == [
        ("visit", "as it was"),
        ("", "skipped"),
    ]


def test_a_changed_table_is_shown_as_a_diff_of_its_model_and_taken_with_update(
    groundhook: Groundhook, shop: Path
) -> None:
    file, url = shop / "other.db", f"sqlite:///{shop / 'other.db'}"
    with sqlite3.connect(file) as connection:
        connection.execute("create table Visit (id integer primary key, note text, ssn text)")
    (shop / "agent/agent.yml").write_text(f"connector: cites\ndatabase:\n  url: {url}\n")
    assert groundhook("db", "import").code == 0
    path = shop / "models/visit.mod.yao"
    model = json.loads(path.read_text())
    model["columns"] = [one for one in model["columns"] if one["name"] != "ssn"]  # nobody may see
    model["columns"][1] |= {"label": "Remark of the guide", "comment": "what happened"}
    path.write_text(json.dumps(model))
    connection.execute("alter table Visit rename column note to remark")
    connection.execute("alter table Visit add column paid numeric(8, 2) not null default 0")
    connection.execute(
        "create table Stop (id integer primary key, visit integer references Visit (id))"
    )
    connection.close()
    shown = groundhook("db", "import")
    assert json.loads(path.read_text()) == model
    for line in ('-      "name": "note",', '+      "name": "paid",', '+    "stop": {'):
        assert line in shown.out.splitlines()
    assert "ssn" not in [line.strip("+- ,") for line in shown.out.splitlines() if line[:1] == "+"]
    assert "--update` writes these changes" in shown.out
    model["columns"][1]["name"] = "remark"  # the label stays where a person renames the column
    path.write_text(json.dumps(model))
    done = groundhook("db", "import", "--update", "--json").lines
    assert {line["table"]: line["done"] for line in done} == {
        "Visit": "updated",
        "Stop": "as it was",
    }
    updated = json.loads(path.read_text())
    columns = {one["name"]: one for one in updated["columns"]}
    assert list(columns) == ["id", "remark", "paid"]
    assert columns["remark"]["label"] == "Remark of the guide"
    assert updated["relations"]["stop"]["model"] == "stop"
    assert {line["done"] for line in groundhook("db", "import", "--json").lines} == {"as it was"}
    compared = groundhook("db", "check", "--json").lines
    assert [line["model"] for line in compared] == ["product"]


def test_a_model_with_comments_is_left_alone_by_an_update(
    groundhook: Groundhook, shop: Path
) -> None:
    file = shop / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table Visit (id integer primary key, note text)")
    connection.close()
    columns = '[{"name": "id", "type": "ID"}, {"name": "gone", "type": "text"}]'
    text = f'{{ // ours\n "table": {{"name": "Visit"}}, "columns": {columns} }}'
    (shop / "models/visit.mod.yao").write_text(text)
    (shop / "agent/agent.yml").write_text("connector: cites\ndatabase: {url: sqlite:///other.db}\n")
    (done,) = groundhook("db", "import", "--update", "--json").lines
    assert (done["done"], done["note"]) == (
        "left alone",
        "models/visit.mod.yao has comments, which would be lost: change it by hand",
    )
    assert '-      "name": "gone",' in done["changes"]
    assert (shop / "models/visit.mod.yao").read_text() == text


def test_models_of_several_databases_are_imported_and_asked_in_one_app(
    groundhook: Groundhook, shop: Path
) -> None:
    for name, rows in (("shop", 2), ("crm", 3)):
        with sqlite3.connect(shop / f"{name}.db") as connection:
            connection.execute(f"create table {name}_ticket (id integer primary key, state text)")
            connection.executemany(
                f"insert into {name}_ticket (state) values (?)", [("open",)] * rows
            )
        connection.close()
    (shop / "agent/agent.yml").write_text(
        "connector: cites\ndatabase: {url: sqlite:///shop.db}\n"
        "databases: {crm: {url: sqlite:///crm.db}}\n"
    )
    assert groundhook("db", "import").code == 0
    assert groundhook("db", "import", "--connection", "crm").code == 0
    assert json.loads((shop / "models/crm_ticket.mod.yao").read_text())["connection"] == "crm"
    for name, rows in (("shop", 2), ("crm", 3)):
        asked = groundhook(
            *("search", "db", f"how many {name} ticket", "--model", "shop_ticket"),
            *("--model", "crm_ticket", "--json"),
        )
        (item,) = asked.lines[-1]["items"]
        assert item["data"] == {"count": rows}
    unknown = groundhook("db", "import", "--connection", "erp")
    assert unknown.code == 1
    assert "no database 'erp' (set databases.erp.url in agent/agent.yml)" in unknown.err


def test_db_commands_name_a_key_of_the_settings_that_nothing_reads(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "agent/agent.yml").write_text("connector: cites\ndb:\n  url: sqlite:///other.db\n")
    for ran in (groundhook("db", "load"), groundhook("db", "check")):
        assert ran.code == 0
        assert "agent/agent.yml:3:3: unknown key 'db.url', which nothing reads" in ran.err


def test_db_check_says_what_differs_and_ends_with_1(groundhook: Groundhook, shop: Path) -> None:
    same = groundhook("db", "check")
    assert (same.code, same.err) == (0, "")
    assert "are what the model declares" in same.out
    model = shop / "models/product.mod.yao"
    model.write_text(model.read_text().replace('"name": "price"', '"name": "cost"'))
    differs, lines = groundhook("db", "check"), groundhook("db", "check", "--json").lines
    assert differs.code == 1
    assert re.search(
        r"^product +product +cost +column +the column does not exist", differs.out, re.MULTILINE
    )
    assert [(line["column"], line["aspect"]) for line in lines] == [("cost", "column")]


def test_a_search_that_lacks_an_identity_names_the_options_of_the_command_line(
    groundhook: Groundhook, shop: Path
) -> None:
    model = shop / "models/product.mod.yao"
    whose = '"option": {"permission": true}, "columns"'
    model.write_text(model.read_text().replace('"columns"', whose, 1))
    (shop / "assistants/owned").mkdir()
    package = '{"db": {"models": ["product"]}, "search": {"db": true}, "connector": "plain"}'
    (shop / "assistants/owned/package.yao").write_text(package)
    searched = groundhook("search", "db", "red pen", "--model", "product")
    chatted = groundhook("chat", "owned", "red pen")
    hook = 'function Create(ctx) { ctx.memory.chat.Set("x", 1); return null; }'
    (shop / "assistants/owned/index.ts").write_text(hook)
    kept = groundhook("chat", "owned", "red pen").err
    assert "the 'chat' memory needs a chat id" in kept
    assert kept.endswith("(give --chat)\n")
    for shown in (searched.err, chatted.out):
        assert "the request has no identity (give --user, --team or --tenant)" in shown
        assert "send an identity" not in shown


def test_search_lists_what_was_found_with_scores(groundhook: Groundhook) -> None:
    ran = groundhook("search", "db", "products cheaper than 10", "--model", "product")
    assert (ran.code, ran.err) == (0, "")
    assert re.match(
        r"1 result from the database in [\d.]+ ?m?s\ncertainty: sure\n 1\. #ref:\w+  \d\.\d\d  .*Red pen",
        ran.out,
    )
    assert "product / 1\n    Id: 1; Name: Red pen; " in ran.out


def test_search_as_json_is_one_result_on_one_line(groundhook: Groundhook) -> None:
    ran = groundhook("search", "db", "products", "--assistant", "shop", "--limit", "1", "--json")
    (line,) = ran.lines
    result = SearchResult.model_validate(line)
    assert (ran.code, result.error, len(result.items)) == (0, None, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "db", "pens", "--model", "prodct"], "did you mean 'product'?"),
        (["search", "kb", "pens", "--collection", "notes"], "notes"),
        (
            ["search", "db", "pens", "--assistant", "shap"],
            "no assistant 'shap' (did you mean 'shop'?)",
        ),
        (["config", "explain", "shap"], "no assistant 'shap' (did you mean 'shop'?)"),
        (["check", "shap"], "no assistant 'shap' (did you mean 'shop'?)"),
        (["kb", "remove", "notes", "x"], "no collection 'notes'"),
    ],
)
def test_unknown_names_end_with_1_and_the_nearest_name(
    groundhook: Groundhook, arguments: list[str], message: str
) -> None:
    ran = groundhook(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert message in ran.err


def test_a_web_search_without_a_key_says_what_to_set(groundhook: Groundhook) -> None:
    ran, output = groundhook("search", "web", "pens"), groundhook("search", "web", "pens", "--json")
    assert (ran.code, output.code) == (1, 1)
    assert "TAVILY_API_KEY" in ran.err
    assert "TAVILY_API_KEY" in output.lines[0]["error"]


def test_config_explain_names_layer_and_place(groundhook: Groundhook) -> None:
    ran, output = (
        groundhook("config", "explain", "shop"),
        groundhook("config", "explain", "shop", "--json"),
    )
    assert (ran.code, ran.err) == (0, "")
    # In a pipe the columns are separated by tabs, and nothing is padded.
    assert re.search(r"^connector\tcites\t\S+\tagent/agent\.yml:1:\d+$", ran.out, re.MULTILINE)
    (models,) = [line for line in output.lines if line["key"] == "db.models"]
    assert (models["value"], models["place"]) == (["product"], "assistants/shop/package.yao:3:21")
    (limit,) = [line for line in output.lines if line["key"] == "search.db.max_results"]
    assert (limit["layer"], limit["place"]) == ("defaults", "")


def test_a_search_that_is_switched_off_in_one_word_is_good_and_explained_for_each_source(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "agent/search.yao").write_text('{"web": true}', encoding="utf-8")
    (shop / "assistants/shop/package.yao").write_text(
        '{"name": "Shop", "search": false}', encoding="utf-8"
    )
    assert groundhook("check", "shop").code == 0
    output = {line["key"]: line for line in groundhook("config", "explain", "shop", "--json").lines}
    for source in ("web", "kb", "db"):
        enabled = output[f"search.{source}.enabled"]
        assert (enabled["value"], enabled["layer"], enabled["place"]) == (
            False,
            "assistant",
            "assistants/shop/package.yao:1:28",
        )


def test_config_explain_shows_what_holds_for_the_whole_app_and_no_secrets(
    groundhook: Groundhook, shop: Path
) -> None:
    with (shop / "agent/agent.yml").open("a", encoding="utf-8") as file:
        file.write(
            "\ndatabase: {url: 'postgresql://reader:s3cret@replica/shop', timeout_ms: 900}\nqdrant:"
            " {api_key: s3cret}\n"
        )
    output = groundhook("config", "explain", "shop", "--json")
    values = {line["key"]: (line["value"], line["layer"]) for line in output.lines}
    assert values["database.timeout_ms"] == (900, "global")
    assert values["database.connections"] == (8, "defaults")
    assert values["database.url"] == ("postgresql://reader:(hidden)@replica/shop", "global")
    assert values["qdrant.api_key"] == ("(hidden)", "global")
    assert "hooks.workers" in values


def test_check_goes_on_behind_a_file_that_keeps_the_app_from_opening(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "agent/agent.yml").write_text("database: {timeout_ms: soon}\n", encoding="utf-8")
    (shop / "assistants/shop/package.yao").write_text('{"nme": "Shop"}', encoding="utf-8")
    (shop / "assistants/shop/index.ts").write_text("function Create( {\n", encoding="utf-8")
    ran = groundhook("check")
    assert (ran.code, ran.out) == (1, "3 errors, no warnings\n")
    assert "agent/agent.yml:1:24: 'database.timeout_ms'" in ran.err
    assert "assistants/shop/package.yao:1:2: unknown key 'nme'" in ran.err
    assert "assistants/shop/index.ts:2:1: " in ran.err


def test_check_of_a_sound_app_finds_nothing(groundhook: Groundhook) -> None:
    ran = groundhook("check")
    assert (ran.code, ran.out, ran.err) == (0, "No mistakes found.\n", "")


def test_check_names_every_mistake_with_its_place(groundhook: Groundhook, shop: Path) -> None:
    (shop / "assistants/shop/package.yao").write_text(
        '{"name": "Shop", "db": {"models": ["prodct"]}}\n', encoding="utf-8"
    )
    (shop / "assistants/shop/index.ts").write_text(
        "function Create( {\n  return 1 1;\n}\n", encoding="utf-8"
    )
    ran, output = groundhook("check", "shop"), groundhook("check", "shop", "--json")
    assert (ran.code, output.code) == (1, 1)
    assert re.search(
        r"^error: assistants/shop/package\.yao:1:\d+: .*'prodct'.*'product'", ran.err, re.MULTILINE
    )
    assert re.search(r"^error: assistants/shop/index\.ts:\d+:\d+: ", ran.err, re.MULTILINE)
    assert re.search(r"^\d errors", ran.out)
    assert {line["type"] for line in output.lines} == {"error"}


def test_search_takes_the_only_collection_or_model_and_the_end_of_an_id(
    groundhook: Groundhook, shop: Path
) -> None:
    assert "product / 1\n" in groundhook("search", "db", "products cheaper than 10").out
    folder = shop / "assistants/shop/kb"
    folder.mkdir()
    (folder / "notes.kb.yao").write_text('{"embedding": {"provider": "hash"}}', encoding="utf-8")
    (shop / "pens.md").write_text(
        "# Pens\n\nA fountain pen is filled with ink.\n", encoding="utf-8"
    )
    assert groundhook("kb", "add", "notes", "pens.md").code == 0
    requested = ("search", "kb", "fountain pen", "--threshold", "0")
    for named in (
        [],
        ["--assistant", "shop"],
        ["--collection", "notes"],
        ["--assistant", "shop", "--collection", "notes"],
    ):
        assert "agents.shop.notes / pens.md" in groundhook(*requested, *named).out, named


def test_results_of_a_later_page_are_numbered_from_where_it_begins(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text('{"embedding": {"provider": "hash"}}', encoding="utf-8")
    for name in ("ink", "nib", "pen"):
        (shop / f"{name}.md").write_text(f"# A fountain {name}\n\nA {name}.\n", encoding="utf-8")
    assert groundhook("kb", "add", "notes", "ink.md", "nib.md", "pen.md").code == 0
    ran = groundhook("search", "kb", "fountain", "--threshold", "0", "--offset", "1")
    assert re.findall(r"(?m)^ ?(\d+)\. ", ran.out) == ["2", "3"], ran.out


def test_search_says_which_collections_and_models_there_are(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text("{}", encoding="utf-8")
    (shop / "kb/rules.kb.yao").write_text("{}", encoding="utf-8")
    (shop / "models/order.mod.yao").write_text(
        '{"table": {"name": "order"}, "columns": [{"name": "id", "type": "ID"}]}', encoding="utf-8"
    )
    kb, db = groundhook("search", "kb", "pens"), groundhook("search", "db", "pens")
    assert (kb.code, kb.err) == (
        1,
        "error: there are 2 collections (name one with --collection: notes, rules)\n",
    )
    assert (db.code, db.err) == (
        1,
        "error: there are 2 models (name one with --model: order, product)\n",
    )


def test_search_in_an_app_without_collections_or_models_says_where_they_are_declared(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "models/product.mod.yao").unlink()
    kb, db, own = (
        groundhook("search", *text)
        for text in (("kb", "x"), ("db", "x"), ("kb", "x", "--assistant", "shop"))
    )
    assert [ran.code for ran in (kb, db, own)] == [1, 1, 1]
    assert (
        "the app has no collections to search (declare one in kb/NAME.kb.yao for all assistants, or"
        " assistants/ID/" in kb.err
    )
    assert (
        "the app has no models to search (declare one in models/NAME.mod.yao for all assistants, or"
        " assistants/ID/" in db.err
    )
    assert (
        "the assistant 'shop' has no collections to search (declare one in kb/NAME.kb.yao"
        in own.err
    )
    assert "or assistants/shop/kb/NAME.kb.yao for one" in own.err


def test_check_tells_a_broken_file_and_what_is_wrong_beside_it_at_once(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "assistants/shop/package.yao").write_text(
        '{"nme": "Shop", "db": {"models": ["prodct"]}, "uses": [], "kb": {"collections": 1}}\n',
        encoding="utf-8",
    )
    (shop / "assistants/shop/index.ts").write_text("function Create( {\n", encoding="utf-8")
    ran = groundhook("check")
    assert ran.code == 1
    for mistake in (
        "unknown key 'nme'",
        "'uses'",
        "'kb.collections'",
        "no model 'prodct'",
        "assistants/shop/index.ts:2:1: ",
    ):
        assert mistake in ran.err


def test_a_folder_that_is_no_app_is_an_error_with_the_option_that_names_one(
    groundhook: Groundhook, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    ran = groundhook("check", "--app", str(tmp_path / "empty"))
    assert ran.code == 1
    assert "an app has a folder 'assistants' or 'agent'; --app names its folder, and" in ran.err
    assert "`groundhook new` makes one)" in ran.err


def test_db_import_makes_a_table_of_a_file_and_shows_the_types_of_its_columns(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "Sales 2026.csv").write_text(
        "Invoice no;Customer;Date;Amount\n1;Ann;03.04.2026;1.234,50 €\n2;Bob;12.04.2026;99,00 €\n",
        encoding="utf-8",
    )
    tried = groundhook("db", "import", "Sales 2026.csv", "--dry-run")
    assert re.search(r"^amount +decimal +1234.50 +as 1.234,5", tried.out, re.MULTILINE)
    assert not (shop / "models/sales_2026.mod.yao").exists()
    done = groundhook("db", "import", "Sales 2026.csv")
    assert (done.code, done.err) == (0, "")
    assert "2 rows are in the table sales_2026" in done.out
    asked = groundhook("search", "db", "total amount", "--model", "sales_2026", "--json")
    assert asked.lines[-1]["items"][0]["data"] == {"sum_amount": 1333.5}
    again = groundhook("db", "import", "Sales 2026.csv")
    assert again.code == 1
    assert "models/sales_2026.mod.yao exists (--replace puts the rows of the file in" in again.err
    assert groundhook("db", "check", "--json").lines == []


def _sold(groundhook: Groundhook, question: str = "sales") -> list[dict[str, Any]]:
    asked = groundhook("search", "db", question, "--model", "sales", "--json")
    return [item["data"] for item in asked.lines[-1]["items"]]


def test_a_file_that_is_imported_again_replaces_its_rows_or_adds_them(
    groundhook: Groundhook, shop: Path
) -> None:
    file, path = shop / "sales.csv", shop / "models/sales.mod.yao"
    file.write_text("city,kind,amount\nRome,a,1.50\nOslo,b,2.00\nRome,a,1.00\nOslo,b,4.00\n")
    assert groundhook("db", "import", "sales.csv", "--append").err.startswith("error: there is no")
    assert groundhook("db", "import", "sales.csv").code == 0
    model = json.loads(path.read_text())
    model["columns"][-1]["label"] = "Turnover"
    path.write_text(json.dumps(model))
    # More rows, with an option that is new; the key goes on.
    file.write_text("city,kind,amount\nBonn,c,7\n")
    added = groundhook("db", "import", "sales.csv", "--append")
    assert "1 rows were added: 5 rows are in the table sales" in added.out
    [bonn] = [row for row in _sold(groundhook) if row["city"] == "Bonn"]
    assert (bonn["id"], bonn["kind"], bonn["amount"]) == (5, "c", 7)
    # Another column: not to be added, but the table is made anew with it.
    file.write_text("city,amount,paid\nBonn,7,yes\nBern,8,no\n")
    refused = groundhook("db", "import", "sales.csv", "--append")
    assert (refused.code, len(_sold(groundhook))) == (1, 5)
    assert "the table has no column paid, and the file has" in refused.err
    tried = groundhook("db", "import", "sales.csv", "--replace", "--dry-run")
    assert (tried.code, len(_sold(groundhook))) == (0, 5)
    assert groundhook("db", "import", "sales.csv", "--replace").code == 0
    assert [(row["city"], row["paid"]) for row in _sold(groundhook)] == [
        ("Bonn", True),
        ("Bern", False),
    ]
    columns = {one["name"]: one for one in json.loads(path.read_text())["columns"]}
    assert list(columns) == ["id", "city", "amount", "paid"]
    assert columns["amount"]["label"] == "Turnover"
    assert groundhook("db", "check", "--json").lines == []


def test_rows_of_a_key_that_is_there_are_not_added_twice(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "sales.csv").write_text("id,city\n1,Rome\n2,Oslo\n")
    assert groundhook("db", "import", "sales.csv").code == 0
    again = groundhook("db", "import", "sales.csv", "--append")
    assert (again.code, len(_sold(groundhook))) == (1, 2)
    assert "no row was added" in again.err
    assert "Rome" not in again.err
    assert groundhook("db", "import", "sales.csv", "--replace").code == 0
    assert len(_sold(groundhook)) == 2


def test_a_table_that_was_not_made_of_a_file_is_never_filled(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "product.csv").write_text("id,name\n9,Ink\n")
    for option in ("--replace", "--append"):
        refused = groundhook("db", "import", "product.csv", option)
        assert refused.code == 1
        assert "its table is not known to be of a file" in refused.err
    assert groundhook("db", "import", "product.csv", "--replace", "--append").code == 2


def test_cells_that_do_not_fit_are_named_by_line_and_nothing_is_written(
    groundhook: Groundhook, shop: Path
) -> None:
    rows = "".join(f'{{"id": {number}, "size": "{number}"}}\n' for number in range(1, 31))
    (shop / "a.jsonl").write_text(f'{rows}{{"id": 31, "size": "big"}}\n')
    refused = groundhook("db", "import", "a.jsonl")
    assert refused.code == 1
    assert "line 31: 'size' has 'big', which does not fit the type integer" in refused.err
    assert "nothing was written: cells that do not fit their columns: 1" in refused.err
    assert not (shop / "models/a.mod.yao").exists()
    assert groundhook("db", "import", "a.jsonl", "--skip-bad").code == 0
    counted = groundhook("search", "db", "how many a without a size", "--model", "a", "--json")
    assert counted.lines[-1]["items"][0]["data"] == {"count": 1}
    (shop / "b.csv").write_text("a,b\n1,2\n1,2,3\n")
    short = groundhook("db", "import", "b.csv")
    assert short.code == 1
    assert "b.csv:3: the row has 3 cells, and the first line names 2 columns" in short.err


def test_db_import_reads_a_sheet_of_a_workbook(groundhook: Groundhook, shop: Path) -> None:
    (shop / "book.xlsx").write_bytes(
        workbook({"Notes": [["x"]], "Fees": [["Zone", "Fee"], ["North", 12], ["East", 7.5]]})
    )
    assert groundhook("db", "import", "book.xlsx", "--sheet", "Fees", "--table", "fee").code == 0
    asked = groundhook("search", "db", "fee with fee over 10", "--model", "fee", "--json")
    assert [item["data"]["zone"] for item in asked.lines[-1]["items"]] == ["North"]
    missing = groundhook("db", "import", "book.xlsx", "--sheet", "Fee", "--table", "other")
    assert "no sheet 'Fee' (did you mean 'Fees'?)" in missing.err
