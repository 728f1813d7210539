"""`groundhook chat` from the shell: streams, exit codes, terminals, pipes and interruptions."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from groundhook.core.types.events import EVENT
from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook


def test_a_turn_shows_search_answer_and_cited_sources(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "products cheaper than 10")
    assert (ran.code, ran.err) == (0, "")
    assert re.search(
        r'^🔍 Searching "products cheaper than 10" \(database\)\.\.\.\n📄 Found 1 result'
        r" \(database\):\n",
        ran.out,
    )
    marker = re.search(r"1\. (#ref:\w+) - ", ran.out)
    assert marker
    assert (
        f"The red pen is cheap {marker[1]}, the blue one is not #ref:zz9z.\n\nSources\n "
        f" {marker[1]}  " in ran.out
    )
    assert "product / 1\n" in ran.out
    assert "Not among the sources: #ref:zz9z\n" in ran.out


def test_json_is_one_event_to_a_line_and_nothing_else(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "products cheaper than 10", "--json")
    events = [EVENT.validate_python(line) for line in ran.lines]
    assert (ran.code, ran.err) == (0, "")
    assert (events[0].type, events[-1].type) == ("stream_start", "stream_end")
    assert {event.turn_id for event in events} == {events[0].turn_id}
    assert (
        "".join(event.delta for event in events if event.type == "text") == ran.lines[-1]["content"]
    )
    assert [cited["verdict"] for cited in ran.lines[-1]["citations"]] == ["ok", "unknown"]


def test_an_attached_file_is_read_and_cited(groundhook: Groundhook, tmp_path: Path) -> None:
    lease = tmp_path / "lease.md"
    lease.write_text("# Notice\n\nThe notice period is three months.\n")
    ran = groundhook(
        "chat", "shop", "How long is the notice period?", "--attach", str(lease), "--no-search",
        "--connector", "extractive",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert "The notice period is three months. #ref:" in ran.out
    assert "lease.md › Notice" in ran.out


def test_an_attached_file_belongs_to_the_first_question_of_a_conversation(
    groundhook: Groundhook, tmp_path: Path
) -> None:
    lease = tmp_path / "lease.md"
    lease.write_text("# Notice\n\nThe notice period is three months.\n")
    ran = groundhook(
        "chat", "shop", "--attach", str(lease), "--no-search", "--connector", "extractive",
        stdin="How long is the notice period?\nWho signs the notice?\n",
    )  # fmt: skip
    assert "The notice period is three months. #ref:" in ran.out


def test_two_turns_with_the_same_question_cite_the_same_ids(groundhook: Groundhook) -> None:
    first, second = (
        groundhook("chat", "shop", "products cheaper than 10", "--json") for _ in range(2)
    )
    assert first.lines[-1]["citations"] == second.lines[-1]["citations"]


def test_a_hook_reads_records_page_by_page(groundhook: Groundhook, shop: Path) -> None:
    (shop / "assistants/shop/index.ts").write_text(
        """function Create(ctx) {
          const page = (offset) => ctx.search.DB("pens", {
            models: ["product"], orders: [{ field: "price", order: "asc" }], limit: 1, offset,
          }).items.map((each) => each.data.name).join();
          return { search: false, metadata: { pages: [0, 1, 2].map(page) } };
        }""",
        encoding="utf-8",
    )
    ran = groundhook("chat", "shop", "hi", "--connector", "plain", "--json")
    assert ran.lines[-1]["metadata"] == {"pages": ["Red pen", "Blue pen", ""]}


def test_no_search_means_no_search(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "products", "--no-search", "--connector", "plain")
    assert (ran.code, ran.out) == (0, "Hello there.\n")


def test_trace_adds_the_steps_as_a_tree(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "products cheaper than 10", "--trace")
    tree = ran.out.partition("\nTrace\n")[2]
    assert "└── turn shop" in tree
    assert "search" in tree
    assert "db_query" in tree
    assert re.search(r"\d (ms|s)  completed", tree)
    assert re.search(r"#ref:\w+ Red pen  \d\.\d\d × 0\.60 auto × 1\.00 reranked = \d\.\d\d", tree)


def test_the_trace_names_every_warning_of_the_turn(groundhook: Groundhook, shop: Path) -> None:
    short = {
        "type": "scripted",
        "options": {"script": [{"text": "Two", "finish_reason": "length"}]},
    }
    (shop / "connectors/short.conn.yao").write_text(json.dumps(short), encoding="utf-8")
    ran = groundhook("chat", "shop", "hello", "--connector", "short", "--trace")
    warning = next(line for line in ran.err.splitlines() if line.startswith("warning: "))
    assert "the answer is cut" in warning
    assert f"── {warning}\n" in ran.out.partition("\nTrace\n")[2]


def test_a_long_question_is_shown_by_its_beginning(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "products cheaper than 10 " + "and so on " * 2000)
    line = next(line for line in ran.out.splitlines() if "Searching" in line)
    assert len(line) < 300
    assert '…" (database)...' in line


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["shap", "hi"], "unknown_name", "no assistant 'shap' (did you mean 'shop'?)"),
        (
            ["shop", "hi", "--connector", "plane"],
            "unknown_name",
            "no connector 'plane' (did you mean 'plain'?)",
        ),
        (["shop", "hi", "--connector", "cut"], "model_truncated", "'cut'"),
    ],
)
def test_a_failure_is_one_clear_line_and_an_event(
    groundhook: Groundhook, arguments: list[str], code: str, message: str
) -> None:
    shown, result = groundhook("chat", *arguments), groundhook("chat", *arguments, "--json")
    assert (shown.code, result.code) == (1, 1)
    assert re.search(rf"^error: .*{re.escape(message)}", shown.err, re.MULTILINE)
    assert [event["code"] for event in result.lines if event["type"] == "error"] == [code]
    assert "Traceback" not in shown.err + result.err


def test_the_received_part_of_a_cut_answer_is_kept(groundhook: Groundhook) -> None:
    ran = groundhook("chat", "shop", "hi", "--no-search", "--connector", "cut")
    assert ran.out == "Half an\n"


def test_a_broken_file_is_reported_with_its_place(groundhook: Groundhook, shop: Path) -> None:
    (shop / "assistants/shop/package.yao").write_text(
        '{\n  "name": "Shop",\n  "serch": true\n}\n', encoding="utf-8"
    )
    ran = groundhook("chat", "shop", "hi")
    assert (ran.code, ran.out) == (1, "")
    assert re.search(r"^error: assistants/shop/package\.yao:3:3: .*'serch'.*'search'", ran.err)


def test_a_folder_that_is_not_an_app_is_reported(groundhook: Groundhook, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = groundhook("chat", "shop", "hi", "--app", str(tmp_path / "empty"))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")


# ---- terminals and pipes


def on_terminal(shop: Path, *arguments: str, **environment: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=shop,
        env={**ENVIRONMENT, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while piece := _read(ours):
        written += piece
    os.close(ours)
    assert child.wait(60) == 0
    return written.decode("utf-8").replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way to say that the other end is closed
        return b""


def test_a_terminal_shows_markers_in_colour(shop: Path) -> None:
    shown = on_terminal(shop, "chat", "shop", "products cheaper than 10")
    assert re.search(r"\x1b\[36m#ref:\w{4}\x1b\[0m", shown)
    assert "\x1b[9;31m#ref:zz9z\x1b[0m" in shown


def test_no_color_means_no_colour(shop: Path) -> None:
    assert not re.search(
        r"\x1b\[[0-9;]*3[0-7]",
        on_terminal(shop, "chat", "shop", "products cheaper than 10", NO_COLOR="1"),
    )


def test_a_dumb_terminal_gets_no_control_codes(shop: Path) -> None:
    assert "\x1b" not in on_terminal(shop, "chat", "shop", "products cheaper than 10", TERM="dumb")


def test_output_that_is_not_unicode_still_comes(groundhook: Groundhook) -> None:
    ran = groundhook(
        "chat", "shop", "products cheaper than 10", environment={"PYTHONIOENCODING": "ascii"}
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith('> Searching "products')


def test_options_set_the_other_fields_of_a_request(groundhook: Groundhook, shop: Path) -> None:
    hook = """
        const Create = (ctx) => { ctx.memory.chat.Set("n", 3); return { search: false, connector: "plain" }; };
        const Next = (ctx) => ({ data: [ctx.chat_id, ctx.locale, ctx.metadata, ctx.memory.chat.Get("n")] });
    """
    (shop / "assistants/shop/index.ts").write_text(hook, encoding="utf-8")
    bare = groundhook("chat", "shop", "hi", "--user", "ada")
    assert (bare.code, "give the request a chat id" in bare.err) == (1, True)
    text = [
        "--user",
        "ada",
        "--chat",
        "c1",
        "--locale",
        "pt-BR",
        "--metadata",
        '{"channel": "web"}',
    ]
    ran = groundhook("chat", "shop", "hi", *text, "--json")
    assert ran.lines[-1]["data"] == ["c1", "pt-BR", {"channel": "web"}, 3]
    for wrong in ("{", "[]"):
        refused = groundhook("chat", "shop", "hi", "--metadata", wrong)
        assert (refused.code, "--metadata" in refused.err) == (2, True)


def test_a_character_that_the_encoding_lacks_is_a_question_mark(
    groundhook: Groundhook, shop: Path
) -> None:
    script = {
        "label": "Far",
        "type": "scripted",
        "options": {"script": [{"text": "Tea: 茶 and שלום."}]},
    }
    (shop / "connectors/cites.conn.yao").write_text(json.dumps(script), encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    ran = groundhook("chat", "shop", "products", "--no-search", environment=ascii_only)
    assert (ran.code, ran.out, ran.err) == (0, "Tea: ? and ????.\n", "")
    lines = groundhook(
        "chat", "shop", "products", "--no-search", "--json", environment=ascii_only
    ).lines
    assert lines[-1]["content"] == "Tea: 茶 and שלום."
    unknown = groundhook("chat", "תה", "products", environment=ascii_only)
    assert (unknown.code, unknown.err) == (1, "error: no assistant '??' (known: shop)\n")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_the_turn_quietly(shop: Path, flags: list[str]) -> None:
    child = subprocess.Popen(
        [COMMAND, "chat", "shop", "hi", "--connector", "long", "--no-search", *flags],
        cwd=shop,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr is not None
    with child.stderr:
        assert child.stderr.read() == b""
    assert child.wait(60) == 141


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_ctrl_c_in_the_middle_of_a_turn_ends_it_at_once_without_a_traceback(
    groundhook: Groundhook, shop: Path, flags: list[str]
) -> None:
    child = subprocess.Popen(
        [COMMAND, "chat", "shop", "products cheaper than 10", "--connector", "slow", *flags],
        cwd=shop,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    out = b""
    while b"complete" not in out:
        out += child.stdout.readline()
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: the children hear it too
    rest, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err == b"error: interrupted\n"
    if flags:
        assert json.loads((out + rest).splitlines()[-1])["code"] == "interrupted"
    assert groundhook("chat", "shop", "products cheaper than 10").code == 0
