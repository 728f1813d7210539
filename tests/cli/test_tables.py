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


def test_a_name_that_would_be_cut_makes_the_rows_lines_and_other_columns_fold() -> None:
    chat = "c_782d5ac5e250711e44344dfae4773ddc"
    columns, numbers = ("id", "title", "assistant", "messages"), ("messages",)

    def lines(width: int, title: str) -> list[str]:
        console = Console(width=width, color_system=None)
        with console.capture() as capture:
            console.print(table(columns, [(chat, title, "catalogue", "2")], numbers=numbers))
        return [line.rstrip() for line in capture.get().splitlines()]

    wide = lines(80, "Which data sets are about public transport?")
    assert wide[2].startswith(chat)
    assert len(wide) > 3  # the title is folded
    assert lines(60, "Hello")[0] == chat
    assert lines(60, "Hello")[1] == "  title: Hello"


def test_the_numbers_of_a_row_share_a_line_in_a_narrow_terminal() -> None:
    console = Console(width=30, color_system=None)
    columns = ("collection", "documents", "name", "chunks")
    with console.capture() as capture:
        row = ("agents.docs.docs", "3", "Pages", "12")
        console.print(table(columns, [row], numbers=("documents", "chunks")))
    assert capture.get().splitlines() == [
        "agents.docs.docs",
        "  name: Pages",
        "  documents: 3, chunks: 12",
    ]


def test_ids_in_other_columns_are_not_cut_either() -> None:
    document = "https://docs.example.org/handbook/leave"
    row = ("agents.desk.desk", document, "How leave is taken, and until when it expires", "12")
    console = Console(width=80, color_system=None)
    columns = ("collection", "document", "title", "chunks")
    with console.capture() as capture:
        console.print(table(columns, [row], numbers=("chunks",), ids=("document",)))
    lines = capture.get().splitlines()
    assert lines[0].strip() == row[0]
    assert lines[1] == f"  document: {document}"


def test_a_column_without_a_name_has_no_label_in_a_narrow_terminal() -> None:
    assert printed(30, ("collection", "", "chunks"))[1] == "  Groundhook's documents"
