"""An answer's Markdown as a closed tree of blocks, from which the page makes its nodes. Pure.

A block is `{"type": …}`, one of `p h ul ol li quote code table tr cell hr`, with its children, or
an inline one of `em strong del codespan link ref br`; text is a string. HTML stays text and images
are not loaded. An address is a link only if it is that of a source of the turn; another one is
shown as text with its host, so that an answer leads nowhere that the turn has not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from groundhook.core.json_lines import as_json
from groundhook.core.types.chats import KeptAnswer

_Block = dict[str, Any]
_Node = _Block | str

HEAVIEST = 100_000  # characters that are parsed; a heavier text is shown as it is written
LIGHT = 4_000  # characters that are parsed within 50 ms, however hostile
CELL = 4  # a cell that the parser adds to a short row weighs as much as so many characters
# Characters around the number of a marker in the text that is parsed. They are private, so an
# answer that contains them loses nothing that anybody could read.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_LINE_END = re.compile(r"\r\n?|\n")
_OPENING = {
    "paragraph_open": "p",
    "heading_open": "h",
    "bullet_list_open": "ul",
    "ordered_list_open": "ol",
    "list_item_open": "li",
    "blockquote_open": "quote",
    "table_open": "table",
    "tr_open": "tr",
    "th_open": "cell",
    "td_open": "cell",
    "em_open": "em",
    "strong_open": "strong",
    "s_open": "del",
    "link_open": "link",
}
_IGNORED = {"thead_open", "tbody_open", "thead_close", "tbody_close"}


@dataclass(frozen=True)
class Tail:
    """The part of a growing answer that may still change: `blocks` are complete before it, and it
    begins at the character `start`."""

    blocks: int = 0
    start: int = 0


_WHOLE = Tail()


def written(
    answer: KeptAnswer, tail: Tail = _WHOLE
) -> tuple[str, list[tuple[int, str]], list[str]]:
    """Return what `parsed` takes for the tail of an answer: its text, the markers with their places
    in it, and the addresses of the sources of the turn."""
    places = ((at, each.marker) for each in answer.citations for at in each.places)
    marks = sorted((at - tail.start, marker) for at, marker in places if at >= tail.start)
    return answer.content[tail.start :], marks, _addresses(answer)


def parsed(
    text: str, marks: Sequence[tuple[int, str]], addresses: Sequence[str]
) -> tuple[list[_Block], int, int]:
    """Return the blocks of a text, how many of them are complete when more text follows, and where
    the others begin."""
    if weight(text) > HEAVIEST:
        return [plain_block(text)], 0, 0
    numbered, markers, starts = _with_numbers(text, marks)
    tokens = _parser().parse(numbered)
    blocks = _Tree(markers, frozenset(addresses)).blocks(tokens)
    lines = [token.map[0] for token in tokens if token.level == 0 and token.map and _begins(token)]
    if lines and lines[-1] == len(starts) - 1:  # what is now a block may become text of the last
        lines.pop()
    return (blocks, len(lines) - 1, starts[lines[-1]]) if len(lines) > 1 else (blocks, 0, 0)


def parsed_json(
    text: str, marks: Sequence[tuple[int, str]], addresses: Sequence[str]
) -> tuple[bytes, int, int]:
    """As `parsed`, with the blocks as JSON on one line."""
    blocks, complete, start = parsed(text, marks, addresses)
    return as_json(blocks).encode(), complete, start


def weight(text: str) -> int:
    """Return for how many characters a text counts. A row of a table gets as many cells as the head
    has, so that a short text may have many."""
    lines = text.splitlines()
    widest = max((each.count("|") + 1 for each in lines if not each.strip("|-: \t>")), default=0)
    return len(text) + (CELL * widest * len(lines) if widest > 1 else 0)


def markdown_blocks(text: str) -> list[_Block]:
    """Return the blocks of a text without citations, such as a passage of a document."""
    return parsed(text, (), ())[0]


def blocks_of_texts(texts: Sequence[str]) -> list[list[_Block]]:
    """Return the blocks of each of several texts."""
    return [markdown_blocks(text) for text in texts]


def plain_block(text: str) -> _Block:
    """Return a text as it is written."""
    return {"type": "p", "children": [text]}


def _begins(token: Token) -> bool:
    return token.nesting == 1 or (token.nesting == 0 and token.type != "inline")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable("image")


def _with_numbers(text: str, marks: Sequence[tuple[int, str]]) -> tuple[str, list[str], list[int]]:
    """Return the text with a number for each marker, the markers, and where each line of what was
    given begins."""
    parts: list[str] = []
    markers: list[str] = []
    done = 0
    for place, marker in marks:
        if place < done:
            continue
        parts += (_clean(text[done:place]), f"{_OPEN}{len(markers)}{_CLOSE}")
        markers.append(marker)
        done = place + len(marker)
    parts.append(_clean(text[done:]))
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    return "".join(parts), markers, starts


def _clean(text: str) -> str:
    return text.replace(_OPEN, "\ufffd").replace(_CLOSE, "\ufffd")


def _addresses(answer: KeptAnswer) -> list[str]:
    """Return the addresses of the sources of a turn, as the parser writes them."""
    items = [citation.item for citation in answer.citations if citation.item is not None]
    items += [item for search in answer.searches for item in search.items]
    items += [item for tool in answer.tools for item in tool.items]
    return sorted({_parser().normalizeLink(item.url) for item in items if item.url})


@dataclass(frozen=True)
class _Tree:
    """Makes blocks of the parser's tokens. `markers` are those whose numbers the text has."""

    markers: Sequence[str]
    addresses: frozenset[str]

    def blocks(self, tokens: Iterable[Token]) -> list[_Block]:
        """Return the tree of all tokens."""
        root: _Block = {"type": "root", "children": []}
        stack = [root]
        for token in tokens:
            if token.type in _IGNORED:
                continue
            if token.nesting == 1:
                made = self._open(token)
                stack[-1]["children"].append(made)
                stack.append(made)
            elif token.nesting == -1:
                self._close(stack)
            else:
                stack[-1]["children"] += self._leaf(token)
        children: list[_Block] = root["children"]
        return children

    def _open(self, token: Token) -> _Block:
        made: _Block = {"type": _OPENING[token.type], "children": []}
        if token.type == "heading_open":
            made["level"] = int(token.tag[1])
        elif token.type == "ordered_list_open":
            made["start"] = int(token.attrs.get("start", 1))
        elif token.type == "link_open":
            made["href"] = str(token.attrs.get("href", ""))
        elif token.type in ("th_open", "td_open"):
            made["head"] = token.tag == "th"
            made["align"] = str(token.attrs.get("style", "")).removeprefix("text-align:")
        elif token.type == "paragraph_open" and token.hidden:
            made["type"] = "tight"
        return made

    def _close(self, stack: list[_Block]) -> None:
        done = stack.pop()
        above: list[_Node] = stack[-1]["children"]
        if done["type"] == "tight":  # of a list without blank lines: its text belongs to the entry
            above[-1:] = done["children"]
        elif done["type"] == "link" and done["href"] not in self.addresses:
            above[-1:] = [*done["children"], *_host(done["href"])]

    def _leaf(self, token: Token) -> Iterator[_Node]:
        match token.type:
            case "inline":
                yield from _joined(self.blocks(token.children or ()))
            case "text":
                yield from self._text(token.content)
            case "softbreak":
                yield "\n"
            case "hardbreak":
                yield {"type": "br"}
            case "code_inline":
                yield {"type": "codespan", "text": self._plain(token.content)}
            case "fence" | "code_block":
                lang = token.info.split(maxsplit=1)[0][:40] if token.info.strip() else ""
                yield {"type": "code", "lang": lang, "text": self._plain(token.content)}
            case "hr":
                yield {"type": "hr"}
            case _:
                yield self._plain(token.content)

    def _text(self, text: str) -> Iterator[_Node]:
        for n, part in enumerate(_MARK.split(text)):
            if n % 2:
                yield {"type": "ref", "marker": self.markers[int(part)]}
            elif part:
                yield part

    def _plain(self, text: str) -> str:
        """Return a text of code, whose markers stay as they are written."""
        return _MARK.sub(lambda found: self.markers[int(found[1])], text)


def _host(address: str) -> list[_Node]:
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""
    return [f" ({host})"] if host else []


def _joined(nodes: Iterable[_Node]) -> list[_Node]:
    """Return the nodes with texts that follow one another as one."""
    joined: list[_Node] = []
    for node in nodes:
        if isinstance(node, str) and joined and isinstance(joined[-1], str):
            joined[-1] += node
        else:
            joined.append(node)
    return joined
