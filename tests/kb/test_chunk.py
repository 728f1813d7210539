"""Chunking: nothing is lost, sizes hold, structure is kept, and the same document gives the same
chunks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.types.documents import Block, Document
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.ingest.chunk import By, Chunk, chunks
from groundhook.handlers.kb.reading.files import read

WORDS = st.text(alphabet=st.sampled_from("abc défg.!? שלום知识\t"), min_size=1, max_size=60).filter(
    str.strip
)
PARTS = st.one_of(
    WORDS,
    st.builds(
        lambda level, name: f"{'#' * level} {name}",
        st.integers(1, 6),
        st.sampled_from(["One", "Two", "A b c", ""]),
    ),
    st.lists(WORDS, min_size=1, max_size=8).map(
        lambda items: "\n".join("- " + " ".join(item.split()) for item in items)
    ),
    st.lists(WORDS, min_size=1, max_size=12).map(
        lambda lines: "```\n" + "\n".join(lines) + "\n```"
    ),
    st.integers(1, 30).map(
        lambda rows: (
            "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | x{row} |" for row in range(rows))
        )
    ),
    st.integers(1, 400).map(lambda length: "x" * length),
    st.just("[ref]: https://example.com/a"),
)
DOCUMENTS = (
    st.lists(PARTS, min_size=1, max_size=12)
    .map("\n\n".join)
    .filter(lambda text: bool(text.strip()))
)


def words_of(text: str) -> int:
    return len(text.split())


def made(text: str, size: int = 40, overlap: int = 8) -> list[Chunk]:
    return chunks(read(text.encode(), "doc.md"), size=size, overlap=overlap, count=words_of)


@given(DOCUMENTS, st.integers(32, 80), st.integers(0, 60))
def test_every_character_of_a_document_is_in_a_chunk(text: str, size: int, overlap: int) -> None:
    document = read(text.encode(), "doc.md")
    covered = [False] * len(document.text)
    for chunk in chunks(document, size=size, overlap=overlap, count=embedding_tokens):
        covered[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)
    assert [
        char
        for char, there in zip(document.text, covered, strict=True)
        if not there and not char.isspace()
    ] == []


@given(DOCUMENTS, st.integers(32, 80), st.integers(0, 60))
def test_no_chunk_is_larger_than_the_size(text: str, size: int, overlap: int) -> None:
    found = chunks(
        read(text.encode(), "doc.md"), size=size, overlap=overlap, count=embedding_tokens
    )
    assert max(embedding_tokens(chunk.content) for chunk in found) <= size


@given(DOCUMENTS, st.integers(0, 60))
@example(
    "# One\n\n?\n\n?\n\n?\n\n?ééé\n\n| a | b |\n|---|---|\n| 0 | x0 |\n\n?\n\n"
    + "x" * 375
    + "\n\n[ref]: https://example.com/a",
    15,
)
def test_chunks_follow_the_document_and_hold_its_text(text: str, overlap: int) -> None:
    document = read(text.encode(), "doc.md")
    found = chunks(document, size=32, overlap=overlap, count=embedding_tokens)
    assert found == chunks(document, size=32, overlap=overlap, count=embedding_tokens)
    assert [chunk.end for chunk in found] == sorted({chunk.end for chunk in found})
    assert all(chunk.content.endswith(document.text[chunk.start : chunk.end]) for chunk in found)
    assert all(chunk.content.strip() for chunk in found)


@given(st.binary(max_size=300))
def test_a_text_of_any_characters_is_chunked(raw: bytes) -> None:
    text = raw.decode("latin-1").replace("\0", "") + "end"
    document = read(text.encode(), "doc.txt")
    joined = "".join(
        chunk.content for chunk in chunks(document, size=32, overlap=0, count=embedding_tokens)
    )
    assert "".join(joined.split()) == "".join(document.text.split())


def test_sections_are_not_mixed_and_know_their_headings() -> None:
    found = made(
        "# Guide\n\n## Install\n\nRun pip.\n\n## Use\n\n### First\n\nOpen it.\n\n# Other\n\nMore."
    )
    assert [(chunk.headings, chunk.content.split()[-1]) for chunk in found] == [
        (("Guide", "Install"), "pip."),
        (("Guide", "Use", "First"), "it."),
        (("Other",), "More."),
    ]


def test_a_heading_is_never_alone_when_text_follows() -> None:
    found = made("# A heading of some words\n\n" + "Word after word. " * 13, size=40)
    assert found[0].content.startswith("# A heading")
    assert "Word after word." in found[0].content


def test_a_table_that_fits_stays_whole_behind_a_long_paragraph() -> None:
    table = "| name | price |\n|---|---|\n| pear | 3 |\n| plum | 4 |"
    found = made(f"{'word ' * 30}\n\n{table}", size=40)
    assert [chunk.content for chunk in found][-1] == table


def test_the_rest_of_a_long_table_begins_with_its_header() -> None:
    found = made(
        "| name | price |\n|---|---|\n" + "\n".join(f"| item{n} | {n} |" for n in range(30))
    )
    assert len(found) > 3
    assert all(chunk.content.startswith("| name | price |\n|---|---|\n") for chunk in found)
    assert sum(chunk.content.count("item") for chunk in found) == 30


def test_text_that_flows_on_repeats_the_end_of_the_chunk_before() -> None:
    sentences = [f"Sentence number {n} is here." for n in range(20)]
    first, second = made(" ".join(sentences), size=40, overlap=8)[:2]
    assert first.content.split(". ")[-1].rstrip(".") == second.content.split(". ")[0]
    assert second.start < first.end


def test_a_pdf_page_is_known_to_its_chunks() -> None:
    text = "first page\n\nsecond page"
    document = Document(
        "t", text, (Block("paragraph", 0, 10, page=1), Block("paragraph", 12, 23, page=2))
    )
    assert [chunk.page for chunk in chunks(document, size=32, overlap=0, count=lambda _: 20)] == [
        1,
        2,
    ]


GUIDE = "# Guide\n\nOne.\n\nTwo.\n\n## Install\n\n- a\n- b\n\nThree.\n"


def by(document: Document, by: By, size: int = 100) -> list[tuple[str, tuple[str, ...]]]:
    made = chunks(document, size=size, overlap=0, count=embedding_tokens, by=by)
    return [(chunk.content, chunk.headings) for chunk in made]


def test_no_chunk_goes_beyond_what_it_is_cut_by() -> None:
    document = read(GUIDE.encode(), "a.md")
    install = ("Guide", "Install")
    assert by(document, "heading") == [
        ("# Guide\n\nOne.\n\nTwo.", ("Guide",)),
        ("## Install\n\n- a\n- b\n\nThree.", install),
    ]
    assert by(document, "paragraph") == [
        ("# Guide\n\nOne.", ("Guide",)),
        ("Two.", ("Guide",)),
        ("## Install\n\n- a\n- b", install),
        ("Three.", install),
    ]
    assert by(document, "size") == by(document, "page") == [(GUIDE.strip(), ("Guide",))]
    small = by(document, "size", 9)
    assert [headings for _, headings in small] == [("Guide",), install]
    assert small[1][0].endswith("Three.")


def test_a_section_that_goes_on_is_cut_at_the_page_and_a_heading_at_its_foot_goes_with_the_next() -> (
    None
):
    text = "# Leave\n\nThirty days.\n\nIn parts.\n\n# Illness\n\nCall us."
    blocks = [
        ("heading", 0, 7, 1),
        ("paragraph", 9, 21, 1),
        ("paragraph", 23, 32, 2),
        ("heading", 34, 43, 2),
        ("paragraph", 45, 53, 3),
    ]
    names = {0: "Leave", 34: "Illness"}
    document = Document(
        "A",
        text,
        tuple(
            Block(
                kind,  # type: ignore[arg-type]
                start,
                end,
                level=int(kind == "heading"),
                name=names.get(start, ""),
                page=page,
            )
            for kind, start, end, page in blocks
        ),
    )
    cut = chunks(document, size=100, overlap=10, count=embedding_tokens)
    assert [(chunk.content, chunk.headings, chunk.page) for chunk in cut] == [
        ("# Leave\n\nThirty days.", ("Leave",), 1),
        ("In parts.", ("Leave",), 2),
        ("# Illness\n\nCall us.", ("Illness",), 3),
    ]


def test_cut_by_page_a_chunk_is_of_one_page() -> None:
    text = "One.\n\nTwo.\n\nThree.\n"
    pages = [(0, 4, 1), (6, 10, 1), (12, 18, 2)]
    document = Document(
        "A", text, tuple(Block("paragraph", start, end, page=page) for start, end, page in pages)
    )
    assert [
        (chunk.content, chunk.page)
        for chunk in chunks(document, size=100, overlap=0, count=embedding_tokens, by="page")
    ] == [
        ("One.\n\nTwo.", 1),
        ("Three.", 2),
    ]


@pytest.mark.parametrize("line", ["a" * 40, "知识", "One sentence. ", "no end of it "])
def test_a_text_of_one_endless_line_is_counted_a_few_times_over_and_no_more(line: str) -> None:
    text = (line * 400_000)[:400_000]
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return embedding_tokens(part)

    document = Document("A", text, (Block("paragraph", 0, len(text)),))
    cut = chunks(document, size=300, overlap=30, count=count)
    assert counted <= 4 * len(text)
    assert max(embedding_tokens(chunk.content) for chunk in cut) <= 300
    assert min(embedding_tokens(chunk.content) for chunk in cut[:-1]) >= 100
