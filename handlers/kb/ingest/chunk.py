"""Cut documents into chunks: by structure, and by size where a part is too large. Pure.

A chunk is a range of the document's text within one section. Paragraphs, lists, tables and code
stay whole if they fit; a larger block is cut at lines, then sentences, then words, then anywhere. A
chunk that continues the text of the previous one begins with the end of that one (`overlap`); later
parts of a table begin with its header. Headings without text of their own join the block that
follows them. `by` is the unit that a chunk never exceeds: `heading`, a section, and in it a page of
a paginated document, so that a citation can name its page; `paragraph`, a paragraph, list, table or
code block; `page`; `size`, the whole document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal

from groundhook.core.language.sentences import spans
from groundhook.core.types.documents import Block, BlockKind, Document

_Count = Callable[[str], int]
By = Literal["heading", "paragraph", "page", "size"]
# (text, start, end) → where the parts of that range end
_Rule = Callable[[str, int, int], list[int]]
_FLOWING = frozenset({"paragraph", "list"})
_LONG = 32  # characters for each token of a chunk: a longer range is cut without being counted


def _ends(pattern: str) -> _Rule:
    compiled = re.compile(pattern)
    return lambda text, start, end: [found.end() for found in compiled.finditer(text, start, end)]


def _sentences(text: str, start: int, end: int) -> list[int]:
    """Return where the sentences end, including the blanks after them."""
    return [begin for begin, _ in spans(text, start, end)[1:]]


_LINES, _WORDS = _ends(r"[^\n]*\n+|[^\n]+"), _ends(r"(?:(?<!\s)\s++)?\S++\s*+")


@dataclass(frozen=True)
class Chunk:
    """Characters `start` to `end` of the document. `content` is that text, after the table's header
    if it continues a table. `headings` are ordered from the outermost to the innermost; `page` is
    the page on which the text begins. `gap` is the whitespace before it in the document, which is
    in no chunk."""

    start: int
    end: int
    content: str
    headings: tuple[str, ...] = ()
    page: int = 0
    gap: str = ""


@dataclass(frozen=True)
class _Piece:
    """A range that is not cut further; it ends where the next one begins. A later part of a table
    has the table's `header`, of `lead` tokens."""

    start: int
    end: int
    kind: BlockKind
    tokens: int
    page: int = 0
    header: str = ""
    lead: int = 0


@dataclass(frozen=True)
class _Stretch:
    """Blocks that may share chunks, up to `end`. `headings` are (offset, headings above the text
    from there on), sorted by offset."""

    blocks: tuple[Block, ...]
    end: int
    headings: tuple[tuple[int, tuple[str, ...]], ...]

    def headings_at(self, start: int) -> tuple[str, ...]:
        return self.headings[
            max(0, bisect_right(self.headings, start, key=lambda known: known[0]) - 1)
        ][1]


