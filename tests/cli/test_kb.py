"""`groundhook kb` from the shell: add, list, search, replace, remove."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import zipfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT, Groundhook


@pytest.fixture
def shop(shop: Path) -> Path:
    """The shop with a collection, whose worker ends soon after the test."""
    (shop / "kb").mkdir()
    (shop / "kb/notes.kb.yao").write_text('{"name": "Notes"}', encoding="utf-8")
    (shop / "agent/agent.yml").write_text(
        "connector: cites\nkb_storage:\n  idle_s: 3\n", encoding="utf-8"
    )
    docs = shop / "docs"
    docs.mkdir()
    (docs / "pens.md").write_text(
        "# Pens\n\nA fountain pen is filled with ink.\n", encoding="utf-8"
    )
    (docs / "paper.txt").write_text("Paper is made of wood pulp.\n", encoding="utf-8")
    (docs / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    return shop


def test_documents_are_added_listed_found_and_removed(groundhook: Groundhook, shop: Path) -> None:
    added = groundhook("kb", "add", "notes", "docs")
    assert (added.code, added.problems) == (0, [])
    assert added.out.startswith(
        "Added 2 documents to notes (2 chunks), 1 skipped (of a kind that cannot be read:"
        " photo.jpg) in "
    )

    listed = groundhook("kb", "list")
    assert listed.out.splitlines()[-1].split()[:4] == ["notes", "Notes", "2", "2"]
    assert {
        line["document"] for line in groundhook("kb", "list", "--json").lines[0]["documents"]
    } == {"pens.md", "paper.txt"}
    assert "pens.md" in groundhook("kb", "list", "notes").out

    found = groundhook("search", "kb", "How is a fountain pen filled?", "--collection", "notes")
    assert found.code == 0
    assert "notes / pens.md" in found.out

    again = groundhook("kb", "add", "notes", "docs/pens.md", "--json")
    assert [(line["document"], line["outcome"]) for line in again.lines] == [
        ("pens.md", "unchanged")
    ]

    removed = groundhook("kb", "remove", "notes", "pens.md")
    assert (removed.code, removed.out) == (0, "Removed 1 document from notes.\n")
    assert groundhook("kb", "remove", "notes", "pens.md").code == 1


def test_a_document_that_has_no_id_left_is_refused_with_the_files_that_have_its_names(
    groundhook: Groundhook, shop: Path
) -> None:
    for folder in ("en", "de", "more/de"):
        (shop / folder).mkdir(parents=True)
        (shop / folder / "a.md").write_text(f"# In {folder}\n\nText.\n", encoding="utf-8")
    codes = [groundhook("kb", "add", "notes", folder).code for folder in ("en", "de")]
    refused = groundhook("kb", "add", "notes", "more/de")
    assert [*codes, refused.code] == [0, 0, 1]
    assert "'a.md' and 'de/a.md' are the ids of documents" in refused.problems[0]
    assert "add the folder that holds all of them" in refused.problems[0]
    assert "In en" in (listed := groundhook("kb", "list", "notes").out)
    assert "In de" in listed


def test_a_long_title_does_not_widen_the_list(groundhook: Groundhook, shop: Path) -> None:
    (shop / "docs/long.md").write_text(f"# {'Pens and ' * 30}\n\nText.\n", encoding="utf-8")
    groundhook("kb", "add", "notes", "docs")
    listed = groundhook("kb", "list", "notes").out.splitlines()
    assert max(map(len, listed)) <= 110
    assert any("Pens and Pens" in line and "…" in line for line in listed)


def test_a_collection_without_documents_is_listed_as_empty(
    groundhook: Groundhook, shop: Path
) -> None:
    assert groundhook("kb", "list", "notes").out == "No documents in notes.\n"


def test_an_empty_path_is_refused_and_is_not_the_current_folder(
    groundhook: Groundhook, shop: Path
) -> None:
    refused = groundhook("kb", "add", "notes", "docs", "")
    assert refused.code == 2
    assert refused.err.startswith("error: a PATH is empty: is a variable of the shell not set?")
    assert groundhook("kb", "list", "notes").out == "No documents in notes.\n"


def test_a_search_that_lacks_the_tenant_names_its_option_alone(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb/notes.kb.yao").write_text(
        '{"embedding": {"provider": "hash"}, "tenant_field": "firm"}', encoding="utf-8"
    )
    assert groundhook("search", "kb", "pen", "--collection", "notes").problems == [
        "error: not permitted: collection 'notes' separates its tenants, and the request names none"
        " (give --tenant)"
    ]


def test_the_list_tells_documents_of_one_name_apart_by_their_tenants(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb/notes.kb.yao").write_text(
        '{"embedding": {"provider": "hash"}, "tenant_field": "firm"}', encoding="utf-8"
    )
    for tenant in ("acme", "zed"):
        assert groundhook("kb", "add", "notes", "docs/pens.md", "--tenant", tenant).code == 0
    header, _, *rows = groundhook("kb", "list", "notes").out.splitlines()
    assert header.split()[:3] == ["collection", "tenant", "document"]
    assert [row.split()[:3] for row in rows] == [
        ["notes", "acme", "pens.md"],
        ["notes", "zed", "pens.md"],
    ]


def test_a_feed_is_added_filtered_counted_and_removed_as_a_whole(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb/notes.kb.yao").unlink()
    folder = shop / "assistants/shop/kb"
    folder.mkdir()
    declared = (
        '{"embedding": {"provider": "hash"}, "fields": {"year": {"type": "integer", "facetable":'
        " true}}}"
    )
    (folder / "feed.kb.yao").write_text(declared, encoding="utf-8")
    rows = (
        '[{"id": "a", "content": "ink", "year": 2020}, {"id": "b", "content": "ink", "year":'
        ' "soon"}, {"id": "c", "text": "ink"}]'
    )
    added = groundhook("kb", "add", "feed", "-", stdin=rows)
    assert added.code == 1
    assert added.out.startswith("Added 2 documents to agents.shop.feed (2 chunks), 1 failed in ")
    assert (
        "error: standard input:1: was not added: 'year' should be a whole number, not 'soon'"
        in added.err
    )

    requested = ("search", "kb", "ink", "--collection", "feed", "--threshold", "0")
    found = groundhook(*requested, "--filter", '{"year": {"gte": 2020}}', "--facet", "year")
    assert "1 result from" in found.out
    assert "agents.shop.feed / a" in found.out
    assert found.out.splitlines()[-1] == "year: 2020 (1)"
    assert (
        "no filterable field 'yaer' (did you mean 'year'?)"
        in groundhook(*requested, "--filter", '{"yaer": 1}').err
    )
    assert (
        groundhook("kb", "remove", "feed", "--all").out
        == "Removed 2 documents from agents.shop.feed.\n"
    )


def test_a_file_that_cannot_be_added_is_reported_and_the_others_are_added(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "docs/empty.md").write_text("", encoding="utf-8")
    (shop / "docs/broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 1
    assert len(ran.problems) == 2
    assert all(line.startswith("error: ") for line in ran.problems)
    assert "broken.pdf" in ran.err
    assert "empty.md" in ran.err
    assert "Added 2 documents to notes" in ran.out
    assert "2 failed" in ran.out


def nested_tables(depth: int) -> bytes:
    """A DOCX of tables within each other."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    body = f"{'<w:tbl><w:tr><w:tc>' * depth}<w:p><w:r><w:t>x</w:t></w:r></w:p>{'</w:tc></w:tr></w:tbl>' * depth}"
    relation = f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/>'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as parts:
        parts.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        parts.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships">{relation}</Relationships>',
        )
        parts.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
        )
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("deep.html", b"<div>" * 1500 + b"<p>Bottom</p>" + b"</div>" * 1500),
        ("deep.docx", nested_tables(1500)),
        ("deep.jsonl", b'{"content": "x", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
    ],
)
def test_a_document_nested_too_deeply_is_reported_by_name_and_the_others_are_added(
    groundhook: Groundhook, shop: Path, name: str, data: bytes
) -> None:
    (shop / "docs" / name).write_bytes(data)
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 1
    assert ran.out.startswith("Added 2 documents to notes (2 chunks), 1 failed")
    (error,) = ran.problems
    assert error.startswith("error: ")
    assert f"docs/{name}" in error
    assert "it is nested too deeply" in error


