"""Read Markdown: its blocks, by the tokens of markdown-it, and its front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from groundhook.core.types.documents import Block, BlockKind, Document, DocumentField
from groundhook.handlers.kb.reading.dialects import plain_markdown
from groundhook.handlers.kb.reading.front_matter import front_matter
from groundhook.handlers.kb.reading.markdown_shown import show
from groundhook.handlers.kb.reading.text import decode, paragraphs, stem

if TYPE_CHECKING:
    from markdown_it.token import Token

# Names of files that do not say what is in them.
_TELLS_NOTHING = frozenset(
    ("readme", "index", "main", "doc", "docs", "document", "page", "text", "untitled", "file")
)

_WORD = re.compile(r"[^\W_]+")

_KINDS: Mapping[str, BlockKind] = {
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
    """Return the document in a Markdown file. Raises IngestError."""
    text, notes = decode(data, name)
    document = from_markdown(text, name)
    return replace(document, notes=(*notes, *document.notes))


def from_markdown(text: str, name: str, *, front: bool = True) -> Document:
    """Return the document in a Markdown text. A file by an author (`front`) may have `title` and
    `url` in front matter; comments and the marks of dialects are removed. Raises IngestError."""
    if "\r" in text:  # the parser ends lines there, and its numbers of lines count
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    fields, begin = front_matter(text, name) if front else ({}, 0)
    if front and "<!--" in text:
        text = _remove_comments(text, begin)
    if front:
        text = text[:begin] + plain_markdown(text[begin:])
    text, blocks = _shown(text, begin, front=front)
    headings = [block for block in blocks if block.kind == "heading" and block.name]
    title = _value(fields, "title") or " ".join(_title(headings, name).split())
    url = _value(fields, "url")
    return Document(title, text, blocks, url, fields)


def _title(headings: Sequence[Block], name: str) -> str:
    """Return the highest heading: the title of the document. Of several that are as high, the
    first is one if it has a word of the file's name, or the name says nothing; else they are the
    sections of a document without a title, and it is called like its file."""
    if not headings:
        return stem(name)
    highest = min(block.level for block in headings)
    first, *others = [block.name for block in headings if block.level == highest]
    named = stem(name)
    own = _words(named) - _TELLS_NOTHING
    return first if not (others and own) or own & _words(first) else named


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _shown(text: str, begin: int, *, front: bool) -> tuple[str, tuple[Block, ...]]:
    """Return the text as a page shows it, and its blocks."""
    links: dict[str, str] = {}
    blocks = markdown_blocks(text, begin, links if front else None)
    if not blocks:  # nothing but links, whose text is kept
        links, blocks = {}, markdown_blocks(text, begin)
    return show(text, begin, blocks, links)


def _value(fields: Mapping[str, DocumentField], name: str) -> str:
    """Return a field as text; "" for a template, whose value only its program knows."""
    value = str(fields[name].value) if fields.get(name) and fields[name].value else ""
    return "" if "{{" in value or "{%" in value else value


def markdown_blocks(
    text: str, begin: int, links: dict[str, str] | None = None
) -> tuple[Block, ...]:
    """Return the blocks of a Markdown text from offset `begin` on. Lines that define links are
    entered in `links`, as addresses by their labels in upper case, or else kept as paragraphs: they
    have no token."""
    defined: dict[str, Any] = {}
    tokens, starts = _parse(text, begin, defined)
    if links is not None:
        links |= {label: each["href"] for label, each in defined.get("references", {}).items()}
    blocks: list[Block] = []
    reached = begin
    for index, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if start < reached:
            continue
        if not links:
            blocks += paragraphs(text, reached, start)
        reached = end
        if token.type == "heading_open":
            blocks.append(
                Block(
                    "heading",
                    start,
                    end,
                    level=int(token.tag[1]),
                    name=_plain_text(tokens[index + 1]),
                )
            )
        elif token.type in _KINDS:
            blocks.append(Block(_KINDS[token.type], start, end))
    if not links:
        blocks += paragraphs(text, reached)
    return tuple(blocks)


def _parse(
    text: str, begin: int, defined: dict[str, Any] | None = None
) -> tuple[list[Token], list[int]]:
    """Return the tokens of the text from `begin` on, and the offset of each of its lines. What the
    text defines is entered in `defined`."""
    from markdown_it import MarkdownIt  # a host that only searches never loads it

    starts = [begin]
    for line in text[begin:].split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(text)
    return MarkdownIt("commonmark").enable("table").parse(text[begin:], defined), starts


def _remove_comments(text: str, begin: int) -> str:
    """Return the text without HTML comments, which no reader of the page sees. Comments in code are
    code and stay."""
    tokens, starts = _parse(text, begin)
    kept: list[str] = []
    reached = 0
    for token in tokens:
        for comment in _comments(token):
            assert token.map is not None
            first, last = token.map
            # markdown-it strips the prefix of a block quote or list from each line; the source has
            # it.
            written = re.compile(re.escape(comment).replace("\\\n", "\n[ \\t>]*"))
            if at := written.search(text, max(reached, starts[first]), starts[last]):
                kept.append(text[reached : at.start()])
                reached = at.end()
    return "".join([*kept, text[reached:]])


def _comments(token: Token) -> Iterator[str]:
    """Yield the comments in an inline or HTML token."""
    if token.type == "inline":
        inner = (child.content for child in token.children or () if child.type == "html_inline")
        yield from (content for content in inner if content.startswith("<!--"))
    elif token.type == "html_block":
        end = 0
        while (start := token.content.find("<!--", end)) >= 0 and (
            end := token.content.find("-->", start + 2) + 3
        ) > 2:
            yield token.content[start:end]


def _plain_text(inline: Token) -> str:
    """Return the text of a heading without its markup, and without its pictures if it has words."""
    children = inline.children or []
    said = [child for child in children if child.type == "text" and child.content.strip()]
    shown = [child for child in children if not said or child.type != "image"]
    parts = [" " if child.type == "softbreak" else child.content for child in shown]
    return " ".join("".join(parts).split())
