"""Markdown to documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from handlers.kb.reading.document import Block, Document, Kind
from handlers.kb.reading.front_matter import front_matter
from handlers.kb.reading.text import decoded, paragraphs, stem

if TYPE_CHECKING:
    from markdown_it.token import Token

_KINDS: Mapping[str, Kind] = {
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}


def markdown(data: bytes, name: str) -> Document:
    return from_markdown(decoded(data, name), name)


def from_markdown(text: str, name: str, *, front: bool = True) -> Document:
    """The document in Markdown; `title` and `url` may stand in its front matter, if it can have one (`front`). Raises
    IngestError."""
    said, begin = front_matter(text, name) if front else ({}, 0)
    blocks = markdown_blocks(text, begin)
    headings = [block for block in blocks if block.kind == "heading" and block.name]
    named = str(said["title"].value) if said.get("title") and said["title"].value else ""
    title = named or (min(headings, key=lambda block: block.level).name if headings else stem(name))
    url = str(said["url"].value) if said.get("url") and said["url"].value else ""
    return Document(title, text, blocks, url, said)


def markdown_blocks(text: str, begin: int) -> tuple[Block, ...]:
    """The parts of a Markdown text from `begin` on."""
    starts = [begin]
    for line in text[begin:].split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(text)
    from markdown_it import MarkdownIt  # a host that reads no documents does without

    tokens = MarkdownIt("commonmark").enable("table").parse(text[begin:])
    blocks: list[Block] = []
    reached = begin
    for index, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if start < reached:
            continue
        blocks += paragraphs(text, reached, start)  # link definitions and the like, which make no token
        reached = end
        if token.type == "heading_open":
            blocks.append(Block("heading", start, end, level=int(token.tag[1]), name=_words(tokens[index + 1])))
        elif token.type in _KINDS:
            blocks.append(Block(_KINDS[token.type], start, end))
    blocks += paragraphs(text, reached)
    return tuple(blocks)


def _words(inline: Token) -> str:
    """The text of a heading without its markup."""
    parts = [" " if child.type == "softbreak" else child.content for child in inline.children or ()]
    return " ".join("".join(parts).split())
