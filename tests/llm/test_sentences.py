"""Sentences are quoted as they stand: nothing is invented, nothing is split in the middle of a
name."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.language.sentences import spans
from groundhook.core.language.terms import terms
from groundhook.host.llm.sentences import LONGEST, sentences, split


@pytest.mark.parametrize(
    ("paragraph", "parts"),
    [
        (
            "Dr. Smith met J. R. Jones, e.g. at 5 p.m. on Jan. 5. He left.",
            ["Dr. Smith met J. R. Jones, e.g. at 5 p.m. on Jan. 5.", "He left."],
        ),
        (
            'He said: "It works." Then? Version 3.11 came!',
            ['He said: "It works."', "Then?", "Version 3.11 came!"],
        ),
        (
            "See Fig. 3. Is it No. 5? No. That is wrong.",
            ["See Fig. 3.", "Is it No. 5?", "No.", "That is wrong."],
        ),
        (
            "Es war der 3. Mai. Danach kam z.B. Herr Müller.",
            ["Es war der 3. Mai.", "Danach kam z.B. Herr Müller."],
        ),
        (
            "The id is the document's. Fields stand beside it.",
            ["The id is the document's.", "Fields stand beside it."],
        ),
        (
            "Set (`day_s` … `any_s`) first. Wait … Then go.",
            ["Set (`day_s` … `any_s`) first.", "Wait …", "Then go."],
        ),
        (
            "Run `a. B` first. Then wait... and go on.",
            ["Run `a. B` first.", "Then wait... and go on."],
        ),
        (
            "北京是中国的首都。人口很多！对吗？「是的。」好。",
            ["北京是中国的首都。", "人口很多！", "对吗？", "「是的。」", "好。"],
        ),
        (
            "ירושלים היא הבירה. העיר גדולה! האם זה נכון? כן, מאוד.",
            ["ירושלים היא הבירה.", "העיר גדולה!", "האם זה נכון?", "כן, מאוד."],
        ),
        ("القاهرة هي العاصمة. هل هذا صحيح؟ نعم.", ["القاهرة هي العاصمة.", "هل هذا صحيح؟", "نعم."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(paragraph: str, parts: list[str]) -> None:
    assert split(paragraph) == parts


@pytest.mark.parametrize("run", ["`", "``a", ".", "。", ". ", "…`"])
def test_long_runs_of_what_may_end_a_sentence_are_soon_looked_through(run: str) -> None:
    began = time.process_time()
    spans(run * 20_000)
    # A hundredth of it, where each place is not looked at from every other.
    assert time.process_time() - began < 2


def test_markdown_is_read_as_a_reader_sees_it() -> None:
    content = """---
title: Front matter
---
# Install <!-- not for eyes -->

