"""`groundhook test` as a child process: what it prints, as what, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Groundhook

FILE = "assistants/shop/tests/first.test.ts"
PASSING = 'test("passes", () => { expect(turn("Which products are there?").citations.length).toBe(2); });\n'
FAILING = (
    'test("fails", () => {\n  console.log("n is %d", 3);\n  expect([1, 2]).toEqual([1, 3]);\n});\n'
)


@pytest.fixture
def written(shop: Path) -> Path:
    (shop / FILE).parent.mkdir(parents=True)
    (shop / FILE).write_text(PASSING, encoding="utf-8")
    return shop / FILE


def test_recorded_once_it_passes_without_the_database(
    written: Path, groundhook: Groundhook, shop: Path
) -> None:
    assert groundhook("test").code == 1
    recorded = groundhook("test", "--record")
    assert (recorded.code, recorded.err) == (0, "")
    assert "recorded assistants/shop/tests/first.cassette.json" in recorded.out
    (shop / ".groundhook/data.sqlite").unlink()
    played = groundhook("test", "shop")
    assert (played.code, played.err) == (0, "")
    assert played.out.splitlines()[0] == FILE
    assert played.out.splitlines()[1].startswith("  ok passes (")
    assert played.out.splitlines()[-1].startswith("1 passed, 0 failed (")


def test_a_failure_shows_the_place_expected_actual_and_what_was_logged(
    written: Path, groundhook: Groundhook
) -> None:
    not_null = 'test("is not null", () => { expect(1).toBeNull(); });\n'
    written.write_text(FAILING + not_null, encoding="utf-8")
    ran = groundhook("test")
    assert ran.code == 1
    for line in (
        f"    {FILE}:3:18",
        "    expected to equal [1,3]",
        "    actual: [1,2]",
        "    expected to be null",
        "    actual: 1",
        "      n is 3",
    ):
        assert line in ran.out.splitlines()
    assert ran.out.splitlines()[-1].startswith("0 passed, 2 failed (")


def test_json_has_one_result_a_line_and_a_summary(written: Path, groundhook: Groundhook) -> None:
    written.write_text(FAILING + 'test.skip("later", () => {});\n', encoding="utf-8")
    ran = groundhook("test", "--json")
    assert ran.code == 1
    first, second, summary = ran.lines
    assert (first["status"], first["place"], first["expected"], first["actual"]) == (
        "failed",
        f"{FILE}:3:18",
        "[1,3]",
        "[1,2]",
    )
    assert (second["name"], second["status"]) == ("later", "skipped")
    assert (summary["passed"], summary["failed"], summary["skipped"]) == (0, 1, 1)


def test_control_characters_of_a_test_do_not_reach_the_terminal(
    written: Path, groundhook: Groundhook
) -> None:
    name = json.dumps("red \x1b[31m")
    written.write_text(
        f'test({name}, () => {{ throw new Error("bad \\x1b[2J"); }});\n', encoding="utf-8"
    )
    assert "\x1b" not in groundhook("test").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shpo"], "no assistant 'shpo' (did you mean 'shop'?)"),
        (["shop"], "no tests in assistants/shop/tests"),
    ],
)
def test_a_run_that_cannot_start_is_one_clear_line(
    groundhook: Groundhook, arguments: list[str], message: str
) -> None:
    ran = groundhook("test", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
