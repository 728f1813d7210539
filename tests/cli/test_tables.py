"""What commands print as tables, in terminals of every width."""

from __future__ import annotations

from rich.console import Console

from groundhook.host.cli.tables import table

ROW = ("agents.docs.docs", "Groundhook's documents", "12")


def printed(width: int, columns: tuple[str, ...] = ("collection", "name", "chunks")) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table(columns, [ROW], numbers=("chunks",)))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    head, _, row = printed(80)
    assert head.split() == ["collection", "name", "chunks"]
    assert row == "agents.docs.docs   Groundhook's documents       12"


def test_in_a_narrow_terminal_every_row_is_lines_that_keep_names_whole() -> None:
    assert printed(30) == ["agents.docs.docs", "  name: Groundhook's documents", "  chunks: 12"]


def test_a_column_without_a_name_has_no_label_in_a_narrow_terminal() -> None:
    assert printed(30, ("collection", "", "chunks"))[1] == "  Groundhook's documents"