def test_an_error_of_an_unknown_kind_is_reported_with_its_class(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "docs/large.md").write_text(
        f"---\ntitle: 0x{'f' * 5000}\n---\nText.\n", encoding="utf-8"
    )
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 1
    assert "docs/large.md' was not added: reading it failed with ValueError: " in ran.err
    assert ran.out.startswith("Added 2 documents to notes")


def test_halves_of_surrogate_pairs_become_a_mark_and_the_rows_beside_them_are_there(
    groundhook: Groundhook, shop: Path
) -> None:
    lines = r"""
        {"id": "one", "title": "First", "content": "red ink"}
        {"id": "two", "title": "Second \uD800", "content": "green ink \ud83d\ude00 \ud800", "\udfff": ["\ud800"]}
        {"id": "three", "title": "Third", "content": "blue ink"}
    """
    (shop / "docs/rows.jsonl").write_text(lines, encoding="utf-8")
    (shop / "docs/front.md").write_text(
        '---\ntitle: "Half \\ud800"\n---\nText of it.\n', encoding="utf-8"
    )
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Added 6 documents to notes")
    titles = {
        each["document"]: each["title"]
        for each in groundhook("kb", "list", "notes", "--json").lines[0]["documents"]
    }
    assert titles["rows.jsonl#two"] == "Second \ufffd"
    assert titles["front.md"] == "Half \ufffd"
    found = groundhook("search", "kb", "green ink", "--collection", "notes", "--json")
    assert any(
        "green ink \U0001f600 \ufffd" in json.dumps(line, ensure_ascii=False)
        for line in found.lines
    )


