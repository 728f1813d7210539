"""Files to documents: what a file says as plain text, and where its parts begin and end.

Markdown, HTML (as Markdown), PDF and plain text. A block is a range of the document's text, so nothing is lost on the way
and every passage can say which characters it is. It refuses what it cannot read, with an IngestError that names the file; it
knows nothing of chunks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from host.errors import IngestError
from host.pdf import read_pdf

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

Kind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True)
class Block:
    """A part of a document: characters `start` to `end` of its text. Headings have a `level` of 1-6 and their `name`; `page`
    counts from 1 where there are pages."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    name: str = ""
    page: int = 0


@dataclass(frozen=True)
class Document:
    """A file as text. `url` is the address it gives for itself, or empty."""

    title: str
    text: str
    blocks: tuple[Block, ...]
    url: str = ""


def read(data: bytes, name: str) -> Document:
    """The document in the bytes of the file `name`, whose suffix says what it is. Raises IngestError."""
    suffix = Path(name).suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise IngestError(
            f"{name!r} was not added: files ending in {suffix or 'nothing'!r} cannot be read",
            hint=f"these can: {', '.join(sorted(READERS))}",
        )
    document = reader(data, name)
    if not any(document.text[block.start : block.end].strip() for block in document.blocks):
        raise IngestError(f"{name!r} was not added: it is empty", hint="nothing to search for in it")
    return document


def readable(name: str) -> bool:
    """Whether files that end like this one can be read."""
    return Path(name).suffix.lower() in READERS


# ---------------------------------------------------------------------------------------------------- text


_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def _decoded(data: bytes, name: str) -> str:
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise IngestError(
            f"{name!r} was not added: byte {exc.start} is not {encoding.upper()}", hint="save it as UTF-8, or remove it if binary"
        ) from exc
    if "\0" in text:
        raise IngestError(
            f"{name!r} was not added: it is binary, not text", hint="its ending says otherwise; rename or leave it out"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _paragraphs(text: str, start: int = 0, end: int | None = None, page: int = 0) -> Iterator[Block]:
    """Runs of lines between blank lines."""
    for found in re.compile(r"\S.*?(?=\n[ \t]*\n|\Z)", re.DOTALL).finditer(text, start, len(text) if end is None else end):
        yield Block("paragraph", found.start(), found.end(), page=page)


def _plain(data: bytes, name: str) -> Document:
    text = _decoded(data, name)
    return Document(_stem(name), text, tuple(_paragraphs(text)))


def _stem(name: str) -> str:
    return Path(name).stem.replace("_", " ").strip() or name


# ---------------------------------------------------------------------------------------------------- Markdown

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
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def _markdown(data: bytes, name: str) -> Document:
    return _from_markdown(_decoded(data, name), name)


def _from_markdown(text: str, name: str) -> Document:
    front = _FRONT_MATTER.match(text)
    said = _front_matter(front[1]) if front else {}
    blocks = _markdown_blocks(text, front.end() if front else 0)
    headings = [block for block in blocks if block.kind == "heading" and block.name]
    title = said.get("title") or (min(headings, key=lambda block: block.level).name if headings else _stem(name))
    return Document(title, text, blocks, said.get("url", ""))


def _front_matter(lines: str) -> dict[str, str]:
    """`title` and `url` of the lines before a Markdown document; what else stands there is not read."""
    found = re.findall(r"^(title|url):[ \t]*(.+?)[ \t]*$", lines, re.MULTILINE)
    return {key: value.strip("\"'") for key, value in found}


def _markdown_blocks(text: str, begin: int) -> tuple[Block, ...]:
    starts = [begin]
    for line in text[begin:].split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text[begin:])
    blocks: list[Block] = []
    reached = begin
    for index, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if start < reached:
            continue
        blocks += _paragraphs(text, reached, start)  # link definitions and the like, which make no token
        reached = end
        if token.type == "heading_open":
            blocks.append(Block("heading", start, end, level=int(token.tag[1]), name=_words(tokens[index + 1])))
        elif token.type in _KINDS:
            blocks.append(Block(_KINDS[token.type], start, end))
    blocks += _paragraphs(text, reached)
    return tuple(blocks)


def _words(inline: Token) -> str:
    """The text of a heading without its markup."""
    parts = [" " if child.type == "softbreak" else child.content for child in inline.children or ()]
    return " ".join("".join(parts).split())


# ---------------------------------------------------------------------------------------------------- HTML


NO_TEXT = ("script", "style", "noscript", "template", "svg", "head")


def _html(data: bytes, name: str) -> Document:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    canonical = soup.find("link", rel="canonical")
    address = str(canonical.get("href") or "") if canonical else ""
    document = _from_markdown(_markdown_of(soup, drop=(*NO_TEXT, "nav")), name)
    url = address if address.startswith(("http://", "https://")) else ""
    return Document(title or document.title, document.text, document.blocks, url)


def markdown_of(html: str) -> str:
    """A piece of HTML as Markdown, without what is no text; images are left out."""
    from bs4 import BeautifulSoup

    return _markdown_of(BeautifulSoup(html, "html.parser"), drop=NO_TEXT)


def _markdown_of(soup: BeautifulSoup, drop: Sequence[str]) -> str:
    from markdownify import MarkdownConverter

    for tag in soup(list(drop)):
        tag.decompose()
    text: str = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(soup)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


# ---------------------------------------------------------------------------------------------------- PDF


def _pdf(data: bytes, name: str) -> Document:
    try:
        pdf = read_pdf(data)
    except IngestError as exc:
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc
    text, blocks = "", list[Block]()
    for number, page in enumerate(pdf.pages, 1):
        start = len(text)
        text += page + "\n\n"
        blocks += _paragraphs(text, start, page=number)
    return Document(pdf.title or _stem(name), text, tuple(blocks))


Reader = Callable[[bytes, str], Document]
READERS: Mapping[str, Reader] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".mdx": _markdown,
    ".txt": _plain,
    ".text": _plain,
    ".rst": _plain,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
}