def chunks(
    document: Document, *, size: int, overlap: int, count: _Count, by: By = "heading"
) -> list[Chunk]:
    """Return the document as chunks of at most `size` tokens, counted by `count`, in document
    order. The overlap is at most half a chunk. The limit is exact if a text has no more tokens than
    the sum of its parts, which holds for tokenizers that split at words."""
    cutter = _Cutter(document.text, size, min(overlap, size // 2), count)
    sections = list(_sections(document))
    stretches = (
        _split_at_pages(sections)
        if by in ("heading", "paragraph")
        else _join(sections, pages=by == "page")
    )
    return [
        chunk
        for stretch in stretches
        for chunk in cutter.stretch(stretch, alone=by == "paragraph")
        if chunk.start < chunk.end  # else blanks, such as those before a definition of a link
    ]


def _split_at_pages(sections: Sequence[_Stretch]) -> Iterator[_Stretch]:
    """Yield each section as one stretch for each of its pages. A heading at the foot of a page
    joins the next page."""
    for section in sections:
        runs: list[list[Block]] = []
        for block in section.blocks:
            turned = (
                runs
                and block.page != runs[-1][-1].page
                and any(other.kind != "heading" for other in runs[-1])
            )
            if not runs or turned:
                runs.append([])
            runs[-1].append(block)
        ends = [*(run[0].start for run in runs[1:]), section.end]
        yield from (
            _Stretch(tuple(run), end, section.headings) for run, end in zip(runs, ends, strict=True)
        )


def _join(sections: Sequence[_Stretch], *, pages: bool) -> Iterator[_Stretch]:
    """Yield all sections as one stretch, or as one for each page."""
    headings = tuple(known for section in sections for known in section.headings)
    blocks = [block for section in sections for block in section.blocks]
    runs = [tuple(run) for _, run in groupby(blocks, key=lambda block: block.page if pages else 0)]
    for index, run in enumerate(runs):
        end = runs[index + 1][0].start if index + 1 < len(runs) else sections[-1].end
        yield _Stretch(run, end, headings)


def _sections(document: Document) -> Iterator[_Stretch]:
    """Yield the text under each heading. A heading is the first block of its section; headings with
    no text between them share a section."""
    path: list[tuple[int, str]] = []
    section: list[Block] = []
    for block in document.blocks:
        if block.kind == "heading":
            if any(other.kind != "heading" for other in section):
                yield _section(path, section, block.start)
                section = []
            path = [(level, name) for level, name in path if level < block.level] + [
                (block.level, block.name)
            ]
        section.append(block)
    if section:
        yield _section(path, section, len(document.text))


def _section(path: Sequence[tuple[int, str]], blocks: Sequence[Block], end: int) -> _Stretch:
    return _Stretch(
        tuple(blocks), end, ((blocks[0].start, tuple(name for _, name in path if name)),)
    )


class _Cutter:
    """Cuts one text."""

    def __init__(self, text: str, size: int, overlap: int, count: _Count) -> None:
        self._text = text
        self._size = size
        self._overlap = overlap
        self._count = count

    def stretch(self, stretch: _Stretch, *, alone: bool) -> Iterator[Chunk]:
        """Yield the chunks of a stretch. `alone`: a chunk has one block, and headings before it."""
        held: list[_Piece] = []
        for piece in self._pieces(stretch.blocks, stretch.end):
            full = held and _tokens(held) + piece.tokens > self._size
            if full or (alone and held and held[-1].kind != "heading"):
                yield self._chunk(held, stretch)
                held = self._tail(held, piece) if full and not alone else []
            held.append(piece)
        if held:
            yield self._chunk(held, stretch)

    def _pieces(self, blocks: Sequence[Block], end: int) -> Iterator[_Piece]:
        """Yield whole blocks if they fit. A block after a heading is cut rather than separated from
        it."""
        before = 0  # tokens of headings directly before this block
        for index, block in enumerate(blocks):
            stop = blocks[index + 1].start if index + 1 < len(blocks) else end
            tokens = self._tokens(block.start, stop)
            if before + tokens <= self._size:
                yield _Piece(block.start, stop, block.kind, tokens, block.page)
            else:
                yield from self._parts(block, stop)
            before = before + tokens if block.kind == "heading" else 0

    def _parts(self, block: Block, stop: int) -> Iterator[_Piece]:
        rules = (
            (_sentences, _LINES, _WORDS)
            if block.kind == "paragraph"
            else (_LINES, _sentences, _WORDS)
        )
        header, lead = self._table_header(block) if block.kind == "table" else ("", 0)
        for start, end, tokens in self._cut(block.start, stop, rules, self._size - lead):
            later = start >= block.start + len(header)
            yield _Piece(
                start,
                end,
                block.kind,
                tokens,
                block.page,
                header if later else "",
                lead if later else 0,
            )

    def _cut(
        self, start: int, end: int, rules: Sequence[_Rule], most: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, tokens) of parts of at most `most` tokens, by the first rule that cuts
        the range finely enough."""
        for part_start, part_end in self._split(start, end, rules[0] if rules else None):
            tokens = self._tokens(part_start, part_end)
            if tokens <= most or part_end - part_start <= 1:
                yield part_start, part_end, tokens
            else:
                yield from self._cut(part_start, part_end, rules[1:], most)

    def _split(self, start: int, end: int, rule: _Rule | None) -> list[tuple[int, int]]:
        """Divide a range into parts. Without a rule, a part has a quarter as many characters as a
        chunk has tokens, at most half the range."""
        if rule is None:
            step = max(1, min(self._size // 4, (end - start + 1) // 2))
            ends = list(range(start + step, end, step))
        else:
            ends = [stop for stop in rule(self._text, start, end) if start < stop < end]
        return list(zip([start, *ends], [*ends, end], strict=True))

    def _tokens(self, start: int, end: int) -> int:
        """Count the tokens of a range."""
        # Only the characters of a range that is too long for any chunk: counting the tokens of
        # megabytes at every step takes minutes.
        if end - start > _LONG * self._size:
            return end - start
        return self._count(self._text[start:end])

    def _tail(self, held: Sequence[_Piece], following: _Piece) -> list[_Piece]:
        """Return the end of a chunk that the next one repeats if running text continues: whole
        sentences, or words of a sentence that is too long to repeat."""
        room = min(self._overlap, self._size - following.tokens)
        flowing = list(takewhile(lambda piece: piece.kind in _FLOWING, reversed(held)))
        if not flowing or following.kind not in _FLOWING:
            return []
        first, last = flowing[-1], flowing[0]
        for rule in (_sentences, _WORDS):
            start, tokens = last.end, 0
            for part_start, part_end in reversed(self._split(first.start, last.end, rule)):
                more = self._count(self._text[part_start:part_end])
                if tokens + more > room or part_start == held[0].start:
                    break
                start, tokens = part_start, tokens + more
            if start < last.end:
                page = next(piece.page for piece in flowing if piece.start <= start)
                return [_Piece(start, last.end, last.kind, tokens, page)]
        return []

    def _table_header(self, block: Block) -> tuple[str, int]:
        """Return the first two lines of a table and their tokens; nothing if they would fill more
        than a third of each chunk."""
        header = "".join(self._text[block.start : block.end].splitlines(keepends=True)[:2])
        tokens = self._count(header)
        return (header, tokens) if tokens <= self._size // 3 else ("", 0)

    def _chunk(self, held: Sequence[_Piece], stretch: _Stretch) -> Chunk:
        text = self._text[held[0].start : held[-1].end]
        start = held[0].start + len(text) - len(text.lstrip())
        before = start
        while before and self._text[before - 1].isspace():
            before -= 1
        content, headings = held[0].header + text.strip(), stretch.headings_at(start)
        page = next((piece.page for piece in held if piece.kind != "heading"), held[0].page)
        return Chunk(
            start, start + len(text.strip()), content, headings, page, self._text[before:start]
        )


def _tokens(held: Sequence[_Piece]) -> int:
    return held[0].lead + sum(piece.tokens for piece in held)