def test_a_file_whose_name_is_not_text_is_reported_and_the_others_are_added(
    groundhook: Groundhook, shop: Path
) -> None:
    Path(os.fsdecode(os.fsencode(shop / "docs") + b"/caf\xe9.md")).write_text(
        "Coffee.\n", encoding="utf-8"
    )
    ran = groundhook("kb", "add", "notes", "docs")
    assert ran.code == 1
    assert "caf\ufffd.md' was not added: its name is not UTF-8 (rename it)" in ran.err
    assert ran.out.startswith("Added 2 documents to notes")


def test_aliases_in_front_matter_are_refused_before_they_are_expanded(
    groundhook: Groundhook, shop: Path
) -> None:
    (shop / "kb/notes.kb.yao").write_text(
        '{"name": "Notes", "fields": {"tags": "keyword"}}', encoding="utf-8"
    )
    names = "abcdefghij"
    bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    bomb += [f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]" for last, name in pairwise(names)]
    (shop / "docs/bomb.md").write_text(
        "\n".join(["---", *bomb, "tags: *j", "---", "Text."]), encoding="utf-8"
    )
    (shop / "docs/tagged.md").write_text("---\ntags: ['*a', b]\n---\nText.\n", encoding="utf-8")
    ran = groundhook("kb", "add", "notes", "docs")  # which would not come back
    assert ran.code == 1
    assert (
        "docs/bomb.md:3: was not added: its front matter has an alias, *a, and aliases are not"
        " supported" in ran.err
    )
    assert ran.out.startswith("Added 3 documents to notes")


@pytest.mark.parametrize("array", [False, True])
def test_a_number_with_too_many_digits_fails_its_row_alone(
    groundhook: Groundhook, array: bool
) -> None:
    rows = [
        '{"id": "a", "content": "ink"}',
        f'{{"id": "b", "content": "ink", "n": -{"7" * 5000}}}',
        '{"id": "c", "content": "ink"}',
    ]
    ran = groundhook(
        "kb", "add", "notes", "-", stdin="[" + ",\n".join(rows) + "]" if array else "\n".join(rows)
    )
    assert ran.code == 1
    assert (
        ran.err
        == "error: standard input:2: a number in the row has 5000 digits, and at most 4300 are"
        " read\n"
    )
    assert ran.out.startswith("Added 2 documents to notes")


def test_a_missing_path_is_reported(groundhook: Groundhook) -> None:
    ran = groundhook("kb", "add", "notes", "nowhere.md")
    assert ran.code == 1
    assert "nowhere.md" in ran.err


def test_ctrl_c_in_the_middle_of_an_add_leaves_what_can_be_added_again(
    groundhook: Groundhook, shop: Path
) -> None:
    for number in range(200):
        text = "\n\n".join(
            f"# Part {part}\n\n{'Ink and paper and pens. ' * 60}" for part in range(5)
        )
        (shop / f"docs/book{number:03}.md").write_text(f"{text}\n{number}\n", encoding="utf-8")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, "kb", "add", "notes", "docs"],
        cwd=shop,
        env=ENVIRONMENT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"book" not in shown:  # the progress bar names the document that is under way
        shown += os.read(ours, 65536)
    os.killpg(child.pid, signal.SIGINT)
    while b"stopping" not in shown:  # at once, whatever is still being computed
        shown += os.read(ours, 65536)
    with suppress(OSError):  # which a terminal says that nobody writes to any more
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    assert child.wait(60) == 130
    assert b"error:\x1b[0m interrupted; added documents stay" in shown
    assert b"Traceback" not in shown
    listed = groundhook("kb", "list", "--json").lines[0]["documents"]
    for stored in listed:
        assert (
            groundhook("kb", "add", "notes", f"docs/{stored['document']}", "--json").lines[0][
                "outcome"
            ]
            == "unchanged"
        )
        break
    assert len(listed) < 202


def test_a_search_follows_the_graph_on_request(groundhook: Groundhook, shop: Path) -> None:
    (shop / "kb/notes.kb.yao").write_text(
        '{"embedding": {"provider": "hash"}, "graph": true}', encoding="utf-8"
    )
    films = {
        "kiss": "# Kiss and Tell\n\nA comedy by Ada Lind.",
        "lind": "# Ada Lind\n\nBorn in Umeå, a painter and an optician.",
    }
    for name, text in films.items():
        (shop / f"docs/{name}.md").write_text(text, encoding="utf-8")
    assert groundhook("kb", "add", "notes", "docs").code == 0
    requested = ("search", "kb", "Which comedy is Kiss and Tell?", "--threshold", "0")
    assert "related:" not in groundhook(*requested).out
    followed = groundhook(*requested, "--graph")
    assert "related: Ada Lind, term" in followed.out
    assert "`search kb`" in groundhook("search", "web", "pens", "--graph").err
