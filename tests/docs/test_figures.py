"""The page of the benches' figures changes only where a bench was run again."""

from __future__ import annotations

from bench.table import PAGE, SECTION, with_sections


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
