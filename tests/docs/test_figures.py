"""The page of the benches' figures changes only where a bench was run again."""

from __future__ import annotations

import re
from pathlib import Path

from bench.conversations.__main__ import SETS, SHOP, FollowUp, rows, sections
from bench.table import PAGE, ROOT, SECTION, with_sections


def test_renewing_one_section_of_the_figures_changes_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    name = SECTION.findall(page)[0]
    renewed = with_sections(page, {name: "Anew."})
    old, new = SECTION.split(page), SECTION.split(renewed)
    assert new[2].strip() == "Anew."
    assert (old[:2], old[3:]) == (new[:2], new[3:])


def test_a_bench_without_a_section_gets_the_last_one() -> None:
    page = PAGE.read_text(encoding="utf-8")
    renewed = with_sections(page, {"new": "First figures."})
    assert renewed.startswith(page)
    assert SECTION.split(renewed)[-2:] == ["new", "\nFirst figures.\n"]


def test_the_page_names_every_script_that_make_bench_runs() -> None:
    bench = ROOT / "bench"
    scripts = [path.stem for path in bench.glob("*.py") if _is_script(path)]
    scripts += [path.parent.name for path in bench.glob("*/__main__.py")]
    # Which make figures and other benches start.
    parts = {"table", "echo_server", "bare_server", "stops_served"}
    opening = SECTION.split(PAGE.read_text(encoding="utf-8"))[0]
    assert sorted(set(scripts) - parts - set(re.findall(r"`(\w+)`", opening))) == []


def test_every_section_that_a_follow_up_is_answered_by_exists() -> None:
    known = sections()
    for document, section in set().union(*known.values()):
        path = ROOT / document if document == "README.md" else ROOT / "docs" / document
        headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert section in headings, f"{document} has no heading {section!r}"
    used = {FollowUp(*row).place for file in SETS.values() for row in rows(file)}
    assert used - {SHOP} <= set(known)


def test_the_page_about_turns_has_the_shares_that_the_bench_measured() -> None:
    page = (ROOT / "docs/turns.md").read_text(encoding="utf-8")
    rows = PAGE.read_text(encoding="utf-8")
    measured = re.search(
        r"\| kept aside: follow-ups, rewritten \| ([\d.]+) % \| ([\d.]+) %, unchanged \|.*\n"
        r"\| kept aside: perfect questions \| ([\d.]+) % \|",
        rows,
    )
    assert measured is not None
    shown = re.search(
        r"([\d.]+) % find a right passage.*?([\d.]+) % do without.*?([\d.]+) %", page, re.DOTALL
    )
    assert shown is not None
    assert shown.groups() == measured.groups(), "write the bench's shares into docs/turns.md"


def _is_script(path: Path) -> bool:
    return '__name__ == "__main__"' in path.read_text(encoding="utf-8")