Use [the installer](https://example.com/a_(b) "now") first. ![logo](x.png)
It goes **on here.

- Needs Python 3.11
  or newer.
1. Then run `make`.

```sh
rm -rf everything. Really.
```

| key | meaning |
|-----|---------|
| `a\\|b` | The first. |
| limit | Most results |

> Quoted wisdom.
---
┌─────┐
│ box │
└─────┘
left      middle     right
## Limits
**Memory**

Half a gigabyte.
"""
    found = sentences(content)
    assert [(sentence.text, sentence.heading, sentence.kind) for sentence in found] == [
        ("Use the installer first.", "Install", "prose"),
        ("It goes on here.", "Install", "prose"),
        ("Needs Python 3.11 or newer.", "Install", "entry"),
        ("Then run `make`.", "Install", "entry"),
        ("rm -rf everything. Really.", "Install", "code"),
        ("`a|b` – The first.", "Install", "row"),
        ("limit – Most results", "Install", "row"),
        ("Quoted wisdom.", "Install", "prose"),
        ("Half a gigabyte.", "Memory", "prose"),
    ]


def test_underlined_lines_are_headings_and_lines_between_texts_are_not() -> None:
    content = (
        "Leaks\n=====\nMemory is lost.\n\n2.1. Errors of `free`\n---------------------\n"
        "It was freed twice.\n\nTwo sentences of a text.\n---\nA line is above this one.\n\n"
        "One line,\nanother line\n------------\nThe end.\n\n**set_up and tear_down**\n\nBoth run.\n\n"
        "- outer\n\n      - inner one\n      - inner two\n"
    )
    assert [(sentence.text, sentence.heading) for sentence in sentences(content)] == [
        ("Memory is lost.", "Leaks"),
        ("It was freed twice.", "2.1. Errors of `free`"),
        ("Two sentences of a text.", "2.1. Errors of `free`"),
        ("A line is above this one.", "2.1. Errors of `free`"),
        ("One line, another line", "2.1. Errors of `free`"),
        ("The end.", "2.1. Errors of `free`"),
        ("Both run.", "set_up and tear_down"),
        ("outer", "set_up and tear_down"),
        ("inner one", "set_up and tear_down"),
        ("inner two", "set_up and tear_down"),
    ]


def test_rows_have_the_names_of_their_columns_and_code_is_separate() -> None:
    content = "It is:\n\n    a = b\n\n| key | value |\n|---|---|\n| one | 1 |\n\n"
    content += "- entry\n\n      below it\n\n```\n  xy:\n  \tz\n```\nEnd."
    found = sentences(content)
    assert [(sentence.text, sentence.kind, sentence.columns) for sentence in found] == [
        ("It is:", "prose", ""),
        ("a = b", "code", ""),
        ("one – 1", "row", "key – value"),
        ("entry", "entry", ""),
        ("below it", "prose", ""),
        ("xy:\n\tz", "code", ""),
        ("End.", "prose", ""),
    ]


def test_a_fence_that_is_not_closed_is_left_out_with_what_it_may_hold() -> None:
    assert [
        sentence.text for sentence in sentences("Run this:\n\n```\nserve it\n\nEnd of it.")
    ] == ["Run this:"]


PROSE = st.text(st.sampled_from(list("abcXYZ .?!,;:0123456789\n'\"()。！שלום؟é—-…")), max_size=1500)


@given(PROSE)
def test_every_sentence_is_in_its_paragraph_and_none_is_lost(paragraph: str) -> None:
    collapsed = re.sub(r"\s+", " ", paragraph).strip()
    parts = split(paragraph)
    position = 0
    for part in parts:
        position = collapsed.index(part, position) + len(part)
        assert len(part) <= LONGEST
    assert "".join("".join(parts).split()) == "".join(collapsed.split())


@given(st.text(max_size=400))
def test_any_text_has_sentences_without_an_error_and_their_letters_are_its_letters_in_order(
    content: str,
) -> None:
    for sentence in sentences(content):
        letters = iter(content)
        assert all(letter in letters for letter in sentence.text if letter.isalnum())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("stored", "storing"),
        ("Queries", "query"),
        ("citations", "citation"),
        ("Café", "cafe"),
        ("בירושלים", "ירושלים"),
        ("الكتاب", "كتاب"),
    ],
)
def test_inflected_words_meet(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


def test_questions_keep_only_what_they_are_about() -> None:
    assert terms("What is the capital of Germany?") == terms("capital Germany")
    assert terms("中国的首都") == ["中国", "国的", "的首", "首都"]


def test_entries_that_are_bold_are_entries_and_lists_in_lists_have_their_depth() -> None:
    found = sentences(
        "- **Linux**\n- Formats:\n  - FLAC\n\no   Ships sail\n    far\no   Trains run\n"
    )
    assert [(one.text, one.kind, one.depth) for one in found] == [
        ("**Linux**", "entry", 1),
        ("Formats:", "entry", 1),
        ("FLAC", "entry", 2),
        ("Ships sail far", "entry", 0),
        ("Trains run", "entry", 0),
    ]


def test_lines_of_a_list_without_bullets_are_entries_and_wrapped_lines_are_a_paragraph() -> None:
    listed = "Linux 5.4 with its headers\nGlibc 2.31\nA compiler for C\nMake"
    wrapped = "The program needs Linux and\nGlibc, a compiler for C and\nMake on every machine"
    clauses = "It needs Linux,\nGNU Make,\nPerl."
    assert [one.text for one in sentences(listed)] == listed.split("\n")
    assert {one.kind for one in sentences(listed)} == {"entry"}
    for text in (wrapped, clauses):
        assert [(one.text, one.kind) for one in sentences(text)] == [
            (" ".join(text.split("\n")), "prose")
        ]


def test_indented_text_is_prose_and_indented_code_is_code() -> None:
    found = sentences(
        "NEEDS:\n\n    Linux >= 3.15\n          >= 5.4 for images\n\n    Older kernels than this are"
        " not supported\n    at all by any release.\n\nText\n\n    if x:\n\n        run(x)\n"
    )
    assert [(one.text, one.kind) for one in found] == [
        ("NEEDS:", "prose"),
        ("Linux >= 3.15\n      >= 5.4 for images", "code"),
        ("Older kernels than this are not supported at all by any release.", "prose"),
        ("Text", "prose"),
        ("if x:\n\n    run(x)", "code"),
    ]
