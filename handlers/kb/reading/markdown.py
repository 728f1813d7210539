"""Markdown to documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from groundhook.handlers.kb.reading.front_matter import front_matter
from groundhook.handlers.kb.reading.text import decoded, paragraphs, stem
from groundhook.host.core.types.documents import Block, Document, Kind

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
    """The document in Markdown. What somebody wrote (`front`) may say `title` and `url` in front
    matter, and its comments are left out. Raises IngestError."""
    said, begin = front_matter(text, name) if front else ({}, 0)
    if front and "<!--" in text:
        text = _without_comments(text, begin)
    blocks = markdown_blocks(text, begin)
    headings = [block for block in blocks if block.kind == "heading" and block.name]
    named = str(said["title"].value) if said.get("title") and said["title"].value else ""
    title = named or (min(headings, key=lambda block: block.level).name if headings else stem(name))
    url = str(said["url"].value) if said.get("url") and said["url"].value else ""
    return Document(title, text, blocks, url, said)


def markdown_blocks(text: str, begin: int) -> tuple[Block, ...]:
    """The parts of a Markdown text from `begin` on."""
    tokens, starts = _parsed(text, begin)
    blocks: list[Block] = []
    reached = begin
    for index, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if start < reached:
            continue
        blocks += paragraphs(
            text, reached, start
        )  # link definitions and the like, which make no token
        reached = end
        if token.type == "heading_open":
            blocks.append(
                Block(
                    "heading", start, end, level=int(token.tag[1]), name=_words(tokens[index + 1])
                )
            )
        elif token.type in _KINDS:
            blocks.append(Block(_KINDS[token.type], start, end))
    blocks += paragraphs(text, reached)
    return tuple(blocks)


def _parsed(text: str, begin: int) -> tuple[list[Token], list[int]]:
    """What stands from `begin` on, and where each of its lines begins."""
    from markdown_it import MarkdownIt  # a host that reads no documents does without

    starts = [begin]
    for line in text[begin:].split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(text)
    return MarkdownIt("commonmark").enable("table").parse(text[begin:]), starts


def _without_comments(text: str, begin: int) -> str:
    """Comments are for whoever edits a page: who reads it does not see them. What looks like one in
    code is code."""
    tokens, starts = _parsed(text, begin)
    kept: list[str] = []
    reached = 0
    for token in tokens:
        for comment in _comments(token):
            assert token.map is not None
            first, last = token.map
            # Its lines may begin with what the quotation or the list around them begins with.
            written = re.compile(re.escape(comment).replace("\\\n", "\n[ \\t>]*"))
            if at := written.search(text, max(reached, starts[first]), starts[last]):
                kept.append(text[reached : at.start()])
                reached = at.end()
    return "".join([*kept, text[reached:]])


def _comments(token: Token) -> Iterator[str]:
    if token.type == "inline":
        inner = (child.content for child in token.children or () if child.type == "html_inline")
        yield from (content for content in inner if content.startswith("<!--"))
    elif token.type == "html_block":
        end = 0
        while (start := token.content.find("<!--", end)) >= 0 and (
            end := token.content.find("-->", start + 2) + 3
        ) > 2:
            yield token.content[start:end]


def _words(inline: Token) -> str:
    """The text of a heading without its markup."""
    parts = [" " if child.type == "softbreak" else child.content for child in inline.children or ()]
    return " ".join("".join(parts).split())
