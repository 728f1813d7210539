"""Markdown of MkDocs, Docusaurus, GitHub and pandoc, as its readers see it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.reading.dialects import plain_markdown
from groundhook.handlers.kb.reading.files import read


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("# Backups { #backups }", "# Backups"),
        ("## Tapes {#tapes .old}", "## Tapes"),
        ("## Braces {like these}", "## Braces {like these}"),
        ("[the plan](plan.md){ .md-button } and {this}", "[the plan](plan.md) and {this}"),
        ('!!! warning "Danger"\n    Never do.\n\n    Nor this.\n\nAfter.', "**Danger**\nNever do."),
        ("??? tip\n    Use it.\n", "**Tip**\nUse it."),
        ('=== "Linux"\n\n    ```sh\n    run\n    ```\n', "**Linux**\n\n```sh\nrun\n```"),
        ('!!! note "A"\n    !!! tip "B"\n        Deep.\n', "**A**\n**B**\nDeep."),
        (":::tip[Try this]\nUse it.\n:::", "**Try this**\nUse it."),
        ("::: {.note}\nUse it.\n:::", "**Note**\nUse it."),
        ("/// note | Remember\n\nForty days.\n\n///", "**Remember**\n\nForty days."),
        ("/// tab | ## Linux\n    new: true\n\nRun it.\n///", "**Linux**\n\nRun it."),
        ("{{< include a.md >}}\n{{% note %}}\nText", "Text"),
        ("<details><summary>More</summary>Text</details>", "More Text"),
        ("/// html | div.result\nDone.\n///", "Done."),
        (
            "[:octicons-file-24:][code]\n\nSee :material-home: `:material-home:`",
            "See  `:material-home:`",
        ),
        ("Call `#!py f()` or `#!/bin/sh`", "Call `f()` or `#!/bin/sh`"),
        ("> [!NOTE]\n> In Basel.", "> **Note**\n> In Basel."),
        ('{% include "x.md" %}\n--8<-- "y.md"\nText', "Text"),
        ('The <abbr title="Objective">RTO</abbr> is 10<sup>3</sup>', "The RTO is 10^3"),
        (
            '<img src="a.png" alt="A pump"> with <font color="#fff">IN<br>FO</font>',
            "A pump with IN FO",
        ),
        ("Type `<b>x</b> {% if %}` or <collection>", "Type `<b>x</b> {% if %}` or <collection>"),
        ("Title\n===\n\nText", "Title\n===\n\nText"),
        ("H~2~O, 10^3^ and ==this==, `H~2~O`", "H2O, 10^3 and this, `H~2~O`"),
        ("~~gone~~, a == b, ~/x and ~/y, x^2", "~~gone~~, a == b, ~/x and ~/y, x^2"),
        ("import Tabs from '@theme/Tabs';\nexport const a = 1;\n\nText", "Text"),
        ('<Tabs>\n<TabItem value="l" label="Linux">\n\nRun it.', "**Linux**\n\nRun it."),
        ("Press <Icon name='save' /> {/* later */}now, Vec<String>", "Press  now, Vec<String>"),
        (
            '<h1 align="center">The <b>pump</b></h1>\n\n<table>\n<tr><th>A</th><th>B</th></tr>\n\n'
            "<tr><td>1|2</td><td><code>x</code></td></tr></table>\nText",
            "# The **pump**\n\n\n\n| A | B |\n| --- | --- |\n| 1\\|2 | `x` |\n\nText",
        ),
        ("<ul>\nnever ends", "<ul>\nnever ends"),
        ("```html\n<table><tr><td>1</table>\n```", "```html\n<table><tr><td>1</table>\n```"),
    ],
)
def test_a_dialect_is_read_as_its_readers_see_it(written: str, read_as: str) -> None:
    assert plain_markdown(written).strip().startswith(read_as)


def test_what_follows_an_indented_part_is_no_part_of_it() -> None:
    text = '!!! warning "Danger"\n    Never.\n\nAfter.\n\n    code\n'
    assert plain_markdown(text) == "**Danger**\nNever.\n\nAfter.\n\n    code\n"


def test_code_stays_as_it_is() -> None:
    text = "```md\n# X { #x }\n:::tip\n<b>b</b>\n{% x %}\n```\n\n    !!! note\n"
    assert plain_markdown(text) == text


def test_a_footnote_follows_the_paragraph_that_refers_to_it_first() -> None:
    text = (
        "Ten euros[^meal] or\ntwelve.[^2]\n\nAgain[^meal], `[^2]`... [^none]\n\n"
        "[^meal]: With drinks\n    and tips.\n\n    By card.\n\n[^2]: In Norway.\n\nThe end.\n"
    )
    document = read(text.encode(), "a.md")
    assert [document.text[block.start : block.end].strip() for block in document.blocks] == [
        "Ten euros[1] or\ntwelve.[2]",
        "[1] With drinks and tips. By card.",
        "[2] In Norway.",
        "Again[1], `[^2]`... [^none]",
        "The end.",
    ]


def test_a_heading_with_an_id_is_the_title() -> None:
    document = read(b"# Backups { #backups }\n\nText\n", "a.md")
    assert document.title == "Backups"
    assert [block.name for block in document.blocks if block.kind == "heading"] == ["Backups"]


@given(st.text(alphabet="# {}.:/!?=\"'[]|<>`-8%*~A\n", max_size=200))
def test_any_text_is_read_without_an_error_and_lines_stay_lines(text: str) -> None:
    assert plain_markdown(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "unit", ["{#", "<a ", "`", "<img alt=", "{.a", "a", "> [!", " ", "<A ", "^a", "=="]
)
@pytest.mark.parametrize("before", ["", "!!! ", ":::", "# ", "::: {."])
def test_a_long_repetition_is_read_in_one_pass(before: str, unit: str) -> None:
    plain_markdown(f'{before}{unit * 100_000}"x')
