"""What a page shows of the blocks of Markdown: escaped characters as themselves, entities as their
characters, no soft hyphens, roles of MyST as their texts, links with the addresses that are defined
elsewhere. Blocks are found first, since an escaped character is what keeps a line from being a
list."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from groundhook.core.types.documents import Block

_FENCE = re.compile(r"[ \t>]*+(?>(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*)(`{3,}|~{3,})")
_LINE = re.compile(r"\S[^\n]*+")
_TARGET = re.compile(r"(?<=\S)[ \t]{0,20}<[^<>]{1,300}+>$")
_PIECE = re.compile(
    # a role of MyST: "{ref}`title <target>`"
    r"(?P<role>(?<![\w`])\{[A-Za-z][\w:.+-]{0,40}+\}`[~!]?(?P<said>[^`\n]{1,300}+)`(?!`))"
    # code and addresses are kept
    r"|(?P<kept>(?<!`)`(?!`)(?>(?:[^`\n]|\n(?![ \t]*[\n*+>|-])){1,2000})`(?!`)"
    r"|(?<!`)``(?!`)(?>(?:[^`\n]|`(?!`)){1,2000})``(?!`)"
    r"|<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+>"
    # no heading, and no code
    r"|^[ \t>]*+\\(?:`{3}|~{3}))"
    r"|(?P<before>^[ \t>]*+)\\(?P<signs>\#{1,6})[ \t]"
    r"|\\(?P<char>[!-/:-@\[-`{}~])"
    r"|(?P<entity>&(?:[A-Za-z][A-Za-z0-9]{1,31}|\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6});)"
    r"|\\(?P<broken>\n)"
    r"|(?P<hyphen>\u00ad)"
    r"|(?<![\]\\])\[(?P<text>[^\[\]\n]{1,300}+)\](?:\[(?P<label>[^\[\]\n]{0,200}+)\])?(?![\[(:])",
    re.MULTILINE,
)


def show(
    text: str, begin: int, blocks: Sequence[Block], links: Mapping[str, str]
) -> tuple[str, tuple[Block, ...]]:
    """Return the text as it is shown from offset `begin` on, with its blocks. `links` has the
    addresses of labels, in upper case; lines that define them are between blocks, and omitted."""

    def between(start: int, end: int) -> str:
        return _LINE.sub("", text[start:end]) if links else text[start:end]

    parts = [text[:begin]]
    shown: list[Block] = []
    length = reached = begin
    for block in blocks:
        space = between(reached, block.start)
        inner = text[block.start : block.end]
        inner = inner if block.kind == "code" else "".join(_shown(inner, block.kind, links))
        start = length + len(space)
        length = start + len(inner)
        shown.append(replace(block, start=start, end=length))
        parts += [space, inner]
        reached = block.end
    return "".join([*parts, between(reached, len(text))]), tuple(shown)


def _shown(text: str, kind: str, links: Mapping[str, str]) -> Iterator[str]:
    """Yield a block in parts, its fences of code as they are."""

    def written(piece: re.Match[str]) -> str:
        return _written(piece, kind, links)

    if kind != "list" or not ("```" in text or "~~~" in text):
        yield _PIECE.sub(written, text)
        return
    fence, plain = "", ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not fence and not found:
            plain += line
            continue
        yield _PIECE.sub(written, plain)
        yield line
        plain = ""
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
    yield _PIECE.sub(written, plain)


def _written(piece: re.Match[str], kind: str, links: Mapping[str, str]) -> str:
    match piece.lastgroup:
        case "signs":  # a blank of another kind keeps the line from being a heading
            return f"{piece['before']}{piece['signs']}\u00a0"
        case "role":
            return _TARGET.sub("", piece["said"])
        case "char":
            return piece[0] if piece["char"] == "|" and kind == "table" else piece["char"]
        case "entity":
            decoded = html.unescape(piece[0])
            return piece[0] if kind == "table" and decoded == "|" else decoded.replace("\u00ad", "")
        case "broken":
            return "\n"
        case "hyphen":
            return ""
        case "text" | "label":
            inner = _PIECE.sub(lambda inner: _written(inner, kind, links), piece["text"])
            return _link(piece, inner, links)
    return piece[0]


def _link(piece: re.Match[str], shown: str, links: Mapping[str, str]) -> str:
    """Return a link by its label with its address, or without it if it is on the same page."""
    label = " ".join((piece["label"] or piece["text"]).split()).upper()
    if label not in links:
        return f"[{shown}]" + ("" if piece["label"] is None else f"[{piece['label']}]")
    address = links[label]
    return shown if address.startswith("#") else f"[{shown}]({address})"
