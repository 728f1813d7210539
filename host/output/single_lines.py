"""Items, sources, markers and problems as single lines for a terminal."""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text as Styled

from groundhook.core.types.events import Cited, Failed, Verdict, Warned
from groundhook.core.types.search import Item, SourceType
from groundhook.host.output.flow import one_line

SOURCES: dict[SourceType, str] = {
    "web": "web",
    "kb": "knowledge base",
    "db": "database",
    "api": "API",
}
_PAGE = re.compile(r"#page=(\d+)$")


def problem_line(kind: str, event: Warned | Failed, style: str) -> Styled:
    """Return a warning or an error as one line: `error: file:line:column: message (hint)`."""
    parts = [event.file] + [str(number) for number in (event.line, event.column) if number]
    where = f"{':'.join(parts)}: " if event.file else ""
    hint = f" ({event.hint})" if event.hint else ""
    return Styled.assemble((f"{kind}:", style), " " + one_line(f"{where}{event.message}{hint}"))


def title_of(item: Item) -> str:
    """Return the title of an item, or the beginning of its content."""
    return one_line(item.title or item.content[:200]) or "(untitled)"


def place_of(source: Item | Cited) -> str:
    """Return the place of a source: its address on the web, `collection / document` with its page
    and the sentences of a long passage, `API / entry`, or `model / record`."""
    if source.url.startswith(("http://", "https://")):
        return one_line(source.url)
    parts = (
        (source.collection, source.document_id)
        if source.type in ("kb", "api")
        else (source.model, source.record_id)
    )
    place = one_line(
        " / ".join(str(part) for part in parts if part not in ("", None)) or source.url
    )
    if page := _PAGE.search(source.url):
        place += f", page {page.group(1)}"
    part = source.extent.sentences if source.extent else None
    if part is None:
        return place
    which = (
        f"sentence {part.first}"
        if part.first == part.last
        else f"sentences {part.first}-{part.last}"
    )
    return f"{place} ({which} of {part.of})".lstrip()


def marker_style(verdict: Verdict, url: str) -> Style:
    """Return the style of a marker: `ok` as a link, `earlier` as a dim one, `unknown` struck
    through."""
    if verdict != "unknown":
        return Style(color="cyan", dim=verdict == "earlier" or None, link=safe_link(url))
    return Style(color="red", strike=True)


def safe_link(url: str) -> str | None:
    """Return an address that is safe as a link in a terminal, or None: only http(s), and no
    character that would end the escape sequence."""
    return (
        url
        if url.startswith(("http://", "https://"))
        and url.isascii()
        and url.isprintable()
        and " " not in url
        else None
    )
